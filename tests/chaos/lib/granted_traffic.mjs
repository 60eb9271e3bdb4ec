// Series of calls that differ in their marker alone: the first is approved with a grant, which decides some of the others.
import { setTimeout as pause } from 'node:timers/promises';
import { Traffic } from '../../faults/lib/traffic.mjs';
import { pick } from '../../integration/lib/random.mjs';
import { GRANT_CALLS } from './ledger.mjs';

export const GRANTED_TOOL = 'renew_user';
/** Calls at once, at whatever replica they meet: more than the grant allows. */
const BURST = GRANT_CALLS + 2;
const BURSTS = 3;
const PATIENCE_MS = 6_000;

export class GrantedTraffic extends Traffic {
  async create(client) {
    const { series } = client;
    const marker = this.ledger.markOfSeries(series);
    const answer = await client.send('tools/call', { name: GRANTED_TOOL, arguments: { marker, series }, task: { ttl: 5_000 } });
    if (this.refused(`create ${marker}`, answer)) return undefined;
    const id = answer.message.result.task.taskId;
    this.ledger.created(id, marker, client);
    client.tasks.push(id);
    return id;
  }

  /** One call, and bursts of the same once there is a grant. Where nobody gives one, another series begins. */
  client(client, { steps = 40 } = {}) {
    client.tasks ??= [];
    return this.repeat(steps, async () => {
      const series = client.series && this.ledger.series.get(client.series);
      if (!series || client.bursts === BURSTS || performance.now() - client.since > PATIENCE_MS) {
        Object.assign(client, { series: this.ledger.startSeries(), bursts: 0, since: performance.now() });
        await this.create(client);
      } else if (series.isGiven) {
        Object.assign(client, { bursts: client.bursts + 1, since: performance.now() });
        const calls = await Promise.allSettled(Array.from({ length: BURST }, () => this.create(client)));
        const failed = calls.find(({ status }) => status === 'rejected');
        if (failed) throw failed.reason;
      } else if (client.tasks.length === 0) await pause(5);
      else await this.look(client, pick(this.random, client.tasks.slice(-8)));
    });
  }

  /** Gives a grant for each series, and takes some back. What no grant decides is approved without one, or rejected. */
  granter(admin) {
    return this.repeat(Infinity, async () => {
      await pause(40);
      const { tasks } = await admin.list({ state: 'pending', workflow: 'granting', limit: '100' });
      const unasked = tasks.find((task) => !this.ledger.series.get(task.arguments.series).isAsked);
      if (unasked) return this.grant(admin, unasked);
      const task = tasks.length > 0 && pick(this.random, tasks);
      if (task) await this.decide(admin, task, task.arguments.marker % 3 === 0 ? 'approve' : 'reject');
    });
  }

  async grant(admin, task) {
    const { marker, series: name } = task.arguments;
    this.ledger.deciding(marker, 'approve');
    this.ledger.granting(name);
    const answer = await admin.post(`/api/v1/tasks/${task.id}/approve`, { grant: { for: '10m', calls: GRANT_CALLS } });
    if (this.refusedToDecide(`approve ${task.id} with a grant`, answer)) return;
    this.ledger.toldState(task.id, marker, answer.json.state);
    this.ledger.toldGrant(answer.json.grant.id, name);
    if (this.random() < 0.3) await this.revoke(admin, answer.json.grant.id, name);
  }

  async revoke(admin, id, name) {
    const answer = await admin.post(`/api/v1/grants/${id}/revoke`, {});
    if (!this.refusedToDecide(`revoke ${id}`, answer)) this.ledger.series.get(name).isRevoked = true;
  }
}
