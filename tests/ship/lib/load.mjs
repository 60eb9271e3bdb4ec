// The load under which replicas are upgraded: agents of both eras with calls, held calls, streams and calls of 20 s.
import assert from 'node:assert/strict';
import { connectedRaw } from '../../integration/lib/client.mjs';
import { defer } from '../../integration/lib/lifetime.mjs';
import { modernClient } from '../../integration/lib/modern_client.mjs';
import { complete, modernUpstream } from '../../integration/lib/modern_upstream.mjs';
import { startUpstream, tool } from '../../integration/lib/upstream.mjs';

const SLOW_MS = 20_000;
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A server of each era: {old, fresh, runs (how often each call ran, by its number)}. */
export async function startServers(t, address = '127.0.0.1') {
  const runs = new Map();
  const toolsCall = (write) => ({ params, reply }) => {
    const { n } = params.arguments;
    runs.set(n, (runs.get(n) ?? 0) + 1);
    const answer = () => reply.response.destroyed || reply.result(write({ content: [{ type: 'text', text: `did ${n}` }] }));
    if (params.name === 'slow') setTimeout(answer, SLOW_MS);
    else answer();
  };
  const tools = ['read', 'delete_user', 'slow'].map((name) => tool(name));
  const old = await startUpstream(t, { address, tools, handlers: { 'tools/call': toolsCall((result) => result) } });
  const fresh = await startUpstream(t, { address, ...modernUpstream({ tools, handlers: { 'tools/call': toolsCall(complete) } }) });
  return { old, fresh, runs };
}

class Load {
  constructor(t, { urlOf, admin }) {
    Object.assign(this, { t, urlOf, admin, next: 0, goesOn: true, counts: { calls: 0, slow: 0, held: 0, streams: 0, refusedResults: 0 }, wrong: [], loops: [] });
  }

  /** Runs `step` again and again; what it throws is a call lost. */
  loop(step) {
    this.loops.push((async () => {
      while (this.goesOn) await this.once(step);
    })());
  }

  async once(step) {
    const n = ++this.next;
    try {
      await step(n);
    } catch (error) {
      this.wrong.push({ n, step: String(step).slice(0, 90), at: new Date().toISOString(), reset: /ECONNRESET|EPIPE|hang up|50[0-9]/.test(`${error.code} ${error.message}`), message: `${error.code ?? ''} ${error.message}`.slice(0, 400) });
      await pause(200);
    }
  }

  did(n, result, kind) {
    assert.equal(result?.content?.[0]?.text, `did ${n}`, JSON.stringify(result));
    this.counts[kind]++;
  }

  /** A call in either era, with its approval if it needs one: to its outcome. */
  async outcome(client, name, n) {
    const params = { name, arguments: { n } };
    let result = await client.result('tools/call', params, { deadline: 40_000 });
    while (result.resultType === 'input_required') result = await client.result('tools/call', { ...params, requestState: result.requestState }, { deadline: 40_000 });
    while (result.structuredContent?.proxy_task) result = await client.result('tools/call', params, { deadline: 40_000 });
    return result;
  }

  async start() {
    const { t } = this;
    const [old, fresh] = ['old', 'fresh'].map((id) => this.urlOf(id));
    const legacy = () => connectedRaw(t, old, { token: 'owner', capabilities: {} });
    const modern = () => modernClient(t, fresh, { token: 'owner', capabilities: {} });
    for (let i = 0; i < 3; i++) {
      for (const client of [await legacy(), modern()]) {
        this.loop(async (n) => {
          this.did(n, await this.outcome(client, 'read', n), 'calls');
          await pause(20);
        });
      }
    }
    for (const client of [await legacy(), modern()]) this.loop(async (n) => this.did(n, await this.outcome(client, 'delete_user', n), 'held'));
    const agent = await connectedRaw(t, old, { token: 'owner', capabilities: { tasks: {} } });
    this.loop(async (n) => this.results(agent, n));
    const listener = await legacy();
    this.loop(async () => this.stream(() => listener.listen().catch(overAtOnce)));
    const subscriber = modern();
    this.loop(async () => this.stream(() => subscriber.stream('subscriptions/listen', { notifications: { toolsListChanged: true } }).catch(overAtOnce)));
    this.slow = [await legacy(), modern()];
    this.approving = this.approve();
  }

  async results(client, n) {
    const { taskId } = await client.result('tools/call', { name: 'delete_user', arguments: { n }, task: { ttl: 600_000 } }).then(({ task }) => task);
    for (;;) {
      const { result, error } = await client.call('tasks/result', { taskId }, { deadline: 40_000 });
      if (error?.code !== -32013) return this.did(n, result ?? error, 'held');
      this.counts.refusedResults++;
      await pause(error.data.retry_after * 1000);
    }
  }

  /** A stream ends with its replica; its client opens it anew. */
  async stream(open) {
    const stream = await open();
    this.counts.streams++;
    await Promise.race([stream.end(600_000), this.over]);
    if (!this.goesOn) stream.abort();
  }

  async approve() {
    while (!this.isDone) {
      const { tasks = [] } = await this.admin.list({ state: 'pending' }).catch(() => ({}));
      for (const { id } of tasks) await this.admin.approve(id).catch(() => {});
      await pause(1500);
    }
  }

  startSlow() {
    for (const client of this.slow) this.loops.push(this.once(async (n) => this.did(n, await this.outcome(client, 'slow', n), 'slow')));
  }

  async stop() {
    this.goesOn = false;
    this.end();
    await Promise.all(this.loops);
    this.isDone = true;
    await this.approving;
  }
}

/** A replica that drains answers with the end of the stream alone, or, in the legacy era, refuses one. */
function overAtOnce(error) {
  if (!/"resultType":"complete"|HTTP 503 .*shutting down/.test(error.message)) throw error;
  return { end() {}, abort() {} };
}

/**
 * Calls `upgrade` so many times under load. Nothing may be lost, run twice or get -32013, but for tasks/result.
 * `urlOf(source)` and `admin` lead to any replica.
 */
export async function upgradeUnderLoad(t, { urlOf, admin, runs }, count, upgrade) {
  const load = new Load(t, { urlOf, admin });
  load.over = new Promise((resolve) => (load.end = resolve));
  defer(t, () => load.stop());
  await load.start();
  for (let i = 1; i <= count; i++) {
    load.startSlow();
    await upgrade();
    t.diagnostic(`upgrade ${i}: ${JSON.stringify({ ...load.counts, wrong: load.wrong.length })}`);
  }
  await load.stop();
  const twice = [...runs].filter(([, ran]) => ran > 1);
  t.diagnostic(JSON.stringify({ ...load.counts, resets: load.wrong.filter(({ reset }) => reset).length, wrong: load.wrong, twice }));
  assert.deepEqual([load.wrong, twice], [[], []]);
  assert.equal(load.counts.slow, 2 * count);
}
