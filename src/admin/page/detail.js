// The details of one task: what surrounds the call, then the call itself, then the decision.
import { ApiError, blockCaller, cancelCall, lastApproved, linkOf, outcomeOfCall } from './api.js';
import { isPending, may, neededOf, needsReason, VERBS, whyNot } from './task.js';
import { addMark, askerText, JsonNumber, JsonObject, jsonPieces, make, notesOf, plural, putPieces, putText, readJson, timeElement, timeText, visibleText } from './text.js';

const byId = (id) => document.getElementById(id);

// Blocks: the dialog that stops the caller of a task for a while.

/** Whether this person may block; set once it is known who they are. */
export const blocks = { mayBlock: false };

let blockAsked; // {task, told} of the open dialog

/** Asks for a block of the task's caller, and makes it. `told(text)` when it is made. */
function askBlock(task, told) {
  blockAsked = { task, told };
  putText(byId('block-asker'), `${askerText(task)} at ${task.source}`);
  // A new session of a caller that is not verified is a new owner.
  byId('block-scope').value = task.principalBy === 'issuer' ? 'owner' : 'client';
  byId('block-reason').value = '';
  byId('block-problem').textContent = '';
  byId('block-dialog').showModal();
  byId('block-reason').focus();
}

async function makeBlock() {
  const { task, told } = blockAsked;
  const button = byId('block-confirm');
  button.disabled = true;
  try {
    const { until } = await blockCaller({ task: task.id, scope: byId('block-scope').value, for: byId('block-for').value, reason: byId('block-reason').value.trim() });
    byId('block-dialog').close();
    told(`Blocked until ${timeText(until)}`);
  } catch (error) {
    putText(byId('block-problem'), error instanceof ApiError && error.status > 0 ? `Not done: ${error.message}` : 'It is not known whether this block arrived: the gateway does not answer.');
  } finally {
    button.disabled = false;
  }
}

byId('block-form').addEventListener('submit', (event) => {
  event.preventDefault();
  makeBlock();
});
byId('block-cancel').addEventListener('click', () => byId('block-dialog').close());

// The differences between the arguments of two calls, place by place.

// More differences than that help nobody who must decide.
const MOST_CHANGES = 100;

const isLeaf = (value) => !(value instanceof JsonObject) && !Array.isArray(value);
const pieceText = (value) => jsonPieces(value, [], [], true).map((piece) => piece.text).join('');

function same(a, b) {
  if (a instanceof JsonNumber || b instanceof JsonNumber) return a?.text === b?.text && a instanceof JsonNumber && b instanceof JsonNumber;
  return isLeaf(a) && isLeaf(b) ? a === b : false;
}

/**
 * Differences of `after` against `before`: {path, kind, before, after}, kind 'added', 'removed' or
 * 'changed'. `hidden`: dot paths whose values the gateway keeps back; what cannot be seen is not
 * compared. `isCut` when there are more than are listed.
 */
function differences(before, after, hidden = []) {
  const paths = hidden.map((path) => path.split('.'));
  const found = { changes: [], isCut: false, hasHidden: false };
  compare(found, before, after, '', paths);
  return found;
}

function add(found, change) {
  if (found.changes.length < MOST_CHANGES) found.changes.push(change);
  else found.isCut = true;
}

function compare(found, before, after, path, hidden) {
  if (found.isCut) return;
  if (hidden.some((rest) => rest.length === 0)) {
    found.hasHidden = true;
  } else if (before instanceof JsonObject && after instanceof JsonObject) {
    compareMembers(found, before, after, path, hidden);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    compareItems(found, before, after, path, hidden);
  } else if (!same(before, after)) {
    add(found, { path: path || 'all', kind: 'changed', before, after });
  }
}

const below = (hidden, key) => hidden.filter((path) => path[0] === key).map((path) => path.slice(1));
const step = (path, key) => `${path}${/^[A-Za-z_][\w-]*$/.test(key) ? `${path ? '.' : ''}${key}` : `[${JSON.stringify(key)}]`}`;

function compareMembers(found, before, after, path, hidden) {
  const [old, now] = [new Map(before.members), new Map(after.members)];
  for (const [key, value] of now) {
    const [place, rest] = [step(path, key), below(hidden, key)];
    if (old.has(key)) compare(found, old.get(key), value, place, rest);
    else add(found, { path: place, kind: 'added', after: value, hidden: rest });
    if (found.isCut) return;
  }
  for (const [key, value] of old) {
    if (!now.has(key)) add(found, { path: step(path, key), kind: 'removed', before: value, hidden: below(hidden, key) });
    if (found.isCut) return;
  }
}

/* An item that was put in must not make all behind it look changed: equal beginnings and ends go first. */
function compareItems(found, before, after, path, hidden) {
  const equal = (a, b) => same(a, b) || (!isLeaf(a) && !isLeaf(b) && pieceText(a) === pieceText(b));
  let start = 0;
  while (start < before.length && start < after.length && equal(before[start], after[start])) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && equal(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  for (let at = 0; at < Math.max(old.length, now.length) && !found.isCut; at += 1) {
    const place = `${path}[${start + at}]`;
    if (at >= old.length) add(found, { path: place, kind: 'added', after: now[at], hidden });
    else if (at >= now.length) add(found, { path: place, kind: 'removed', before: old[at], hidden });
    else compare(found, old[at], now[at], place, hidden);
  }
}

// One difference between two calls, as a line of a list.

const SIGNS = { added: '+', removed: '−', changed: '±' };
// The whole value is among the arguments.
const MOST_PIECES = 80;
const MOST_CHARACTERS = 600;

function beginning(pieces) {
  const taken = [];
  let left = MOST_CHARACTERS;
  for (const piece of pieces.slice(0, MOST_PIECES)) {
    if (left <= 0) break;
    taken.push({ ...piece, text: piece.text.slice(0, left) });
    left -= piece.text.length;
  }
  return left < 0 || pieces.length > MOST_PIECES ? [...taken, { text: ' …', kind: 'mark' }] : taken;
}

/* `hidden` has the rests of paths below this value; one without a step hides the value itself. */
function valueElement(name, value, hidden) {
  const element = make(name, 'json-value');
  if (hidden.some((rest) => rest.length === 0)) element.append(make('span', 'json-redacted', '[REDACTED]'));
  else putPieces(element, beginning(jsonPieces(value, hidden.map((rest) => rest.join('.')))));
  return element;
}

/** An element for a change of diff.js. */
function changeElement({ path, kind, before, after, hidden = [] }) {
  const item = make('li', kind);
  const sign = make('span', 'sign', SIGNS[kind]);
  sign.setAttribute('aria-hidden', 'true');
  const values = make('span', 'values');
  if (kind !== 'added') values.append(valueElement('del', before, hidden));
  if (kind !== 'removed') values.append(valueElement('ins', after, hidden));
  item.append(sign, make('span', 'sr-only', `${kind}: `), make('code', 'path', path), values);
  return item;
}

// A request is decided on when its end was on screen: each part of it ends in an element that is watched for.

/** The parts of a request beside its arguments, for a person. */
export const PART_NAMES = { _meta: 'the metadata', params: 'the other parameters', headers: 'the headers' };

/** An element at the end of a part of a request. `name` is the part, for a person. */
export function endOf(name) {
  const end = make('span', 'end-of-request');
  end.dataset.part = name;
  return end;
}

/* Whether an element is within the window and within every box around it that scrolls, and nothing lies over it. */
function isOnScreen(element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  if (bottom <= top || document.visibilityState !== 'visible') return false;
  let [from, to] = [0, innerHeight];
  for (let box = element.parentElement; box && box !== document.documentElement; box = box.parentElement) {
    if (getComputedStyle(box).overflowY === 'visible') continue;
    const outer = box.getBoundingClientRect();
    [from, to] = [Math.max(from, outer.top), Math.min(to, outer.bottom)];
  }
  if (top < from - 1 || bottom > to + 1) return false;
  return [left, (left + right) / 2, right - 1].every((x) => {
    const over = document.elementFromPoint(x, (top + bottom) / 2);
    return over === null || over.contains(element);
  });
}

/* Those with an end that is not seen yet. An end comes out from below the bar of the selection by scrolling alone, of
 * which the observer says nothing. */
const looking = new Set();
document.addEventListener('scroll', () => {
  for (const seen of looking) seen.look();
}, { capture: true, passive: true });

/** Says what is left to see. Less text, or none, leaves the buttons below where they are. */
export function putKeepingRoom(element, text) {
  if (text !== '') element.textContent = text;
  element.classList.toggle('done', text === '');
  element.style.minHeight = `${element.getBoundingClientRect().height}px`;
}

export class Seen {
  /** `changed()` is called when an end came on screen. */
  constructor(changed) {
    this.changed = changed;
    this.ends = new Set();
    this.observer = new IntersectionObserver(() => this.look());
  }

  /** Watches all ends in these elements; those of before are done with. */
  watch(...elements) {
    this.observer.disconnect();
    this.ends = new Set(elements.flatMap((element) => [...element.querySelectorAll('.end-of-request')]));
    for (const end of this.ends) this.observer.observe(end);
    this.look();
  }

  /** Looks now, for those who cannot wait for the next frame. */
  look() {
    for (const end of this.ends) {
      if (!isOnScreen(end)) continue;
      this.ends.delete(end);
      this.observer.unobserve(end);
    }
    if ([...this.ends].some((end) => end.isConnected)) looking.add(this);
    else looking.delete(this);
    this.changed();
  }

  /** A sentence on what is left to see; '' when nothing is. */
  get text() {
    const parts = [...new Set([...this.ends].map((end) => end.dataset.part))];
    return parts.length === 0 ? '' : `Approving is possible when the end of each of these was on screen: ${parts.join(', ')}.`;
  }
}

// The outcomes of the other calls of a tool, beside one that is looked at.

const OUTCOMES = ['approved', 'rejected', 'expired', 'failed'];

function countsText(counts) {
  return OUTCOMES.map((name) => `${Number(counts.get(name).text).toLocaleString('en')} ${name}`).join(', ');
}

/* "30 days: 12 approved, …; this caller: …; …" */
function pastText(history) {
  const parts = [`${history.get('days').text} days: ${countsText(history)}`, `this caller: ${countsText(history.get('caller'))}`];
  const [same, last] = [history.get('same'), history.get('last')];
  if (same) parts.push(`approvals with these arguments: ${same.get('approved').text}, last ${timeText(same.get('at'))}`);
  if (last) parts.push(`last ${last.get('outcome')} by ${last.get('person')}, ${timeText(last.get('at'))}${last.get('reason') ? `: “${last.get('reason')}”` : ''}`);
  return parts.join('; ');
}

/** Whether the gateway knows of an approved call to compare with. */
const hasApproved = ({ history }) => Number(history?.get('approved').text) > 0 || history?.get('last')?.get('outcome') === 'approved';

/**
 * Fills the line; a task that has just been decided comes without it, and leaves the line as it is. While the call waits
 * it stays what it was first: a longer one would move the buttons.
 */
function putPast(line, task) {
  const { history } = task;
  if (!history || (isPending(task) && !line.hidden)) return;
  putText(line, pastText(history));
  line.hidden = false;
}

// The context of a call: the words of its rule, of its caller and of the server, each as what it is.

// The line above has a name as long as that whole.
const LONG_NAME = 128;

const WITNESSES = {
  client: 'the client says so; nobody has verified it',
  issuer: 'verified by the issuer',
  gateway: 'a token of this gateway',
};

/* The hints of the protocol, in words: [when true, when false]. */
const HINTS = {
  readOnlyHint: ['only reads', 'may change things'],
  destructiveHint: ['may destroy', 'destroys nothing'],
  idempotentHint: ['twice is like once', 'twice is not like once'],
  openWorldHint: ['reaches the world outside', 'stays inside'],
};

function addFact(list, name, value, { title, hint, mark } = {}) {
  if (value === null || value === undefined || value === '') return;
  const description = make('dd');
  if (value instanceof Node) description.append(value);
  else putText(description, value);
  if (hint) description.append(' ', make('span', 'hint', hint));
  if (title) description.title = title;
  if (mark) addMark(description, ...mark);
  list.append(make('dt', '', name), description);
}

/** Fills the list of facts about `task`. */
function putFacts(list, task) {
  list.replaceChildren();
  if (task.tool.length > LONG_NAME) addFact(list, 'Tool', make('div', 'whole-name', task.tool));
  addFact(list, 'Asked by', askerText(task), { hint: WITNESSES[task.principalBy] && `(${WITNESSES[task.principalBy]})`, mark: [task, 'principal'] });
  addFact(list, 'Rule', task.rule, { hint: task.ruleDescription && `— ${task.ruleDescription}` });
  addFact(list, 'Server', task.source);
  addFact(list, 'Workflow', task.workflow);
  addFact(list, 'Asked at', timeElement(task.createdAt));
  if (task.execution) addFact(list, 'Execution', make('span', 'execution', executionText(task.execution)));
  if (task.grant) addFact(list, 'Grant', grantText(task.grant));
  addFact(list, 'Task', task.id, { title: `SHA-256 of the arguments: ${task.argumentsDigest}\nof the whole request: ${task.requestDigest ?? 'unknown'}` });
}

/* Of an approved call: what became of it. */
function executionText(execution) {
  const [state, until, started, took] = ['state', 'until', 'startedAt', 'durationMs'].map((name) => execution.get(name));
  if (until) return `waits for the credentials of its caller, until ${timeText(until)}`;
  if (!started) return 'never begun';
  const trace = execution.get('traceId') ? ` · trace ${execution.get('traceId')}` : '';
  return (state === 'executing' ? `runs since ${timeText(started)}` : `began ${timeText(started)}, took ${Number(took?.text ?? 0).toLocaleString('en')} ms`) + trace;
}

function grantText(grant) {
  const calls = grant.get('calls')?.text;
  return grant.get('use') ? `call ${grant.get('use').text} of ${calls} of ${grant.get('id')}` : `given with this approval, for ${calls} more: ${grant.get('id')}`;
}

function hintElements(annotations) {
  const known = Object.entries(HINTS).filter(([name]) => typeof annotations.get(name) === 'boolean');
  return known.map(([name, [yes, no]]) => {
    const item = make('li', name === 'destructiveHint' && annotations.get(name) ? 'risky' : '', annotations.get(name) ? yes : no);
    item.title = `${name}: ${annotations.get(name)}`;
    return item;
  });
}

function objectOf(members) {
  const object = new JsonObject();
  object.members = Object.entries(members).filter(([, value]) => value !== null);
  return object;
}

/* Of a tool that is another one now. */
function putDefinition(box, { definitionChanged, toolDescription, toolAnnotations, toolNow }) {
  box.hidden = !definitionChanged;
  if (!definitionChanged) return;
  const now = { description: toolNow.get('description'), annotations: toolNow.get('annotations') };
  const { changes } = differences(objectOf({ description: toolDescription, annotations: toolAnnotations }), objectOf(now));
  box.querySelector('.changes').replaceChildren(...changes.map(changeElement));
  box.querySelector('.note').textContent = changes.length === 0 ? 'Its schema or its title has changed.' : '';
}

function putAgentSays(box, task) {
  box.hidden = !task.reasonOfAgent;
  putText(box.querySelector('.reason-of-agent'), task.reasonOfAgent);
  addMark(box.querySelector('.reason-of-agent'), task, 'taskgate_reason');
}

/** The words of the agent, as in the card; none where it says nothing. */
export function agentSays(task) {
  if (!task.reasonOfAgent) return [];
  const box = document.getElementById('detail').content.querySelector('.agent-says').cloneNode(true);
  putAgentSays(box, task);
  return [box];
}

/** Fills the box with the sentence of the rule and the words of the server. */
function putContext(part, task) {
  part('.summary').hidden = !task.summary;
  putText(part('.summary'), task.summary);
  putAgentSays(part('.agent-says'), task);
  part('.unlisted').hidden = task.listed !== false;
  const annotations = task.toolAnnotations instanceof JsonObject ? task.toolAnnotations : null;
  part('.server-says').hidden = !task.toolDescription && !annotations;
  // Its lines stay lines, within the border that marks them as the server's.
  part('.description').replaceChildren(...(task.toolDescription ?? '').split(/\r?\n/).map((line) => make('span', 'paragraph', line)));
  part('.hints').replaceChildren(...(annotations ? hintElements(annotations) : []));
  const others = annotations?.members.filter(([name, value]) => !(name in HINTS && typeof value === 'boolean')) ?? [];
  const rest = new JsonObject();
  rest.members = others;
  putDefinition(part('.definition-now'), task);
  part('.annotations').hidden = others.length === 0;
  putPieces(part('.annotations'), others.length > 0 ? jsonPieces(rest) : []);
}

// Other arguments in place of the client's, at the paths where the workflow allows it.

const jsonText = (value) => jsonPieces(value, [], [], true).map((piece) => piece.text).join('');

class Edit {
  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(name);
    this.part('.edit-begin').addEventListener('click', () => this.begin());
    this.part('.edit-drop').addEventListener('click', () => this.drop());
    this.part('.edited').addEventListener('input', () => this.show());
  }

  /** Offers what the workflow allows, to whom it allows it. Hidden values cannot be sent back, so they forbid it. */
  offer(task) {
    this.task = task;
    this.isOffered = task.allowEdit?.length > 0 && task.you.get('edit') === true && task.redactFields.length === 0;
    this.element.hidden = !this.isOffered;
    if (!this.isOffered) return;
    putText(this.part('.edit-paths'), `You may change ${task.allowEdit.map((path) => visibleText(path)).join(', ')}.`);
  }

  get isOpen() {
    return this.isOffered && !this.part('.edit-area').hidden;
  }

  begin() {
    const area = this.part('.edited');
    area.value = jsonText(this.task.arguments);
    area.rows = Math.min(24, area.value.split('\n').length + 1);
    this.part('.edit-area').hidden = false;
    this.part('.edit-begin').hidden = true;
    this.show();
    area.focus();
  }

  drop() {
    this.part('.edit-area').hidden = true;
    this.part('.edit-begin').hidden = false;
    this.part('.edit-begin').focus();
  }

  /** The new arguments as a JSON value; null when what is typed is none. */
  get value() {
    try {
      const value = readJson(this.part('.edited').value);
      return value instanceof JsonObject ? value : null;
    } catch {
      return null;
    }
  }

  show() {
    const { value } = this;
    const found = value ? differences(this.task.arguments, value) : { changes: [] };
    this.part('.edit-changes').replaceChildren(...found.changes.map(changeElement));
    this.part('.edit-note').textContent = !value ? 'This is not a JSON object.' : found.changes.length === 0 ? 'Nothing is changed.' : found.isCut ? 'There are more changes than are shown here.' : '';
    this.isChanged = found.changes.length > 0;
    this.typed = undefined;
  }

  /** The gateway wants the value at this path typed for the new arguments. Returns whether they are asked for, and it is another one. */
  ask(path) {
    if (!this.text || this.edited.typed?.get('path') === path) return false;
    this.typed = new Map([['path', path]]);
    return true;
  }

  /** The text to send with an approval; undefined: the client's arguments; null: it cannot be sent. */
  get text() {
    if (!this.isOpen) return undefined;
    if (!this.value) return null;
    return this.isChanged ? this.part('.edited').value : undefined;
  }

  /** The task as it would be with the new arguments. */
  get edited() {
    return this.text ? { ...this.task, arguments: this.value, typed: this.typed ?? this.task.typed } : this.task;
  }
}

// The wish beside an approval: the same call again, for a while and so often.

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const CHOICES = ['10m', '30m', '1h', '4h', '8h', '1d'];

/** Milliseconds of a duration as the configuration has it: "1h30m". */
function durationMs(text) {
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)].reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

/* With several votes all must ask for the same, so the first wish is offered to the next. */
const firstWish = (task) => task.votes.map((vote) => vote.get('grant')).find((grant) => grant?.get?.('for'));

class GrantWish {
  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(name);
    this.part('.grant-wanted').addEventListener('change', () => this.show());
  }

  /** Offers what the workflow allows, to whom it allows it. */
  offer(task) {
    const offer = task.grantOffer;
    this.isOffered = Boolean(offer) && task.you.get('grant') === true;
    this.element.hidden = !this.isOffered;
    if (!this.isOffered || this.isFilled) return;
    this.isFilled = true;
    const most = offer.get('max');
    const wish = firstWish(task);
    const shorter = CHOICES.filter((choice) => durationMs(choice) < durationMs(most));
    this.part('.grant-for').replaceChildren(...[...shorter, most].map((choice) => new Option(choice, choice)));
    if (wish && ![...shorter, most].includes(wish.get('for'))) this.part('.grant-for').add(new Option(wish.get('for'), wish.get('for')));
    this.part('.grant-for').value = wish?.get('for') ?? most;
    this.part('.grant-calls').max = offer.get('maxCalls').text;
    this.part('.grant-calls').value = wish?.get('calls').text ?? offer.get('maxCalls').text;
    const vary = (offer.get('vary') ?? []).map((path) => visibleText(path)).join(', ');
    putText(this.part('.grant-vary'), vary ? `Only these arguments may differ: ${vary}.` : 'Every argument must be the same.');
    this.show();
  }

  show() {
    this.part('.grant-terms').hidden = !this.part('.grant-wanted').checked;
  }

  /** {for, calls}, or undefined; null when what is typed is no number that is allowed. */
  get value() {
    if (!this.isOffered || !this.part('.grant-wanted').checked) return undefined;
    const calls = this.part('.grant-calls');
    if (!calls.checkValidity() || calls.value === '') return null;
    return { for: this.part('.grant-for').value, calls: Number(calls.value) };
  }
}

// The end of an approved call: the first words of its outcome, and the button that ends it early.

const MOST_BYTES = 1024;
const CANCELLABLE = new Set(['approved', 'executing']);

/* The first text of a result, or the message of an error. */
function wordsOf({ result, error }) {
  if (error) return { title: 'Error', text: error.message ?? '' };
  const first = result?.content?.find?.(({ type }) => type === 'text')?.text;
  return { title: result?.isError ? 'Error of the tool' : 'Result', text: first ?? JSON.stringify(result?.structuredContent ?? result ?? null) };
}

function cut(text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MOST_BYTES) return text;
  return `${new TextDecoder().decode(bytes.slice(0, MOST_BYTES)).replace(/\uFFFD$/, '')}…`;
}

class Execution {
  constructor(part, row) {
    this.part = part;
    this.row = row;
    part('button.cancel').addEventListener('click', () => this.cancel());
  }

  update(task) {
    this.task = task;
    const isApprover = document.getElementById('may-not-decide').hidden;
    this.part('button.cancel').hidden = !(isApprover && CANCELLABLE.has(task.state));
    if (this.isOpen) this.shown();
  }

  /** Somebody looks at it: the outcome is asked for once. */
  async shown() {
    this.isOpen = true;
    if (this.isAsked || this.task.execution?.get('state') !== 'done' || !this.task.execution.get('startedAt')) return;
    this.isAsked = true;
    try {
      const { title, text } = wordsOf(await outcomeOfCall(this.task.id));
      this.part('.outcome-title').textContent = title;
      putText(this.part('.outcome-text'), cut(text));
      this.part('.outcome-box').hidden = false;
    } catch {
      this.isAsked = false; // the connection, which the page speaks of elsewhere
    }
  }

  async cancel() {
    if (!confirm(`Cancel ${this.row.name}? What has begun at the server may have had its effect.`)) return;
    const button = this.part('button.cancel');
    button.disabled = true;
    try {
      await cancelCall(this.task.id);
    } catch (error) {
      this.row.setProblem(error.message);
    } finally {
      button.disabled = false;
    }
  }
}

// Above so many lines the arguments are folded, which is said beside them.
const TALL_LINES = 24;
const TALL_CHARACTERS = 3000;

/* What somebody fills in, in words. */
const FIELDS = {
  '.reason': 'Reason',
  '.edited': 'New arguments',
  '.grant-wanted': 'Allow the same call again without being asked',
  '.grant-for': 'Allow it for',
  '.grant-calls': 'Allow so many calls',
};

export class Detail {
  /** `decide(verb, reason)` is called for a press of a button whose reason is there. */
  constructor(row, decide) {
    this.row = row;
    this.element = document.getElementById('detail').content.firstElementChild.cloneNode(true);
    this.part = (name) => this.element.querySelector(name);
    const { task } = row;
    for (const verb of VERBS) {
      // The second click of two on a dialog's button comes down on what was below it.
      this.part(`button.${verb}`).addEventListener('click', ({ detail }) => detail < 2 && this.hasReason(verb) && this.hasTerms(verb) && decide(verb, this.reason));
    }
    this.part('.unfold').addEventListener('click', () => this.fold(!this.part('.arguments').classList.contains('folded')));
    this.part('button.block').addEventListener('click', () => askBlock(this.task, (text) => this.row.setProblem(text)));
    this.part('.copy-link').addEventListener('click', () => this.copyLink());
    this.part('.reason').id = `reason-${task.id}`;
    this.part('.reason-label').htmlFor = `reason-${task.id}`;
    this.wish = new GrantWish(this.part('.grant-wish'));
    this.edit = new Edit(this.part('.edit'));
    this.execution = new Execution(this.part, row);
    for (const button of this.element.querySelectorAll('button')) this.nameButton(button);
    for (const [name, words] of Object.entries(FIELDS)) this.part(name).setAttribute('aria-label', `${words}: ${row.name}`);
    this.controls = [...this.part('.decision').childNodes];
    this.seen = new Seen(() => this.putSeen());
    this.putArguments(task);
    this.putMore('.meta', task.meta, task, '_meta');
    this.putMore('.other-params', task.otherParams, task, 'params');
    this.putMore('.headers', task.headers, task, 'headers');
    this.seen.watch(this.element);
  }

  /* Controls of different calls have different names. */
  nameButton(button) {
    button.setAttribute('aria-label', `${button.textContent}: ${this.row.name}`);
  }

  get reason() {
    return this.part('.reason')?.value.trim() ?? '';
  }

  putArguments(task) {
    const pieces = jsonPieces(task.arguments, task.redactFields, task.highlight, false, notesOf(task));
    putPieces(this.part('.arguments'), pieces);
    this.part('.arguments').append(endOf('the arguments'));
    const lines = pieces.reduce((count, piece) => count + (piece.kind === 'break' ? 1 : piece.text.split('\n').length - 1), 1);
    const characters = pieces.reduce((count, piece) => count + piece.text.length, 0);
    this.isTall = lines > TALL_LINES || characters > TALL_CHARACTERS;
    this.size = `${lines} ${lines === 1 ? 'line' : 'lines'}, ${characters.toLocaleString()} characters`;
    this.part('.unfold').hidden = !this.isTall;
    this.fold(this.isTall);
  }

  /** The parts of a call beside its arguments; most calls have none. */
  putMore(name, value, task, top) {
    const isNothing = value === undefined || (value instanceof JsonObject && value.members.length === 0);
    this.part(name).closest('.box').hidden = isNothing;
    if (isNothing) return;
    putPieces(this.part(name), jsonPieces(value, task.redactFields, [], false, notesOf(task, top)));
    this.part(name).append(endOf(PART_NAMES[top]));
  }

  fold(isFolded) {
    this.part('.arguments').classList.toggle('folded', isFolded);
    this.part('.unfold').textContent = isFolded ? 'Show all' : 'Show less';
    this.nameButton(this.part('.unfold'));
    this.part('.unfold').setAttribute('aria-expanded', String(!isFolded));
    this.part('.size').textContent = this.isTall ? `${this.size}${isFolded ? ' · scroll or' : ''}` : '';
  }

  /** Shows the task as it is now. */
  update(task) {
    this.task = task;
    this.part('button.block').hidden = !blocks.mayBlock;
    putFacts(this.part('.facts'), task);
    putContext(this.part, task);
    putPast(this.part('.past'), task);
    this.execution.update(task);
    this.putOriginal();
    this.putControls();
  }

  /** Somebody looks at it: what must be asked of the gateway first is asked now. */
  shown() {
    if (!this.isShown && isPending(this.task) && hasApproved(this.task)) this.compare();
    this.isShown = true;
    this.seen.look();
    this.execution.shown();
  }

  /* An approval by habit is the danger: what is different this time is before the arguments. The box has its room
   * before its words, or it would push the buttons away from under a press. */
  async compare() {
    this.part('.since-last').hidden = false;
    const say = (text) => putText(this.part('.since-last .arguments-title'), text);
    say('Looking for the last call that a person approved…');
    try {
      const last = await lastApproved(this.task);
      if (!last) return say('The last call that a person approved is not kept any more.');
      const title = `Compared with the call that ${last.decidedBy} approved, ${timeText(last.decidedAt ?? last.createdAt)}`;
      this.putDifferences('.since-last', title, last.arguments, this.task.arguments);
    } catch {
      say('The last call that a person approved could not be read.');
    }
  }

  /* The client's own arguments, when a changed call runs. */
  putOriginal() {
    const { originalArguments, decidedBy } = this.task;
    if (!originalArguments || this.hasOriginal) return;
    this.hasOriginal = true;
    this.putArguments(this.task);
    this.seen.watch(this.element);
    this.putDifferences('.since-original', `Changed by ${decidedBy}; the client asked for the values on top`, originalArguments, this.task.arguments);
  }

  putDifferences(name, title, before, after) {
    const hidden = this.task.redactFields;
    const found = differences(before, after, hidden);
    const box = this.part(name);
    box.hidden = false;
    const count = found.changes.length;
    putText(box.querySelector('.arguments-title'), count > 0 ? `${title}: ${plural(count, 'difference')}` : title);
    const list = box.querySelector('.changes');
    list.replaceChildren(...found.changes.map(changeElement));
    const notes = [];
    if (count === 0) notes.push('The arguments are the same.');
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
    this.nameButton(button);
  }

  /** Whether the reason that this verb needs is there; else it is asked for. */
  hasReason(verb) {
    if (verb === 'withdraw' || !needsReason(this.task, verb) || this.reason) return true;
    this.row.setProblem(verb === 'emergency' ? 'An emergency needs a reason.' : 'This vote needs a reason.');
    this.part('.reason').focus();
    return false;
  }

  /** Whether the terms of the grant, where one is wished for, can be asked for. */
  hasTerms(verb) {
    if (verb !== 'approve') return true;
    if (this.grant === null) this.row.setProblem('The grant needs a number of calls that the workflow allows.');
    else if (this.edit.text === null) this.row.setProblem('The new arguments are not a JSON object.');
    else return true;
    return false;
  }

  /** The grant to ask for with an approval, or undefined. */
  get grant() {
    return this.wish.value;
  }

  /** Only the buttons that this person may press; without any, a word on why. */
  putControls() {
    const { task } = this;
    const decision = this.part('.decision');
    const isShown = isPending(task) && VERBS.some((verb) => may(task, verb));
    // The buttons below must not come under the next press when a call was just decided.
    const isHeld = !isShown && this.row.element.classList.contains('held');
    decision.style.minHeight = isHeld ? `${decision.getBoundingClientRect().height}px` : '';
    decision.hidden = !isShown && !isHeld;
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
    this.putSeen();
    this.part('button.emergency').hidden ||= may(task, 'approve') && neededOf(task) < 2;
    this.wish.offer(task);
    this.edit.offer(task);
    const required = ['approve', 'reject'].filter((verb) => may(task, verb) && needsReason(task, verb));
    this.part('.reason').required = required.length > 0;
    this.part('.reason-label .hint').textContent = required.length > 0 ? `(required to ${required.join(' or ')}, kept with the decision)` : '(optional, kept with the decision)';
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    for (const button of this.element.querySelectorAll('.buttons button')) button.disabled = isBusy;
    this.putSeen();
  }

  /* The parts are in the document only while somebody may decide. */
  putSeen() {
    const approve = this.part('button.approve');
    if (!approve) return;
    const { text } = this.seen;
    approve.disabled = this.isBusy === true || text !== '';
    const unseen = this.part('.unseen');
    this.hasUnseenRoom ||= this.isShown && text !== '';
    unseen.hidden = approve.hidden || !this.hasUnseenRoom;
    putKeepingRoom(unseen, text);
  }
}
