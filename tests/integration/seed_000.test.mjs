// The flows of the gateway's own tools and six edge cases, message by message (behaviour 11.6 to 11.11, 12.1). The
// fast call and the concurrent calls by other ways of calling are in promotion.test.mjs and execute_tool.test.mjs, the blocks' shapes in pseudo_shapes.test.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elicit, PARTY, responseTo } from './lib/asking.mjs';
import { blocks, callTool, eventsOf } from './lib/pseudo.mjs';
import { PLAIN, promoted, SENTENCE, stage as usual, ULID } from './lib/promotion.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** Plain calls wait for long, so only timeout_ms promotes a call. */
const stage = (t, { tools = ['slow'], ...more } = {}) =>
  usual(t, { ...more, upstream: { tools: [...tools, 'read'].map((name) => tool(name)) }, config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '30s', wait_max: '30s' } } });
const execute = (client, name, timeout_ms, args = {}) => callTool(client, 'execute_tool', { server: 'up', tool: name, args, timeout_ms });
const said = (text) => ({ content: [{ type: 'text', text }], isError: false });
const accept = (client, requestId, partySize = 4) => callTool(client, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content: { partySize } });
const awaitActivity = async (client, timeout_ms = 50_000) => (await callTool(client, 'await_activity', { timeout_ms })).structuredContent;
const woken = (eventType) => [{ type: 'event', server: 'up', eventType }];
/** Resolves once `count` requests are under way. */
const underWay = (admin, count) => until(async () => (await admin.metrics())['thoughtgate_active_requests'] === count, `${count} requests under way`);
/** Resolves to the questions once the client has `count` of them. */
const asked = (client, count = 1) => until(async () => {
  const { elicitations } = (await callTool(client, 'get_elicitations')).structuredContent;
  return elicitations.length === count && elicitations;
}, `${count} questions`);

/* ---- flows ---- */

test('seed 000, flow: timeout-based task promotion, with a question before the timeout', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const client = await connect(PLAIN);
  const calling = execute(client, 'slow', 1500, { item: 'sword' });
  const call = await until(() => held[0], 'the call');
  const stream = call.reply.sse();
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  const result = await calling;

  const { id, text, block } = promoted(result);
  assert.match(text, SENTENCE(1500, id));
  assert.equal(block.proxy_task.status, 'working', 'no state of its own for what waits for an answer');
  const [question] = block.pending_on_server.elicitations_for_server;
  assert.match(question.requestId, ULID);
  assert.deepEqual(question, { requestId: question.requestId, server: 'up', message: PARTY.message });
  const [, , events, pending] = blocks(result);
  assert.deepEqual(pending, { pending_client_action: { elicitations: [question], sampling_requests: [] } });
  assert.ok(events.events_since_last_response.some((e) => e.type === 'elicitation_request' && e.data.requestId === question.requestId));

  await accept(client, question.requestId);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'accept', content: { partySize: 4 } });
  stream.event({ jsonrpc: '2.0', id: call.id, result: said('crafted') });
  stream.end();
  await admin.inState(id, 'completed');

  const { task, pending_elicitations_for_server: left } = (await callTool(client, 'get_task', { task_id: id })).structuredContent;
  assert.deepEqual([task.status, left], ['completed', []]);
  assert.deepEqual((await callTool(client, 'get_task_result', { task_id: id })), said('crafted'));
  assert.deepEqual(upstream.calls.map((x) => x.rpc.params), [{ name: 'slow', arguments: { item: 'sword' } }]);
});

test('seed 000, flow: await_activity is woken by the question, then by the result', async (t) => {
  const { admin, connect, held } = await stage(t);
  const client = await connect(PLAIN);
  const { id } = promoted(await execute(client, 'slow', 200));
  await callTool(client, 'list_servers'); // all events are taken
  const stream = held[0].reply.sse();

  const first = awaitActivity(client);
  await underWay(admin, 1);
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  const { triggers, events, pending_server, pending_client } = await first;
  assert.deepEqual(triggers, woken('elicitation_request'));
  const [{ server, events: [told] }] = events;
  assert.deepEqual([events.length, server, told.type, told.data.params], [1, 'up', 'elicitation_request', PARTY]);
  assert.deepEqual(pending_server, [{ server: 'up', working_tasks: [{ taskId: id, toolName: 'slow', status: 'working' }] }]);
  assert.deepEqual(pending_client, { elicitations: [{ requestId: told.data.requestId, server: 'up', message: PARTY.message }], sampling_requests: [] });

  await accept(client, told.data.requestId);
  const second = awaitActivity(client);
  await underWay(admin, 1);
  stream.event({ jsonrpc: '2.0', id: held[0].id, result: said('done') });
  stream.end();
  const { triggers: [ended], pending_server: none } = await second;
  assert.deepEqual([ended, none], [woken('task_completed')[0], []]);
  assert.deepEqual(await callTool(client, 'get_task_result', { task_id: id }), said('done'));
});

test('seed 000, flow: concurrent calls, and one question that the promotion of each tells', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { tools: ['slow_1', 'slow_2', 'slow_3'] });
  const client = await connect(PLAIN);
  const calling = [execute(client, 'slow_1', 1500), execute(client, 'slow_2', 30_000), execute(client, 'slow_3', 1600)];
  await until(() => held.length === 3, 'three calls');
  const of = (name) => held.find((call) => call.params.name === name);
  const stream = of('slow_2').reply.sse(); // the receiver of a question is unknown
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  const [one, three] = [promoted(await calling[0]), promoted(await calling[2])];
  const questions = [one, three].map((x) => x.block.pending_on_server.elicitations_for_server);
  assert.equal(questions[0].length, 1);
  assert.deepEqual(questions[0], questions[1]);
  await accept(client, questions[0][0].requestId);
  await responseTo(upstream, 'e-1');
  stream.event({ jsonrpc: '2.0', id: of('slow_2').id, result: said('two') });
  stream.end();
  assert.equal((await calling[1]).content[0].text, 'two');
  for (const [{ id }, name] of [[one, 'slow_1'], [three, 'slow_3']]) {
    of(name).reply.result(said(name));
    await admin.inState(id, 'completed');
    assert.equal((await callTool(client, 'get_task_result', { task_id: id })).content[0].text, name);
  }
  assert.deepEqual((await admin.list()).tasks.map((x) => x.tool).sort(), ['slow_1', 'slow_3'], 'what is fast makes no task');
});

/* ---- edge cases ---- */

test('seed 000, edge case 1, tool call timeout behaviour: the call goes on, and its end is found by asking and by waiting', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const client = await connect(PLAIN);
  const { id, block } = promoted(await execute(client, 'slow', 100));
  assert.deepEqual([block.proxy_task.status, block.pending_on_server.elicitations_for_server], ['working', []]);
  assert.equal((await callTool(client, 'get_task', { task_id: id })).structuredContent.task.status, 'working');
  assert.equal(held[0].recorded.left, false, 'upstream goes on with it');
  await callTool(client, 'list_servers');
  const waiting = awaitActivity(client);
  await underWay(admin, 1);
  held[0].reply.result(said('in the end'));
  assert.deepEqual((await waiting).triggers, woken('task_completed'));
  assert.equal((await callTool(client, 'get_task', { task_id: id })).structuredContent.task.status, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('seed 000, edge case 2, final server disconnects: its tasks fail, its questions and its calls are rejected, await_activity returns', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { tools: ['slow_1', 'slow_2', 'slow_3'] });
  const client = await connect(PLAIN);
  const ids = [promoted(await execute(client, 'slow_1', 100)).id, promoted(await execute(client, 'slow_2', 100)).id];
  held[0].reply.sse().event({ jsonrpc: '2.0', ...elicit('e-1') });
  const [question] = await asked(client);
  const calling = client.error('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow_3', args: {}, timeout_ms: 60_000 } });
  await until(() => held.length === 3, 'the third call');
  const fetching = callTool(client, 'get_task_result', { task_id: ids[1] });
  const waiting = awaitActivity(client);
  await underWay(admin, 3);
  await upstream.stop();

  const { triggers, events } = await waiting;
  const types = new Set(['task_failed', 'server_disconnected']);
  assert.ok(triggers.every((x) => types.has(x.eventType ?? x.type)), JSON.stringify(triggers));
  assert.equal((await calling).code, -32000);
  assert.equal((await fetching).isError, true);
  const told = [...events.flatMap((e) => e.events), ...eventsOf(await fetching)];
  for (const id of ids) {
    await admin.inState(id, 'failed');
    const result = await callTool(client, 'get_task_result', { task_id: id });
    assert.equal(result.isError, true);
    assert.match(result.structuredContent.error, new RegExp(`^Task '${id}' failed: `));
    told.push(...eventsOf(result));
  }
  const last = await callTool(client, 'get_elicitations');
  told.push(...eventsOf(last));
  assert.deepEqual(last.structuredContent.elicitations, []);
  assert.equal((await accept(client, question.requestId)).content[0].text, `Elicitation request '${question.requestId}' not found or already completed`);
  assert.deepEqual(told.filter((e) => e.type === 'task_failed').map((e) => e.data.taskId).sort(), [...ids].sort());
});

test('seed 000, edge case 3, multiple elicitations for a single tool call: working throughout, each answered in turn', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const client = await connect(PLAIN);
  const { id } = promoted(await execute(client, 'slow', 100));
  await callTool(client, 'list_servers');
  const stream = held[0].reply.sse();
  for (const partySize of [1, 2, 3]) {
    const waiting = awaitActivity(client);
    await underWay(admin, 1);
    stream.event({ jsonrpc: '2.0', ...elicit(`e-${partySize}`) });
    const { triggers, pending_client } = await waiting;
    assert.deepEqual(triggers, woken('elicitation_request'));
    assert.equal(pending_client.elicitations.length, 1);
    const { task, pending_elicitations_for_server: pending } = (await callTool(client, 'get_task', { task_id: id })).structuredContent;
    assert.deepEqual([task.status, pending], ['working', pending_client.elicitations]);
    await accept(client, pending[0].requestId, partySize);
    assert.equal((await responseTo(upstream, `e-${partySize}`)).result.content.partySize, partySize);
    assert.equal((await callTool(client, 'get_task', { task_id: id })).structuredContent.task.status, 'working');
  }
  stream.event({ jsonrpc: '2.0', id: held[0].id, result: said('booked') });
  stream.end();
  assert.deepEqual(await callTool(client, 'get_task_result', { task_id: id }).then((x) => x.content[0]), said('booked').content[0]);
  assert.equal((await admin.task(id)).state, 'completed');
});

test('seed 000, edge case 4, TTL expiration: expired, who waits is told, and after the grace period it is gone', async (t) => {
  const { admin, connect, held } = await stage(t, { pseudoTasks: { defaultTtlMs: 4000, completedRetentionMs: 1000, cleanupIntervalMs: 1000 } });
  const client = await connect(PLAIN);
  const { id, block } = promoted(await execute(client, 'slow', 100));
  assert.equal(block.proxy_task.ttl, 4000);
  held[0].reply.sse().event({ jsonrpc: '2.0', ...elicit('e-1') });
  await asked(client);
  const waiting = await callTool(client, 'get_task_result', { task_id: id, timeout_ms: 30_000 });
  assert.equal(waiting.isError, true);
  assert.match(waiting.structuredContent.error, new RegExp(`^Task '${id}' .*(expired|time to live)`));
  assert.deepEqual((await callTool(client, 'get_elicitations')).structuredContent.elicitations, [], 'what it asked has gone with it');
  await until(async () => {
    const result = await callTool(client, 'get_task_result', { task_id: id });
    return result.structuredContent?.error === `Task '${id}' not found`;
  }, 'the task to be forgotten', { deadline: 40_000 });
  assert.equal((await admin.get(`/api/v1/tasks/${id}`)).status, 404);
});

test('seed 000, edge case 5, client reconnection: the session’s tasks, questions and events are still there', async (t) => {
  const { connect, held, upstream } = await stage(t);
  const client = await connect(PLAIN);
  const { id } = promoted(await execute(client, 'slow', 100));
  client.close();
  const stream = held[0].reply.sse();
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });

  const again = await connect(PLAIN);
  again.session = client.session;
  const [question] = await asked(again);
  assert.deepEqual((await callTool(again, 'list_tasks')).structuredContent.tasks.map((x) => [x.taskId, x.status]), [[id, 'working']]);
  assert.deepEqual((await callTool(again, 'get_task', { task_id: id })).structuredContent.pending_elicitations.map((x) => x.requestId), [question.requestId]);
  again.close();
  const third = await connect(PLAIN);
  third.session = client.session;
  await accept(third, question.requestId);
  await responseTo(upstream, 'e-1');
  stream.event({ jsonrpc: '2.0', id: held[0].id, result: said('for whoever comes') });
  stream.end();
  const told = await until(async () => {
    const { triggers, events } = await awaitActivity(third, 2000);
    return triggers[0].type !== 'timeout' && events.flatMap((e) => e.events).find((e) => e.type === 'task_completed');
  }, 'the end of the task');
  assert.equal(told.data.taskId, id);
  assert.deepEqual((await callTool(third, 'get_task_result', { task_id: id })).content, said('for whoever comes').content);
  // Another session has none of it.
  const stranger = await connect(PLAIN);
  assert.deepEqual((await callTool(stranger, 'list_tasks', { include_completed: true })).structuredContent.tasks, []);
});

test('seed 000, edge case 6, concurrent await_activity calls: the same trigger, empty buffers after the first, the same pending state', async (t) => {
  const { admin, connect, held } = await stage(t);
  const client = await connect(PLAIN);
  const { id } = promoted(await execute(client, 'slow', 100));
  await callTool(client, 'list_servers');
  const waiting = Array.from({ length: 5 }, () => awaitActivity(client));
  await underWay(admin, 5);
  const stream = held[0].reply.sse();
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  const answers = await Promise.all(waiting);
  const [{ pending_client }] = answers;
  assert.equal(pending_client.elicitations.length, 1);
  for (const answer of answers) {
    assert.deepEqual(answer.triggers, woken('elicitation_request'));
    assert.deepEqual(answer.pending_server[0].working_tasks, [{ taskId: id, toolName: 'slow', status: 'working' }]);
    assert.deepEqual(answer.pending_client, pending_client);
  }
  assert.deepEqual(answers.map(({ events }) => events.length).sort(), [0, 0, 0, 0, 1]);
});
