// The calls that wait: the most urgent first, alike ones as a stack, as many as are looked at. Of a stack the gateway says
// how many calls it has, and which one runs out first; the others are known once somebody opens it.
import { inboxPage } from './api.js';
import { hold, holdLine, letGo, Stack } from './row.js';
import { bySoonest, filter } from './task.js';
import { putText } from './text.js';

const byId = (id) => document.getElementById(id);

// Whether somebody is at the list of calls: by the focus, the pointer, or a finger that has just left. Nothing in it moves meanwhile.

const TOUCH_REST_MS = 10_000;
const hasHover = matchMedia('(hover: hover)');

class Presence {
  /** `left()` is called when somebody may have left the list. */
  constructor(list, left) {
    this.list = list;
    this.left = left;
    this.touched = -TOUCH_REST_MS;
    list.addEventListener('pointerleave', () => this.leaveSoon());
    list.addEventListener('focusout', (event) => event.relatedTarget !== byId('arrange') && this.leaveSoon());
    list.addEventListener('pointerdown', (event) => event.pointerType !== 'mouse' && this.touch(), true);
    list.addEventListener('touchmove', () => this.touch(), { passive: true });
    byId('decide').addEventListener('close', () => this.leaveSoon());
  }

  get isThere() {
    if (this.list.childElementCount === 0) return false;
    return byId('decide').open || this.list.contains(document.activeElement) || (hasHover.matches && this.list.matches(':hover')) || performance.now() - this.touched < TOUCH_REST_MS;
  }

  touch() {
    this.touched = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.left(), TOUCH_REST_MS + 1);
  }

  leaveSoon() {
    setTimeout(() => this.left());
  }
}

// Counts of stacks that events have made unsure: one timer for all of them, and one request to the gateway at a time.

const REST_MS = 200;
const REST_AFTER_FAILURE_MS = 2000;
const STACK_PAGE = 200;

class Recount {
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

// What the page knows of the calls that wait: rows, and what the gateway has counted.

const MOST_ENDED = 10_000;

/** What is wrong with the list as a whole; a row and a stack have the same for themselves. */
export const WHOLE = { setProblem: (text) => putText(document.getElementById('pending-problem'), text) };

class Known {
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

// So many calls are shown whole: there is room for them, and nothing to look for.
const FEW = 5;
// More lines than that only make a page slow.
const WINDOW = 400;
// So many rows, a screen of them, are asked for first, to be there soon, and the others of a page after them.
const FIRST_ROWS = 25;
const PAGE_ROWS = 200;
const REFRESH_MS = 30; // events are shown together

export class Inbox {
  /** `rowOf(task)` gives the row of a task; `settled(row)` takes one that waits no more; `arranged()` hears of a new order, or of a call that came or went. */
  constructor(list, { rowOf, settled, arranged, picked, pickedRow, decide, failed }) {
    this.list = list;
    this.rowOf = rowOf;
    this.settled = settled;
    this.arranged = () => (arranged(), this.showArrange());
    this.known = new Known({ rowOf, failed, isOpen: (key) => this.isOpen(key), show: () => this.show() });
    this.members = new Set(); // ids of calls of stacks that somebody has opened
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
    this.fresh = new Set(); // rows that came at the end, out of their order
    list.addEventListener('focusin', ({ target }) => this.prefetch(target.closest('[data-task-id]')));
    byId('arrange').addEventListener('click', () => this.tidy());
    this.presence = new Presence(list, () => !this.presence.isThere && this.tidy());
  }

  clear() {
    this.known.clear();
    this.lingering.clear();
    this.fresh.clear();
    this.stacks.clear();
    this.members.clear();
    this.limit = WINDOW;
    this.list.replaceChildren();
  }

  /** Replaces all by a page of rows. `decided`: those that were decided lately. */
  replace(page, decided = []) {
    const present = new Set(page.rows.map(({ id }) => id));
    this.known.adopt(page);
    if (this.presence.isThere) {
      for (const id of [...this.known.rows.keys()]) if (!present.has(id)) this.known.rows.delete(id);
      for (const task of decided) if (!present.has(task.id)) this.linger(task);
      for (const task of page.rows) this.known.rows.set(task.id, this.rowOf(task));
    } else {
      this.known.rows = new Map(page.rows.map((task) => [task.id, this.rowOf(task)]));
    }
    this.show();
    this.loadOpen();
  }

  /** The search or a filter has changed: shows what is known to fit, until search() has asked. */
  narrow() {
    this.known.narrow();
    this.arrange();
  }

  /** Asks for what the search and the filters want. */
  search() {
    return this.known.firstPage(() => {
      this.show();
      this.loadOpen();
    });
  }

  loadOpen() {
    for (const stack of this.stacks.values()) if (stack.isOpen) this.load(stack);
  }

  /** A stack for the API. With these the gateway reads no others than they have. */
  placeOf({ key, task: { source, tool, workflow } }) {
    return { stack: key, source, tool, workflow };
  }

  /* Nothing moves while somebody is about to press something: a new call is at the end until then. */
  show() {
    if (!this.presence.isThere) return this.tidy();
    this.refreshStacks();
    for (const row of this.known.rows.values()) if (this.isMissing(row)) this.append(row);
    return this.arranged();
  }

  /* One decision may end hundreds of calls, each with an event of its own. */
  refreshSoon() {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = undefined;
      this.show();
    }, REFRESH_MS);
  }

  isMissing(row) {
    return row.element.parentNode !== this.list && !this.stacks.has(row.task.stack) && this.list.childElementCount < this.limit && this.known.accepts(row.task);
  }

  append(row) {
    this.list.append(this.prepared(row).element);
    this.fresh.add(row);
  }

  /* In place: nothing moves. */
  refreshStacks() {
    for (const [key, stack] of this.stacks) stack.update(this.known.of(key), this.known.counts.get(key) ?? 0, true);
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
    const { question } = this.known;
    await this.known.attempt(stack, () => this.known.recount.during(async () => {
      const page = await this.known.pageOf(this.placeOf(stack), { limit: STACK_PAGE, ...(isMore && stack.cursor ? { cursor: stack.cursor } : {}) });
      if (this.known.question !== question) return;
      if (page.rows.length === 0 && stack.rows.some(({ id }) => !this.known.ended.has(id))) return void (stack.open(false), await this.search(), this.tidy()); // they are of another stack by now
      stack.cursor = page.nextCursor;
      stack.isLoaded = true;
      this.known.takePage(stack.key, page, isMore);
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
    const isKnown = this.known.rows.has(task.id);
    if (task.state === 'pending') {
      this.renew(task, update);
      return true;
    }
    const hasEnded = this.known.hasEnded(task.id); // nothing that it does after its decision is counted
    // A decided call that lingers may run and end meanwhile; it still goes down in its own time.
    const subject = { ...task, stack: this.known.rows.get(task.id)?.task.stack ?? task.stack };
    const { stack } = subject;
    const wasCounted = isKnown && this.known.accepts(this.known.rows.get(task.id).task);
    if (!hasEnded) this.known.recount.stir(subject);
    const isLast = this.known.rows.delete(task.id) && !this.linger(task, update);
    if (wasCounted) this.known.changeCount(subject, -1);
    else if (isKnown) this.known.waiting = Math.max(0, this.known.waiting - 1);
    else if (!hasEnded && (this.known.counts.has(stack) || filter.isOn || this.known.cursor !== null)) this.known.recount.add(subject);
    if (!isKnown || isLast) update();
    if (this.stacks.has(stack)) this.refreshSoon();
    return this.lingering.has(task.id);
  }

  /* One that I have voted on is no more among mine, and another owner's is of another stack. */
  renew(task, update) {
    const before = this.known.rows.get(task.id)?.task;
    const wasAccepted = before && this.known.accepts(before);
    if (before && this.presence.isThere) holdLine(this.known.rows.get(task.id).element);
    update();
    const now = before ? this.known.rows.get(task.id).task : task;
    this.known.recount.stir(now);
    if (!before && this.known.isNewcomer(task)) this.come(task);
    else if (!before || before.stack !== now.stack || wasAccepted !== this.known.accepts(now)) for (const one of [before ?? now, now]) this.known.recount.add(one);
  }

  come(task) {
    this.known.changeCount(task, 1);
    this.known.rows.set(task.id, this.rowOf(task));
    this.refreshSoon();
  }

  /* A call that waits no more keeps its place, its height and the focus, and says what happened. */
  linger(task, update = () => this.rowOf(task)) {
    const element = [...this.list.children].find((child) => child.dataset.taskId === task.id);
    if (!element || this.lingering.has(task.id)) return false;
    const isHeld = this.presence.isThere;
    const hadFocus = element.contains(document.activeElement);
    if (isHeld && !element.hidden) (hold(element), holdLine(element));
    update();
    this.lingering.set(task.id, this.rowOf(task));
    if (hadFocus && !(element.contains(document.activeElement) && document.activeElement.checkVisibility())) element.focus({ preventScroll: true });
    if (isHeld) this.arranged();
    else this.tidy();
    return true;
  }

  /* A key decides at once what has the focus, and then the next one. */
  prefetch(element) {
    for (const { dataset } of [element, element?.nextElementSibling, element?.nextElementSibling?.nextElementSibling].filter(Boolean)) this.known.rows.get(dataset.taskId)?.prefetch();
  }

  /** Puts all in order, whoever is at it. */
  tidy() {
    for (const row of this.lingering.values()) this.settleDown(row);
    this.lingering.clear();
    this.fresh.clear();
    this.arrange();
    if (document.activeElement === byId('arrange')) byId('waiting').focus({ preventScroll: true });
    this.showArrange();
  }

  /* How many calls are not asked for any more, and still stand in their place. Those of a stack are lines of its own. */
  get over() {
    const isOver = ({ dataset, classList }) => dataset.taskId && !classList.contains('member') && !this.isWanted(dataset.taskId);
    return [...this.stacks.values()].reduce((sum, stack) => sum + stack.over, [...this.list.children].filter(isOver).length);
  }

  isWanted(id) {
    const row = this.known.rows.get(id);
    return row !== undefined && this.known.accepts(row.task);
  }

  /** Says what is out of order. */
  showArrange() {
    const { over } = this;
    const fresh = [...this.fresh].filter(({ id }) => this.isWanted(id)).length;
    const parts = [over > 0 && `${over} decided`, fresh > 0 && `${fresh} new`].filter(Boolean);
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
    letGo(row.element);
    if (isNew && this.known.waiting <= FEW && !row.detail && !row.isOpen) row.open(true);
    return row;
  }

  /** Rows that are asked for, in their order, alike ones together. */
  wanted() {
    const sorted = [...this.known.rows.values()].filter((row) => this.known.accepts(row.task)).sort((a, b) => bySoonest(a.task, b.task));
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
    for (const [key, rows] of this.wanted()) {
      if (elements.length >= this.limit) break;
      const count = Math.max(this.known.counts.get(key) ?? 0, rows.length);
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

  /** How many calls the list shows, those of stacks counted. */
  get shown() {
    const of = ({ dataset, classList }) => (dataset.stack ? this.known.counts.get(dataset.stack) ?? 0 : Number(!classList.contains('member') && this.isWanted(dataset.taskId)));
    return [...this.list.children].reduce((sum, element) => sum + of(element), 0);
  }

  /** The question to the gateway for the list: once there are rows, for a whole page, so that none of them goes. */
  parameters() {
    return { ...filter.inboxParameters(), limit: this.known.rows.size === 0 ? FIRST_ROWS : PAGE_ROWS };
  }

  /** The rest of the first page, which comes behind what is there. */
  fill() {
    if (this.known.cursor !== null && this.known.rows.size < PAGE_ROWS) this.known.nextPage(PAGE_ROWS - FIRST_ROWS, () => this.arrange());
  }

  showMore() {
    this.limit += WINDOW;
    if (this.known.cursor === null) this.arrange();
    else this.known.nextPage(PAGE_ROWS, () => this.arrange());
  }

  /** Makes sure that a task that waits is in the list, whatever is filtered, folded or far down. */
  reveal(task) {
    if (!this.known.rows.has(task.id)) {
      this.known.rows.set(task.id, this.rowOf(task));
      if (!this.known.counts.has(task.stack)) this.known.counts.set(task.stack, 1);
      this.known.recount.add(task);
    }
    if (!this.known.accepts(task)) filter.clear();
    this.limit = Math.max(this.limit, this.known.rows.size * 2);
    this.members.add(task.id);
    this.arrange();
  }

  tick(now) {
    for (const stack of this.stacks.values()) stack.tick(now);
  }
}
