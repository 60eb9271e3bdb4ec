// Deciding: a press of a button or a key, the dialog where one is needed, and what the gateway says.
import { ApiError, decide, decideMany, taskById } from './api.js';
import { askDecision } from './dialog.js';
import { plural } from './text.js';
import { may, whyNot } from './votes.js';

const NOUNS = { reject: 'rejection', withdraw: 'withdrawal' };
const AT_ONCE = 8; // tasks that are read together
const MOST_ITEMS = 10_000; // of one request
const DONE = { approve: 'approved', reject: 'rejected' };

/* The API's code for one of many, in words for a person. */
const CODES = {
  conflict: 'Too late: it does not wait any more.',
  changed: 'The call has changed since it was shown: look at it again.',
  definition_changed: 'The server has changed the tool since the call was made: the agent has to call again.',
  already_voted: 'You have voted already.',
  own_call: 'This is your own call: somebody else must approve it.',
  not_an_approver: 'You are not among those who decide this workflow.',
  reason_required: 'This vote needs a reason.',
  typed_required: 'This approval needs a typed value: approve it by itself.',
  not_found: 'This task is not known any more.',
};

/* The call that an approval would let run: with the arguments that somebody has typed in place of the client's. */
const shownOf = (row, verb) => (verb === 'approve' ? row.detail?.edit.edited : undefined) ?? row.task;

export class Decisions {
  /** `changed(task)` shows a task; `refused(error)` ends the session; `announce(text)`; `setProblem(text)` for the list as a whole; `done()` after a selection. */
  constructor(host) {
    this.host = host;
    this.asking = 0; // from a press to the answer of the gateway
  }

  get isAsking() {
    return this.asking > 0;
  }

  async counted(work) {
    this.asking += 1;
    try {
      return await work();
    } finally {
      this.asking -= 1;
    }
  }

  /** A button of a row, which has the arguments in view. */
  press(row, verb, reason) {
    return this.counted(() => this.pressed(row, verb, reason));
  }

  async pressed(row, verb, reason) {
    if (verb === 'emergency' || (verb === 'approve' && row.task.typed)) {
      const { task } = row; // as the dialog shows it
      const answer = await askDecision([shownOf(row, verb)], verb, { reason });
      if (answer) await this.one(row, task, verb, answer.reason, answer.typed);
      return;
    }
    await this.one(row, row.task, verb, reason);
  }

  /** A key, or a button over several rows: always with the dialog. `rows` may be on their way. */
  ask(rows, verb) {
    return this.counted(async () => {
      let known = [];
      try {
        known = await rows;
        await this.asked(known, verb);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) this.host.refused(error);
        else (known[0] ?? this.host).setProblem(`Not done: ${error.message}`);
      }
    });
  }

  /* An approval is about whole requests. For a rejection it is enough to know whether it needs a reason. */
  async readWhole(rows, verb) {
    const firsts = new Map();
    for (const row of rows) if (row.whole && !firsts.has(row.task.workflow)) firsts.set(row.task.workflow, row);
    const wanted = verb === 'approve' || rows.length === 1 ? rows.filter((row) => row.whole) : [...firsts.values()];
    for (let at = 0; at < wanted.length; at += AT_ONCE) await Promise.all(wanted.slice(at, at + AT_ONCE).map((row) => row.whole()));
  }

  async asked(rows, verb) {
    const own = rows.filter((row) => row.isPending && may(row.task, verb));
    if (own.length === 0) return rows[0]?.setProblem?.(whyNot(rows[0].task) || 'You cannot do that with this call.');
    const allowed = rows.length > 1 && verb === 'approve' ? own.filter((row) => !row.task.typed) : own;
    if (allowed.length === 0) return rows[0].setProblem('Calls of high risk are approved one by one.');
    await this.readWhole(allowed, verb);
    const changed = allowed.length > 1 && verb === 'approve' && allowed.find((row) => row.detail?.edit.text !== undefined);
    if (changed) return changed.setProblem('You are changing the arguments of this call: approve it by itself.');
    if (allowed.length === 1 && allowed[0].detail?.hasTerms(verb) === false) return;
    const reason = allowed.length === 1 ? allowed[0].detail?.reason : '';
    const tasks = allowed.map((row) => row.task); // as the dialog shows it
    const answer = await askDecision(allowed.map((row) => shownOf(row, verb)), verb, { reason, leftOut: own.length - allowed.length });
    if (!answer) return;
    if (allowed.length === 1) await this.one(allowed[0], tasks[0], verb, answer.reason, answer.typed);
    else await this.many(allowed, tasks, verb, answer.reason);
  }

  async one(row, shown, verb, reason, typed) {
    const isEmergency = verb === 'emergency';
    if ((isEmergency || verb === 'approve') && !shown.hasWhole) return row.setProblem('Not done: the request was not read whole.');
    row.element?.focus({ preventScroll: true }); // the button is about to be disabled, and to leave
    row.setBusy(true);
    const { given } = row;
    try {
      const grant = verb === 'approve' ? row.detail?.grant : undefined;
      const task = await decide(shown, isEmergency ? 'approve' : verb, reason, { ...(isEmergency ? { emergency: true } : {}), ...(typed ? { typed } : {}), ...(grant ? { grant } : {}) }, verb === 'approve' ? row.detail?.edit.text : undefined);
      row.setBusy(false);
      // The stream brings the same, and may already have brought a later state than the answer.
      if (row.given === given) this.host.changed(task);
    } catch (error) {
      row.setBusy(false);
      this.explain(row, verb, error);
      if (error.code === 'definition_changed') await this.look(row);
    }
  }

  /* The gateway sends nothing when a tool has changed. */
  async look(row) {
    try {
      this.host.changed(await taskById(row.task.id));
    } catch {
      // The connection, which the page speaks of elsewhere.
    }
  }

  explain(row, verb, error) {
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 401) return this.host.refused(error);
    if (status === 409) return row.setProblem(`${error.state ? 'Too late' : 'Not done'}: ${error.message}.`);
    if (status === 0) return row.setProblem(`It is not known whether this ${NOUNS[verb] ?? 'approval'} arrived: the gateway does not answer.`);
    if (status === 503) return row.setProblem(`The gateway answers: ${error.message}.`); // the message says whether anything was done
    return row.setProblem(`Not done: ${error.message}`);
  }

  async many(rows, tasks, verb, reason) {
    for (const row of rows) row.setBusy(true);
    const counts = { done: 0, failed: 0 };
    try {
      for (let at = 0; at < rows.length; at += MOST_ITEMS) {
        const results = await decideMany(tasks.slice(at, at + MOST_ITEMS), verb, reason);
        for (const [place, result] of results.entries()) this.take(rows[at + place], result, counts);
      }
      this.host.done();
    } catch (error) {
      for (const row of rows) row.setBusy(false);
      this.explain(rows[counts.done + counts.failed], verb, error);
    }
    const { done, failed } = counts;
    if (done + failed > 0) this.host.announce(`${plural(done, 'call')} ${DONE[verb]}${failed > 0 ? `, ${failed} not` : ''}`);
  }

  /* The gateway's word on one call of many. */
  take(row, { status, code }, counts) {
    row.setBusy(false);
    counts[status < 300 ? 'done' : 'failed'] += 1;
    if (status >= 300) row.setProblem(`Not done: ${CODES[code] ?? `the gateway answered ${status}.`}`);
  }
}
