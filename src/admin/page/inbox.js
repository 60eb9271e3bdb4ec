// The calls that wait: the most urgent first, equal ones as a group, as many as are looked at.
import { filter } from './filter.js';
import { Group } from './group.js';
import { bySoonest } from './votes.js';

// So many calls are shown whole: there is room for them, and nothing to look for.
const FEW = 5;
// More lines than that only make a page slow.
const WINDOW = 400;

const hasHover = matchMedia('(hover: hover)');
const TOUCH_REST_MS = 4000;

export class Inbox {
  /** `rowOf(task)` gives the row of a task; `settled(row)` takes one that waits no more; `arranged()` hears of a new order. */
  constructor(list, { rowOf, settled, arranged, picked }) {
    this.list = list;
    this.rowOf = rowOf;
    this.settled = settled;
    this.arranged = arranged;
    this.tasks = new Map(); // id -> task that waits
    this.lingering = new Map(); // id -> row that is decided, and still stands in the list
    this.groups = new Map(); // digest -> Group
    this.limit = WINDOW;
    this.groupHost = {
      picked: (group, isPicked) => (group.rows.forEach((row) => row.isPending && row.pick(isPicked)), picked()),
      toggled: () => arranged(),
    };
    list.addEventListener('pointerleave', () => this.tidySoon());
  }

  clear() {
    this.tasks.clear();
    this.lingering.clear();
    this.groups.clear();
    this.limit = WINDOW;
    this.list.replaceChildren();
  }

  /** Replaces all tasks that wait. */
  replace(tasks) {
    this.tasks = new Map(tasks.map((task) => [task.id, task]));
    this.isFew = tasks.length <= FEW;
    this.arrange();
  }

  /** A task that is new or has changed. */
  put(task, row) {
    if (task.state === 'pending') {
      const isNew = !this.tasks.has(task.id);
      this.tasks.set(task.id, task);
      if (isNew) this.add(task);
    } else if (this.tasks.delete(task.id) && row?.element.isConnected && this.list.contains(row.element)) {
      this.lingering.set(task.id, row);
      this.tidySoon();
    } else {
      // A decided call that lingers may run and end meanwhile; it still goes down in its own time.
      return this.lingering.has(task.id);
    }
    return true;
  }

  /* Nothing moves under the pointer: a new call stands at the end until it leaves. */
  add(task) {
    if (!this.isHeld()) return this.arrange();
    if (filter.accepts(task)) this.list.append(this.prepared(task).element);
    this.tidySoon();
    return this.arranged();
  }

  isHeld() {
    return hasHover.matches ? this.list.matches(':hover') : this.list.childElementCount > 0;
  }

  /* A card that has been decided stays where it is while the pointer is in the list, for the same
   * reason, and then goes down to the decided ones. The focus keeps no card: a key presses what has
   * the focus, wherever that stands. */
  tidySoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tidy(), hasHover.matches ? 0 : TOUCH_REST_MS);
  }

  tidy() {
    if (hasHover.matches && this.list.matches(':hover')) return;
    for (const row of this.lingering.values()) this.settleDown(row);
    this.lingering.clear();
    this.arrange();
  }

  /* The focus does not go down with the card, but on to the next call that waits. */
  settleDown(row) {
    const { element } = row;
    const next = element.contains(document.activeElement) ? this.nextPending(element) : null;
    element.hidden = false;
    element.classList.remove('member');
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
