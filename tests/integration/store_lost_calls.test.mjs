// Calls that ran when the gateway was killed, as they are told to a client without tasks: after a start, and after a start on a copy.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, startGateway, workflow } from './lib/gateway.mjs';
import { connectedRaw } from './lib/client.mjs';
import { defer, wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { blocks, callTool, kinds } from './lib/pseudo.mjs';
import { startReplica, through } from './lib/relaying.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
const SETTINGS = { rules: [['delete_*', 'approve']], approval: workflow('10m'), config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' } } };
const LOST = { promoted: 'upstream connection lost', approved: 'outcome unknown' };

let postgres, upstream;
let numbers = 0;
const database = async () => (postgres ??= await startPostgres(file)).createDatabase(`gate_${++numbers}`);

/** A server whose calls are never answered. */
async function silent() {
  if (upstream) return upstream;
  const held = [];
  upstream = await startUpstream(file, {
    tools: ['delete_user', 'slow', 'read'].map((name) => tool(name)),
    handlers: { 'tools/call': (call) => (call.params.name === 'read' ? call.reply.result({ content: [{ type: 'text', text: 'did read' }] }) : void held.push(call)) },
  });
  defer(file, () => held.forEach(({ reply }) => reply.response.writableEnded || reply.cut()));
  return upstream;
}

const taskOf = (result) => (result.structuredContent?.proxy_task ?? blocks(result).find((block) => block?.proxy_task).proxy_task).task_id;

/** A client without tasks with two calls that run: one that was promoted, and one that was approved. */
async function running(t, gateway) {
  const client = await connectedRaw(t, gateway.url, { token: 'the-owner', ...kinds.old.client });
  const ids = { promoted: taskOf(await callTool(client, 'slow')), approved: taskOf(await callTool(client, 'delete_user')) };
  await gateway.admin.approve(ids.approved);
  await gateway.admin.inState(ids.approved, 'executing');
  assert.equal((await gateway.admin.task(ids.promoted)).state, 'executing');
  return { client, ids };
}

/** The losses that the client is told of by events, until both have come and once more. */
async function lossesOf(client) {
  const events = [];
  const listen = async () => {
    const { structuredContent } = await callTool(client, 'await_activity', { timeout_ms: 50 });
    events.push(...structuredContent.events.flatMap((entry) => entry.events));
  };
  await until(async () => (await listen(), events.length >= 2), 'both losses to be told');
  await listen();
  return events;
}

/** The client is told of each call once by an event, and again wherever it asks. */
async function assertTold(client, admin, ids) {
  assert.equal((await callTool(client, 'read')).content[0].text, 'did read', 'its session goes on');
  const events = await lossesOf(client);
  assert.deepEqual(events.map(({ type, data }) => [type, data.taskId, Object.values(LOST).find((text) => data.error.includes(text))]).sort(), [['task_failed', ids.promoted, LOST.promoted], ['task_failed', ids.approved, LOST.approved]].sort());
  const { tasks } = (await callTool(client, 'list_tasks', { include_completed: true })).structuredContent;
  for (const [kind, id] of Object.entries(ids)) {
    assert.equal((await admin.task(id)).state, 'failed');
    const { isError, content } = await callTool(client, 'get_task_result', { task_id: id });
    const tool = kind === 'promoted' ? 'slow' : 'delete_user';
    assert.deepEqual([isError, content[0].text], [true, `It is not known whether ${tool} ran. Check its effect before you call it again.`]);
    assert.deepEqual(tasks.filter((task) => task.taskId === id).map(({ status }) => status), ['failed'], JSON.stringify(tasks));
  }
}

test('after a start on the same database a client without tasks is told of calls that were lost', options, async (t) => {
  const gateway = await startReplica(t, await silent(), await database(), 'a', SETTINGS);
  const { client, ids } = await running(t, gateway);
  await gateway.kill9();
  await gateway.launch();
  await assertTold(client, gateway.admin, ids);
});

test('after a copy of the file to PostgreSQL it is told the same', options, async (t) => {
  const gateway = await startGateway(t, { upstream: (await silent()).url, ...SETTINGS });
  const { client, ids } = await running(t, gateway);
  const ended = taskOf(await callTool(client, 'delete_user', { of: 'before' }));
  await gateway.admin.reject(ended, 'no');
  await gateway.kill9();
  const url = await database();
  const copied = await run(BINARY, ['store', 'copy', '--from', gateway.storePath, '--to-env', 'GATE'], { env: { GATE: url } });
  assert.equal(copied.code, 0, copied.stderr);
  const shared = await startReplica(t, upstream, url, 'a', SETTINGS);
  await assertTold(through(t, client, shared), shared.admin, ids);
});
