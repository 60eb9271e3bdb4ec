// The calls that wait: the most urgent first, alike ones as a stack, as many as are looked at. Of a stack the gateway says
// how many calls it has, and which one runs out first; the others are known once somebody opens it.
import { inboxPage } from './api.js';
import { filter } from './filter.js';
import { Presence, hold, letGo } from './presence.js';
import { Recount } from './recount.js';
import { Stack } from './stack.js';
import { putText } from './text.js';
import { bySoonest } from './votes.js';

// So many calls are shown whole: there is room for them, and nothing to look for.
const FEW = 5;
// More lines than that only make a page slow.
const WINDOW = 400;
const STACK_PAGE = 200;
// So many rows are asked for first, to be there soon, and the others of a page after them.
const FIRST_ROWS = 50;
const PAGE_ROWS = 200;
const REFRESH_MS = 30; // events are shown together
const MOST_ENDED = 10_000;

const byId = (id) => document.getElementById(id);
/** What is wrong with the list as a whole; a row and a stack have the same for themselves. */
export const WHOLE = { setProblem: (text) => putText(byId('pending-problem'), text) };

export class Inbox {
  /** `rowOf(task)` gives the row of a task; `settled(row)` takes one that waits no more; `arranged()` hears of a new order, or of a call that came or went. */
  constructor(list, { rowOf, settled, arranged, picked, pickedRow, decide, failed }) {
    this.list = list;
    this.rowOf = rowOf;
    this.settled = settled;
    this.arranged = () => (arranged(), this.showArrange());
    this.failed = failed;
    this.rows = new Map(); // id -> row of a call that waits and is known
    this.found = new Set(); // ids that the gateway has found for the search as it is now
    this.question = Symbol(); // another one when the search or a filter has changed
    this.counts = new Map(); // key of a stack -> its calls
    this.waiting = this.matching = 0; // all calls, and those that the filter leaves
    this.cursor = null; // of the next page of rows
    this.members = new Set(); // ids of calls of stacks that somebody has opened
    this.recount = new Recount(this);
    this.lingering = new Map(); // id -> row that is decided, and still stands in the list
    this.stacks = new Map(); // key -> Stack
    this.limit = WINDOW;
    this.stackHost = {
      picked: async (stack, isPicked) => (isPicked && (await this.load(stack)), stack.rows.forEach((row) => row.isPending && row.pick(isPicked)), picked()),
      toggled: (stack, isOpen) => this.toggle(stack, isOpen),
      shown: (row) => this.showMember(row),
      more: (stack) => this.load(stack, true),
      decide,
      pickedRow,
    };
    this.fresh = 0; // calls that came at the end, out of their order
    this.ended = new Set(); // ids of calls that an answer of before may still have
    list.addEventListener('focusin', ({ target }) => this.prefetch(target.closest('[data-task-id]')));
    byId('arrange').addEventListener('click', () => this.tidy());
    this.presence = new Presence(list, () => (this.over > 0 || this.fresh > 0) && !this.presence.isThere && this.tidy());
  }

  clear() {
    this.question = Symbol(); // an answer that is on its way is to somebody who has gone
    WHOLE.setProblem('');
    this.rows.clear();
    this.found.clear();
    this.recount.clear();
    this.lingering.clear();
    this.fresh = 0;
    this.stacks.clear();
    this.counts.clear();
    this.members.clear();
    this.waiting = this.matching = 0;
    this.cursor = null;
    this.limit = WINDOW;
    this.list.replaceChildren();
  }

  /** Replaces all by a page of rows. `decided`: those that were decided lately. */
  replace(page, decided = []) {
    const present = new Set(page.rows.map(({ id }) => id));
    this.adopt(page);
    if (this.presence.isThere) {
      for (const id of [...this.rows.keys()]) if (!present.has(id)) this.rows.delete(id);
      for (const task of decided) if (!present.has(task.id)) this.linger(task);
      for (const task of page.rows) this.place(this.rowOf(task));
      this.refreshStacks();
    } else {
      this.rows = new Map(page.rows.map((task) => [task.id, this.rowOf(task)]));
      this.tidy();
    }
    for (const stack of this.stacks.values()) if (stack.isOpen) this.load(stack);
  }

  adopt({ rows, waiting, matching, nextCursor }) {
    WHOLE.setProblem('');
    this.counts = new Map();
    this.ended = new Set();
    this.found = new Set(rows.map(({ id }) => id));
    for (const { stack, count } of rows) this.counts.set(stack, count);
    [this.waiting, this.matching, this.cursor] = [waiting, matching, nextCursor];
  }

  place(row) {
    const isNew = !this.rows.has(row.id);
    this.rows.set(row.id, row);
    if (isNew) this.add(row.task);
  }

  /** The search or a filter has changed: shows what is known to fit, until search() has asked. */
  narrow() {
    this.question = Symbol();
    WHOLE.setProblem('');
    this.found.clear();
    this.arrange();
  }

  /** Asks for what the search and the filters want. The answer to an older question is not used. */
  search() {
    return this.attempt(WHOLE, () => this.recount.firstPage((page) => {
      const { ended } = this;
      this.adopt(page);
      this.ended = ended;
      this.rows = new Map(this.answered(page.rows).map((row) => [row.id, row]));
      this.tidy();
      for (const stack of this.stacks.values()) if (stack.isOpen) this.load(stack);
    }));
  }

  /* What is shown stays when there is no answer, and `place` says so. */
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

  /* Those of a stack that are known, and asked for. */
  knownOf(key) {
    return [...this.rows.values()].filter((row) => row.task.stack === key && this.accepts(row.task)).sort((a, b) => bySoonest(a.task, b.task));
  }

  /* A call that is not known may be a new one, or one of a stack whose other calls were not asked for. */
  isNewcomer(task) {
    return (this.counts.get(task.stack) ?? 0) <= this.knownOf(task.stack).length && filter.accepts(task);
  }

  changeCount(task, change) {
    const count = Math.max(0, (this.counts.get(task.stack) ?? 0) + change);
    this.setCount(task.stack, count);
    this.waiting = Math.max(0, this.waiting + change);
    this.matching = Math.max(0, this.matching + change);
    if (change < 0 && count > 0 && this.knownOf(task.stack).length === 0) this.recount.add(task);
  }

  setCount(key, count) {
    if (count === 0) this.counts.delete(key);
    else this.counts.set(key, count);
  }

  /** A page of the calls of a stack, as far as the search wants them. `task`: one of them. */
  pageOf({ stack, source, tool, workflow }, more) {
    return inboxPage({ stack, source, tool, workflow, ...filter.inboxParameters(), ...more });
  }

  /** A stack for the API. With these the gateway reads no others than they have. */
  placeOf({ key, task: { source, tool, workflow } }) {
    return { stack: key, source, tool, workflow };
  }

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
    for (const { id, task } of isMore ? [] : this.knownOf(key)) if (!present.has(id) && (!hasMore || !first || Date.parse(task.decideBy) < Date.parse(first.task.decideBy))) this.rows.delete(id);
    this.know(rows);
  }

  know(rows) {
    for (const row of rows) {
      this.rows.set(row.id, row);
      this.found.add(row.id);
    }
  }

  show() {
    if (this.presence.isThere) this.refreshStacks();
    else this.tidy();
    this.arranged();
  }

  /* One decision may end hundreds of calls, each with an event of its own. */
  refreshSoon() {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = undefined;
      if (!this.presence.isThere) return this.tidy();
      this.refreshStacks();
      return this.arranged();
    }, REFRESH_MS);
  }

  /* In place: nothing moves. */
  refreshStacks() {
    for (const [key, stack] of this.stacks) stack.update(this.knownOf(key), this.counts.get(key) ?? 0, true);
  }

  /* ---- stacks ---- */

  isOpen(key) {
    return this.stacks.get(key)?.isOpen === true;
  }

  async toggle(stack, isOpen) {
    stack.open(isOpen);
    if (!isOpen) {
      for (const row of stack.rows) (this.members.delete(row.id), (row.isOpenedByHand = false));
      this.arrange();
    } else {
      await this.load(stack);
    }
  }

  /** Makes the calls of a stack known: the first ones, or those behind the ones that are. */
  async load(stack, isMore = false) {
    if (!isMore && stack.rows.length >= Math.min(stack.count, STACK_PAGE)) return;
    const { question } = this;
    await this.attempt(stack, () => this.recount.during(async () => {
      const page = await this.pageOf(this.placeOf(stack), { limit: STACK_PAGE, ...(isMore && stack.cursor ? { cursor: stack.cursor } : {}) });
      if (this.question !== question) return;
      if (page.rows.length === 0 && stack.rows.some(({ id }) => !this.ended.has(id))) return void (stack.open(false), await this.search()); // they are of another stack by now
      stack.cursor = page.nextCursor;
      stack.isLoaded = true;
      this.takePage(stack.key, page, isMore);
    }));
  }

  showMember(row) {
    this.members.add(row.id);
    this.arrange();
    row.open(true);
    row.focus();
  }

  /**
   * A task that is new or has changed, whose row is brought up to date by `update()`. Returns whether its row is in this list.
   */
  put(task, update = () => {}) {
    const isKnown = this.rows.has(task.id);
    if (task.state === 'pending') {
      this.renew(task, update);
      return true;
    }
    const hasEnded = this.hasEnded(task.id); // nothing that it does after its decision is counted
    // A decided call that lingers may run and end meanwhile; it still goes down in its own time.
    const subject = { ...task, stack: this.rows.get(task.id)?.task.stack ?? task.stack };
    const { stack } = subject;
    const wasCounted = isKnown && this.accepts(this.rows.get(task.id).task);
    if (!hasEnded) this.recount.stir(subject);
    const isLast = this.rows.delete(task.id) && !this.linger(task, update);
    if (wasCounted) this.changeCount(subject, -1);
    else if (isKnown) this.waiting = Math.max(0, this.waiting - 1);
    else if (!hasEnded && (this.counts.has(stack) || filter.isOn || this.cursor !== null)) this.recount.add(subject);
    if (!isKnown || isLast) update();
    if (this.stacks.has(stack)) this.refreshSoon();
    return this.lingering.has(task.id);
  }

  /* One that I have voted on is no more among mine, and another owner's is of another stack. */
  renew(task, update) {
    const before = this.rows.get(task.id)?.task;
    const wasAccepted = before && this.accepts(before);
    update();
    const now = before ? this.rows.get(task.id).task : task;
    this.recount.stir(now);
    if (!before && this.isNewcomer(task)) this.come(task);
    else if (!before || before.stack !== now.stack || wasAccepted !== this.accepts(now)) for (const one of [before ?? now, now]) this.recount.add(one);
  }

  hasEnded(id) {
    const hasEnded = this.ended.has(id);
    this.ended.add(id);
    if (this.ended.size > MOST_ENDED) this.ended.delete(this.ended.values().next().value);
    return hasEnded;
  }

  come(task) {
    this.changeCount(task, 1);
    this.rows.set(task.id, this.rowOf(task));
    this.add(task);
  }

  /* A call that waits no more keeps its place, its height and the focus, and says what happened. */
  linger(task, update = () => this.rowOf(task)) {
    const element = [...this.list.children].find((child) => child.dataset.taskId === task.id);
    if (!element || this.lingering.has(task.id)) return false;
    const isHeld = this.presence.isThere;
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
    if (!this.presence.isThere) return this.tidy();
    if (!this.accepts(task)) return this.arranged();
    if (this.stacks.has(task.stack)) return this.refreshSoon();
    this.list.append(this.prepared(this.rows.get(task.id)).element);
    this.fresh += 1;
    return this.arranged();
  }

  /* A key decides at once what has the focus, and then the next one. */
  prefetch(element) {
    for (const { dataset } of [element, element?.nextElementSibling, element?.nextElementSibling?.nextElementSibling].filter(Boolean)) this.rows.get(dataset.taskId)?.prefetch();
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

  /* How many calls wait no more, and still stand in their place. */
  get over() {
    return [...this.stacks.values()].reduce((sum, stack) => sum + stack.over, this.lingering.size);
  }

  /** Says what is out of order. */
  showArrange() {
    const parts = [this.over > 0 && `${this.over} decided`, this.fresh > 0 && `${this.fresh} new`].filter(Boolean);
    byId('arrange').hidden = parts.length === 0;
    byId('arrange').textContent = `Arrange: ${parts.join(', ')}`;
  }

  /* The focus does not go down with the card, but on to the next call that waits. */
  settleDown(row) {
    const { element } = row;
    const next = element.contains(document.activeElement) ? this.nextPending(element) : null;
    element.hidden = false;
    element.classList.remove('member');
    letGo(element);
    this.settled(row);
    next?.focus({ preventScroll: true });
  }

  nextPending(element) {
    const isPending = (other) => other.dataset.state === 'pending' && !other.hidden;
    const all = [...this.list.children];
    const at = all.indexOf(element);
    return all.slice(at + 1).find(isPending) ?? all.slice(0, at).findLast(isPending) ?? document.getElementById('waiting');
  }

  prepared(row) {
    const isNew = row.element.parentNode !== this.list;
    if (isNew && this.waiting <= FEW && !row.detail && !row.isOpen) row.open(true);
    return row;
  }

  /** Rows that are asked for, in their order, alike ones together. */
  wanted() {
    const sorted = [...this.rows.values()].filter((row) => this.accepts(row.task)).sort((a, b) => bySoonest(a.task, b.task));
    const together = new Map();
    for (const row of sorted) {
      const { stack } = row.task;
      if (together.has(stack)) together.get(stack).push(row);
      else together.set(stack, [row]);
    }
    return [...together];
  }

  /** Puts everything where it belongs. Rows that are there already stay the same elements. */
  arrange() {
    const elements = [];
    const stacks = new Map();
    this.shown = 0;
    for (const [key, rows] of this.wanted()) {
      if (elements.length >= this.limit) break;
      const count = Math.max(this.counts.get(key) ?? 0, rows.length);
      this.shown += count;
      if (count > 1) {
        const stack = this.stackOf(key);
        stacks.set(key, stack);
        elements.push(stack.element);
        stack.update(rows, count);
      }
      for (const row of count > 1 ? rows.filter((one) => this.isMember(one)) : rows) {
        const { element } = this.prepared(row);
        element.classList.toggle('member', count > 1);
        element.hidden = false;
        elements.push(element);
      }
    }
    this.stacks = stacks;
    for (const row of this.lingering.values()) elements.push(row.element);
    this.putInPlace(elements);
    this.prefetch(this.list.querySelector(':scope > [data-task-id]'));
    this.arranged();
  }

  /* A card that somebody has opened, or writes in, stays below the stack that its call is of by now. */
  isMember(row) {
    return this.members.has(row.id) || row.isOpenedByHand || Boolean(row.detail?.reason);
  }

  stackOf(key) {
    return this.stacks.get(key) ?? new Stack(key, this.stackHost);
  }

  /* An element that moves in the document loses the focus. */
  putInPlace(elements) {
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

  /** The question to the gateway for the list: once there are rows, for a whole page, so that none of them goes. */
  parameters() {
    return { ...filter.inboxParameters(), limit: this.rows.size === 0 ? FIRST_ROWS : PAGE_ROWS };
  }

  /** The rest of the first page, which comes behind what is there. */
  fill() {
    if (this.cursor !== null && this.rows.size < PAGE_ROWS) this.nextPage(PAGE_ROWS - FIRST_ROWS);
  }

  showMore() {
    this.limit += WINDOW;
    if (this.cursor === null) this.arrange();
    else this.nextPage(PAGE_ROWS);
  }

  nextPage(limit) {
    const { question } = this;
    return this.attempt(WHOLE, () => this.recount.during(async () => {
      const page = await inboxPage({ ...filter.inboxParameters(), cursor: this.cursor, limit });
      if (this.question !== question) return;
      for (const { stack, count } of page.rows) this.counts.set(stack, Math.max(count, this.counts.get(stack) ?? 0));
      this.know(this.answered(page.rows));
      [this.waiting, this.matching, this.cursor] = [page.waiting, page.matching, page.nextCursor];
      this.arrange();
    }));
  }

  /** Makes sure that a task that waits is in the list, whatever is filtered, folded or far down. */
  reveal(task) {
    if (!this.rows.has(task.id)) {
      this.rows.set(task.id, this.rowOf(task));
      if (!this.counts.has(task.stack)) this.counts.set(task.stack, 1);
      this.recount.add(task);
    }
    if (!this.accepts(task)) filter.clear();
    this.limit = Math.max(this.limit, this.rows.size * 2);
    this.members.add(task.id);
    this.arrange();
  }

  tick(now) {
    for (const stack of this.stacks.values()) stack.tick(now);
  }
}
