// The calls that were decided, newest first, page by page as far as the gateway keeps them.
import { decidedTasks } from './api.js';
import { filter } from './filter.js';

const PAGE = 20;
const byId = (id) => document.getElementById(id);

export class History {
  /**
   * `rowOf(task)` gives the row of a task; `dropped(row)` hears of one that is not shown any more; `ended(isEnd)` hears
   * whether there are no older ones.
   */
  constructor(list, { rowOf, dropped, ended }) {
    this.list = list;
    this.rowOf = rowOf;
    this.dropped = dropped;
    this.ended = ended;
    this.rows = new Map();
    this.shown = PAGE;
    byId('older').addEventListener('click', () => this.older());
  }

  clear() {
    this.rows.clear();
    this.list.replaceChildren();
    this.shown = PAGE;
    this.offer(null);
  }

  /** Replaces all by the newest ones. */
  replace({ tasks, nextCursor }) {
    const present = new Set(tasks.map((task) => task.id));
    for (const [id, row] of this.rows) if (!present.has(id)) this.drop(id, row);
    for (const task of [...tasks].reverse()) this.put(this.rowOf(task));
    this.shown = Math.max(PAGE, tasks.length);
    this.offer(nextCursor);
    this.hide();
  }

  drop(id, row) {
    this.rows.delete(id);
    row.element.remove();
    this.dropped(row);
  }

  /** Puts a row at the top. */
  put(row) {
    this.rows.set(row.id, row);
    if (row.element.parentNode !== this.list) row.open(false);
    this.list.prepend(row.element);
    row.element.hidden = !filter.accepts(row.task);
  }

  /** Drops the rows beyond the pages that somebody has asked for. */
  dropOldest() {
    const extra = [...this.list.children].slice(this.shown);
    for (const { dataset } of extra) this.drop(dataset.taskId, this.rows.get(dataset.taskId));
    if (extra.length > 0) {
      byId('older').hidden = false;
      this.ended(false);
    }
  }

  hide() {
    for (const row of this.rows.values()) row.element.hidden = !filter.accepts(row.task);
  }

  /* A cursor stays good while newer tasks come. Without one, rows have fallen off the end, and it is
   * the first page that shows where they are. */
  offer(cursor) {
    this.cursor = cursor;
    byId('older').hidden = !cursor;
    byId('decided-end').hidden = Boolean(cursor) || this.rows.size <= PAGE;
    this.ended(!cursor);
  }

  async older() {
    const button = byId('older');
    button.disabled = true;
    try {
      const { tasks, nextCursor } = await decidedTasks(50, filter.parameters(), this.cursor);
      for (const task of tasks) this.append(task);
      this.shown = this.rows.size;
      this.offer(nextCursor);
      this.hide();
    } catch (error) {
      byId('decided-problem').textContent = error.message;
    } finally {
      button.disabled = false;
    }
  }

  append(task) {
    if (this.rows.has(task.id)) return;
    const row = this.rowOf(task);
    this.rows.set(row.id, row);
    row.open(false);
    this.list.append(row.element);
  }

  /** Asks anew for what the search and the filters want. The answer to an older question is not used. */
  async search() {
    this.hide();
    const asked = (this.asked = Symbol());
    try {
      const answer = await decidedTasks(PAGE, filter.parameters());
      if (this.asked === asked) this.replace(answer);
      byId('decided-problem').textContent = '';
    } catch (error) {
      if (this.asked === asked) byId('decided-problem').textContent = error.message;
    }
  }
}
