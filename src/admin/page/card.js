// One task on the page. Nothing of a task is ever treated as markup: text nodes only.
import { JsonObject, jsonPieces, visiblePieces } from './json.js';

const STATES = {
  pending: 'waiting',
  approved: 'approved',
  executing: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  rejected: 'rejected',
  expired: 'expired',
};
// Above so many lines the arguments are folded, which is said beside them.
const TALL_LINES = 24;
// So is the name of a tool above so many characters.
const LONG_NAME = 128;

function nodesOf({ text, kind }) {
  if (kind === 'text' || kind === 'mark') return [document.createTextNode(text)];
  const span = document.createElement('span');
  span.className = `json-${kind}`;
  span.textContent = text;
  // A text goes on behind its line break, and is marked as going on: without the mark its next
  // line could pass for a member of the arguments.
  return kind === 'break' ? [document.createElement('br'), span] : [span];
}

/** Replaces the content of `element` by pieces of json.js. */
function putPieces(element, pieces) {
  const content = document.createDocumentFragment();
  for (const piece of pieces) content.append(...nodesOf(piece));
  element.replaceChildren(content);
}

export const putText = (element, text) => putPieces(element, visiblePieces(text ?? ''));

const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

function timeElement(text) {
  const time = document.createElement('time');
  time.dateTime = text;
  time.textContent = timeFormat.format(new Date(text));
  return time;
}

function addFact(list, name, value, title) {
  if (value === null || value === undefined || value === '') return;
  const term = document.createElement('dt');
  const description = document.createElement('dd');
  term.textContent = name;
  if (value instanceof Node) description.append(value);
  else putText(description, value);
  if (title) description.title = title;
  list.append(term, description);
}

function remaining(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ].filter(([count]) => count > 0);
  return parts.length === 0 ? '0 s' : parts.slice(0, 2).map(([count, unit]) => `${count} ${unit}`).join(' ');
}

/* Why somebody with the role to decide may not decide this call, by the code of the API. */
const WHY_NOT = {
  own_call: 'This is your own call: somebody else must approve it.',
  not_an_approver: 'You are not among those who decide this workflow.',
};

/** How many persons must approve. */
const neededOf = (task) => task.quorum.members.reduce((sum, [, number]) => sum + Number(number.text), 0);

/** {count: n} or {GROUP: n} in words: "1 more", "1 of dba, 2 of security". */
function missingOf(task) {
  const count = task.missing.get('count');
  if (count !== undefined && task.quorum.get('count') !== undefined) return `${count.text} more`;
  return task.missing.members.map(([group, number]) => `${number.text} of ${group}`).join(', ');
}

/** Votes as a sentence: "1 of 2: alice; needs 1 of security". */
function votesOf(task) {
  const needed = neededOf(task);
  const approvals = task.votes.filter((vote) => vote.get('verb') === 'approve');
  if (needed < 2 && approvals.length < 2 && !task.emergency) return '';
  const names = approvals.map((vote) => `${vote.get('person')}${vote.get('reason') ? ` (“${vote.get('reason')}”)` : ''}`);
  const said = `${task.emergency ? 'In an emergency, alone' : `${approvals.length} of ${needed}`}${names.length > 0 ? `: ${names.join(', ')}` : ''}`;
  return task.missing.members.length > 0 ? `${said}; needs ${missingOf(task)}` : said;
}

export class Card {
  /** `decide(card, verb, reason)` is called for a press of a button. */
  constructor(template, task, decide) {
    this.element = template.content.firstElementChild.cloneNode(true);
    this.part = (name) => this.element.querySelector(name);
    this.element.dataset.taskId = task.id;
    this.id = task.id;
    for (const verb of ['approve', 'reject', 'withdraw', 'emergency']) {
      this.part(`button.${verb}`).addEventListener('click', () => this.hasReason(verb) && decide(this, verb, this.part('.reason').value.trim()));
    }
    this.part('.more').addEventListener('click', () => this.open(!this.element.classList.contains('open')));
    this.part('.unfold').addEventListener('click', () => this.fold(!this.part('.arguments').classList.contains('folded')));
    this.controls = [...this.part('.decision').childNodes];
    this.mayDecide = true;
    this.label(task);
    this.putArguments(task);
    this.putMore('.meta', task.meta, task.redactFields);
    this.putMore('.other-params', task.otherParams, task.redactFields);
    this.open(false);
    this.update(task);
  }

  get isPending() {
    return this.task.state === 'pending';
  }

  label(task) {
    const title = this.part('.tool');
    title.id = `tool-${task.id}`;
    this.element.setAttribute('aria-labelledby', title.id);
    this.part('.reason').id = `reason-${task.id}`;
    this.part('.reason-label').htmlFor = `reason-${task.id}`;
    this.part('.arguments').setAttribute('aria-label', 'Arguments');
    putText(title, task.tool);
    const length = title.textContent.length;
    if (length <= LONG_NAME) return;
    const note = document.createElement('span');
    note.className = 'hint';
    note.textContent = `a name of ${length.toLocaleString()} characters: scroll it`;
    title.classList.add('long');
    title.tabIndex = 0;
    title.after(note);
  }

  putArguments(task) {
    const pieces = jsonPieces(task.arguments, task.redactFields);
    putPieces(this.part('.arguments'), pieces);
    this.lines = pieces.reduce((count, piece) => count + (piece.kind === 'break' ? 1 : piece.text.split('\n').length - 1), 1);
    const characters = pieces.reduce((count, piece) => count + piece.text.length, 0);
    this.isTall = this.lines > TALL_LINES || characters > 3000;
    this.size = `${this.lines} ${this.lines === 1 ? 'line' : 'lines'}, ${characters.toLocaleString()} characters`;
    this.part('.unfold').hidden = !this.isTall;
    this.fold(this.isTall);
  }

  /** The parts of a call beside its arguments; most calls have none. */
  putMore(name, value, hidden) {
    const isNothing = value === undefined || (value instanceof JsonObject && value.members.length === 0);
    this.part(name).closest('.box').hidden = isNothing;
    if (!isNothing) putPieces(this.part(name), jsonPieces(value, hidden));
  }

  fold(folded) {
    this.part('.arguments').classList.toggle('folded', folded);
    this.part('.unfold').textContent = folded ? 'Show all' : 'Show less';
    this.part('.unfold').setAttribute('aria-expanded', String(!folded));
    this.part('.size').textContent = this.isTall ? `${this.size}${folded ? ' · scroll or' : ''}` : '';
  }

  /** Among the decided ones: with or without its details. */
  open(open) {
    this.element.classList.toggle('open', open);
    this.part('.more').textContent = open ? 'Hide details' : 'Details';
    this.part('.more').setAttribute('aria-expanded', String(open));
  }

  /** Shows the task as it is now. */
  update(task) {
    this.task = task;
    this.element.dataset.state = task.state;
    this.part('.state').textContent = STATES[task.state] ?? task.state;
    this.putControls();
    this.putFacts();
    this.putVotes();
    this.putOutcome();
    this.tick();
  }

  putFacts() {
    const { task } = this;
    const list = this.part('.facts');
    list.replaceChildren();
    addFact(list, 'Asked by', task.principal);
    addFact(list, 'Server', task.source);
    addFact(list, 'Workflow', task.workflow);
    addFact(list, 'Asked at', timeElement(task.createdAt));
    addFact(list, 'Task', task.id, `SHA-256 of the arguments: ${task.argumentsDigest}\nof the whole request: ${task.requestDigest ?? 'unknown'}`);
  }

  putOutcome() {
    const { task } = this;
    const line = this.part('.outcome');
    // Another person may have stopped the call later: only the message names that one.
    const wasApproved = task.decidedBy && task.executeBy;
    const verb = wasApproved ? 'Approved' : { rejected: 'Rejected', cancelled: 'Cancelled' }[task.state] ?? 'Approved';
    const said = [];
    if (task.decidedBy) said.push(`${verb} by ${task.decidedBy}${task.decidedAt ? `, ${timeFormat.format(new Date(task.decidedAt))}` : ''}`);
    if (task.reason) said.push(`“${task.reason}”`);
    const repeats = !wasApproved && (task.state === 'rejected' || task.state === 'cancelled');
    if (task.statusMessage && !(said.length > 0 && repeats)) said.push(task.statusMessage);
    line.hidden = this.isPending || said.length === 0;
    putText(line, said.join(' · '));
  }

  /** Brings the countdown up to date. */
  tick(now = Date.now()) {
    const deadline = this.part('.deadline');
    const left = this.isPending && this.task.decideBy ? Date.parse(this.task.decideBy) - now : NaN;
    deadline.hidden = Number.isNaN(left);
    if (Number.isNaN(left)) return;
    deadline.textContent = left > 0 ? `${remaining(left)} left` : 'time is up';
    deadline.classList.toggle('soon', left < 60_000);
  }

  /** Whether the reason that this verb needs is there; else it is asked for. */
  hasReason(verb) {
    const { reasons } = this.task;
    const isNeeded = verb === 'emergency' || (verb !== 'withdraw' && reasons.get(verb) === 'required');
    if (!isNeeded || this.part('.reason').value.trim()) return true;
    this.setProblem(verb === 'emergency' ? 'An emergency needs a reason.' : 'This vote needs a reason.');
    this.part('.reason').focus();
    return false;
  }

  /** An operator without the right to decide gets no buttons. */
  allow(mayDecide) {
    this.mayDecide = mayDecide;
    this.putControls();
  }

  /** Only the buttons that this person may press; without any, a word on why. */
  putControls() {
    const decision = this.part('.decision');
    const { you, reasons } = this.task;
    const may = (verb) => this.mayDecide && you.get(verb) === true;
    const verbs = ['approve', 'reject', 'withdraw', 'emergency'];
    const shown = this.isPending && verbs.some(may);
    decision.hidden = !shown;
    if (!shown) decision.replaceChildren();
    else if (!decision.hasChildNodes()) decision.replaceChildren(...this.controls);
    if (shown) {
      for (const verb of verbs) this.part(`button.${verb}`).hidden = !may(verb);
      // An emergency is for when the others cannot be reached: not beside a vote that decides by itself.
      this.part('button.emergency').hidden ||= may('approve') && neededOf(this.task) < 2;
      const required = ['approve', 'reject'].filter((verb) => may(verb) && reasons.get(verb) === 'required');
      this.part('.reason').required = required.length > 0;
      this.part('.reason-label .hint').textContent = required.length > 0 ? `(required to ${required.join(' or ')}, kept with the decision)` : '(optional, kept with the decision)';
    }
    const why = this.part('.why-not');
    why.hidden = !(this.isPending && this.mayDecide && !may('approve') && WHY_NOT[you.get('code')]);
    why.textContent = why.hidden ? '' : WHY_NOT[you.get('code')];
  }

  putVotes() {
    const text = votesOf(this.task);
    this.part('.votes').hidden = text === '';
    putText(this.part('.votes'), text);
  }

  setBusy(verb) {
    this.element.setAttribute('aria-busy', String(verb !== null));
    for (const button of this.element.querySelectorAll('.buttons button')) button.disabled = verb !== null;
    this.setProblem('');
  }

  setProblem(text) {
    putText(this.part('.problem'), text);
  }
}
