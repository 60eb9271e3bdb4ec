// All acknowledgements of the gateway about each task, and a check that the gateway stands by them.
import assert from 'node:assert/strict';

export const TERMINAL = ['completed', 'failed', 'rejected', 'cancelled', 'expired'];
const progress = (state) => ({ pending: 0, approved: 1, executing: 2 })[state] ?? 3;

/** A client cannot tell a rejected or expired task from a failed one. */
const seenByClient = { pending: 'input_required', approved: 'working', executing: 'working', completed: 'completed', failed: 'failed', rejected: 'failed', expired: 'failed', cancelled: 'cancelled' };
const clientProgress = { input_required: 0, working: 1 };

/** Every task carries a marker of its own in its arguments, by which the upstream's calls are counted. */
export class Ledger {
  constructor() {
    this.lastMarker = 0;
    this.calls = new Map(); // marker → how often upstream was called
    this.sent = new Map(); // marker → {forwarded, verbs: Set of the decisions that somebody has at least sent}
    this.tasks = new Map(); // id → the answers to its client and to operators
  }

  /** A marker for a call that is about to be sent. */
  mark({ forwarded = false, ...more } = {}) {
    const marker = ++this.lastMarker;
    this.sent.set(marker, { forwarded, verbs: new Set(), ...more });
    return marker;
  }

  /** Upstream was called; throws at once if it must not have been. */
  called(marker) {
    const sent = this.sent.get(marker);
    assert.ok(sent, `upstream was called with ${marker}, which nobody has sent`);
    const count = (this.calls.get(marker) ?? 0) + 1;
    this.calls.set(marker, count);
    assert.equal(count, 1, `upstream was called ${count} times with ${marker}`);
    assert.ok(sent.forwarded || this.mayRun(marker), `upstream was called with ${marker}, which nobody has approved`);
  }

  /** Has somebody at least sent what approves the call with this marker? */
  mayRun(marker) {
    return this.sent.get(marker).verbs.has('approve');
  }

  /** A decision is about to be sent. */
  deciding(marker, verb) {
    const sent = this.sent.get(marker);
    assert.ok(sent, `the store holds a task with ${marker}, which nobody has sent`);
    sent.verbs.add(verb);
  }

  /** Its client has the id. An operator may have seen it before. */
  created(id, marker, client) {
    const task = this.known(id, marker);
    assert.equal(task.client, undefined, `the id ${id} was given twice`);
    task.client = client;
  }

  known(id, marker) {
    if (!this.tasks.has(id)) this.tasks.set(id, { id, marker, client: undefined, progress: 0, state: undefined, status: undefined, text: undefined });
    const task = this.tasks.get(id);
    assert.ok(marker === undefined || task.marker === marker, `${id} is the task of ${task.marker}, and was shown as that of ${marker}`);
    return task;
  }

  /** An operators' answer had `state`; answers to clients have no marker. */
  toldState(id, marker, state) {
    const task = this.known(id, marker);
    task.progress = Math.max(task.progress, progress(state));
    if (TERMINAL.includes(state)) task.state = this.same(task, 'state', task.state, state);
  }

  /** An answer to its client had `status`, in the protocol's words. */
  toldStatus(id, status) {
    const task = this.tasks.get(id);
    task.progress = Math.max(task.progress, clientProgress[status] ?? 3);
    if (clientProgress[status] === undefined) task.status = this.same(task, 'status', task.status, status);
  }

  /** Its client was given the result. */
  toldResult(id, text) {
    const task = this.tasks.get(id);
    this.toldState(id, undefined, 'completed');
    task.text = this.same(task, 'result', task.text, text);
  }

  same(task, what, before, now) {
    assert.ok(before === undefined || before === now, `the ${what} of ${task.id} was ${before} and is ${now}`);
    return now;
  }

  /** Compares all tasks of the gateway now (a Map by id), with nothing under way, with all answers. */
  check(tasks) {
    for (const told of this.tasks.values()) this.checkTold(told, tasks.get(told.id));
    for (const task of tasks.values()) this.checkMoves(task);
  }

  checkTold(told, task) {
    assert.ok(task, `${told.id} was shown to somebody and is not there any more`);
    assert.equal(task.arguments.marker, told.marker, told.id);
    assert.ok(progress(task.state) >= told.progress, `${told.id} is ${task.state}, and somebody has seen it further than that`);
    if (told.state) assert.equal(task.state, told.state, told.id);
    if (told.status) assert.equal(seenByClient[task.state], told.status, told.id);
  }

  checkMoves(task) {
    this.checkState(task);
    this.checkCalls(task);
  }

  /** No task has a state that no request led to. */
  checkState(task) {
    const { marker } = task.arguments;
    const sent = this.sent.get(marker);
    assert.ok(sent && !sent.forwarded, `the task ${task.id} with ${marker} was sent by nobody`);
    const needs = { approved: 'approve', executing: 'approve', completed: 'approve', failed: 'approve', rejected: 'reject', cancelled: 'cancel' }[task.state];
    const isSent = needs === 'approve' ? this.mayRun(marker) : sent.verbs.has(needs);
    assert.ok(needs === undefined || isSent, `${task.id} is ${task.state}, and nobody has sent ${needs}`);
  }

  /** A task whose call has run is completed, has failed or was cancelled meanwhile. */
  checkCalls(task) {
    const calls = this.calls.get(task.arguments.marker) ?? 0;
    if (task.state === 'completed') assert.ok(calls === 1, `${task.id} is completed, and upstream was called ${calls} times`);
    if (['pending', 'approved', 'rejected', 'expired'].includes(task.state)) assert.ok(calls === 0, `${task.id} is ${task.state}, and upstream was called`);
  }

  /** Every breach of a promise, as sentences under `lost`, `twice` and `unapproved`; `check` tells the first. */
  breaches(tasks) {
    const found = { lost: [], twice: [], unapproved: [] };
    const note = (list, look) => {
      try {
        look();
      } catch (error) {
        list.push(error.message);
      }
    };
    for (const told of this.tasks.values()) note(found.lost, () => this.checkTold(told, tasks.get(told.id)));
    // An approved call that has run would run again; a completed one that has not run has an answer of nobody's.
    const kinds = { approved: found.twice, completed: found.lost };
    for (const task of tasks.values()) {
      note(found.unapproved, () => this.checkState(task));
      note(kinds[task.state] ?? found.unapproved, () => this.checkCalls(task));
    }
    for (const [marker, count] of this.calls) {
      const sent = this.sent.get(marker);
      if (count > 1) found.twice.push(`upstream was called ${count} times with ${marker}`);
      if (!sent?.forwarded && !(sent && this.mayRun(marker))) found.unapproved.push(`upstream was called with ${marker}, which nobody has approved`);
    }
    return found;
  }

  counts(tasks) {
    const states = {};
    for (const task of tasks.values()) states[task.state] = (states[task.state] ?? 0) + 1;
    return states;
  }
}

/** Every task of the store, page by page, but the answers inside them. */
export async function allTasks(admin) {
  const tasks = new Map();
  let cursor;
  do {
    const page = await admin.list({ limit: '100', ...(cursor ? { cursor } : {}) });
    for (const task of page.tasks) if (!task.answerOf) tasks.set(task.id, task);
    cursor = page.nextCursor;
  } while (cursor);
  return tasks;
}
