// One task in a list: a line, and below it its details once somebody has opened it.
import { putBrief } from './brief.js';
import { taskById } from './api.js';
import { Detail } from './detail.js';
import { putMark } from './marks.js';
import { letGo } from './presence.js';
import { duration, make, putAsker, putRisk, putText, shortened, timeText, visibleText } from './text.js';
import { isPending, outcomeOf, timeLeft, votesOf } from './votes.js';

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
