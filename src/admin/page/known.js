// What the page knows of the calls that wait: rows, and what the gateway has counted.
import { inboxPage } from './api.js';
import { filter } from './filter.js';
import { Recount } from './recount.js';
import { putText } from './text.js';
import { bySoonest } from './votes.js';

const MOST_ENDED = 10_000;

/** What is wrong with the list as a whole; a row and a stack have the same for themselves. */
export const WHOLE = { setProblem: (text) => putText(document.getElementById('pending-problem'), text) };

export class Known {
  /** `rowOf(task)` gives the row of a task; `isOpen(key)` says whether all calls of a stack are looked at; `show()` is called once an answer was taken; `failed(error, place)`. */
  constructor({ rowOf, isOpen, show, failed }) {
    Object.assign(this, { rowOf, isOpen, show, failed });
    this.recount = new Recount(this);
    this.clear();
  }

  clear() {
    this.recount.clear();
    this.rows = new Map(); // id -> row of a call that waits and is known
    this.adopt({ rows: [], waiting: 0, matching: 0, nextCursor: null });
    this.narrow(); // an answer that is on its way is to somebody who has gone
  }

  /** The search or a filter has changed. */
  narrow() {
    this.question = Symbol(); // another one each time
    this.found.clear();
    WHOLE.setProblem('');
  }

  /** Takes what a page of the gateway says of all calls. */
  adopt({ rows, waiting, matching, nextCursor }) {
    WHOLE.setProblem('');
    this.counts = new Map(); // key of a stack -> its calls
    this.ended = new Set(); // ids of calls that an answer of before may still have
    this.found = new Set(rows.map(({ id }) => id)); // by the gateway, for the search as it is now
    for (const { stack, count } of rows) this.counts.set(stack, count);
    [this.waiting, this.matching, this.cursor] = [waiting, matching, nextCursor]; // all calls, those that the filter leaves, the next page
  }

  /** The first page of what the search and the filters want. The answer to an older question is not used. */
  firstPage(taken) {
    return this.attempt(WHOLE, () => this.recount.firstPage((page) => {
      const { ended } = this;
      this.adopt(page);
      this.ended = ended;
      this.rows = new Map(this.answered(page.rows).map((row) => [row.id, row]));
      taken();
    }));
  }

  /** The page behind those that are known. */
  nextPage(limit, taken) {
    const { question } = this;
    return this.attempt(WHOLE, () => this.recount.during(async () => {
      const page = await inboxPage({ ...filter.inboxParameters(), cursor: this.cursor, limit });
      if (this.question !== question) return;
      for (const { stack, count } of page.rows) this.counts.set(stack, Math.max(count, this.counts.get(stack) ?? 0));
      this.know(this.answered(page.rows));
      [this.waiting, this.matching, this.cursor] = [page.waiting, page.matching, page.nextCursor];
      taken();
    }));
  }

  /** What is shown stays when there is no answer, and `place` says so. */
  async attempt(place, ask) {
    const { question } = this;
    try {
      await ask();
      if (this.question === question) place.setProblem('');
    } catch (error) {
      if (this.question === question) this.failed(error, place);
    }
  }

  /* The rows of an answer. What events have said since its question is newer. */
  answered(given) {
    return given.filter(({ id }) => !this.ended.has(id)).map((task) => {
      const newer = this.recount.stirred.get(task.id);
      return (newer && this.rows.get(task.id)) ?? this.rowOf(newer ?? task);
    });
  }

  /** Whether a call that is known here is asked for. */
  accepts(task) {
    return filter.accepts(task, this.found.has(task.id));
  }

  /* ---- counts ---- */

  /** Those of a stack that are known, and asked for. */
  of(key) {
    return [...this.rows.values()].filter((row) => row.task.stack === key && this.accepts(row.task)).sort((a, b) => bySoonest(a.task, b.task));
  }

  /** Whether it is: a call that is not known may be a new one, or one of a stack whose other calls were not asked for. */
  isNewcomer(task) {
    return (this.counts.get(task.stack) ?? 0) <= this.of(task.stack).length && filter.accepts(task);
  }

  /** A call more or less. */
  changeCount(task, change) {
    const count = Math.max(0, (this.counts.get(task.stack) ?? 0) + change);
    this.setCount(task.stack, count);
    this.waiting = Math.max(0, this.waiting + change);
    this.matching = Math.max(0, this.matching + change);
    if (change < 0 && count > 0 && this.of(task.stack).length === 0) this.recount.add(task);
  }

  setCount(key, count) {
    if (count === 0) this.counts.delete(key);
    else this.counts.set(key, count);
  }

  /** A page of the calls of a stack, as far as the search wants them. `task`: one of them. */
  pageOf({ stack, source, tool, workflow }, more) {
    return inboxPage({ stack, source, tool, workflow, ...filter.inboxParameters(), ...more });
  }

  /** The answer about one stack. */
  takePage(key, { rows, waiting, matching, nextCursor }, isMore = false) {
    this.matching = filter.isOn ? this.matching + matching - (this.counts.get(key) ?? 0) : waiting;
    this.waiting = waiting;
    this.take(key, rows, matching, nextCursor !== null, isMore);
    this.show();
  }

  /** The calls of a stack that an answer has: the first ones, or all. */
  take(key, given, count, hasMore, isMore = false) {
    const rows = this.answered(given);
    const [first] = rows;
    const present = new Set(rows.map(({ id }) => id));
    this.setCount(key, count);
    for (const { id, task } of isMore ? [] : this.of(key)) if (!present.has(id) && (!hasMore || !first || Date.parse(task.decideBy) < Date.parse(first.task.decideBy))) this.rows.delete(id);
    this.know(rows);
  }

  know(rows) {
    for (const row of rows) {
      this.rows.set(row.id, row);
      this.found.add(row.id);
    }
  }

  /** Whether this is known to have ended; it is from now on. */
  hasEnded(id) {
    const hasEnded = this.ended.has(id);
    this.ended.add(id);
    if (this.ended.size > MOST_ENDED) this.ended.delete(this.ended.values().next().value);
    return hasEnded;
  }
}
