// Calls that two of three persons must approve. By their markers some get both votes, some one, some one and take it back.
import { setTimeout as pause } from 'node:timers/promises';
import { Traffic } from '../../faults/lib/traffic.mjs';
import { pick } from '../../integration/lib/random.mjs';

export const PERSONS = ['alice', 'bob', 'carol'];
export const VOTED_TOOL = 'wipe_user';

/** The persons and their votes, by the marker. `twice` votes again and again; `back` takes the vote back before the one in `then` votes. */
const PLANS = [
  { approve: ['alice', 'bob'] },
  { approve: ['alice', 'bob', 'carol'] },
  { approve: ['carol'], twice: true },
  { approve: ['alice'], reject: ['bob'] },
  { back: ['bob'], then: ['carol'] },
];

const planOf = ({ arguments: { marker } }) => PLANS[marker % PLANS.length];

export class VotedTraffic extends Traffic {
  /** Of a call that will never have its votes nobody waits for the end. */
  async create(client) {
    const marker = this.ledger.markVoted();
    const answer = await client.send('tools/call', { name: VOTED_TOOL, arguments: this.argumentsOf(marker), task: { ttl: 8_000 } });
    if (this.refused(`create ${marker}`, answer)) return undefined;
    const id = answer.message.result.task.taskId;
    this.ledger.created(id, marker, client);
    client.tasks.push(id);
    return id;
  }

  /** The next step of `person` about the task, or undefined. */
  stepOf(task, person) {
    const plan = planOf(task);
    const { told, votes, isBack } = this.ledger.sent.get(task.arguments.marker);
    if (plan.reject?.includes(person)) return votes.size > 0 ? 'reject' : undefined;
    if (plan.back?.includes(person)) return isBack ? undefined : told.has(person) ? 'withdraw' : 'approve';
    if (plan.then?.includes(person)) return isBack && !told.has(person) ? 'approve' : undefined;
    return plan.approve?.includes(person) && (plan.twice || !told.has(person)) ? 'approve' : undefined;
  }

  voter(person, admin) {
    return this.repeat(Infinity, async () => {
      await pause(40);
      const { tasks } = await admin.list({ state: 'pending', workflow: 'two', limit: '100' });
      const open = tasks.filter((task) => this.stepOf(task, person));
      if (open.length === 0) return;
      const task = pick(this.random, open);
      await this[this.stepOf(task, person)](admin, task, person);
    });
  }

  /** A token of no person has no vote among several. */
  intruder(admin) {
    return this.repeat(Infinity, async () => {
      await pause(200);
      const { tasks } = await admin.list({ state: 'pending', workflow: 'two', limit: '100' });
      if (tasks.length === 0) return;
      const answer = await admin.decide('approve', pick(this.random, tasks).id);
      if (answer.status !== 403) this.refusedToDecide('a vote of nobody', answer, []);
    });
  }

  async approve(admin, task, person) {
    const { marker } = task.arguments;
    const sent = this.ledger.sent.get(marker);
    this.ledger.voting(marker, person);
    (sent.tries ??= new Map()).set(person, (sent.tries.get(person) ?? 0) + 1);
    const answer = await admin.decide('approve', task.id);
    const hasVoted = answer.status === 409 && answer.json.error.code === 'already_voted';
    if (!hasVoted && this.refusedToDecide(`vote of ${person} on ${task.id}`, answer, [200, 202])) return;
    this.ledger.toldVote(marker, person);
    if (!hasVoted) this.ledger.toldState(task.id, marker, answer.json.state);
  }

  /** A vote without an answer may come later than the withdrawal: the ledger takes back only what was sent once. */
  async withdraw(admin, task, person) {
    const { marker } = task.arguments;
    const sent = this.ledger.sent.get(marker);
    this.ledger.withdrawing(marker, person);
    const answer = await admin.post(`/api/v1/tasks/${task.id}/withdraw`, {});
    if (this.refusedToDecide(`withdrawal of ${person} of ${task.id}`, answer)) return;
    if (sent.tries.get(person) === 1) this.ledger.toldWithdrawn(marker, person);
    sent.isBack = true;
  }

  reject(admin, task) {
    return this.decide(admin, task, 'reject');
  }
}
