// Clients without elicitation: the server's questions wait in the gateway's tools.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, PARTY, responseTo, SAMPLE, sample } from './lib/asking.mjs';
import { sdkClient } from './lib/client.mjs';
import { BRIEF_DRAIN, startGateway, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { targets } from './lib/targets.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const stage = (t, handler, more = {}) =>
  scene(t, {
    ...more,
    config: { ...more.config, pseudo_tools: { promote: 'wait', only: 'all', ...more.config?.pseudo_tools } },
    upstream: { tools: [tool('book_dinner')], handlers: handler ? { 'tools/call': handler } : {}, ...more.upstream },
  });
const plain = (s, more = {}) => s.connect({ capabilities: {}, ...more });
const run = (client, name, args = {}) => client.result('tools/call', { name, arguments: args });
const json = (result) => JSON.parse(result.content[0].text);
const listed = (client, name = 'get_elicitations', count = 1) =>
  until(async () => {
    const result = await run(client, name);
    const list = result.structuredContent.elicitations ?? result.structuredContent.sampling_requests;
    return list.length >= count && result;
  }, `${count} in ${name}`);

const PROMOTED = { pseudo_tools: { promote: 'wait', only: 'all', wait: '500ms', wait_max: '500ms' } };
const shownTask = (result) => result.content.map((b) => b.text).filter((x) => x.startsWith('{')).map((x) => JSON.parse(x)).find((x) => x.proxy_task).proxy_task.task_id;

test('elicitation: out of the stream, into the tools, and the answer to the server', async (t) => {
  const s = await stage(t, asks(elicit('e-1')));
  const client = await plain(s);
  const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
  const list = await listed(client);
  const [asked] = json(list);
  assert.match(asked.requestId, ULID);
  assert.match(asked.timestamp, /^20\d\d-.*Z$/);
  assert.deepEqual(asked, { requestId: asked.requestId, server: 'up', timestamp: asked.timestamp, mode: 'form', ...PARTY });
  assert.deepEqual(list.structuredContent.elicitations, [asked]);
  const pending = list.content.map((block) => JSON.parse(block.text)).find((block) => block.pending_client_action);
  assert.deepEqual(pending.pending_client_action, { elicitations: [{ requestId: asked.requestId, server: 'up', message: PARTY.message }], sampling_requests: [] });
  const done = await run(client, 'respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: { partySize: 4 } });
  assert.notEqual(done.isError, true, JSON.stringify(done));
  assert.deepEqual((await responseTo(s.upstream, 'e-1')).result, { action: 'accept', content: { partySize: 4 } });
  assert.equal(s.upstream.requests.find((r) => r.rpc?.id === 'e-1').headers['mcp-session-id'], client.session);
  const answer = await call;
  assert.deepEqual(answer.message.result.structuredContent, { answers: [{ action: 'accept', content: { partySize: 4 } }] });
  assert.deepEqual(answer.others, [], 'the client sees nothing of the request');
  assert.equal((await run(client, 'get_elicitations')).content[0].text, 'No pending elicitation requests');
});

test('sampling: answered, and refused', async (t) => {
  const s = await stage(t, asks(sample('s-1'), sample('s-2'), sample('s-3')));
  const client = await plain(s);
  const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
  const [asked] = json(await listed(client, 'get_sampling_requests'));
  assert.deepEqual(asked, { requestId: asked.requestId, server: 'up', timestamp: asked.timestamp, ...SAMPLE });
  const bad = await run(client, 'respond_to_sampling', { request_id: asked.requestId, role: 'robot', content: 'x', model: 'm' });
  assert.equal(bad.isError, true);
  await run(client, 'respond_to_sampling', { request_id: asked.requestId, role: 'assistant', content: 'hello "you"', model: 'm-1', stop_reason: 'endTurn' });
  assert.deepEqual((await responseTo(s.upstream, 's-1')).result, { role: 'assistant', content: { type: 'text', text: 'hello "you"' }, model: 'm-1', stopReason: 'endTurn' });
  const [second] = json(await listed(client, 'get_sampling_requests'));
  assert.notEqual((await run(client, 'cancel_sampling_request', { request_id: second.requestId, reason: 'too dear' })).isError, true);
  assert.deepEqual((await responseTo(s.upstream, 's-2')).error, { code: -1, message: 'too dear' });
  const [third] = json(await listed(client, 'get_sampling_requests'));
  await run(client, 'cancel_sampling_request', { request_id: third.requestId });
  assert.deepEqual((await responseTo(s.upstream, 's-3')).error, { code: -1, message: 'User cancelled' });
  assert.ok((await call).message.result);
  assert.equal((await run(client, 'get_sampling_requests')).content[0].text, 'No pending sampling requests');
});

test('answers that are none: unknown, late, of another client, or not what the form asks for', async (t) => {
  const s = await stage(t, asks(elicit('e-1'), elicit('e-2')));
  const client = await plain(s);
  const other = await plain(s);
  const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
  const [{ requestId }] = json(await listed(client));
  const text = async (who, name, args) => {
    const result = await run(who, name, args);
    assert.equal(result.isError, true);
    return result.content[0].text;
  };
  const accept = { request_id: requestId, action: 'accept', content: { partySize: 4 } };
  assert.equal(await text(client, 'respond_to_elicitation', { ...accept, request_id: 'x' }), "Elicitation request 'x' not found or already completed");
  assert.equal(await text(other, 'respond_to_elicitation', accept), `Elicitation request '${requestId}' not found or already completed`);
  assert.equal((await run(other, 'get_elicitations')).content[0].text, 'No pending elicitation requests');
  assert.match(await text(client, 'respond_to_elicitation', { ...accept, content: { partySize: 'four' } }), /content\.partySize must be a number/);
  assert.match(await text(client, 'respond_to_elicitation', { ...accept, content: undefined }), /content\.partySize is required/);
  assert.match(await text(client, 'respond_to_elicitation', { ...accept, action: 'maybe' }), /action/);
  await run(client, 'respond_to_elicitation', { request_id: requestId, action: 'decline' });
  assert.deepEqual((await responseTo(s.upstream, 'e-1')).result, { action: 'decline' });
  assert.match(await text(client, 'respond_to_elicitation', accept), /not found or already completed/);
  const [second] = json(await listed(client));
  await run(client, 'cancel_elicitation_request', { request_id: second.requestId, reason: 'no time' });
  assert.deepEqual((await responseTo(s.upstream, 'e-2')).result, { action: 'cancel' });
  assert.ok((await call).message.result);
});

test('await_activity is woken by each', async (t) => {
  for (const [request, type] of [[elicit('q'), 'elicitation_request'], [sample('q'), 'sampling_request']]) {
    const s = await stage(t, asks(request));
    const client = await plain(s);
    await run(client, 'get_elicitations');
    const waiting = run(client, 'await_activity', { timeout_ms: 20_000 });
    const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
    const activity = (await waiting).structuredContent;
    assert.deepEqual(activity.triggers, [{ type: 'event', server: 'up', eventType: type }]);
    const event = activity.events[0].events.find((e) => e.type === type);
    assert.deepEqual(event.data.params, request.params);
    const own = type === 'elicitation_request' ? activity.pending_client.elicitations : activity.pending_client.sampling_requests;
    assert.equal(own[0].requestId, event.data.requestId);
    if (type === 'elicitation_request') await run(client, 'cancel_elicitation_request', { request_id: event.data.requestId });
    else await run(client, 'cancel_sampling_request', { request_id: event.data.requestId });
    assert.ok((await call).message.result);
  }
});

test('a question on the GET stream is taken out of it, too; other messages pass', async (t) => {
  const s = await stage(t);
  const client = await plain(s);
  const listening = await client.listen();
  await until(() => s.upstream.getStreams.size === 1, 'the stream upstream');
  s.upstream.push({ jsonrpc: '2.0', ...elicit('e-1') }, { id: 'event-1' });
  s.upstream.push({ jsonrpc: '2.0', id: 'r-1', method: 'roots/list' });
  await listening.message((m) => m.id === 'r-1', 'a request of another kind');
  assert.equal(listening.events.some((e) => e.json?.method === 'elicitation/create'), false);
  const [{ requestId }] = json(await listed(client));
  await run(client, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content: { partySize: 9 } });
  assert.deepEqual((await responseTo(s.upstream, 'e-1')).result, { action: 'accept', content: { partySize: 9 } });
  // The stream may end and come back; its question stays open.
  s.upstream.push({ jsonrpc: '2.0', ...elicit('e-2') });
  const [second] = json(await listed(client));
  listening.abort();
  await until(() => s.upstream.getStreams.size === 0, 'the stream to end upstream');
  await run(client, 'respond_to_elicitation', { request_id: second.requestId, action: 'decline' });
  assert.deepEqual((await responseTo(s.upstream, 'e-2')).result, { action: 'decline' });
});

test('upstream withdraws it; upstream goes; the client goes, and its call goes on with what is asked', async (t) => {
  let stream;
  const s = await stage(t, ({ reply }) => {
    stream = reply.sse();
    stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
    stream.event({ jsonrpc: '2.0', ...elicit('e-2') });
  }, { env: BRIEF_DRAIN });
  const client = await plain(s);
  const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
  const both = json(await listed(client, 'get_elicitations', 2));
  assert.equal(both.length, 2);
  stream.event({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'e-1' } });
  await until(async () => (await run(client, 'get_elicitations')).structuredContent.elicitations.length === 1, 'one left');
  stream.cut();
  const answer = await call;
  assert.equal(answer.message.error.code, -32000);
  assert.deepEqual(answer.others, [], 'the withdrawal was not for the client');
  assert.equal((await run(client, 'get_elicitations')).content[0].text, 'No pending elicitation requests');
  const leaving = await client.post({ jsonrpc: '2.0', id: 900, method: 'tools/call', params: { name: 'book_dinner', arguments: {} } });
  await listed(client, 'get_elicitations', 2);
  leaving.abort();
  await until(async () => (await run(client, 'list_tasks')).structuredContent.tasks.length === 1, 'the call to be a task');
  const [first] = json(await listed(client, 'get_elicitations', 2));
  await run(client, 'respond_to_elicitation', { request_id: first.requestId, action: 'decline' });
  assert.deepEqual((await responseTo(s.upstream, 'e-1')).result, { action: 'decline' });
});

test('it expires by its own clock: an error to the server, an event to the client', async (t) => {
  const s = await stage(t, asks(elicit('e-1'), sample('s-1')), { config: { pseudo_tasks: { elicitation_timeout: '1s' } } });
  const client = await plain(s);
  await run(client, 'get_elicitations');
  const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
  assert.deepEqual((await responseTo(s.upstream, 'e-1')).error, { code: -32001, message: 'Elicitation request timed out after 1000ms' });
  assert.deepEqual((await responseTo(s.upstream, 's-1')).error, { code: -32001, message: 'Sampling request timed out after 1000ms' });
  assert.ok((await call).message.result);
  const blocks = (await run(client, 'list_servers')).content.flatMap((b) => (b.text.startsWith('{') ? [JSON.parse(b.text)] : []));
  const events = blocks.find((b) => b.events_since_last_response).events_since_last_response.map((e) => e.type);
  assert.deepEqual(events, ['elicitation_request', 'elicitation_expired', 'sampling_request', 'sampling_expired']);
});

test('upstream is told exactly the capabilities that somebody can answer', async (t) => {
  const cases = [
    [{}, {}, { elicitation: { form: {}, url: {} }, sampling: {} }],
    [{ roots: {} }, {}, { roots: {}, elicitation: { form: {}, url: {} }, sampling: {} }],
    [{ elicitation: {} }, {}, { elicitation: {}, sampling: {} }],
    [{ sampling: { tools: {} } }, {}, { sampling: { tools: {} }, elicitation: { form: {}, url: {} } }],
    [{ elicitation: { url: {} }, sampling: {} }, {}, { elicitation: { url: {} }, sampling: {} }],
    [{ elicitation: {} }, { mode: 'never' }, { elicitation: {} }],
    [{ tasks: {} }, {}, { tasks: {} }],
    [{ tasks: {} }, { mode: 'always' }, { tasks: {}, elicitation: { form: {}, url: {} }, sampling: {} }],
    [{}, { mode: 'never' }, {}],
    [{}, { only: ['get_elicitations', 'respond_to_elicitation'] }, { elicitation: { form: {}, url: {} } }],
    [{}, { only: ['get_sampling_requests', 'respond_to_sampling'] }, { sampling: {} }],
    [{}, { only: ['get_elicitations', 'list_tasks'] }, {}],
  ];
  for (const [capabilities, pseudo_tools, expected] of cases) {
    const s = await stage(t, undefined, { config: { pseudo_tools } });
    await s.connect({ capabilities });
    const sent = s.upstream.of('initialize', { own: false }).at(-1).rpc.params;
    assert.deepEqual(sent.capabilities, expected, JSON.stringify([capabilities, pseudo_tools]));
    assert.deepEqual([sent.clientInfo.name, sent.protocolVersion], ['raw-client', '2025-11-25']);
  }
});

test('a client that can be asked is asked itself, byte for byte, in its call and on its GET stream; its answer goes up as it is', async (t) => {
  const odd = (id, method) => `data: { "params" : {"message":"\\u0068i" , "requestedSchema":{"type":"object","properties":{}},"x":1.50} ,"method":"${method}", "id":"${id}", "jsonrpc":"2.0" }\n\n`;
  const s = await stage(t, async ({ upstream, reply, id }) => {
    const stream = reply.sse();
    stream.raw(`id: 7\n${odd('e-1', 'elicitation/create')}`);
    await responseTo(upstream, 'e-1');
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  });
  const client = await s.connect({ capabilities: { elicitation: {}, sampling: {} } });
  const stream = await client.stream('tools/call', { name: 'book_dinner', arguments: {} });
  await stream.message((m) => m.method === 'elicitation/create', 'the request');
  assert.ok(stream.raw.includes(`id: 7\n${odd('e-1', 'elicitation/create')}`), stream.raw);
  assert.equal((await run(client, 'get_elicitations')).content[0].text, 'No pending elicitation requests');
  const answer = '{"jsonrpc":"2.0", "id":"e-1", "result":{"action":"accept","content":{"odd":1.50}}}';
  await client.post(answer);
  assert.equal((await s.upstream.received((r) => r.rpc?.id === 'e-1' && !r.rpc.method)).text, answer);
  assert.ok((await stream.message((m) => m.id === stream.id, 'the result')).result);
  const listening = await client.listen();
  await until(() => s.upstream.getStreams.size === 1, 'the stream upstream');
  s.upstream.push({ jsonrpc: '2.0', ...sample('s-1') }, { id: 'event-1' });
  assert.deepEqual(await listening.message((m) => m.method === 'sampling/createMessage', 'the request'), { jsonrpc: '2.0', ...sample('s-1') });
  assert.equal((await run(client, 'get_sampling_requests')).content[0].text, 'No pending sampling requests');
});

test('a client that can be asked the one is asked that itself, and the other by the tools', async (t) => {
  const s = await stage(t, asks(elicit('e-1'), sample('s-1')));
  const client = await s.connect({ capabilities: { elicitation: {} } });
  const stream = await client.stream('tools/call', { name: 'book_dinner', arguments: {} });
  await stream.message((m) => m.id === 'e-1', 'the elicitation');
  await client.post({ jsonrpc: '2.0', id: 'e-1', result: { action: 'decline' } });
  const [{ requestId }] = json(await listed(client, 'get_sampling_requests'));
  assert.equal((await run(client, 'get_elicitations')).content[0].text, 'No pending elicitation requests');
  await run(client, 'respond_to_sampling', { request_id: requestId, role: 'assistant', content: 'hello', model: 'm' });
  const { result } = await stream.message((m) => m.id === stream.id, 'the result');
  assert.deepEqual(result.structuredContent.answers.map((x) => x.action ?? x.model), ['decline', 'm']);
  assert.equal(stream.events.some((e) => e.json?.method === 'sampling/createMessage'), false);
});

test('the tools are taken away while a session lives: what is asked is declined at once', async (t) => {
  const s = await stage(t, asks(elicit('e-1'), sample('s-1')));
  const client = await plain(s);
  s.gateway.writeConfig({ config: { pseudo_tools: { promote: 'wait', only: 'all', mode: 'never' } } });
  s.gateway.hangUp();
  await until(async () => !(await client.result('tools/list')).tools.some((x) => x.name === 'get_elicitations'), 'the tools to go');
  const answer = await client.send('tools/call', { name: 'book_dinner', arguments: {} });
  assert.deepEqual(answer.message.result.structuredContent.answers.map((x) => x.action ?? x.error.code), ['decline', -32601]);
  assert.deepEqual(answer.others, []);
});

test('after a restart the session is still answered for, by its first call, too', async (t) => {
  const s = await stage(t, (call) => asks(elicit(call.params.arguments.id))(call), { config: { workers: 2 } });
  const client = await plain(s);
  const untouched = await s.connect({ capabilities: { elicitation: {}, sampling: {} } });
  await s.gateway.restart();
  const call = client.send('tools/call', { name: 'book_dinner', arguments: { id: 'e-1' } });
  const [{ requestId }] = json(await listed(client));
  await run(client, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content: { partySize: 1 } });
  const answer = await call;
  assert.deepEqual([answer.message.result.structuredContent.answers[0].action, answer.others], ['accept', []]);
  const stream = await untouched.stream('tools/call', { name: 'book_dinner', arguments: { id: 'e-2' } });
  assert.deepEqual(await stream.message((m) => m.method === 'elicitation/create', 'the request'), { jsonrpc: '2.0', ...elicit('e-2') });
  await untouched.post({ jsonrpc: '2.0', id: 'e-2', result: { action: 'decline' } });
  assert.ok((await stream.message((m) => m.id === stream.id, 'the result')).result);
});

test('a request that waited for the session to be read goes down between two events, never within one', async (t) => {
  const long = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(3_000_000) } }).replace('"method"', '"me\\u0074hod"');
  const s = await stage(t, async ({ reply, id, params }) => {
    const stream = reply.sse();
    stream.raw(`data: ${JSON.stringify({ jsonrpc: '2.0', ...elicit(params.arguments.id) })}\n\ndata: ${long}`);
    const isWhole = new Promise((resolve) => setTimeout(() => resolve(stream.raw('\n\n')), 300));
    await s.upstream.received((r) => r.rpc?.id === params.arguments.id && r.rpc.result, 1, 20_000);
    await isWhole;
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  });
  const clients = [];
  for (let n = 0; n < 8; n++) clients.push(await s.connect({ capabilities: { elicitation: {}, sampling: {} } }));
  await s.gateway.restart();
  await Promise.all(clients.map(async (client, n) => {
    const stream = await client.stream('tools/call', { name: 'book_dinner', arguments: { id: `e-${n}` } });
    const seen = [];
    const posted = [];
    const take = (m) => {
      seen.push(m);
      if (m.method === 'elicitation/create') posted.push(client.post({ jsonrpc: '2.0', id: m.id, result: { action: 'decline' } }));
      return m.id === stream.id;
    };
    await stream.message(take, 'the result', 20_000);
    await Promise.all(posted);
    assert.deepEqual(seen.map((m) => m.id ?? m.params.data.length).sort(), [3_000_000, stream.id, `e-${n}`].sort());
  }));
});

for (const [what, request, problem] of [
  ['elicitation without params', { method: 'elicitation/create' }, 'params must be an object'],
  ['elicitation without a message', { method: 'elicitation/create', params: { requestedSchema: PARTY.requestedSchema } }, 'params.message must be a string'],
  ['elicitation without a form', { method: 'elicitation/create', params: { message: '?' } }, 'params.requestedSchema must be an object'],
  ['sampling without messages', { method: 'sampling/createMessage', params: { maxTokens: 1 } }, 'params.messages must be an array'],
]) {
  test(`${what} is -32602 to the server, and nobody is asked: in a plain call, in one that execute_tool makes, and in a task`, async (t) => {
    const s = await stage(t, asks({ id: 'bad', ...request }), { rules: [['book_later', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('book_dinner'), tool('book_later')] } });
    const client = await plain(s), asked = await s.connect({ capabilities: { tasks: {}, elicitation: {}, sampling: {} } });
    const refused = [{ error: { code: -32602, message: problem } }];
    assert.deepEqual((await run(client, 'book_dinner')).structuredContent.answers, refused);
    assert.deepEqual((await run(client, 'execute_tool', { server: 'up', tool: 'book_dinner' })).structuredContent.answers, refused);
    const { taskId } = await asked.createTask('book_later');
    await s.admin.approve(taskId);
    assert.deepEqual((await asked.result('tasks/result', { taskId })).structuredContent.answers, refused);
  });
}

test('upstream asks without end: so many wait, the rest is refused at once, and so is what is too large', async (t) => {
  const s = await stage(t);
  const client = await plain(s);
  await client.listen();
  await until(() => s.upstream.getStreams.size === 1, 'the stream upstream');
  s.upstream.push({ jsonrpc: '2.0', ...elicit('large', { ...PARTY, message: 'x'.repeat(70_000) }) });
  assert.deepEqual((await responseTo(s.upstream, 'large')).error, { code: -32602, message: 'The request is larger than the gateway keeps' });
  for (let n = 0; n < 103; n++) s.upstream.push({ jsonrpc: '2.0', ...elicit(`e-${n}`) });
  for (const n of [100, 101, 102]) assert.deepEqual((await responseTo(s.upstream, `e-${n}`)).error, { code: -32013, message: 'Too many requests wait for this client' });
  const list = json(await listed(client, 'get_elicitations', 100));
  assert.equal(list.length, 100);
  await run(client, 'cancel_elicitation_request', { request_id: list[0].requestId });
  assert.deepEqual((await responseTo(s.upstream, 'e-0')).result, { action: 'cancel' });
  s.upstream.push({ jsonrpc: '2.0', ...elicit('e-103') });
  await until(async () => json(await run(client, 'get_elicitations')).length === 100, 'room for one more');
});

test('upstream breaks off the GET stream: what it asked there has gone with it', async (t) => {
  const s = await stage(t);
  const client = await plain(s);
  await client.listen();
  await until(() => s.upstream.getStreams.size === 1, 'the stream upstream');
  s.upstream.push({ jsonrpc: '2.0', ...elicit('e-1') });
  const [{ requestId }] = json(await listed(client));
  for (const stream of s.upstream.getStreams) stream.cut();
  await until(async () => (await run(client, 'get_elicitations')).structuredContent.elicitations.length === 0, 'the question to go');
  const late = await run(client, 'respond_to_elicitation', { request_id: requestId, action: 'decline' });
  assert.equal(late.content[0].text, `Elicitation request '${requestId}' not found or already completed`);
});

test('DELETE ends what the session was asked', async (t) => {
  const s = await stage(t);
  const client = await plain(s);
  await client.listen();
  await until(() => s.upstream.getStreams.size === 1, 'the stream upstream');
  s.upstream.push({ jsonrpc: '2.0', ...elicit('e-1') });
  const [{ requestId }] = json(await listed(client));
  await client.delete();
  await s.gateway.logged((e) => e.question === requestId && e.outcome !== undefined);
});

for (const [whose, token, ender, ends] of [
  ['a call of the session, which a token ends', undefined, 'A', true],
  ['a call of a token, whose session is ended without one', 'A', undefined, false],
]) {
  test(`DELETE: ${whose}: its question ${ends ? 'ends' : 'waits for another session of its owner'}`, async (t) => {
    const s = await stage(t, asks(elicit('e-1')), { config: PROMOTED });
    const client = await plain(s, { token });
    const taskId = shownTask(await run(client, 'book_dinner'));
    const [{ requestId }] = json(await listed(client));
    if (ender) client.headers.authorization = `Bearer ${ender}`;
    else delete client.headers.authorization;
    await run(client, 'list_tasks'); // the server is asked whether it knows this client
    assert.equal((await client.delete()).status, 204);
    if (ends) {
      assert.deepEqual((await responseTo(s.upstream, 'e-1')).result, { action: 'cancel' });
      return;
    }
    const other = await plain(s, { token });
    const { pending_elicitations: open } = json(await run(other, 'get_task', { task_id: taskId }));
    assert.deepEqual(open.map((x) => x.requestId), [requestId]);
    await run(other, 'respond_to_elicitation', { request_id: requestId, action: 'decline' });
    assert.deepEqual((await responseTo(s.upstream, 'e-1')).result, { action: 'decline' });
  });
}

test('many sessions on several workers: each sees and answers its own', async (t) => {
  const s = await stage(t, async ({ upstream, reply, id, params }) => {
    const stream = reply.sse();
    const own = `e-${params.arguments.n}`;
    stream.event({ jsonrpc: '2.0', ...elicit(own) });
    const response = await responseTo(upstream, own).catch(() => undefined);
    stream.event({ jsonrpc: '2.0', id, result: { content: [], structuredContent: response?.result } });
    stream.end();
  }, { config: { workers: 3 } });
  await Promise.all(Array.from({ length: 20 }, async (_, n) => {
    const client = await plain(s);
    const call = client.send('tools/call', { name: 'book_dinner', arguments: { n } });
    const list = json(await listed(client));
    assert.equal(list.length, 1);
    await run(client, 'respond_to_elicitation', { request_id: list[0].requestId, action: 'accept', content: { partySize: n % 20 + 1 } });
    assert.deepEqual((await call).message.result.structuredContent.content, { partySize: n % 20 + 1 });
  }));
});

test('an approved call of a client that knows no tasks asks through the tools', async (t) => {
  const s = await stage(t, asks(elicit('e-1')), { rules: [['book_*', 'approve']], approval: workflow('10m') });
  const client = await plain(s, { protocol: '2025-06-18' });
  const call = client.send('tools/call', { name: 'book_dinner', arguments: {} });
  const task = await s.admin.pending();
  await s.admin.approve(task.id);
  const [{ requestId }] = json(await listed(client));
  await run(client, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content: { partySize: 2 } });
  assert.deepEqual((await call).message.result.structuredContent.answers, [{ action: 'accept', content: { partySize: 2 } }]);
});

test('a task shows the questions of its own owner, and no other token\'s of its session', async (t) => {
  const s = await stage(t, asks(elicit('e-1')), { rules: [['delete_*', 'approve']], approval: workflow('10m'), config: PROMOTED, upstream: { tools: [tool('book_dinner'), tool('delete_user')] } });
  const client = await plain(s, { token: 'A' });
  const asking = shownTask(await run(client, 'book_dinner'));
  const shown = async (taskId) => json(await run(client, 'get_task', { task_id: taskId })).pending_elicitations_for_server.map(({ message }) => message);
  assert.deepEqual(await shown(asking), [PARTY.message]);
  client.headers.authorization = 'Bearer B';
  const held = shownTask(await run(client, 'delete_user'));
  assert.deepEqual(await shown(held), []);
});

test('get_task_result shows the questions of its task, in another session of its owner, too', async (t) => {
  const s = await stage(t, asks(elicit('e-1')), { config: PROMOTED });
  const [one, two, stranger] = [await plain(s, { token: 'A' }), await plain(s, { token: 'A' }), await plain(s, { token: 'B' })];
  const taskId = shownTask(await run(one, 'book_dinner'));
  const wait = (client) => run(client, 'get_task_result', { task_id: taskId, timeout_ms: 100 });
  const [asked] = json(await listed(one));
  const { pending_client_action: pending } = (await wait(two)).structuredContent;
  assert.deepEqual(pending, { elicitations: [{ requestId: asked.requestId, server: 'up', message: PARTY.message }], sampling_requests: [] });
  assert.equal((await wait(one)).structuredContent.pending_client_action.elicitations.length, 1, 'once, where both are one session');
  assert.equal((await wait(stranger)).structuredContent.pending_client_action, undefined);
  await run(two, 'respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: { partySize: 3 } });
  const { structuredContent } = await run(two, 'get_task_result', { task_id: taskId, timeout_ms: 20_000 });
  assert.deepEqual(structuredContent.answers, [{ action: 'accept', content: { partySize: 3 } }]);
});

for (const [how, call] of [
  ['a plain call', { name: 'book_dinner', arguments: {} }],
  ['a call by execute_tool', { name: 'execute_tool', arguments: { server: 'up', tool: 'book_dinner', args: {}, timeout_ms: 500 } }],
]) {
  test(`${how} that waits for a person becomes a task, which says what is asked`, async (t) => {
    const s = await stage(t, asks(elicit('e-1'), sample('s-1')), { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '500ms', wait_max: '500ms' } } });
    const client = await plain(s);
    const promotion = await client.result('tools/call', call);
    const block = promotion.content.map((b) => b.text).filter((x) => x.startsWith('{')).map((x) => JSON.parse(x)).find((x) => x.proxy_task);
    const [asked] = block.pending_on_server.elicitations_for_server;
    assert.deepEqual(asked, { requestId: asked.requestId, server: 'up', message: PARTY.message });
    const task = await run(client, 'get_task', { task_id: block.proxy_task.task_id });
    assert.deepEqual(json(task).pending_elicitations_for_server.map((x) => x.requestId), [asked.requestId]);
    await run(client, 'respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: { partySize: 8 } });
    assert.deepEqual((await responseTo(s.upstream, 'e-1')).result.content, { partySize: 8 });
    const [second] = (await listed(client, 'get_sampling_requests')).structuredContent.sampling_requests;
    await run(client, 'respond_to_sampling', { request_id: second.requestId, role: 'assistant', content: 'hello', model: 'm' });
    const result = await run(client, 'get_task_result', { task_id: block.proxy_task.task_id, timeout_ms: 20_000 });
    assert.equal(result.structuredContent.answers[0].content.partySize, 8);
    assert.equal(result.structuredContent.answers[1].model, 'm');
  });

  test(`${how}: the server goes after the promotion, and with it what it asked`, async (t) => {
    let stream;
    const s = await stage(t, ({ reply }) => {
      stream = reply.sse();
      stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
    }, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '500ms', wait_max: '500ms' } } });
    const client = await plain(s);
    await client.result('tools/call', call);
    await listed(client);
    stream.cut();
    await until(async () => (await run(client, 'get_elicitations')).structuredContent.elicitations.length === 0, 'the question to go');
  });

  test(`${how}: -32042 stays an error of the protocol`, async (t) => {
    const error = { code: -32042, message: 'sign in first', data: { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://x/', message: 'm' }] } };
    const s = await stage(t, ({ reply }) => reply.error(error.code, error.message, error.data));
    const client = await plain(s);
    assert.deepEqual(await client.error('tools/call', call), error);
  });
}

for (const target of targets) {
  test(`${target.name}: a plain SDK client answers through the tools`, { skip: target.skip }, async (t) => {
    const server = await target.start(t);
    const gateway = await startGateway(t, { upstream: server.url, config: { pseudo_tools: { promote: 'wait', only: 'all' } } });
    const client = await sdkClient(t, gateway.url);
    const { text, answer, ...asking } = target.elicits;
    await until(async () => (await client.listTools()).tools.some((x) => x.name === asking.name), 'the tool that asks');
    const call = client.callTool(asking);
    const asked = await until(async () => (await client.callTool({ name: 'get_elicitations', arguments: {} })).structuredContent.elicitations[0], 'the question');
    await client.callTool({ name: 'respond_to_elicitation', arguments: { request_id: asked.requestId, action: 'accept', content: answer } });
    assert.match(JSON.stringify((await call).content), text);
    if (target.name !== 'server-everything') return;
    const sampled = client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'hi', maxTokens: 17 } });
    const request = await until(async () => (await client.callTool({ name: 'get_sampling_requests', arguments: {} })).structuredContent.sampling_requests[0], 'the request');
    assert.equal(request.maxTokens, 17);
    await client.callTool({ name: 'respond_to_sampling', arguments: { request_id: request.requestId, role: 'assistant', content: 'a sampled text', model: 'm' } });
    assert.match((await sampled).content[0].text, /a sampled text/);
    assert.deepEqual(client.errors, []);
  });
}
