// The details of one task: what surrounds the call, then the call itself, then the decision.
import { lastApproved } from './api.js';
import { linkOf } from './address.js';
import { changeElement } from './changes.js';
import { differences } from './diff.js';
import { JsonObject, jsonPieces } from './json.js';
import { make, putPieces, putText, timeElement, timeText } from './text.js';
import { isPending, may, needsReason, neededOf, VERBS, whyNot } from './votes.js';

// Above so many lines the arguments are folded, which is said beside them.
const TALL_LINES = 24;
const TALL_CHARACTERS = 3000;
// The line above has a name as long as that whole.
const LONG_NAME = 128;

function addFact(list, name, value, title) {
  if (value === null || value === undefined || value === '') return;
  const description = make('dd');
  if (value instanceof Node) description.append(value);
  else putText(description, value);
  if (title) description.title = title;
  list.append(make('dt', '', name), description);
}

export class Detail {
  /** `decide(verb, reason)` is called for a press of a button whose reason is there. */
  constructor(row, decide) {
    this.row = row;
    this.element = document.getElementById('detail').content.firstElementChild.cloneNode(true);
    this.part = (name) => this.element.querySelector(name);
    const { task } = row;
    for (const verb of VERBS) {
      this.part(`button.${verb}`).addEventListener('click', () => this.hasReason(verb) && decide(verb, this.reason));
    }
    this.part('.unfold').addEventListener('click', () => this.fold(!this.part('.arguments').classList.contains('folded')));
    this.part('.copy-link').addEventListener('click', () => this.copyLink());
    this.part('.reason').id = `reason-${task.id}`;
    this.part('.reason-label').htmlFor = `reason-${task.id}`;
    this.controls = [...this.part('.decision').childNodes];
    this.putArguments(task);
    this.putMore('.meta', task.meta, task.redactFields);
    this.putMore('.other-params', task.otherParams, task.redactFields);
  }

  get reason() {
    return this.part('.reason')?.value.trim() ?? '';
  }

  putArguments(task) {
    const pieces = jsonPieces(task.arguments, task.redactFields);
    putPieces(this.part('.arguments'), pieces);
    const lines = pieces.reduce((count, piece) => count + (piece.kind === 'break' ? 1 : piece.text.split('\n').length - 1), 1);
    const characters = pieces.reduce((count, piece) => count + piece.text.length, 0);
    this.isTall = lines > TALL_LINES || characters > TALL_CHARACTERS;
    this.size = `${lines} ${lines === 1 ? 'line' : 'lines'}, ${characters.toLocaleString()} characters`;
    this.part('.unfold').hidden = !this.isTall;
    this.fold(this.isTall);
  }

  /** The parts of a call beside its arguments; most calls have none. */
  putMore(name, value, hidden) {
    const isNothing = value === undefined || (value instanceof JsonObject && value.members.length === 0);
    this.part(name).closest('.box').hidden = isNothing;
    if (!isNothing) putPieces(this.part(name), jsonPieces(value, hidden));
  }

  fold(isFolded) {
    this.part('.arguments').classList.toggle('folded', isFolded);
    this.part('.unfold').textContent = isFolded ? 'Show all' : 'Show less';
    this.part('.unfold').setAttribute('aria-expanded', String(!isFolded));
    this.part('.size').textContent = this.isTall ? `${this.size}${isFolded ? ' · scroll or' : ''}` : '';
  }

  /** Shows the task as it is now. */
  update(task) {
    this.task = task;
    this.putFacts();
    this.putControls();
  }

  /** Somebody looks at it: what must be asked of the gateway first is asked now. */
  shown() {
    if (this.isCompared) return;
    this.isCompared = true;
    if (isPending(this.task)) this.compare();
  }

  putFacts() {
    const { task } = this;
    const list = this.part('.facts');
    list.replaceChildren();
    if (task.tool.length > LONG_NAME) addFact(list, 'Tool', make('div', 'whole-name', task.tool));
    addFact(list, 'Asked by', task.principal);
    addFact(list, 'Server', task.source);
    addFact(list, 'Workflow', task.workflow);
    addFact(list, 'Rule', task.rule);
    addFact(list, 'Asked at', timeElement(task.createdAt));
    addFact(list, 'Task', task.id, `SHA-256 of the arguments: ${task.argumentsDigest}\nof the whole request: ${task.requestDigest ?? 'unknown'}`);
  }

  /* An approval by habit is the danger: what is different this time stands before the arguments. */
  async compare() {
    let last;
    try {
      last = await lastApproved(this.task);
    } catch {
      return; // the connection, which the page speaks of elsewhere
    }
    if (!last || !isPending(this.task)) return;
    const title = `Compared with the call that ${last.decidedBy} approved, ${timeText(last.decidedAt ?? last.createdAt)}`;
    this.putDifferences('.since-last', title, last.arguments, this.task.arguments);
  }

  putDifferences(name, title, before, after) {
    const hidden = this.task.redactFields;
    const found = differences(before, after, hidden);
    const box = this.part(name);
    box.hidden = false;
    putText(box.querySelector('.arguments-title'), title);
    const list = box.querySelector('.changes');
    list.replaceChildren(...found.changes.map(changeElement));
    const notes = [];
    if (found.changes.length === 0) notes.push('The arguments are the same.');
    if (found.isCut) notes.push('There are more differences than are shown here.');
    if (found.hasHidden) notes.push('Hidden values are not compared.');
    box.querySelector('.note').textContent = notes.join(' ');
  }

  async copyLink() {
    const button = this.part('.copy-link');
    try {
      await navigator.clipboard.writeText(linkOf(this.task.id));
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed here: copy the address of this page';
    }
  }

  /** Whether the reason that this verb needs is there; else it is asked for. */
  hasReason(verb) {
    if (verb === 'withdraw' || !needsReason(this.task, verb) || this.reason) return true;
    this.row.setProblem(verb === 'emergency' ? 'An emergency needs a reason.' : 'This vote needs a reason.');
    this.part('.reason').focus();
    return false;
  }

  /** Only the buttons that this person may press; without any, a word on why. */
  putControls() {
    const { task } = this;
    const decision = this.part('.decision');
    const isShown = isPending(task) && VERBS.some((verb) => may(task, verb));
    decision.hidden = !isShown;
    if (!isShown) decision.replaceChildren();
    else if (!decision.hasChildNodes()) decision.replaceChildren(...this.controls);
    if (isShown) this.putButtons();
    const why = isPending(task) ? whyNot(task) : '';
    this.part('.why-not').hidden = why === '';
    this.part('.why-not').textContent = why;
  }

  putButtons() {
    const { task } = this;
    for (const verb of VERBS) this.part(`button.${verb}`).hidden = !may(task, verb);
    // An emergency is for when the others cannot be reached: not beside a vote that decides by itself.
    this.part('button.emergency').hidden ||= may(task, 'approve') && neededOf(task) < 2;
    const required = ['approve', 'reject'].filter((verb) => may(task, verb) && needsReason(task, verb));
    this.part('.reason').required = required.length > 0;
    this.part('.reason-label .hint').textContent = required.length > 0 ? `(required to ${required.join(' or ')}, kept with the decision)` : '(optional, kept with the decision)';
  }

  setBusy(isBusy) {
    for (const button of this.element.querySelectorAll('.buttons button')) button.disabled = isBusy;
  }
}
