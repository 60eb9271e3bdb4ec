// Counts of stacks that events have made unsure: one timer for all of them, and one request to the gateway at a time.
import { inboxPage } from './api.js';
import { filter } from './filter.js';

const REST_MS = 200;
const REST_AFTER_FAILURE_MS = 2000;
const STACK_PAGE = 200;

export class Recount {
  constructor(known) {
    this.known = known;
    this.tasks = new Map(); // key of a stack -> one of its calls
    this.stirred = new Map(); // id -> a call as an event has said it while questions are under way
    this.asking = 0; // questions that are under way
    this.changes = 0; // events
  }

  /** The stack of this call is counted anew, soon. */
  add(task) {
    this.tasks.set(task.stack, task);
    this.plan();
  }

  /** An answer that is on its way may not know of this event. */
  stir(task) {
    this.changes += 1;
    if (this.asking > 0) this.stirred.set(task.id, task);
  }

  /** While `ask` waits for answers of the inbox, and takes them. The stacks that events stir meanwhile are counted anew. */
  async during(ask) {
    this.asking += 1;
    try {
      return await ask();
    } finally {
      this.asking -= 1;
      if (this.asking === 0) this.takeStirred();
    }
  }

  /** The first page of all for `take`, of after the last event if these leave time for it; not once the question is another. */
  firstPage(take) {
    return this.during(async () => {
      const { question } = this.known;
      let page;
      for (let tries = 0, before; before !== this.changes && tries < 3 && this.known.question === question; tries += 1) {
        before = this.changes;
        page = await inboxPage(filter.inboxParameters());
      }
      if (this.known.question === question) take(page);
    });
  }

  takeStirred() {
    for (const task of this.stirred.values()) this.tasks.set(task.stack, task);
    this.stirred.clear();
    this.plan();
  }

  clear() {
    this.tasks.clear();
    this.stirred.clear();
  }

  plan(restMs = REST_MS) {
    if (this.tasks.size > 0 && !this.isRunning) this.timer ??= setTimeout(() => this.run(), restMs);
  }

  async run() {
    this.timer = undefined;
    this.isRunning = true;
    const tasks = [...this.tasks.values()];
    this.tasks.clear();
    let restMs;
    try {
      await this.during(() => this.count(tasks));
    } catch (error) {
      if (error.status === 401 || error.status === 403) return;
      for (const task of tasks) this.tasks.set(task.stack, task);
      restMs = REST_AFTER_FAILURE_MS;
    } finally {
      this.isRunning = false;
      this.plan(restMs);
    }
  }

  /* One stack is asked for by itself, several by the first page of all. The answer to an older question is not used. */
  async count(tasks) {
    const { question } = this.known;
    const alone = tasks.length > 1 ? await this.together(tasks, question) : tasks;
    for (const task of alone) {
      if (this.known.question !== question) return;
      await this.alone(task, question);
    }
  }

  /* Returns those that this page does not say enough of: open stacks, and ones in the list that are behind it. */
  async together(tasks, question) {
    const { known } = this;
    const page = await inboxPage(filter.inboxParameters());
    if (known.question !== question) return [];
    const firsts = new Map(page.rows.map((row) => [row.stack, row]));
    const isAlone = ({ stack }) => known.isOpen(stack) || (!firsts.has(stack) && page.nextCursor !== null && known.counts.has(stack));
    for (const task of tasks) {
      const first = firsts.get(task.stack);
      if (!isAlone(task)) known.take(task.stack, first ? [first] : [], first?.count ?? 0, first?.count > 1);
    }
    [known.waiting, known.matching] = [page.waiting, page.matching];
    known.show();
    return tasks.filter(isAlone);
  }

  async alone(task, question) {
    const page = await this.known.pageOf(task, { limit: this.known.isOpen(task.stack) ? STACK_PAGE : 1 });
    if (this.known.question === question) this.known.takePage(task.stack, page);
  }
}
