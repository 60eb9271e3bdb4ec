// Calls that take longer than their client can wait: they go on as tasks (behaviour 11.4, 11.10).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { PLAIN, promoted, SENTENCE, stage } from './lib/promotion.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const BOTH = ['auto', 'curl'];

for (const client of BOTH) {
  const env = { THOUGHTGATE_UPSTREAM_CLIENT: client };

  test(`seed 000, fast tool call: no task, and upstream's answer byte for byte (${client})`, async (t) => {
    const { upstream, admin, connect } = await stage(t, { env });
    const odd = (id) => `{ "result" : {"content":[{"type":"text","text":"\\u0068i"}] , "x":1.50} ,"id":${id}, "jsonrpc":"2.0" }\n`;
    upstream.handlers['tools/call'] = ({ reply, id }) => reply.http(200, { 'content-type': 'application/json', 'x-theirs': 'kept' }, odd(id));
    const agent = await connect(PLAIN);
    const answer = await agent.send('tools/call', { name: 'read', arguments: {} });
    assert.equal(answer.text, odd(answer.id));
    assert.equal(answer.headers['x-theirs'], 'kept');
    assert.deepEqual((await admin.list()).tasks, []);
  });

  test(`seed 000, timeout-based promotion: a slow call answered by JSON becomes a task (${client})`, async (t) => {
    const { upstream, admin, connect, held } = await stage(t, { env });
    const agent = await connect(PLAIN);
    const answer = await agent.send('tools/call', { name: 'slow', arguments: { n: 7 } });
    assert.match(answer.headers['content-type'], /^application\/json/);
    const { result } = answer.message;
    const { id, text, block } = promoted(result);
    assert.match(text, SENTENCE(400, id));
    assert.deepEqual([block.proxy_task.status, block.proxy_task.tool, block.proxy_task.server], ['working', 'slow', 'up']);
    assert.ok(Math.abs(Date.parse(block.proxy_task.created_at) - Date.now()) < 60_000);
    assert.deepEqual(block.pending_on_server.elicitations_for_server, []);
    assert.deepEqual(block.pending_on_server.tasks, [{ taskId: id, toolName: 'slow', status: 'working' }]);
    assert.deepEqual(result.structuredContent.proxy_task, block.proxy_task);
    assert.equal((await admin.task(id)).state, 'executing');
    held[0].reply.result({ content: [{ type: 'text', text: 'at last' }], structuredContent: { n: 7 } });
    await admin.inState(id, 'completed');
    assert.deepEqual(await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } }).then(({ content, structuredContent }) => [content[0].text, structuredContent]), ['at last', { n: 7 }]);
    assert.equal(upstream.calls.length, 1);
    assert.deepEqual(upstream.calls[0].rpc.params, { name: 'slow', arguments: { n: 7 } });
  });

  test(`seed 000, timeout-based promotion: within upstream's event stream, after its progress (${client})`, async (t) => {
    const { upstream, admin, connect, held } = await stage(t, { env });
    const agent = await connect(PLAIN);
    const streaming = agent.stream('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 'p' } });
    const call = await until(() => held[0], 'the call');
    const theirs = call.reply.sse();
    const progress = (n) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: n } });
    theirs.event(progress(1), { id: 'e1' });
    const stream = await streaming;
    assert.deepEqual(await stream.message(), progress(1));
    const response = await stream.message((m) => m.id === stream.id, 'the promotion');
    const { id } = promoted(response.result);
    assert.equal(await stream.end(), 'end');
    theirs.event(progress(2));
    theirs.raw('data: {"jsonrpc":"2.0","id":'); // an event in pieces
    theirs.raw(`${JSON.stringify(call.id)},"result":{"content":[]}}\n\n`);
    theirs.end();
    assert.equal((await admin.inState(id, 'completed', 'failed')).state, 'completed');
    assert.equal(upstream.calls.length, 1);
  });

  test(`an event that has begun when the call is promoted is not lost (${client})`, async (t) => {
    const { admin, connect, held } = await stage(t, { env });
    const agent = await connect(PLAIN);
    const streaming = agent.stream('tools/call', { name: 'slow', arguments: {} });
    const call = await until(() => held[0], 'the call');
    const theirs = call.reply.sse();
    theirs.raw(': hello\n\ndata: {"jsonrpc":"2.0",');
    const stream = await streaming;
    const { id } = promoted((await stream.message()).result);
    theirs.raw(`"id":${call.id},"result":{"content":[{"type":"text","text":"whole"}]}}\n\n`);
    await admin.inState(id, 'completed');
    const { content } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
    assert.equal(content[0].text, 'whole');
  });

  test(`seed 000, final server disconnects: the task fails (${client})`, async (t) => {
    const { admin, connect, held } = await stage(t, { env });
    const agent = await connect(PLAIN);
    const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
    held[0].reply.cut();
    const task = await admin.inState(id, 'failed', 'completed');
    assert.equal(task.state, 'failed');
    assert.match(task.statusMessage, /outcome of the call is unknown/);
    const { content, isError } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
    assert.equal(isError, true);
    assert.match(JSON.parse(content[0].text).error, /outcome of the call is unknown/);
  });

  test(`a body that is still going out is not promoted before it is all there (${client})`, async (t) => {
    const { upstream, admin, connect, held } = await stage(t, { env });
    const agent = await connect(PLAIN);
    // Upstream does not read for a while.
    let arrived;
    upstream.server.removeAllListeners('request');
    upstream.server.on('request', (request, response) => {
      if (arrived || request.method !== 'POST') return upstream.receive(request, response);
      arrived = request;
      setTimeout(() => upstream.receive(request, response), 1500);
    });
    const padding = 'x'.repeat(3_500_000);
    const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: { padding } }));
    const call = await until(() => held[0], 'the call');
    assert.equal(call.params.arguments.padding.length, padding.length);
    call.reply.result({ content: [] });
    await admin.inState(id, 'completed');
  });
}

test('seed 000, multiple concurrent tool calls: each has its own time', async (t) => {
  const { admin, connect, held } = await stage(t, { upstream: { tools: [tool('slow'), tool('slow_2'), tool('slow_3'), tool('read')] } });
  const agent = await connect(PLAIN);
  const first = agent.result('tools/call', { name: 'slow', arguments: {} });
  const third = agent.result('tools/call', { name: 'slow_3', arguments: {} });
  await until(() => held.length === 2, 'two calls');
  const second = await agent.result('tools/call', { name: 'read', arguments: {} });
  assert.equal(second.content[0].text, 'did read');
  const [one, three] = [promoted(await first), promoted(await third)];
  assert.notEqual(one.id, three.id);
  const listed = [one, three].flatMap((x) => x.block.pending_on_server.tasks.map((task) => task.taskId));
  assert.ok(listed.includes(one.id) && listed.includes(three.id));
  for (const call of held) call.reply.result({ content: [{ type: 'text', text: `end of ${call.params.name}` }] });
  for (const [{ id }, name] of [[one, 'slow'], [three, 'slow_3']]) {
    await admin.inState(id, 'completed');
    const { content } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
    assert.equal(content[0].text, `end of ${name}`);
  }
  assert.deepEqual((await admin.list()).tasks.map((task) => task.tool).sort(), ['slow', 'slow_3']);
});

test("upstream's answer decides how the task ends", async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const ends = [
    [(r) => r.result({ content: [{ type: 'text', text: 'no such file' }], isError: true }), 'failed', /^no such file$/],
    [(r) => r.error(-32602, 'Unknown tool'), 'failed', /^Unknown tool$/],
    [(r) => r.http(500, { 'content-type': 'text/plain' }, 'boom'), 'failed', /no JSON-RPC response/],
    [(r) => r.http(200, { 'content-type': 'application/json' }, '{"half":'), 'failed', /no JSON-RPC response/],
    [(r) => r.result({ content: [] }), 'completed', null],
  ];
  const ids = await Promise.all(ends.map(() => agent.result('tools/call', { name: 'slow', arguments: {} }))).then((all) => all.map((result) => promoted(result).id));
  assert.equal(held.length, ends.length);
  for (const [i, [answer]] of ends.entries()) answer(held[i].reply);
  const tasks = await Promise.all(ids.map((id) => admin.inState(id, 'completed', 'failed')));
  // The calls came in parallel, so upstream's order is not ours.
  for (const [, state, message] of ends) {
    assert.ok(tasks.some((task) => task.state === state && (message ? message.test(task.statusMessage) : !task.statusMessage)), `${state} ${message}: ${JSON.stringify(tasks.map((x) => x.statusMessage))}`);
  }
});

test('a tool that promises structured content: its promotion is an error without any, which official clients take', async (t) => {
  const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  const { admin, sdk, held } = await stage(t, { upstream: { tools: [tool('slow', { outputSchema }), tool('read')] } });
  const agent = await sdk({ name: 'plain-sdk' });
  await agent.listTools();
  const result = await agent.callTool({ name: 'slow', arguments: {} });
  assert.deepEqual([result.isError, result.structuredContent], [true, undefined]);
  assert.match(result.content[0].text, /Promoted to task/);
  const { proxy_task: task } = JSON.parse(result.content[1].text);
  held[0].reply.result({ content: [{ type: 'text', text: '{"n":7}' }], structuredContent: { n: 7 } });
  await admin.inState(task.task_id, 'completed');
  assert.deepEqual((await agent.callTool({ name: 'get_task_result', arguments: { task_id: task.task_id } })).structuredContent, { n: 7 });
});

test('-32042 stays an error of the protocol, after the promotion too', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const data = { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://example.com/', message: 'go there' }] };
  held[0].reply.error(-32042, 'URL elicitation required', data);
  await admin.inState(id, 'failed');
  const error = await agent.error('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.deepEqual([error.code, error.data], [-32042, data]);
});

const patient = { config: { pseudo_tools: { wait: '30s' } } };

/** The task of a call that its client has left. */
const leftTask = (admin) => until(async () => (await admin.list()).tasks[0], 'the task of the call that was left');

for (const client of BOTH) {
  test(`a client that leaves before its time is over: the call goes on as a task, which its retry joins (${client})`, async (t) => {
    const { upstream, admin, connect, held } = await stage(t, { ...patient, env: { THOUGHTGATE_UPSTREAM_CLIENT: client } });
    const agent = await connect(PLAIN);
    agent.send('tools/call', { name: 'slow', arguments: { n: 1, m: [2] } }).catch(() => {});
    const call = await upstream.received('tools/call');
    agent.close();
    const task = await leftTask(admin);
    assert.deepEqual([task.state, task.tool, task.arguments, call.left], ['executing', 'slow', { n: 1, m: [2] }, false]);
    const again = await connect({ ...PLAIN });
    again.session = agent.session;
    const { tasks } = (await again.result('tools/call', { name: 'list_tasks', arguments: {} })).structuredContent;
    assert.deepEqual(tasks.map((x) => [x.taskId, x.status]), [[task.id, 'working']]);
    const retried = again.result('tools/call', { name: 'slow', arguments: { m: [2], n: 1 } });
    const other = again.result('tools/call', { name: 'slow', arguments: { m: [2], n: 2 } });
    await upstream.received('tools/call', 2);
    held[1].reply.result({ content: [{ type: 'text', text: 'another call' }] });
    assert.equal((await other).content[0].text, 'another call');
    held[0].reply.result({ content: [{ type: 'text', text: 'at last' }] });
    const { content } = await retried;
    assert.deepEqual([content[0].text, content.at(-1).text], ['at last', `This is the outcome of your earlier call, task ${task.id}. It was not run again for this one.`]);
    assert.equal(upstream.calls.length, 2);
    // The outcome was given: the next one is a new call.
    const anew = again.result('tools/call', { name: 'slow', arguments: { n: 1, m: [2] } });
    await upstream.received('tools/call', 3);
    held[2].reply.result({ content: [{ type: 'text', text: 'anew' }] });
    assert.deepEqual((await anew).content.map((x) => x.text), ['anew']);
  });
}

test('a call that was left within its event stream goes on, too, and its outcome waits for the retry', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, patient);
  const agent = await connect(PLAIN);
  const streaming = agent.stream('tools/call', { name: 'slow', arguments: {} });
  const call = await until(() => held[0], 'the call');
  const theirs = call.reply.sse();
  theirs.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } });
  const stream = await streaming;
  await stream.message();
  agent.close();
  const task = await leftTask(admin);
  theirs.event({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: 'whole' }] } });
  theirs.end();
  await admin.inState(task.id, 'completed');
  const again = await connect(PLAIN);
  again.session = agent.session;
  assert.equal((await again.result('tools/call', { name: 'slow', arguments: {} })).content[0].text, 'whole');
  assert.equal(upstream.calls.length, 1);
});

test('a retry that is left, too, or waits in vain, leaves the outcome to the next', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  agent.send('tools/call', { name: 'slow', arguments: {} }).catch(() => {});
  await upstream.received('tools/call');
  agent.close();
  const task = await leftTask(admin);
  const again = await connect(PLAIN);
  again.session = agent.session;
  const pending = await again.result('tools/call', { name: 'slow', arguments: {} });
  assert.deepEqual([pending.structuredContent.proxy_task.task_id, pending.structuredContent.joined, pending.isError], [task.id, true, false]);
  held[0].reply.result({ content: [{ type: 'text', text: 'late' }] });
  await admin.inState(task.id, 'completed');
  assert.equal((await again.result('tools/call', { name: 'slow', arguments: {} })).content[0].text, 'late');
  assert.equal(upstream.calls.length, 1);
});

test('a client that knows tasks, one that nobody could find again, and one of another session change nothing', async (t) => {
  const { upstream, admin, connect } = await stage(t, patient);
  for (const agent of [await connect({ capabilities: { tasks: {} } })]) {
    agent.send('tools/call', { name: 'slow', arguments: {} }).catch(() => {});
    const call = await upstream.received('tools/call');
    agent.close();
    await call.gone;
    assert.equal(call.left, true);
  }
  assert.deepEqual((await admin.list()).tasks, []);
  const agent = await connect(PLAIN), other = await connect(PLAIN);
  agent.send('tools/call', { name: 'slow', arguments: {} }).catch(() => {});
  await upstream.received('tools/call', 2);
  agent.close();
  await leftTask(admin);
  other.send('tools/call', { name: 'slow', arguments: {} }).catch(() => {});
  await upstream.received('tools/call', 3);
});

test('without session and token a client that leaves takes the call with it', async (t) => {
  const { upstream, admin, raw } = await stage(t, { ...patient, upstream: { sessions: false } });
  const agent = raw(PLAIN);
  agent.send('tools/call', { name: 'slow', arguments: {} }).catch(() => {});
  const call = await upstream.received('tools/call');
  agent.close();
  await call.gone;
  assert.equal(call.left, true);
  assert.deepEqual((await admin.list()).tasks, []);
});

test('a client that leaves after the promotion finds its task again', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  agent.close();
  held[0].reply.result({ content: [{ type: 'text', text: 'still here' }] });
  await admin.inState(id, 'completed');
  const again = await connect(PLAIN);
  again.session = agent.session;
  const { content } = await again.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.equal(content[0].text, 'still here');
});

test('seed 000, TTL expiration: expired, upstream is told, and a late answer changes nothing', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { pseudoTasks: { defaultTtlMs: 700 } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const task = await admin.inState(id, 'expired');
  assert.match(task.statusMessage, /time to live of 700 ms/);
  const told = await upstream.received('notifications/cancelled');
  assert.deepEqual(told.rpc.params, { requestId: held[0].id, reason: 'expired' });
  assert.equal(told.headers['mcp-session-id'], agent.session);
  assert.equal((await upstream.received((r) => r === held[0].recorded)).rpc.id, held[0].id);
  held[0].reply.result({ content: [] });
  assert.equal((await admin.task(id)).state, 'expired');
  const { content, isError } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.deepEqual([isError, /expired/.test(JSON.parse(content[0].text).error)], [true, true]);
});

test('the default TTL is never above the maximum', async (t) => {
  const { admin, connect } = await stage(t, { pseudoTasks: { defaultTtlMs: 500, maxTtlMs: 500 } });
  const agent = await connect(PLAIN);
  const { id, block } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  assert.equal(block.proxy_task.ttl, 500);
  await admin.inState(id, 'expired');
});

test('an ended task goes when its retention is over', async (t) => {
  const { admin, connect, held } = await stage(t, { pseudoTasks: { completedRetentionMs: 100 } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  held[0].reply.result({ content: [] });
  await until(async () => (await admin.get(`/api/v1/tasks/${id}`)).status === 404, 'the task to be forgotten', { deadline: 40_000 });
});

test('at maxTasksPerSession a call stays attached: it is answered by upstream, or promoted when there is room', async (t) => {
  const { admin, connect, held } = await stage(t, { pseudoTasks: { maxTasksPerSession: 1 } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const second = agent.result('tools/call', { name: 'slow', arguments: { n: 2 } });
  await until(() => held[1], 'the second call');
  const third = agent.result('tools/call', { name: 'slow', arguments: { n: 3 } });
  await until(() => held[2], 'the third call');
  // Another session has a count of its own.
  const other = await connect(PLAIN);
  promoted(await other.result('tools/call', { name: 'slow', arguments: { n: 4 } }));
  held[1].reply.result({ content: [{ type: 'text', text: 'itself' }] });
  assert.equal((await second).content[0].text, 'itself');
  held[0].reply.result({ content: [] });
  await admin.inState(id, 'completed');
  promoted(await third);
});

test('an operator sees promoted tasks, and cancelling one is told upstream', async (t) => {
  const { upstream, admin, gateway, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: { a: 1 } }));
  const [task] = (await admin.list({ state: 'executing' })).tasks;
  assert.deepEqual([task.id, task.tool, task.source, task.arguments, task.workflow], [id, 'slow', 'up', { a: 1 }, null]);
  assert.match(task.principal, /^raw-client \(session [0-9a-f]{12}\)$/);
  assert.equal((await admin.decide('approve', id)).status, 409);
  assert.equal((await admin.decide('reject', id)).status, 409);
  await admin.cancel(id, 'enough');
  const told = await upstream.received('notifications/cancelled');
  assert.deepEqual(told.rpc.params, { requestId: held[0].id, reason: 'cancelled' });
  await held[0].recorded.gone;
  const { content, isError } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.deepEqual([isError, content[0].text], [true, 'It is not known whether slow ran. Check its effect before you call it again.']);
  await gateway.logged((entry) => entry.msg === 'Task created' && entry.task === id);
});

test('promoted clients: those without tasks, as the mode and clients: say', async (t) => {
  const cases = [
    ['auto', { capabilities: { tasks: {} } }, false],
    ['auto', { capabilities: {}, protocol: '2025-06-18' }, true],
    ['auto', { capabilities: {}, name: 'able' }, false],
    ['auto', { capabilities: { tasks: {} }, name: 'unable' }, true],
    ['always', { capabilities: { tasks: {} } }, false],
    ['never', { capabilities: {} }, false],
  ];
  const clients = [{ match: 'able', tasks: 'yes' }, { match: 'unable', tasks: 'no' }];
  for (const mode of ['auto', 'always', 'never']) {
    const { connect, held } = await stage(t, { mode, config: { clients } });
    for (const [, options, expected] of cases.filter((x) => x[0] === mode)) {
      const agent = await connect(options);
      const before = held.length;
      const answer = agent.result('tools/call', { name: 'slow', arguments: {} });
      if (expected) {
        promoted(await answer);
        continue;
      }
      await until(() => held[before], 'the call');
      const at = performance.now();
      await until(() => performance.now() - at > 1000, 'more than the wait');
      held[before].reply.result({ content: [{ type: 'text', text: 'itself' }] });
      assert.equal((await answer).content[0].text, 'itself', `${mode} ${JSON.stringify(options)}`);
    }
  }
});

test('without session and token the task is found by its id', async (t) => {
  const { admin, connect, held } = await stage(t, { upstream: { sessions: false } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  held[0].reply.result({ content: [{ type: 'text', text: 'mine' }] });
  await admin.inState(id, 'completed');
  const { content } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.equal(content[0].text, 'mine');
});

test('a promoted task is its owner’s alone', async (t) => {
  const { connect } = await stage(t);
  const [agent, other] = [await connect(PLAIN), await connect(PLAIN)];
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const { content, isError } = await other.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.deepEqual([isError, /not found/.test(content[0].text)], [true, true]);
  // The protocol's own methods do not know it, for any client.
  assert.deepEqual((await agent.call('tasks/get', { taskId: id })).error?.code, -32602);
});

test('on several workers', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { config: { workers: 3 } });
  const agents = [];
  for (let i = 0; i < 12; i++) agents.push(await connect({ ...PLAIN, keepAlive: false }));
  const ids = await Promise.all(agents.map((agent, i) => agent.result('tools/call', { name: 'slow', arguments: { i } }).then((result) => promoted(result).id)));
  assert.equal(new Set(ids).size, 12);
  const results = agents.map((agent, i) => agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: ids[i], timeout_ms: 60_000 } }));
  for (const call of held) call.reply.result({ content: [{ type: 'text', text: `number ${call.params.arguments.i}` }] });
  for (const [i, result] of (await Promise.all(results)).entries()) assert.equal(result.content[0].text, `number ${i}`);
  const cancelled = await agents[0].result('tools/call', { name: 'slow', arguments: { i: 99 } });
  await admin.cancel(promoted(cancelled).id);
  await upstream.received('notifications/cancelled');
});

test('metrics and log lines tell of promotions', async (t) => {
  const { admin, gateway, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  held[0].reply.result({ content: [] });
  await admin.inState(id, 'completed');
  const samples = await until(async () => {
    const all = await admin.metrics();
    return sample(all, 'thoughtgate_tasks_completed_total', { task_type: 'promoted' }) === 1 && all;
  }, 'the count');
  assert.equal(sample(samples, 'thoughtgate_tasks_created_total', { task_type: 'promoted' }), 1);
  assert.equal(sample(samples, 'thoughtgate_approval_requests_total') ?? 0, 0);
  await gateway.logged((entry) => entry.msg === 'Promoted call ended' && entry.task === id && entry.state === 'completed');
});
