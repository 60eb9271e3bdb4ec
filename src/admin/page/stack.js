// Calls of one caller, server, tool, workflow and risk: one line for all of them, and a table of what differs.
import { putBrief } from './brief.js';
import { JsonObject, jsonPieces } from './json.js';
import { addMark, putMark } from './marks.js';
import { hold, letGo } from './presence.js';
import { make, plural, putAsker, putRisk, putText, shortened, timeText, visibleText } from './text.js';
import { may, outcomeOf } from './votes.js';

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
export function differingPaths(all) {
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
