// Calls without a client: POST /api/v1/calls on the admin port, and the results that are waited for.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { call, called, result, stage, TOKENS, TOOLS } from './lib/control_plane.mjs';
import { BRIEF_DRAIN } from './lib/gateway.mjs';
import { key, MODERN, TASKS_EXTENSION } from './lib/modern_client.mjs';
import { complete, form, modernUpstream, taskMaker } from './lib/modern_upstream.mjs';
import { startUpstream, TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** The messages that the gateway's session for this call sent upstream, in order. */
const sessionOf = (upstream, request) => upstream.requests.filter((r) => r.headers['mcp-session-id'] === request.headers['mcp-session-id']);

test('a call that may be forwarded runs at once, with a session of its own and the static headers, and leaves none behind', async (t) => {
  const { upstream, admin, ci } = await stage(t);
  const task = await called(ci, { source: 'up', tool: 'read', arguments: { path: '/a', n: 1.5 } });
  assert.match(task.id, /^tg_/);
  assert.deepEqual([task.source, task.tool, task.principal, task.workflow, task.arguments], ['up', 'read', 'admin:ci', null, { path: '/a', n: 1.5 }]);
  const answer = await result(ci, task.id, '20s');
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(answer.json, {
    id: task.id,
    state: 'completed',
    result: { content: [{ type: 'text', text: 'did read' }], structuredContent: { tool: 'read', arguments: { path: '/a', n: 1.5 } } },
  });
  const [sent] = upstream.calls;
  assert.equal(upstream.calls.length, 1);
  assert.deepEqual(sent.rpc.params, { name: 'read', arguments: { path: '/a', n: 1.5 } }, 'without the task member');
  assert.match(sent.rpc.id, /^tg:/);
  await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === sent.headers['mcp-session-id']);
  const session = sessionOf(upstream, sent);
  assert.deepEqual(session.map((r) => r.rpc?.method ?? r.method), ['notifications/initialized', 'tools/call', 'DELETE']);
  for (const request of session) {
    assert.equal(request.headers.authorization, TOKENS.UPSTREAM_SECRET);
    assert.equal(request.headers['mcp-protocol-version'], '2025-11-25');
  }
  assert.doesNotMatch(JSON.stringify(await admin.task(task.id)), /static-secret/);
});

test('a call that needs approval waits for it; the wait for the result ends with the result', async (t) => {
  const { upstream, admin, ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user', arguments: { id: 7 }, ttl: 60_000 });
  assert.deepEqual([task.state, task.status, task.workflow, task.principal], ['pending', 'input_required', 'default', 'admin:ci']);
  assert.equal(Date.parse(task.decideBy) - Date.parse(task.createdAt), 60_000);
  const now = await result(ci, task.id);
  assert.deepEqual([now.status, now.json], [202, { id: task.id, state: 'pending' }]);
  const waiting = result(ci, task.id, '60s');
  await admin.approve(task.id, 'fine');
  const answer = await waiting;
  assert.deepEqual([answer.status, answer.json.state, answer.json.result.structuredContent], [200, 'completed', { tool: 'delete_user', arguments: { id: 7 } }]);
  assert.equal(upstream.calls.length, 1);
  assert.deepEqual((await result(ci, task.id)).json, answer.json, 'and stays readable');
});

test('a wait that ends undecided is 202 with the state, after the time that was asked for', async (t) => {
  const { ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  const started = performance.now();
  const answer = await result(ci, task.id, '300ms');
  assert.deepEqual([answer.status, answer.json], [202, { id: task.id, state: 'pending' }]);
  assert.ok(performance.now() - started >= 290);
});

test('every way to end: rejected, cancelled, expired, an error of upstream, isError', async (t) => {
  const { upstream, admin, ci } = await stage(t);
  const rejected = await called(ci, { tool: 'delete_user' });
  const waiting = result(ci, rejected.id, '60s');
  await admin.reject(rejected.id, 'no');
  const no = await waiting;
  assert.deepEqual([no.status, no.json.state, no.json.error.code, no.json.result], [200, 'rejected', -32007, undefined]);

  const cancelled = await called(ci, { tool: 'delete_user' });
  await ci.cancel(cancelled.id, 'never mind');
  const gone = (await result(ci, cancelled.id)).json;
  assert.deepEqual([gone.state, gone.error.code], ['cancelled', -32006]);

  const late = await called(ci, { tool: 'delete_user', ttl: 100 });
  const expired = (await result(ci, late.id, '20s')).json;
  assert.deepEqual([expired.state, expired.error.code], ['expired', -32008]);

  upstream.handlers['tools/call'] = ({ reply }) => reply.error(-32042, 'more information', { elicitations: [] });
  const failed = (await result(ci, (await called(ci, { tool: 'read' })).id, '20s')).json;
  assert.deepEqual([failed.state, failed.error], ['failed', { code: -32042, message: 'more information', data: { elicitations: [] } }]);

  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ isError: true, content: [{ type: 'text', text: 'disk full' }] });
  const wrong = (await result(ci, (await called(ci, { tool: 'read' })).id, '20s')).json;
  assert.deepEqual([wrong.state, wrong.result], ['failed', { isError: true, content: [{ type: 'text', text: 'disk full' }] }]);
});

test('the gates hold, with the code that a client would get', async (t) => {
  const { upstream, ci } = await stage(t);
  for (const [name, code] of [['drop_all', -32014], ['hidden', -32015]]) {
    const answer = await call(ci, { tool: name });
    assert.deepEqual([answer.status, answer.json.error.code, answer.json.error.details], [403, 'forbidden', code], name);
    assert.equal(typeof answer.json.error.message, 'string');
  }
  assert.equal(upstream.calls.length, 0);
});

test('a disabled source is not exposed', async (t) => {
  const { upstream, ci } = await stage(t, { source: { enabled: false } });
  const answer = await call(ci, { tool: 'read' });
  assert.deepEqual([answer.status, answer.json.error.details], [403, -32015]);
  assert.equal(upstream.calls.length, 0);
});

test('bodies that are wrong are 400 and say why; another type is 415', async (t) => {
  const { upstream, admin, ci } = await stage(t);
  for (const body of [
    '', '{', '[]', '{}', '{"tool":5}', '{"tool":null}', '{"tool":"a\\u0000b"}', '{"tool":"read","tool":"read"}', '{"tool":"read"}x',
    '{"tool":"read","arguments":[]}', '{"tool":"read","arguments":null}', '{"tool":"read","arguments":{"a":1,"a":2}}',
    '{"tool":"read","ttl":0}', '{"tool":"read","ttl":-1}', '{"tool":"read","ttl":1.5}', '{"tool":"read","ttl":"10m"}', '{"tool":"read","ttl":null}',
    '{"tool":"read","source":"elsewhere"}', '{"tool":"read","source":5}', '{"tool":"read","owner":"x"}', '{"Tool":"read"}',
  ]) {
    const answer = await call(ci, body);
    assert.equal(answer.status, 400, `${body}: ${answer.text}`);
    assert.equal(answer.json.error.code, 'invalid_request');
    assert.ok(answer.json.error.message.length > 5);
  }
  assert.equal((await ci.post('/api/v1/calls', '{"tool":"read"}', { 'content-type': 'text/plain' })).status, 415);
  assert.equal((await ci.get('/api/v1/calls')).status, 405);
  assert.deepEqual((await admin.list()).tasks, []);
  assert.equal(upstream.calls.length, 0);
});

test('with several sources the call must name one', async (t) => {
  const one = await startUpstream(t, { tools: TOOLS });
  const two = await startUpstream(t, { tools: TOOLS });
  const yaml = `schema: 1
sources:
  - {id: one, kind: mcp, url: "${one.url}"}
  - {id: two, kind: mcp, url: "${two.url}"}
governance: {defaults: {action: forward}}
admin: {tokens: [{name: ci, token_env: CI_TOKEN, roles: [caller]}]}
`;
  const { ci } = await stage(t, { yaml });
  assert.equal((await call(ci, { tool: 'read' })).status, 400);
  const task = await called(ci, { tool: 'read', source: 'two' });
  assert.equal((await result(ci, task.id, '20s')).json.state, 'completed');
  assert.deepEqual([one.calls.length, two.calls.length], [0, 1]);
});

test('roles: who may call, who sees what', async (t) => {
  const { admin, connect, ci, cron, both, eye } = await stage(t);
  for (const other of [admin, eye]) assert.equal((await call(other, { tool: 'read' })).status, 403);
  assert.equal((await call(admin.as('wrong'), { tool: 'read' })).status, 401);

  const mine = await called(ci, { tool: 'delete_user' });
  const clients = (await (await connect()).createTask('delete_user')).taskId;
  for (const seer of [admin, eye, both]) {
    assert.equal((await seer.list()).tasks.length, 2);
    assert.equal((await result(seer, mine.id)).status, 202);
    assert.equal((await result(seer, clients)).status, 202);
  }
  assert.equal((await ci.get('/api/v1/tasks')).status, 403);
  const own = await ci.task(mine.id);
  assert.deepEqual([own.id, own.history, (await eye.task(mine.id)).history.days], [mine.id, null, 30], 'what became of the calls of others is not theirs');
  const nothing = 'tg_00000000-0000-4000-8000-000000000000';
  const unknown = await ci.get(`/api/v1/tasks/${nothing}`);
  const uncancelled = await ci.decide('cancel', nothing);
  assert.deepEqual([unknown.status, uncancelled.status], [404, 403]);
  for (const [who, id] of [[ci, clients], [cron, mine.id], [cron, clients]]) {
    for (const answer of [await who.get(`/api/v1/tasks/${id}`), await result(who, id), await result(who, id, '10s')]) {
      assert.deepEqual([answer.status, answer.json], [404, unknown.json], "another owner's task answers like an unknown one");
    }
    const cancel = await who.decide('cancel', id);
    assert.deepEqual([cancel.status, cancel.json], [403, uncancelled.json]);
  }
  for (const verb of ['approve', 'reject']) assert.equal((await ci.decide(verb, mine.id)).status, 403);
  assert.equal((await ci.get('/api/v1/events')).status, 403);
  assert.equal((await admin.task(mine.id)).state, 'pending', 'none of it decided anything');
});

test('the token that called cannot approve; another can; it may cancel', async (t) => {
  const { upstream, admin, both } = await stage(t);
  const task = await called(both, { tool: 'delete_user' });
  const refused = await both.decide('approve', task.id);
  assert.equal(refused.status, 403);
  assert.match(refused.json.error.message, /the token that made this call may not approve it/);
  assert.equal((await admin.task(task.id)).state, 'pending');
  await admin.approve(task.id);
  assert.equal((await result(both, task.id, '20s')).json.state, 'completed');
  assert.equal(upstream.calls.length, 1);

  const second = await called(both, { tool: 'delete_user' });
  assert.equal((await both.cancel(second.id)).state, 'cancelled');
  assert.equal(upstream.calls.length, 1);
});

test('a client on the proxy port never sees these tasks', async (t) => {
  const { connect, ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  const client = await connect({ token: TOKENS.CI_TOKEN });
  assert.deepEqual((await client.result('tasks/list')).tasks, []);
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) assert.equal((await client.error(method, { taskId: task.id })).code, -32602);
});

test('an approval after a restart runs the call: nobody need come back with credentials', async (t) => {
  const { upstream, gateway, ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user', arguments: { id: 1 } });
  await gateway.restart();
  const waiting = result(ci, task.id, '60s');
  await gateway.admin.approve(task.id);
  assert.equal((await waiting).json.state, 'completed');
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.calls[0].headers.authorization, TOKENS.UPSTREAM_SECRET);
});

test('a call that was approved before a restart, and has not run yet, runs after it, once', async (t) => {
  const { upstream, gateway, admin, ci } = await stage(t);
  upstream.authorize = (r) => (r.rpc?.method === 'initialize' && upstream.refusing ? 401 : undefined);
  upstream.refusing = true;
  const task = await called(ci, { tool: 'delete_user' });
  await admin.approve(task.id);
  await until(async () => /refused the credentials/.test((await admin.task(task.id)).statusMessage), 'upstream has refused');
  assert.equal((await admin.task(task.id)).state, 'approved');
  upstream.refusing = false;
  gateway.options.env = { ...TOKENS, UPSTREAM_SECRET: 'Bearer fresh-secret' };
  await gateway.restart();
  await admin.inState(task.id, 'completed'); // before any request for the result
  assert.equal(upstream.calls.length, 1);
});

/** An approved call of the control plane that runs when its result is asked for, after a restart of the gateway. */
async function approvedBeforeRestart(t) {
  const set = await stage(t, { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }] });
  await set.gateway.logged(/^Tool annotation: delete_user ->/);
  const task = await called(set.ci, { tool: 'delete_user' });
  await set.admin.approve(task.id);
  return { ...set, task };
}

test('an approved call is compared with the tool as it is after a restart, however late upstream lists it', async (t) => {
  const { upstream, gateway, ci, task } = await approvedBeforeRestart(t);
  const held = [];
  upstream.handlers['tools/list'] = ({ reply }) => held.push(() => reply.result({ tools: upstream.tools }));
  upstream.tools = [tool('delete_user', { description: 'Now deletes everybody' })];
  await gateway.restart();
  const waiting = result(ci, task.id, '60s');
  await until(() => held.length === 2 || upstream.calls.length > 0, 'the list to be asked for at the start and for the call');
  assert.equal(upstream.calls.length, 0, 'nothing runs uncompared');
  for (const answer of held) answer();
  const { json } = await waiting;
  assert.deepEqual([json.state, json.error.code, json.error.data.error_type], ['failed', -32012, 'transform_drift']);
  assert.equal(upstream.calls.length, 0);
});

test('an approved call waits after a restart while upstream does not say what its tools are', async (t) => {
  const { upstream, gateway, admin, ci, task } = await approvedBeforeRestart(t);
  const list = upstream.handlers['tools/list'];
  upstream.handlers['tools/list'] = ({ reply }) => reply.http(500);
  await gateway.restart();
  const waiting = result(ci, task.id, '60s');
  await until(() => gateway.logs.some(({ msg }) => /^An approved call waits/.test(msg)) || upstream.calls.length > 0, 'the call to wait');
  assert.equal(upstream.calls.length, 0);
  assert.equal((await admin.task(task.id)).state, 'approved');
  if (list) upstream.handlers['tools/list'] = list;
  else delete upstream.handlers['tools/list'];
  assert.equal((await waiting).json.state, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('credentials that upstream refuses leave the approval standing: asking for the result does not try the same ones again', async (t) => {
  const { upstream, gateway, admin, ci, eye } = await stage(t);
  // By the trail: the gateway's look at the list of tools opens a session, too, and may be refused.
  const tries = async (id) => (await admin.get('/api/v1/audit?limit=1000')).json.entries.filter((row) => row.taskId === id && row.event === 'execute').length;
  upstream.authorize = (r) => {
    r.refused = upstream.refusing && r.rpc?.method === 'initialize';
    return r.refused ? 401 : undefined;
  };
  upstream.refusing = true;
  const task = await called(ci, { tool: 'delete_user' });
  await admin.approve(task.id);
  await until(async () => /refused the credentials/.test((await admin.task(task.id)).statusMessage), 'upstream has refused');
  assert.equal(await tries(task.id), 1, 'it is not asked again by itself');
  assert.deepEqual((await result(eye, task.id)).json.state, 'approved');
  assert.equal(await tries(task.id), 1, 'nor by one who looks on');
  assert.equal((await result(ci, task.id)).status, 202);
  assert.equal((await result(ci, task.id, '200ms')).status, 202);
  assert.deepEqual([await tries(task.id), (await admin.task(task.id)).state], [1, 'approved'], 'the same ones would only be refused again');
  upstream.refusing = false;
  gateway.options.env = { ...TOKENS, UPSTREAM_SECRET: 'Bearer fresh-secret' };
  await gateway.restart();
  assert.equal((await result(ci, task.id, '20s')).json.state, 'completed');
  assert.deepEqual([await tries(task.id), upstream.calls.length], [2, 1]);
});

test('a session that cannot be opened fails the call, and says that nothing was sent', async (t) => {
  const { upstream, admin, ci } = await stage(t);
  upstream.handlers.initialize = ({ reply }) => reply.http(500, { 'content-type': 'text/plain' }, 'no');
  const broken = (await result(ci, (await called(ci, { tool: 'read' })).id, '20s')).json;
  assert.deepEqual([broken.state, broken.error.code], ['failed', -32002]);
  assert.match(broken.error.data.details, /nothing was sent/);
  upstream.handlers.initialize = ({ reply }) => reply.error(-32602, 'Unsupported protocol version');
  const refused = (await result(ci, (await called(ci, { tool: 'read' })).id, '20s')).json;
  assert.deepEqual([refused.state, refused.error.code], ['failed', -32602]);
  await upstream.stop();
  const gone = await called(ci, { tool: 'read' });
  assert.deepEqual([(await result(ci, gone.id, '20s')).json.error.code, (await admin.task(gone.id)).state], [-32000, 'failed']);
  assert.equal(upstream.calls.length, 0);
});

test('with several workers a call still runs once', async (t) => {
  const { upstream, admin, ci } = await stage(t, { config: { workers: 3, admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } } });
  const tasks = await Promise.all(Array.from({ length: 10 }, (_, i) => called(ci, { tool: i % 2 ? 'read' : 'delete_user' })));
  await Promise.all(tasks.filter((task) => task.tool === 'delete_user').map((task) => admin.approve(task.id)));
  for (const task of tasks) assert.equal((await result(ci, task.id, '20s')).json.state, 'completed');
  assert.equal(upstream.calls.length, 10);
});

test('upstreams without session ids are called all the same', async (t) => {
  const { upstream, ci } = await stage(t, { upstream: { tools: TOOLS, sessions: false } });
  assert.equal((await result(ci, (await called(ci, { tool: 'read' })).id, '20s')).json.state, 'completed');
  assert.equal(upstream.calls[0].headers['mcp-session-id'], undefined);
  assert.equal(upstream.requests.filter((r) => r.method === 'DELETE').length, 0);
});

/** A server of the modern era alone, with one tool whose argument `region` its requests repeat in a header. */
const modernStage = (t, options = {}) => {
  const region = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };
  return stage(t, { source: { era: 'modern' }, upstream: modernUpstream({ tools: [...TOOLS, tool('move', { inputSchema: region })], ...options }) });
};

test('a modern server gets a modern request, at once or after the approval, and no session is opened', async (t) => {
  const { upstream, admin, ci } = await modernStage(t);
  const moved = await called(ci, { tool: 'move', arguments: { region: 'eu', n: 1.5 } });
  const answer = await result(ci, moved.id, '20s');
  assert.deepEqual([answer.status, answer.json.state, answer.json.result?.structuredContent], [200, 'completed', { tool: 'move', arguments: { region: 'eu', n: 1.5 } }]);
  const deleted = await called(ci, { tool: 'delete_user', arguments: { id: 7 }, ttl: 60_000 });
  await admin.approve(deleted.id, 'fine');
  assert.equal((await result(ci, deleted.id, '20s')).json.state, 'completed');
  const meta = {
    [key('protocolVersion')]: MODERN,
    [key('clientCapabilities')]: { extensions: { [TASKS_EXTENSION]: {} } },
    [key('clientInfo')]: upstream.requests.find((r) => r.rpc?.method === 'tools/list').rpc.params._meta[key('clientInfo')],
  };
  const [first, second] = upstream.calls;
  assert.equal(upstream.calls.length, 2);
  assert.deepEqual(first.rpc.params, { name: 'move', arguments: { region: 'eu', n: 1.5 }, _meta: meta });
  assert.deepEqual(second.rpc.params, { name: 'delete_user', arguments: { id: 7 }, _meta: meta });
  assert.deepEqual((await admin.task(deleted.id)).meta, meta, 'it is what people approve');
  for (const [sent, name, repeated] of [[first, 'move', 'eu'], [second, 'delete_user', undefined]]) {
    const { headers } = sent;
    assert.deepEqual(
      [headers['mcp-protocol-version'], headers['mcp-method'], headers['mcp-name'], headers['mcp-param-region'], headers.authorization, headers['mcp-session-id']],
      [MODERN, 'tools/call', name, repeated, TOKENS.UPSTREAM_SECRET, undefined],
    );
  }
  assert.deepEqual(upstream.requests.filter((r) => r.rpc?.method === 'initialize' || r.method === 'DELETE'), []);
});

test('a task of a modern server is followed, and a cancelled call cancels it', async (t) => {
  const { tasks, handlers } = taskMaker();
  const { upstream, ci } = await modernStage(t, { makesTasks: true, handlers });
  const followed = await called(ci, { tool: 'read' });
  const theirs = await until(() => tasks.get('up-1'), 'the task of the server');
  Object.assign(theirs, { status: 'completed', result: { content: [{ type: 'text', text: 'at last' }] } });
  assert.deepEqual((await result(ci, followed.id, '20s')).json.result.content, [{ type: 'text', text: 'at last' }]);
  const given = await called(ci, { tool: 'read' });
  const other = await until(() => tasks.get('up-2'), 'its second task');
  await until(() => upstream.requests.some((r) => r.rpc?.method === 'tasks/get' && r.rpc.params.taskId === 'up-2'), 'a look at it');
  assert.equal((await ci.post(`/api/v1/tasks/${given.id}/cancel`, {})).status, 200);
  await until(() => other.isCancelled, 'the cancellation at the server');
});

test('a modern server that requires input of the control plane fails the call', async (t) => {
  const asks = ({ reply }) => reply.result({ ...complete(), resultType: 'input_required', inputRequests: { who: form('Who?') }, requestState: 's' });
  const { upstream, ci } = await modernStage(t, { makesTasks: true, handlers: { 'tools/call': asks } });
  const { id } = await called(ci, { tool: 'read' });
  const { json } = await result(ci, id, '20s');
  assert.deepEqual([json.state, json.error.code, json.error.data.details], ['failed', -32002, 'upstream requires input for which the client cannot be asked']);
  assert.equal(upstream.calls.length, 1);
});

test('a tool that upstream itself runs as a task only is run as one, and cancelled as one', async (t) => {
  const tools = [tool('job', { support: 'required' })];
  const { upstream, ci } = await stage(t, { upstream: { tools, capabilities: { tools: {}, tasks: TASKS } }, env: { ...TOKENS, ...BRIEF_DRAIN } });
  let letGo;
  upstream.handlers['tasks/cancel'] = ({ reply }) => (letGo = () => reply.result({}));
  const task = await called(ci, { tool: 'job', ttl: 30_000 });
  const [sent] = [await upstream.received('tools/call')];
  assert.deepEqual(sent.rpc.params.task, { ttl: 30_000 });
  await upstream.received('tasks/get');
  await ci.cancel(task.id);
  const cancel = await upstream.received('tasks/cancel');
  assert.equal((await result(ci, (await called(ci, { tool: 'job' })).id, '100ms')).status, 202, 'upstream is asked other things meanwhile');
  assert.ok(!sessionOf(upstream, sent).some((r) => r.method === 'DELETE'), 'the session outlives the last word');
  letGo();
  await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === sent.headers['mcp-session-id']);
  assert.equal(cancel.headers.authorization, TOKENS.UPSTREAM_SECRET);
});

test('execution: on_result runs it when its owner asks for the result, not before and for nobody else', async (t) => {
  const { upstream, admin, ci, eye } = await stage(t, { config: { execution: 'on_result', admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }, { name: 'eye', token_env: 'EYE_TOKEN', roles: ['viewer'] }] } } });
  const task = await called(ci, { tool: 'delete_user' });
  await admin.approve(task.id);
  assert.deepEqual((await result(eye, task.id, '200ms')).json.state, 'approved');
  assert.equal(upstream.calls.length, 0);
  assert.equal((await result(ci, task.id, '20s')).json.state, 'completed');

  const waited = await called(ci, { tool: 'delete_user' });
  const waiting = result(ci, waited.id, '60s');
  await admin.approve(waited.id);
  assert.equal((await waiting).json.state, 'completed', 'also when the approval comes while it is waited for');
  assert.equal(upstream.calls.length, 2);
});

test('a cancel while the session for it is still being opened sends nothing of a call that never went up', async (t) => {
  const { upstream, ci } = await stage(t);
  await upstream.received((r) => r.method === 'DELETE');
  let letGo;
  upstream.handlers.initialize = ({ reply }) => (letGo = () => reply.result({}));
  const task = await called(ci, { tool: 'read' });
  await upstream.received('initialize', 2);
  const before = upstream.requests.length;
  assert.equal((await ci.cancel(task.id)).state, 'cancelled');
  letGo();
  await upstream.requests[before - 1].gone;
  assert.equal((await result(ci, task.id)).json.state, 'cancelled');
  assert.deepEqual(upstream.requests.slice(before).map((r) => r.text), []);
});

test('a cancel while it runs tells upstream', async (t) => {
  const { upstream, ci } = await stage(t);
  upstream.handlers['tools/call'] = () => {};
  const task = await called(ci, { tool: 'read' });
  const sent = await upstream.received('tools/call');
  const waiting = result(ci, task.id, '60s');
  await ci.cancel(task.id);
  assert.equal((await waiting).json.state, 'cancelled');
  const told = await upstream.received('notifications/cancelled');
  assert.equal(told.rpc.params.requestId, sent.rpc.id);
});

test('policy and tool are looked at again before the call is run', async (t) => {
  const { upstream, gateway, admin, ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  gateway.writeConfig({ rules: [['delete_*', 'deny']] });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  await admin.approve(task.id);
  const answer = (await result(ci, task.id, '20s')).json;
  assert.deepEqual([answer.state, answer.error.code], ['failed', -32011]);
  assert.equal(upstream.calls.length, 0);
});

test('a token that a reload takes away gets no result any more', async (t) => {
  const { gateway, admin, ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  const waiting = result(ci, task.id, '60s');
  await until(async () => (await admin.task(task.id)).state === 'pending', 'the task');
  gateway.writeConfig({ config: { admin: { tokens: [{ name: 'eye', token_env: 'EYE_TOKEN', roles: ['viewer'] }] } } });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  await admin.reject(task.id);
  assert.equal((await waiting).status, 401);
});

test('limits on pending tasks are 429 with Retry-After', async (t) => {
  const { ci, cron } = await stage(t, { config: { ...limited(1, 10) } });
  await called(ci, { tool: 'delete_user' });
  const second = await call(ci, { tool: 'delete_user' });
  assert.deepEqual([second.status, second.json.error.code, second.json.error.details], [429, 'rate_limited', -32013]);
  assert.equal(second.headers['retry-after'], '60');
  await called(cron, { tool: 'delete_user' });
});

const limited = (principal, total) => ({
  limits: { pending_per_principal: principal, pending_total: total },
  admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }, { name: 'cron', token_env: 'CRON_TOKEN', roles: ['caller'] }] },
});

test('wait is a duration of at most five minutes', async (t) => {
  const { ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  for (const wait of ['x', '-1s', '6m', '5', '1h', '%zz']) {
    const answer = await result(ci, task.id, wait);
    assert.equal(answer.status, 400, `${wait}: ${answer.text}`);
  }
  assert.equal((await ci.get(`/api/v1/tasks/${task.id}/result?poll=1s`)).status, 400);
  for (const wait of ['0s', '1ms', 'PT0.01S', '5ms%201ms']) assert.equal((await result(ci, task.id, wait)).status, 202, wait);
});

test('many wait for one result; one that has left is no trouble; shutting down answers them all', async (t) => {
  const { gateway, admin, ci, eye } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  const leaving = http.get(`${gateway.adminUrl}/api/v1/tasks/${task.id}/result?wait=60s`, { headers: { authorization: `Bearer ${TOKENS.CI_TOKEN}` } }).on('error', () => {});
  const waiting = Array.from({ length: 20 }, (_, i) => result(i % 2 ? ci : eye, task.id, '60s'));
  await result(ci, task.id, '50ms');
  leaving.destroy();
  await admin.approve(task.id);
  for (const answer of await Promise.all(waiting)) assert.deepEqual([answer.status, answer.json.state], [200, 'completed']);
  const undecided = await called(ci, { tool: 'delete_user' });
  const last = result(ci, undecided.id, '60s');
  await result(ci, undecided.id, '50ms');
  await gateway.stop();
  assert.deepEqual([(await last).status, (await last).json], [202, { id: undecided.id, state: 'pending' }]);
});

test('larger arguments than a decision ever has are taken', async (t) => {
  const { ci } = await stage(t);
  const text = 'x'.repeat(1_000_000);
  const task = await called(ci, { tool: 'read', arguments: { text } });
  assert.equal((await result(ci, task.id, '20s')).json.result.structuredContent.arguments.text.length, text.length);
});
