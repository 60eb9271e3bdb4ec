// Series of calls that differ in their marker alone. The first is approved with a grant, which decides later ones until it
// is used up or revoked. Each series has one call outside of the grant's bounds, too.
import { setTimeout as pause } from 'node:timers/promises';
import { Traffic } from '../../faults/lib/traffic.mjs';
import { pick } from '../../integration/lib/random.mjs';
import { GRANT_CALLS } from './ledger.mjs';

export const GRANTED_TOOL = 'renew_user';
/** Calls at once, at whatever replica they meet. All but the first bursts find the grant used up or revoked. */
const BURSTS = { kept: [2, GRANT_CALLS, 2], revoked: [1, 1, GRANT_CALLS] };
/** A series has so much time for its grant, and for the end of its grant: longer than one request without an answer. */
const PATIENCE_MS = 12_000;

export class GrantedTraffic extends Traffic {
  async create(client, { isAstray = false } = {}) {
    const { series } = client;
    const marker = this.ledger.markOfSeries(series, { isAstray });
    const args = { marker, series: isAstray ? `${series}, astray` : series };
    const answer = await client.send('tools/call', { name: GRANTED_TOOL, arguments: args, task: { ttl: 10_000 } });
    if (this.refused(`create ${marker}`, answer)) return undefined;
    const id = answer.message.result.task.taskId;
    this.ledger.created(id, marker, client);
    client.tasks.push(id);
    return id;
  }

  /** One call, and bursts of the same once there is a grant. If nobody gives one, another series begins. */
  client(client, { steps = 40 } = {}) {
    client.tasks ??= [];
    return this.repeat(steps, async () => {
      const series = client.series && this.ledger.series.get(client.series);
      if (!series || client.sizes.length === 0 || performance.now() - client.since > PATIENCE_MS) await this.begin(client);
      else if (series.isGiven && !this.waitsForEnd(client, series)) await this.burst(client, series);
      else await pause(20);
    });
  }

  begin(client) {
    const fate = this.random() < 0.5 ? 'kept' : 'revoked';
    Object.assign(client, { series: this.ledger.startSeries(fate), sizes: [...BURSTS[fate]], since: performance.now() });
    return this.create(client);
  }

  /** The last burst of a grant that is revoked comes when its end has been told. */
  waitsForEnd({ sizes }, { fate, isEnded }) {
    return fate === 'revoked' && sizes.length === 1 && !isEnded;
  }

  async burst(client, series) {
    const size = client.sizes.shift();
    client.since = performance.now();
    const isFirst = client.sizes.length === 2;
    const calls = Array.from({ length: size }, () => this.create(client));
    if (isFirst) calls.push(this.create(client, { isAstray: true }));
    const failed = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected');
    // The second burst and the revocation are under way at once.
    if (isFirst && series.fate === 'revoked') series.isUnwanted = true;
    if (failed) throw failed.reason;
  }

  /** Gives a grant for each series, and revokes some. Calls that no grant decides are approved without one, or rejected. */
  granter(admin) {
    return this.repeat(Infinity, async () => {
      await pause(20);
      const unwanted = [...this.ledger.grants].find(([, name]) => this.mustEnd(this.ledger.series.get(name)));
      if (unwanted) return this.revoke(admin, ...unwanted);
      const { tasks } = await admin.list({ state: 'pending', workflow: 'granting', limit: '100' });
      const unasked = tasks.find((task) => this.ledger.series.get(task.arguments.series)?.isAsked === false);
      if (unasked) return this.grant(admin, unasked);
      const task = tasks.length > 0 && pick(this.random, tasks);
      if (task) await this.decide(admin, task, task.arguments.marker % 3 === 0 ? 'approve' : 'reject');
    });
  }

  mustEnd({ isUnwanted, isEnded }) {
    return isUnwanted && !isEnded;
  }

  async grant(admin, task) {
    const { marker, series: name } = task.arguments;
    this.ledger.deciding(marker, 'approve');
    this.ledger.granting(name);
    const answer = await admin.post(`/api/v1/tasks/${task.id}/approve`, { grant: { for: '10m', calls: GRANT_CALLS } });
    if (this.refusedToDecide(`approve ${task.id} with a grant`, answer)) return;
    this.ledger.toldState(task.id, marker, answer.json.state);
    this.ledger.toldGrant(answer.json.grant.id, name);
  }

  /** A conflict says that it has ended already. */
  async revoke(admin, id, name) {
    const answer = await admin.post(`/api/v1/grants/${id}/revoke`, {});
    if (!this.refusedToDecide(`revoke ${id}`, answer, [200, 409]) || answer.status === 409) this.ledger.toldEnd(name, answer.status === 200);
  }
}
