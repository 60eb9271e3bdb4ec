// Clients and operators that keep a gateway busy until it dies, and write all answers into a ledger.
import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../integration/lib/random.mjs';

/** Other answers to `tasks/result`: the task has ended in another way. */
const ENDINGS = { approval_rejected: 'rejected', task_cancelled: 'cancelled', outcome_unknown: 'failed', approval_timeout: 'expired', task_expired: 'expired', policy_drift: 'failed' };

/** Did the connection end, instead of the gateway answering something? */
export const isCut = (error) => ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(error.code) || /socket hang up|cut in the middle|aborted/.test(error.message);

export class Traffic {
  /**
   * `note(step)` hears of each step of a task's life as it happens; `refusals(error, answer)` says which errors are to be
   * expected now, `survives(error)` after which exceptions one goes on; anything else lands in `problems`.
   */
  constructor({ ledger, random, note = () => {}, refusals = () => false, survives = () => false, ttl = () => 600_000, argumentsOf = (marker) => ({ marker }) }) {
    Object.assign(this, { ledger, random, note, refusals, survives, ttl, argumentsOf });
    this.problems = [];
    this.over = false;
  }

  /** Runs `step` until it has been done `times` times, the traffic is over, or the gateway is gone. */
  async repeat(times, step) {
    for (let i = 0; i < times && !this.over; i++) {
      try {
        await step();
      } catch (error) {
        if (this.survives(error)) {
          await pause(10);
          continue;
        }
        if (!isCut(error)) this.problems.push(error);
        return;
      }
    }
  }

  /** An answer that is an unexpected error. */
  refused(what, answer) {
    if (answer.message?.result) return false;
    if (this.refusals(answer.message?.error ?? {}, answer)) return true;
    if (answer.over === 'cut') throw Object.assign(new Error('the stream was cut'), { code: 'ECONNRESET' });
    throw new Error(`${what}: HTTP ${answer.status} ${answer.text}`);
  }

  async create(client, tool) {
    const marker = this.ledger.mark();
    this.note('create sent');
    const answer = await client.send('tools/call', { name: tool, arguments: this.argumentsOf(marker), task: { ttl: this.ttl(marker) } });
    if (this.refused(`create ${marker}`, answer)) return undefined;
    const id = answer.message.result.task.taskId;
    this.ledger.created(id, marker, client);
    client.tasks.push(id);
    this.note('create answered');
    return id;
  }

  async forward(client) {
    const marker = this.ledger.mark({ forwarded: true });
    const answer = await client.send('tools/call', { name: 'read', arguments: this.argumentsOf(marker) });
    this.refused(`forward ${marker}`, answer);
  }

  async look(client, id) {
    const answer = await client.send('tasks/get', { taskId: id });
    if (!this.refused(`tasks/get ${id}`, answer)) this.ledger.toldStatus(id, answer.message.result.status);
  }

  async cancel(client, id) {
    this.ledger.deciding(this.ledger.tasks.get(id).marker, 'cancel');
    this.note('cancel sent');
    const answer = await client.send('tasks/cancel', { taskId: id });
    if (answer.message?.error?.data?.error_type === 'invalid_params') return; // it had already ended
    if (this.refused(`tasks/cancel ${id}`, answer)) return;
    this.ledger.toldState(id, undefined, 'cancelled');
    this.note('cancel answered');
  }

  async result(client, id) {
    const answer = await client.send('tasks/result', { taskId: id });
    const ending = ENDINGS[answer.message?.error?.data?.error_type];
    if (ending) {
      this.ledger.toldState(id, undefined, ending);
      return;
    }
    if (this.refused(`tasks/result ${id}`, answer)) return;
    this.ledger.toldResult(id, answer.message.result.content[0].text);
    this.note('result answered');
  }

  /** One client: creates a few tasks and asks about those it has. */
  client(client, { creates = 4, steps = 20 } = {}) {
    client.tasks ??= [];
    // Mostly at what is new; but a client comes back to an old task, too.
    const recent = () => pick(this.random, this.random() < 0.9 ? client.tasks.slice(-8) : client.tasks);
    let created = 0;
    return this.repeat(steps, async () => {
      const chance = this.random();
      if (created < creates && (chance < 0.4 || client.tasks.length === 0)) {
        created++;
        await this.create(client, this.random() < 0.75 ? 'delete_user' : 'purge_user');
      } else if (chance < 0.55) await this.forward(client);
      else if (client.tasks.length === 0) await pause(1);
      else if (chance < 0.6) await this.cancel(client, recent());
      else await this.look(client, recent());
    });
  }

  /** A second connection of the same client, which waits for results. */
  waiter(client, { steps = 20 } = {}) {
    return this.repeat(steps, async () => {
      const id = client.tasks && pick(this.random, client.tasks.slice(-4));
      if (id) await this.result(client, id);
      else await pause(2);
    });
  }

  /** The fate of the task with this marker: most are approved, some are left alone for ever. */
  static fate(marker) {
    return ['approve', 'approve', 'approve', 'reject', undefined][marker % 5];
  }

  /** One operator. */
  operator(admin, { rounds = 50, query = {} } = {}) {
    return this.repeat(rounds, async () => {
      const { tasks } = await admin.list({ state: 'pending', limit: '100', ...query });
      for (const task of tasks) this.ledger.toldState(task.id, task.arguments.marker, task.state);
      const open = tasks.filter((task) => Traffic.fate(task.arguments.marker));
      if (open.length === 0) return pause(1);
      const task = pick(this.random, open);
      await this.decide(admin, task, Traffic.fate(task.arguments.marker));
    });
  }

  /** Did an operator's request fail as is to be expected now? Another operator, or the client, may have been first. */
  refusedToDecide(what, answer, accepted = [200]) {
    if (answer.status === 409) return true;
    if (accepted.includes(answer.status)) return false;
    if (this.refusals({ code: answer.json?.error?.code, message: answer.json?.error?.message }, answer)) return true;
    throw new Error(`${what}: HTTP ${answer.status} ${answer.text}`);
  }

  async decide(admin, task, verb) {
    this.ledger.deciding(task.arguments.marker, verb);
    this.note(`${verb} sent`);
    const answer = await admin.decide(verb, task.id);
    if (this.refusedToDecide(`${verb} ${task.id}`, answer)) return;
    this.ledger.toldState(task.id, task.arguments.marker, answer.json.state);
    this.note(`${verb} answered`);
  }
}
