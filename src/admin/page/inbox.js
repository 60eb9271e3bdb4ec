// The calls that wait: the most urgent first, equal ones as a group, as many as are looked at.
import { filter } from './filter.js';
import { Group } from './group.js';
import { bySoonest } from './votes.js';

// So many calls are shown whole: there is room for them, and nothing to look for.
const FEW = 5;
// More lines than that only make a page slow.
const WINDOW = 400;

const hasHover = matchMedia('(hover: hover)');
const TOUCH_REST_MS = 10_000;
const byId = (id) => document.getElementById(id);

function hold(element) {
  element.style.height = `${element.getBoundingClientRect().height}px`;
  element.classList.add('held');
}

export class Inbox {
  /** `rowOf(task)` gives the row of a task; `settled(row)` takes one that waits no more; `arranged()` hears of a new order, or of a call that came or went. */
  constructor(list, { rowOf, settled, arranged, picked }) {
    this.list = list;
    this.rowOf = rowOf;
    this.settled = settled;
    this.arranged = () => (arranged(), this.showArrange());
    this.tasks = new Map(); // id -> task that waits
    this.lingering = new Map(); // id -> row that is decided, and still stands in the list
    this.groups = new Map(); // digest -> Group
    this.limit = WINDOW;
    this.groupHost = {
      picked: (group, isPicked) => (group.rows.forEach((row) => row.isPending && row.pick(isPicked)), picked()),
      toggled: () => arranged(),
    };
    this.touched = -TOUCH_REST_MS;
    this.fresh = 0; // calls that came at the end, out of their order
    list.addEventListener('pointerleave', () => this.releaseSoon());
    list.addEventListener('focusout', (event) => event.relatedTarget !== byId('arrange') && this.releaseSoon());
    list.addEventListener('pointerdown', (event) => event.pointerType !== 'mouse' && this.touch(), true);
    list.addEventListener('touchmove', () => this.touch(), { passive: true });
    byId('arrange').addEventListener('click', () => this.tidy());
    byId('decide').addEventListener('close', () => this.releaseSoon());
  }

  clear() {
    this.tasks.clear();
    this.lingering.clear();
    this.fresh = 0;
    this.groups.clear();
    this.limit = WINDOW;
    this.list.replaceChildren();
  }

  /** Replaces all tasks that wait. `decided`: those that were decided lately. */
  replace(tasks, decided = []) {
    if (this.isHeld()) return this.replaceInPlace(new Map(tasks.map((task) => [task.id, task])), decided);
    this.tasks = new Map(tasks.map((task) => [task.id, task]));
    return this.tidy();
  }

  replaceInPlace(tasks, decided) {
    for (const id of [...this.tasks.keys()]) if (!tasks.has(id)) this.tasks.delete(id);
    for (const task of decided) if (!tasks.has(task.id)) this.linger(task);
    for (const task of tasks.values()) this.put(this.rowOf(task).task);
  }

  /**
   * A task that is new or has changed, whose row is brought up to date by `update()`. Returns whether its row is in this list.
   */
  put(task, update = () => {}) {
    const isNew = !this.tasks.has(task.id);
    if (task.state === 'pending') {
      update();
      this.tasks.set(task.id, task);
      if (isNew) this.add(task);
      return true;
    }
    // A decided call that lingers may run and end meanwhile; it still goes down in its own time.
    if (!this.tasks.delete(task.id) || !this.linger(task, update)) update();
    return this.lingering.has(task.id);
  }

  /* A call that waits no more keeps its place, its height and the focus, and says what happened. */
  linger(task, update = () => this.rowOf(task)) {
    const element = [...this.list.children].find((child) => child.dataset.taskId === task.id);
    if (!element || this.lingering.has(task.id)) return false;
    const isHeld = this.isHeld();
    const hadFocus = element.contains(document.activeElement);
    if (isHeld && !element.hidden) hold(element);
    update();
    this.lingering.set(task.id, this.rowOf(task));
    if (hadFocus && !(element.contains(document.activeElement) && document.activeElement.checkVisibility())) element.focus({ preventScroll: true });
    if (isHeld) this.arranged();
    else this.tidy();
    return true;
  }

  /* Nothing moves while somebody is about to press something: a new call is at the end until then. */
  add(task) {
    if (!this.isHeld()) return this.tidy();
    if (!filter.accepts(task)) return this.arranged();
    this.list.append(this.prepared(task).element);
    this.fresh += 1;
    return this.arranged();
  }

  touch() {
    this.touched = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.release(), TOUCH_REST_MS + 1);
  }

  /** Whether somebody is at the list: by the focus, the pointer, or a finger that has just left. */
  isHeld() {
    if (this.list.childElementCount === 0) return false;
    return byId('decide').open || this.list.contains(document.activeElement) || (hasHover.matches && this.list.matches(':hover')) || performance.now() - this.touched < TOUCH_REST_MS;
  }

  releaseSoon() {
    setTimeout(() => this.release());
  }

  release() {
    if ((this.lingering.size > 0 || this.fresh > 0) && !this.isHeld()) this.tidy();
  }

  /** Puts all in order, whoever is at it. */
  tidy() {
    for (const row of this.lingering.values()) this.settleDown(row);
    this.lingering.clear();
    this.fresh = 0;
    this.arrange();
    if (document.activeElement === byId('arrange')) byId('waiting').focus({ preventScroll: true });
    this.showArrange();
  }

  /** Says what is out of order. */
  showArrange() {
    const parts = [this.lingering.size > 0 && `${this.lingering.size} decided`, this.fresh > 0 && `${this.fresh} new`].filter(Boolean);
    byId('arrange').hidden = parts.length === 0;
    byId('arrange').textContent = `Arrange: ${parts.join(', ')}`;
  }

  /* The focus does not go down with the card, but on to the next call that waits. */
  settleDown(row) {
    const { element } = row;
    const next = element.contains(document.activeElement) ? this.nextPending(element) : null;
    element.hidden = false;
    element.classList.remove('member', 'held');
    element.style.height = '';
    this.settled(row);
    next?.focus({ preventScroll: true });
  }

  nextPending(element) {
    const isPending = (other) => other.dataset.state === 'pending' && !other.hidden;
    const all = [...this.list.children];
    const at = all.indexOf(element);
    return all.slice(at + 1).find(isPending) ?? all.slice(0, at).findLast(isPending) ?? document.getElementById('waiting');
  }

  prepared(task) {
    const row = this.rowOf(task);
    const isNew = row.element.parentNode !== this.list;
    if (isNew && this.tasks.size <= FEW && !row.detail) row.open(true);
    return row;
  }

  /** Tasks that are asked for, in their order, equal ones together. */
  wanted() {
    const sorted = [...this.tasks.values()].filter((task) => filter.accepts(task)).sort(bySoonest);
    const together = new Map();
    for (const task of sorted) {
      const key = task.digest ?? task.id;
      if (together.has(key)) together.get(key).push(task);
      else together.set(key, [task]);
    }
    this.matching = sorted.length;
    return [...together.values()];
  }

  /** Puts everything where it belongs. Rows that are there already stay the same elements. */
  arrange() {
    const elements = [];
    const groups = new Map();
    for (const tasks of this.wanted()) {
      if (elements.length >= this.limit) break;
      const rows = tasks.map((task) => this.prepared(task));
      if (tasks.length > 1) {
        const group = this.group(tasks[0].digest);
        groups.set(group.digest, group);
        group.update(rows);
        elements.push(group.element);
      }
      for (const { element } of rows) {
        element.classList.toggle('member', tasks.length > 1);
        if (tasks.length === 1) element.hidden = false;
        elements.push(element);
      }
    }
    this.groups = groups;
    this.shown = elements.filter((element) => element.dataset.taskId).length;
    for (const row of this.lingering.values()) elements.push(row.element);
    this.place(elements);
    this.arranged();
  }

  group(digest) {
    if (this.groups.has(digest)) return this.groups.get(digest);
    const group = new Group(digest, this.groupHost);
    group.open(this.tasks.size <= FEW);
    return group;
  }

  /* An element that moves in the document loses the focus. */
  place(elements) {
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    const kept = new Set(elements);
    for (const element of [...this.list.children]) if (!kept.has(element)) element.remove();
    let at = this.list.firstElementChild;
    for (const element of elements) {
      if (element === at) at = at.nextElementSibling;
      else this.list.insertBefore(element, at);
    }
    if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  showMore() {
    this.limit += WINDOW;
    this.arrange();
  }

  /** Makes sure that a task that waits is in the list, whatever is filtered, folded or far down. */
  reveal(task) {
    if (!filter.accepts(task)) filter.clear();
    this.limit = Math.max(this.limit, this.tasks.size * 2);
    this.arrange();
    const group = this.groups.get(task.digest);
    if (group && !group.isOpen) group.open(true);
  }

  tick(now) {
    for (const group of this.groups.values()) group.tick(now);
  }
}
