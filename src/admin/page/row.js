// The lines of the lists: one task, or a stack of calls.
import { taskById } from './api.js';
import { Detail } from './detail.js';
import { isPending, may, outcomeOf, putBrief, timeLeft, votesOf } from './task.js';
import { addMark, duration, JsonObject, jsonPieces, make, plural, putAsker, putMark, putRisk, putText, shortened, timeText, visibleText } from './text.js';

/** What changes in this element from now on moves nothing below it. */
export function hold(element) {
  element.style.height = `${element.getBoundingClientRect().height}px`;
  element.classList.add('held');
}

/** The line of an open card has all votes, and their reasons: what comes there must not move the buttons below. */
export function holdLine(card) {
  if (card.classList.contains('open')) hold(card.querySelector(':scope > .line'));
}

export function letGo(element) {
  for (const part of [element, ...element.querySelectorAll(':scope > .held')]) {
    part.classList.remove('held');
    part.style.height = '';
  }
}

// One task in a list: a line, and below it its details once somebody has opened it.

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
// Above so many characters the details have the name of a tool whole, and the line its beginning.
const LONG_NAME = 128;
const SOON_MS = 60_000;
const PREFETCHED_BYTES = 65_536;

const cloneOf = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

/* A click that ends the marking of text, or on something that has its own use, opens nothing. */
const isForLine = (event) => !event.target.closest('button, input, a') && getSelection().isCollapsed;

export class Row {
  /**
   * `host` is told what somebody does: decide(row, verb, reason), picked(row, isPicked, isRange),
   * opened(row, isOpen).
   */
  constructor(task, host) {
    this.host = host;
    this.id = task.id;
    this.element = cloneOf('row');
    this.element.dataset.taskId = task.id;
    this.part = (name) => this.element.querySelector(name);
    this.label(task);
    this.part('.line').addEventListener('click', (event) => isForLine(event) && this.toggle());
    this.part('.more').addEventListener('click', () => this.toggle());
    this.part('.pick').addEventListener('click', (event) => host.picked(this, event.target.checked, event.shiftKey));
    this.update(task);
  }

  get isPending() {
    return isPending(this.task);
  }

  get isOpen() {
    return this.element.classList.contains('open');
  }

  label(task) {
    const name = visibleText(task.tool);
    const title = this.part('.tool');
    title.id = `tool-${task.id}`;
    this.element.setAttribute('aria-labelledby', title.id);
    this.name = shortened(name, LONG_NAME);
    this.name = `${this.name}, ${task.id.slice(0, 11)}`; // equal tools are told apart
    this.part('.pick').setAttribute('aria-label', `Select ${this.name}`);
    this.part('.more').setAttribute('aria-label', `Details of ${this.name}`);
    if (name.length <= LONG_NAME) {
      putText(title, task.tool);
    } else {
      title.textContent = shortened(name, LONG_NAME);
      title.append(make('span', 'hint', ` a name of ${name.length.toLocaleString()} characters`));
    }
    putMark(this.part('.tool-note'), task, 'tool');
  }

  /* A row of the list has not all of a task; that it had all before, it keeps. */
  merged(task) {
    if (!task.isRow) return { ...task, stack: this.task?.stack, hasWhole: true };
    const kept = Object.entries(task).filter(([key, value]) => !(key === 'arguments' && value === null));
    const wasApproved = this.task?.wasApproved || task.state === 'approved' || task.state === 'executing';
    return { ...this.task, ...Object.fromEntries(kept), count: 1, wasApproved, hasWhole: this.hasRequestOf(task), arguments: task.arguments ?? this.task?.arguments ?? null };
  }

  /* Whether the whole request of this task was read before. It changes only with a decision. */
  hasRequestOf(task) {
    return this.task?.hasWhole === true && this.task.requestDigest === task.requestDigest;
  }

  /** The whole task. It is asked for again after each change, because a row does not say all of it. */
  whole() {
    if (!this.task.isRow) return Promise.resolve(this.task);
    this.reading ??= this.read().finally(() => (this.reading = undefined));
    return this.reading;
  }

  async read() {
    for (let tries = 0; tries < 3 && this.task.isRow; tries += 1) {
      const { given } = this;
      const task = await taskById(this.id);
      const newer = this.given;
      if (newer !== given && (!newer.isRow || this.task.requestDigest !== task.requestDigest)) continue;
      this.update(task);
      if (newer !== given) this.update(newer); // the request is that of the answer, the rest that of the event
    }
    if (!this.task.hasWhole) throw new Error('The call has changed while it was read: try again.');
    return this.task;
  }

  /** Reads ahead what a key is likely to ask for. */
  prefetch() {
    if (this.isPending && Number(this.task.argumentsBytes?.text ?? 0) < PREFETCHED_BYTES) this.whole().catch(() => {});
  }

  /** A toggle by hand, unlike the openings by the page itself. */
  toggle() {
    this.open(!this.isOpen);
    this.isOpenedByHand = this.isOpen;
    this.host.opened(this, this.isOpen);
  }

  open(isOpen) {
    if (isOpen) this.putDetail();
    if (this.detail) this.detail.element.hidden = !isOpen;
    letGo(this.element);
    this.detail?.putControls();
    this.element.classList.toggle('open', isOpen);
    this.part('.more').setAttribute('aria-expanded', String(isOpen));
    if (isOpen) this.detail?.shown();
  }

  putDetail() {
    if (this.task.isRow) this.lookUp();
    if (this.detail || !this.task.hasWhole) return;
    this.detail = new Detail(this, (verb, reason) => this.host.decide(this, verb, reason));
    this.part('.line').after(this.detail.element);
    this.detail.update(this.task);
  }

  /* The line does not say all of it: the rest is asked for when somebody looks. */
  async lookUp() {
    try {
      await this.whole();
    } catch (error) {
      this.setProblem(error.message);
    }
    if (this.detail || !this.task.hasWhole || !this.isOpen) return;
    this.putDetail();
    this.detail.shown();
  }

  /** Whether this was shown already. Only a row that says something new makes an open card read its call anew. */
  isKnown(task) {
    return task === this.given || task === this.task || (task.isRow && JSON.stringify(task) === this.rowText);
  }

  /** Shows the task as it is now. */
  update(given) {
    const task = this.merged(given);
    if (given.isRow) this.rowText = JSON.stringify(given);
    const isNew = ['summary', 'arguments', 'requestDigest'].some((key) => this.task?.[key] !== task[key]);
    this.given = given;
    this.task = task;
    this.element.dataset.state = task.state;
    this.element.dataset.risk = task.risk ?? '';
    this.part('.state').textContent = STATES[task.state] ?? task.state;
    putRisk(this.part('.risk'), task);
    if (isNew) putBrief(this.part('.brief'), task);
    putAsker(this.part('.asker'), task);
    putMark(this.part('.asker-note'), task, 'principal');
    this.putVotes();
    this.putOutcome();
    this.detail?.update(task);
    if (!this.isPending) this.pick(false);
    this.part('.pick').hidden = !this.isPending;
    this.tick();
    // Only the whole task says who ended an approved call.
    if (task.isRow && (this.isOpen || (task.state === 'cancelled' && task.decidedBy))) this.lookUp();
  }

  putVotes() {
    const text = votesOf(this.task);
    this.part('.votes').hidden = text === '';
    putText(this.part('.votes'), text);
  }

  putOutcome() {
    const text = outcomeOf(this.task, timeText);
    this.part('.outcome').hidden = text === '';
    putText(this.part('.outcome'), text);
  }

  /** Brings the countdown up to date. */
  tick(now = Date.now()) {
    const left = timeLeft(this.task, now);
    const text = Number.isNaN(left) ? '' : left > 0 ? `${duration(left)} left` : 'time is up';
    if (text === this.deadlineText) return;
    this.deadlineText = text;
    const deadline = this.part('.deadline');
    deadline.hidden = text === '';
    deadline.textContent = text;
    deadline.classList.toggle('soon', left < SOON_MS);
  }

  get isPicked() {
    return this.part('.pick').checked;
  }

  pick(isPicked) {
    this.part('.pick').checked = isPicked;
    this.element.classList.toggle('picked', isPicked);
  }

  focus() {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: 'nearest' });
  }

  setBusy(isBusy) {
    this.element.setAttribute('aria-busy', String(isBusy));
    this.detail?.setBusy(isBusy);
    this.setProblem('');
  }

  setProblem(text) {
    this.problem = text; // also for the line of a stack
    putText(this.part('.problem'), text);
  }
}

// Calls of one caller, server, tool, workflow and risk: one line for all of them, and a table of what differs.

// More columns are no table; each call can be opened.
const MOST_PATHS = 6;
const CELL_CHARACTERS = 80;
const MOST_OVER = 1000; // lines of calls that wait no more

/* The values of a call's arguments by their paths, in their order. */
function leavesOf(value, path, leaves) {
  if (value instanceof JsonObject && value.members.length > 0) {
    for (const [key, member] of value.members) leavesOf(member, path ? `${path}.${key}` : key, leaves);
  } else if (Array.isArray(value) && value.length > 0) {
    value.forEach((item, at) => leavesOf(item, `${path}[${at}]`, leaves));
  } else {
    leaves.set(path, textOf(value));
  }
  return leaves;
}

const textOf = (value) => jsonPieces(value).map((piece) => piece.text).join('');

/* Long arguments are not in a row. */
function valuesOf({ arguments: given, argumentsBytes }) {
  if (given === null) return new Map([['arguments', `${Number(argumentsBytes.text).toLocaleString()} bytes`]]);
  return leavesOf(given, '', new Map());
}

/** The paths whose values are not the same in all calls. */
function differingPaths(all) {
  const paths = new Map();
  for (const values of all) for (const [path, text] of values) paths.set(path, (paths.get(path) ?? new Set()).add(text));
  return [...paths].filter(([path, texts]) => texts.size > 1 || all.some((values) => !values.has(path))).map(([path]) => path);
}

export class Stack {
  /** `host`: picked(stack, isPicked), toggled(stack), shown(row), more(stack), decide(stack, verb), pickedRow(row, isPicked, isRange). */
  constructor(key, host) {
    this.key = key;
    this.host = host;
    this.isOpen = false;
    this.rows = [];
    this.lines = []; // the rows in the table: of these, and of calls that wait no more while somebody is at the list
    this.count = 0;
    this.element = document.getElementById('stack').content.firstElementChild.cloneNode(true);
    this.element.dataset.stack = key;
    this.part = (name) => this.element.querySelector(name);
    const toggle = () => host.toggled(this, !this.isOpen);
    this.part('.more').addEventListener('click', toggle);
    this.part('.line').addEventListener('click', (event) => !event.target.closest('button, input') && toggle());
    this.part('.pick').addEventListener('click', (event) => host.picked(this, event.target.checked));
    this.part('.stack-more').addEventListener('click', () => host.more(this));
    for (const verb of ['approve', 'reject']) this.part(`button.${verb}`).addEventListener('click', () => host.decide(this, verb));
  }

  get isPending() {
    return this.count > 0;
  }

  get task() {
    return this.rows[0]?.task ?? this.last;
  }

  /** Shows that `rows` are those of its `count` calls that are known, the most urgent first. `isHeld`: nothing may move. */
  update(rows, count, isHeld = false) {
    if (!isHeld || count > 0) letGo(this.element);
    else if (this.count > 0) hold(this.element);
    this.lines = isHeld && this.isOpen && this.lines.length < rows.length + MOST_OVER ? [...new Set([...this.lines, ...rows])] : rows;
    if (!isHeld) this.before = count;
    this.holdTable(isHeld && !this.isLoaded);
    this.isLoaded = false;
    this.rows = rows;
    this.count = count;
    if (rows.length > 0 && !(isHeld && this.last)) this.last = rows[0].task;
    const task = this.last; // the line says the same until nothing is held
    this.name = shortened(visibleText(task.tool), 128);
    const title = this.part('.tool');
    title.id = `stack-${this.key}`;
    title.textContent = this.name;
    this.element.setAttribute('aria-labelledby', title.id);
    title.append(make('span', 'times', ` × ${count.toLocaleString()}`));
    addMark(title, task, 'tool');
    this.element.dataset.risk = task.risk ?? '';
    this.element.dataset.state = count > 0 ? 'pending' : 'decided';
    putRisk(this.part('.risk'), task);
    putBrief(this.part('.brief'), task);
    putAsker(this.part('.asker'), task);
    putMark(this.part('.asker-note'), task, 'principal');
    const of = `${plural(count, 'call')} of ${this.name}, ${this.key.slice(0, 8)}`;
    this.part('.pick').setAttribute('aria-label', `Select all ${of}`);
    this.part('.more').setAttribute('aria-label', `The ${of}`);
    this.part('.pick').hidden = count === 0;
    this.part('.outcome').hidden = count > 0;
    this.part('.outcome').textContent = count > 0 ? '' : 'None of them waits any more.';
    this.putBody(of);
    this.showPicked();
    this.tick();
  }

  /* New calls come at the end of the table, within the room that it has; those that somebody has asked for make room. */
  holdTable(isHeld) {
    const { style, offsetHeight } = this.part('.stack-table');
    if (!isHeld) style.height = '';
    else if (offsetHeight > 0) style.height ||= `${offsetHeight}px`;
  }

  putBody(of) {
    if (!this.isOpen) return;
    const { count, rows, lines } = this;
    const waiting = new Set(rows);
    const drawn = JSON.stringify([count, lines.map((row) => [row.id, row.task.requestDigest, row.problem, waiting.has(row), row.task.state])]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const focused = this.part('tbody').contains(document.activeElement) ? document.activeElement : null;
    const place = focused && [focused.closest('tr').dataset.call, focused.localName];
    const all = lines.map((row) => valuesOf(row.task));
    const paths = differingPaths(all);
    const shown = paths.slice(0, MOST_PATHS);
    this.part('.stack-note').textContent = paths.length === 0 ? 'The arguments of these calls are the same.' : paths.length > MOST_PATHS ? `${paths.length} paths differ; the first ${MOST_PATHS} are shown.` : '';
    this.part('.stack-table').setAttribute('aria-label', `What differs in the ${of}`);
    const head = make('tr');
    const headings = ['Selected', ...shown, 'Call'];
    for (const [at, text] of headings.entries()) {
      const cell = make('th', at > 0 && at <= shown.length ? 'path' : '');
      cell.append(make('span', at === 0 ? 'sr-only' : '', text));
      cell.scope = 'col';
      head.append(cell);
    }
    this.part('thead').replaceChildren(head);
    this.part('tbody').replaceChildren(...lines.map((row, at) => this.lineOf(row, all[at], shown, !waiting.has(row))));
    if (place) (this.part(`tr[data-call="${place[0]}"] ${place[1]}:enabled`) ?? this.part(`tr[data-call="${place[0]}"]`) ?? this.element).focus({ preventScroll: true });
    this.part('.stack-more').hidden = rows.length >= count;
    this.part('.stack-more').textContent = `Show more (${(count - rows.length).toLocaleString()} are not shown)`;
    for (const verb of ['approve', 'reject']) {
      const button = this.part(`button.${verb}`);
      button.hidden = count > 0 && !rows.some((row) => may(row.task, verb));
      button.disabled = count === 0;
    }
  }

  lineOf(row, values, paths, isOver) {
    const line = make('tr');
    line.dataset.call = row.id;
    line.tabIndex = -1;
    const pick = make('input');
    pick.type = 'checkbox';
    pick.checked = row.isPicked;
    pick.disabled = isOver;
    pick.setAttribute('aria-label', `Select ${row.name} of the stack`);
    pick.addEventListener('click', (event) => this.host.pickedRow(row, event.target.checked, event.shiftKey));
    const first = make('td');
    first.append(pick);
    const open = make('button', 'quiet', 'Open');
    open.type = 'button';
    open.disabled = isOver;
    open.setAttribute('aria-label', `Open ${row.name}`);
    open.addEventListener('click', () => this.host.shown(row));
    const last = make('td');
    last.append(open, isOver ? make('span', 'ended', outcomeOf(row.task, timeText)) : make('span', 'problem', row.problem ?? ''));
    const cells = paths.map((path) => {
      const cell = make('td', 'value', shortened(values.get(path) ?? '—', CELL_CHARACTERS));
      if (values.has(path)) addMark(cell, row.task, path.replace(/\[\d+\]/g, ''));
      return cell;
    });
    line.append(first, ...cells, last);
    return line;
  }

  open(isOpen) {
    this.isOpen = isOpen;
    this.element.classList.toggle('open', isOpen);
    this.part('.more').setAttribute('aria-expanded', String(isOpen));
    this.part('.stack-body').hidden = !isOpen;
    letGo(this.element);
    this.holdTable(false);
    if (isOpen && this.rows.length > 0) this.update(this.rows, this.count);
  }

  /** How many of its calls wait no more, and still stand in their place. */
  get over() {
    if (this.isOpen) return this.lines.length - this.rows.length;
    return this.count === 0 ? this.before : 0;
  }

  /** The rows that are selected of it. */
  get picked() {
    return this.rows.filter((row) => row.isPicked);
  }

  showPicked() {
    const picked = this.picked.length;
    this.part('.pick').checked = picked > 0 && picked === this.rows.length;
    this.part('.pick').indeterminate = picked > 0 && picked < this.rows.length;
    this.element.classList.toggle('picked', picked > 0);
    for (const line of this.part('tbody').children) {
      const row = this.rows.find(({ id }) => id === line.dataset.call);
      if (row) line.querySelector('input').checked = row.isPicked;
    }
    const what = picked > 0 ? `${picked} selected` : `all ${this.count.toLocaleString()}`;
    for (const [verb, word] of [['approve', 'Approve'], ['reject', 'Reject']]) {
      const button = this.part(`button.${verb}`);
      button.textContent = `${word} ${what}…`;
      button.setAttribute('aria-label', `${button.textContent} of ${this.name}, ${this.key.slice(0, 8)}`);
    }
  }

  setProblem(text) {
    putText(this.part('.stack-problem'), text);
  }

  tick() {
    const text = this.rows[0]?.deadlineText ?? '';
    if (this.part('.deadline').textContent !== text) this.part('.deadline').textContent = text;
  }

  focus() {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: 'nearest' });
  }
}
