// Counts of stacks that events have made unsure: one timer for all of them, and one request to the gateway at a time.
import { inboxPage } from './api.js';
import { filter } from './filter.js';

const REST_MS = 200;
const STACK_PAGE = 200;

export class Recount {
  constructor(inbox) {
    this.inbox = inbox;
    this.tasks = new Map(); // key of a stack -> one of its calls
    this.stirred = new Map(); // the same, of those with events since the question that is under way
  }

  /** The stack of this call is counted anew, soon. */
  add(task) {
    this.tasks.set(task.stack, task);
    this.plan();
  }

  /** An answer that is on its way may not know of this event. */
  stir(task) {
    if (this.isAsking) this.stirred.set(task.stack, task);
  }

  clear() {
    this.tasks.clear();
    this.stirred.clear();
  }

  plan() {
    if (this.tasks.size > 0 && !this.isAsking) this.timer ??= setTimeout(() => this.run(), REST_MS);
  }

  async run() {
    this.timer = undefined;
    this.isAsking = true;
    const tasks = [...this.tasks.values()];
    this.clear();
    try {
      await this.count(tasks);
    } catch {
      // A lost connection asks again for all.
    } finally {
      this.isAsking = false;
      for (const task of this.stirred.values()) this.tasks.set(task.stack, task);
      this.plan();
    }
  }

  /* One stack is asked for by itself, several by the first page of all. The answer to an older question is not used. */
  async count(tasks) {
    const { question } = this.inbox;
    const alone = tasks.length > 1 ? await this.together(tasks, question) : tasks;
    for (const task of alone) {
      if (this.inbox.question !== question) return;
      await this.alone(task, question);
    }
  }

  /* Returns those that this page does not say enough of: open stacks, and ones in the list that are behind it. */
  async together(tasks, question) {
    const { inbox } = this;
    const page = await inboxPage(filter.inboxParameters());
    if (inbox.question !== question) return [];
    const firsts = new Map(page.rows.map((row) => [row.stack, row]));
    const isAlone = ({ stack }) => inbox.isOpen(stack) || (!firsts.has(stack) && page.nextCursor !== null && inbox.counts.has(stack));
    for (const task of tasks) {
      const first = firsts.get(task.stack);
      if (!isAlone(task)) inbox.take(task.stack, first ? [first] : [], first?.count ?? 0, first?.count > 1);
    }
    [inbox.waiting, inbox.matching] = [page.waiting, page.matching];
    inbox.show();
    return tasks.filter(isAlone);
  }

  async alone(task, question) {
    const page = await this.inbox.pageOf(task, { limit: this.inbox.isOpen(task.stack) ? STACK_PAGE : 1 });
    if (this.inbox.question === question) this.inbox.takePage(task.stack, page);
  }
}
