// Legacy clients in front of a server that speaks the modern era alone (modern.md §4.1; checks 55 to 57).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { envelope, modernServer, PREFIX, VERSION } from './lib/modern.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** The stage: a modern-only upstream, a gateway that bridges legacy clients (its default), raw legacy clients. */
const stage = (t, { upstream = {}, source = {}, ...options } = {}) => scene(t, { upstream: modernServer(upstream), source: { era: 'modern', ...source }, ...options });

/** The requests that reached the server because of a client. */
const calls = (upstream, method) => upstream.of(method).filter((r) => r.rpc.params?._meta?.[`${PREFIX}clientInfo`]?.name !== 'taskgate');

test('initialize is answered from discover, with a session of the gateway', async (t) => {
  const { raw, upstream } = await stage(t, { source: { extensions: { allow: ['a.b/*'] } }, upstream: { capabilities: { tools: { listChanged: true }, logging: {}, completions: {}, resources: { subscribe: true }, extensions: { 'io.modelcontextprotocol/tasks': {}, 'a.b/c': {} } } } });
  const client = raw({ token: 'mine', capabilities: { elicitation: {}, roots: { listChanged: true }, tasks: {} } });
  const answer = await client.initialize({ protocolVersion: '2025-06-18' });
  assert.equal(answer.status, 200);
  const result = answer.message.result;
  assert.equal(result.protocolVersion, '2025-06-18');
  assert.match(answer.headers['mcp-session-id'], /^tg-bridge-[0-9a-f-]{36}$/);
  assert.deepEqual(result.serverInfo, { name: 'modern-upstream', version: '1.0.0' });
  assert.equal(result.instructions, 'Be kind.');
  assert.deepEqual(result.capabilities.extensions, { 'a.b/c': {} });
  assert.deepEqual([result.capabilities.logging, result.capabilities.completions, result.capabilities.resources], [{}, {}, { subscribe: true }]);
  assert.ok(result.capabilities.tasks.requests.tools.call);
  for (const member of ['resultType', 'ttlMs', 'cacheScope', 'supportedVersions', '_meta']) assert.equal(result[member], undefined);
  const [discover] = calls(upstream, 'server/discover');
  assert.equal(discover.headers.authorization, 'Bearer mine');
  assert.deepEqual(discover.rpc.params._meta[`${PREFIX}clientCapabilities`], { elicitation: { form: {} }, roots: {} });
  assert.deepEqual(discover.rpc.params._meta[`${PREFIX}clientInfo`], { name: 'raw-client', version: '1.0.0' });
  assert.equal(upstream.of('initialize').length, 0);
  const other = raw();
  assert.equal((await other.initialize({ protocolVersion: '2026-07-28' })).message.result.protocolVersion, '2025-11-25');
});

test('a call goes up as a modern request, byte for byte in name and arguments, and comes down as legacy', async (t) => {
  const { connect, upstream } = await stage(t);
  const client = await connect({ token: 'mine', capabilities: { sampling: {} } });
  const body = `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"r\\u0065ad","arguments":{"b" : 1.50,"a":"\\u00e9"},"_meta":{"progressToken":"p","traceparent":"t","${PREFIX}clientInfo":{"name":"liar"}},"inputResponses":{},"requestState":"s"}}`;
  const answer = await client.send('tools/call', undefined, { id: 'x', body, headers: { 'mcp-name': 'write', 'mcp-param-x': 'y' } });
  assert.deepEqual(answer.message, { jsonrpc: '2.0', id: 'x', result: { content: [{ type: 'text', text: 'did read' }] } });
  const [call] = calls(upstream, 'tools/call');
  assert.ok(call.text.includes('"name":"r\\u0065ad"'));
  assert.ok(call.text.includes('"arguments":{"b" : 1.50,"a":"\\u00e9"}'));
  assert.deepEqual(call.rpc.params._meta, { progressToken: 'p', traceparent: 't', ...envelope({ capabilities: { sampling: {} }, client: { name: 'raw-client', version: '1.0.0' } }) });
  assert.deepEqual([call.rpc.params.inputResponses, call.rpc.params.requestState], [undefined, undefined]);
  assert.deepEqual([call.headers['mcp-protocol-version'], call.headers['mcp-method'], call.headers['mcp-name'], call.headers['mcp-param-x']], [VERSION, 'tools/call', 'read', undefined]);
  assert.deepEqual([call.headers['mcp-session-id'], call.headers.authorization], [undefined, 'Bearer mine']);
});

test('ping, notifications and logging/setLevel end at the gateway', async (t) => {
  const { connect, upstream } = await stage(t);
  const client = await connect();
  const before = upstream.requests.length;
  assert.deepEqual(await client.result('ping'), {});
  for (const method of ['notifications/initialized', 'notifications/roots/list_changed', 'notifications/progress']) assert.equal((await client.notify(method, {})).status, 202);
  assert.deepEqual(await client.result('logging/setLevel', { level: 'warning' }), {});
  assert.equal((await client.error('logging/setLevel', { level: 'loud' })).code, -32602);
  assert.equal(upstream.requests.length, before);
  await client.result('tools/call', { name: 'read' });
  assert.equal(calls(upstream, 'tools/call')[0].rpc.params._meta[`${PREFIX}logLevel`], 'warning');
});

test('results lose what the legacy era does not know; other members of _meta stay', async (t) => {
  const own = { [`${PREFIX}serverInfo`]: { name: 's', version: '1' } };
  const { connect } = await stage(t, {
    upstream: {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      handlers: {
        'resources/list': ({ reply }) => reply.result({ resultType: 'complete', resources: [{ uri: 'a:b', name: 'b' }], ttlMs: 5, cacheScope: 'public', _meta: { ...own, 'a/b': 1 } }),
        'resources/templates/list': ({ reply }) => reply.result({ resultType: 'complete', resourceTemplates: [], ttlMs: 5, cacheScope: 'public', _meta: own }),
        'resources/read': ({ reply }) => reply.result({ resultType: 'complete', contents: [{ uri: 'a:b', text: 'x' }], ttlMs: 5, cacheScope: 'private', _meta: own }),
        'prompts/list': ({ reply }) => reply.result({ resultType: 'complete', prompts: [{ name: 'p' }], ttlMs: 5, cacheScope: 'public' }),
        'prompts/get': ({ reply, recorded }) => reply.result({ resultType: 'complete', messages: [], description: recorded.headers['mcp-name'] }),
        'completion/complete': ({ reply }) => reply.result({ resultType: 'complete', completion: { values: ['v'] } }),
      },
    },
  });
  const client = await connect();
  assert.deepEqual(await client.result('resources/list'), { resources: [{ uri: 'a:b', name: 'b' }], _meta: { 'a/b': 1 } });
  assert.deepEqual(await client.result('resources/templates/list'), { resourceTemplates: [] });
  assert.deepEqual(await client.result('resources/read', { uri: 'a:b' }), { contents: [{ uri: 'a:b', text: 'x' }] });
  assert.deepEqual(await client.result('prompts/list'), { prompts: [{ name: 'p' }] });
  assert.deepEqual(await client.result('prompts/get', { name: 'é' }), { messages: [], description: '=?base64?w6k=?=' });
  assert.deepEqual(await client.result('completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }), { completion: { values: ['v'] } });
});

test('57: a tool with x-mcp-header is called with it, one with a wrong one is not listed, an output that is no object is wrapped', async (t) => {
  const header = (type, name) => ({ type: 'object', properties: { region: { type, 'x-mcp-header': name }, nested: { type: 'object', properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } } } });
  const { connect, upstream } = await stage(t, {
    upstream: {
      tools: [
        tool('where', { inputSchema: header('string', 'Region') }),
        tool('wrong', { inputSchema: header('number', 'Region') }),
        tool('list', { outputSchema: { type: 'array', items: { $ref: '#/$defs/item' }, $defs: { item: { type: 'string' } } } }),
        tool('any', { outputSchema: { anyOf: [{ type: 'object' }, { type: 'string' }] } }),
        tool('object', { outputSchema: { type: 'object' } }),
      ],
      handlers: {
        'tools/call': ({ reply, params }) => reply.result({ resultType: 'complete', content: [], structuredContent: { list: ['a'], any: { b: 1 }, object: { c: 1 }, where: 7 }[params.name] }),
      },
    },
  });
  const client = await connect();
  const { tools } = await client.result('tools/list');
  assert.deepEqual(tools.map(({ name }) => name), ['where', 'list', 'any', 'object']);
  const item = { item: { type: 'string' } };
  assert.deepEqual(tools[1].outputSchema, { type: 'object', properties: { result: { type: 'array', items: { $ref: '#/$defs/item' }, $defs: item } }, required: ['result'], $defs: item });
  assert.deepEqual(tools[3].outputSchema, { type: 'object' });
  const content = async (name, args) => (await client.result('tools/call', { name, arguments: args })).structuredContent;
  assert.deepEqual(await content('list'), { result: ['a'] });
  assert.deepEqual(await content('any'), { result: { b: 1 } });
  assert.deepEqual(await content('object'), { c: 1 });
  assert.deepEqual(await content('where', { region: ' ü', nested: { count: 42.0 } }), { result: 7 });
  assert.deepEqual(await content('where', { region: null }), { result: 7 });
  const [first, second] = calls(upstream, 'tools/call').slice(-2);
  assert.deepEqual([first.headers['mcp-param-region'], first.headers['mcp-param-count']], ['=?base64?IMO8?=', '42']);
  assert.deepEqual([second.headers['mcp-param-region'], second.headers['mcp-param-count']], [undefined, undefined]);
});

test('a header that the server misses is looked up once, and the call sent again', async (t) => {
  const { connect, upstream } = await stage(t, {
    upstream: {
      tools: [tool('where', { inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } })],
      handlers: {
        'tools/call': ({ reply, recorded, id }) =>
          recorded.headers['mcp-param-region'] === 'eu'
            ? reply.result({ resultType: 'complete', content: [] })
            : reply.http(400, { 'content-type': 'application/json' }, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32020, message: 'mismatch' } })),
      },
    },
  });
  const client = await connect({ token: 'new' });
  assert.deepEqual(await client.result('tools/call', { name: 'where', arguments: { region: 'eu' } }), { content: [] });
  assert.equal(calls(upstream, 'tools/call').length, 2);
  assert.equal((await client.error('tools/call', { name: 'where', arguments: { region: 'us' } })).code, -32603);
});

test('errors are told by the table, with HTTP 200 and the id of the client', async (t) => {
  let answer;
  const { connect, gateway } = await stage(t, {
    upstream: { capabilities: { tools: {}, prompts: {} }, handlers: { 'prompts/get': ({ reply, id }) => reply.http(answer.status, { 'content-type': 'application/json', ...answer.headers }, JSON.stringify({ jsonrpc: '2.0', id, error: answer.error })) } },
  });
  const client = await connect();
  const told = async (status, error, headers) => {
    answer = { status, error, headers };
    return client.send('prompts/get', { name: 'p' });
  };
  for (const [status, code] of [[400, -32020], [400, -32022]]) {
    const { status: http, message } = await told(status, { code, message: 'm', data: { supported: [] } });
    assert.deepEqual([http, message.error.code, message.error.data.error_type], [200, -32603, 'internal']);
  }
  await gateway.logged((line) => line.level === 'error' && line.code === '-32022');
  const passed = [[400, { code: -32021, message: 'm', data: { requiredCapabilities: { elicitation: {} } } }], [404, { code: -32601, message: 'no' }], [200, { code: -32602, message: 'bad', data: [1] }], [200, { code: 7, message: 'own' }]];
  for (const [status, error] of passed) {
    const { status: http, message, id } = await told(status, error);
    assert.deepEqual([http, message], [200, { jsonrpc: '2.0', id, error }]);
  }
  const login = await told(401, { code: -32001, message: 'who' }, { 'www-authenticate': 'Bearer resource_metadata="x"' });
  assert.deepEqual([login.status, login.headers['www-authenticate']], [401, 'Bearer resource_metadata="x"']);
});

test('the session is the client\'s: without one 400, with an unknown one 404, after DELETE 404; nothing goes up', async (t) => {
  const { connect, raw, upstream } = await stage(t);
  const client = await connect({ token: 'mine' });
  const before = upstream.requests.length;
  const none = await raw().send('tools/call', { name: 'read' });
  assert.deepEqual([none.status, none.message.error.code, none.message.id], [400, -32600, none.id]);
  for (const session of ['tg-bridge-00000000-0000-0000-0000-000000000000', 'another']) {
    const unknown = await raw().send('tools/list', {}, { headers: { 'mcp-session-id': session } });
    assert.equal(unknown.status, 404);
  }
  await assert.rejects(raw().listen(), /HTTP 400/);
  const stranger = raw({ token: 'theirs' });
  stranger.session = client.session;
  assert.equal((await stranger.delete()).status, 404);
  assert.equal((await client.call('ping')).result !== undefined, true);
  assert.equal((await client.delete()).status, 200);
  assert.equal((await client.send('ping')).status, 404);
  assert.equal(upstream.requests.length, before);
});

test('rules judge the client\'s bytes: what is denied or hidden never goes up', async (t) => {
  const { connect, upstream } = await stage(t, { rules: [{ match: 'write', action: 'deny' }], expose: { mode: 'blocklist', tools: ['hidden'] } });
  const client = await connect();
  assert.equal((await client.error('tools/call', { name: 'write' })).code, -32014);
  assert.equal((await client.error('tools/call', { name: 'hidden' })).code, -32015);
  assert.equal((await client.error('tasks/get', { taskId: 'none' })).code, -32602);
  assert.equal((await client.error('x/y')).code, -32601);
  assert.deepEqual((await client.result('tools/list')).tools.map(({ name }) => name), ['read', 'write']);
  assert.equal(calls(upstream, 'tools/call').length, 0);
});

test('55: after a restart of the gateway the client goes on in its session, with what it declared', async (t) => {
  const { connect, upstream, gateway } = await stage(t);
  const client = await connect({ token: 'mine', capabilities: { elicitation: { url: {} } } });
  await client.result('logging/setLevel', { level: 'error' });
  await gateway.kill9();
  await gateway.launch();
  assert.equal((await client.result('tools/call', { name: 'read' })).content[0].text, 'did read');
  const meta = calls(upstream, 'tools/call')[0].rpc.params._meta;
  assert.deepEqual([meta[`${PREFIX}clientCapabilities`], meta[`${PREFIX}logLevel`]], [{ elicitation: { url: {} } }, 'error']);
});

// ---- questions ----

const ask = (inputRequests, requestState) => ({ resultType: 'input_required', ...(inputRequests ? { inputRequests } : {}), ...(requestState ? { requestState } : {}) });
const form = { method: 'elicitation/create', params: { mode: 'form', message: 'Sure?', requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } } } };
const url = { method: 'elicitation/create', params: { mode: 'url', message: 'Go', url: 'https://example.com' } };
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** A server that asks by the rounds of `script`: each a function of the params so far, until one gives a complete result. */
const asking = (next) => ({ 'tools/call': ({ reply, params }) => reply.result(next(params)), 'prompts/get': ({ reply, params }) => reply.result(next(params)) });
const done = (value) => ({ resultType: 'complete', content: [{ type: 'text', text: JSON.stringify(value) }] });
/** A client's answer to a request of the server. */
const respond = (client, id, outcome, options) => client.post({ jsonrpc: '2.0', id, ...outcome }, options);

test('input_required becomes requests on the stream of the call, and the answers go up in the repeat', async (t) => {
  const { connect, upstream } = await stage(t, {
    upstream: { handlers: asking(({ inputResponses, requestState }) => (inputResponses ? done({ inputResponses, requestState }) : ask({ 'f"1': form, u: url, s: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }, r: { method: 'roots/list' } }, 'st"ate'))) },
  });
  const client = await connect({ capabilities: ALL });
  const stream = await client.stream('tools/call', { name: 'read', arguments: { a: 1 } });
  const requests = [];
  for (let i = 0; i < 4; i += 1) requests.push(await stream.message(({ method }) => method && !requests.some((r) => r.method === method && method !== 'elicitation/create')));
  const all = stream.events.map(({ json }) => json).filter((json) => json?.method);
  assert.deepEqual(all.map(({ method }) => method), ['elicitation/create', 'elicitation/create', 'sampling/createMessage', 'roots/list']);
  for (const { id } of all) assert.match(id, /^tg:[0-9a-f-]{36}$/);
  assert.deepEqual(all[0].params, form.params);
  const { elicitationId, ...rest } = all[1].params;
  assert.deepEqual(rest, url.params);
  assert.match(elicitationId, /^[0-9a-f-]{36}$/);
  const results = [{ action: 'accept', content: { ok: true } }, { action: 'accept' }, { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' }, { roots: [] }];
  for (const [i, { id }] of all.entries()) assert.equal((await respond(client, id, { result: results[i] })).status, 202);
  const { result } = await stream.message(({ id }) => id === stream.id);
  const { inputResponses, requestState } = JSON.parse(result.content[0].text);
  assert.deepEqual([inputResponses, requestState], [{ 'f"1': results[0], u: results[1], s: results[2], r: results[3] }, 'st"ate']);
  assert.equal(result.resultType, undefined);
  const [first, second] = calls(upstream, 'tools/call');
  assert.notEqual(first.rpc.id, second.rpc.id);
  assert.deepEqual([second.rpc.params.name, second.rpc.params.arguments], ['read', { a: 1 }]);
});

test('an error to an elicitation is a cancel; to sampling or roots it ends the call, which is not repeated', async (t) => {
  let asked;
  const { connect, upstream } = await stage(t, { upstream: { capabilities: { tools: {}, prompts: {} }, handlers: asking(({ inputResponses }) => (inputResponses ? done(inputResponses) : ask({ k: asked }))) } });
  const client = await connect({ capabilities: ALL });
  const outcome = async (method, params) => {
    const stream = await client.stream(method, params);
    const request = await stream.message((message) => message.method);
    await respond(client, request.id, { error: { code: -1, message: 'no' } });
    return stream.message(({ id }) => id === stream.id);
  };
  asked = form;
  assert.equal((await outcome('tools/call', { name: 'read' })).result.content[0].text, '{"k":{"action":"cancel"}}');
  asked = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
  const { result } = await outcome('tools/call', { name: 'read' });
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /requires a model's answer/);
  asked = { method: 'roots/list' };
  assert.deepEqual([(await outcome('prompts/get', { name: 'p' })).error.code], [-32603]);
  assert.equal(calls(upstream, 'tools/call').length, 3);
  assert.equal(calls(upstream, 'prompts/get').length, 1);
});

test('a client that cannot be asked, nor be given a task, is answered for: a form is cancelled, a model cannot be', async (t) => {
  let asked = form;
  const { connect } = await stage(t, { config: { pseudo_tools: { mode: 'never' } }, upstream: { handlers: asking(({ inputResponses }) => (inputResponses ? done(inputResponses) : ask({ k: asked }))) } });
  const vendor = await connect({ capabilities: { elicitation: { vendor: {} } } });
  const stream = await vendor.stream('tools/call', { name: 'read' });
  assert.equal((await stream.message((message) => message.method)).method, 'elicitation/create', 'forms, where no mode is named');
  const none = await connect({ capabilities: {} });
  assert.equal((await none.result('tools/call', { name: 'read' })).content[0].text, '{"k":{"action":"cancel"}}');
  const jsonAlone = await connect({ capabilities: ALL, headers: { accept: 'application/json' } });
  assert.equal((await jsonAlone.result('tools/call', { name: 'read' })).content[0].text, '{"k":{"action":"cancel"}}');
  asked = { method: 'roots/list' };
  assert.equal((await jsonAlone.result('tools/call', { name: 'read' })).isError, true);
});

test('a round without questions is repeated by the gateway, with its state alone', async (t) => {
  let rounds = 0;
  const { connect, upstream } = await stage(t, { upstream: { handlers: asking(({ inputResponses, requestState }) => (++rounds < 3 ? ask(undefined, `s${rounds}`) : done({ requestState, inputResponses: inputResponses ?? null }))) } });
  const client = await connect({ capabilities: {} });
  const begun = performance.now();
  assert.equal((await client.result('tools/call', { name: 'read' })).content[0].text, '{"requestState":"s2","inputResponses":null}');
  assert.ok(performance.now() - begun >= 700, 'pauses of 250 and 500 ms');
  assert.deepEqual(calls(upstream, 'tools/call').map(({ rpc }) => rpc.params.requestState), [undefined, 's1', 's2']);
});

test('the eleventh round of questions ends the call', async (t) => {
  const { connect, upstream } = await stage(t, { upstream: { handlers: asking(() => ask({ k: form })) } });
  const client = await connect({ capabilities: ALL });
  const stream = await client.stream('tools/call', { name: 'read' });
  const seen = new Set();
  for (let round = 0; round < 10; round += 1) {
    const { id } = await stream.message((message) => message.method && !seen.has(message.id));
    seen.add(id);
    await respond(client, id, { result: { action: 'decline' } });
  }
  const { result } = await stream.message(({ id }) => id === stream.id);
  assert.deepEqual([result.isError, result.content[0].text], [true, 'The server still required input after 10 rounds']);
  assert.equal(calls(upstream, 'tools/call').length, 11);
});

test('hostile: foreign ids, other sessions, doubled and malformed answers are refused, and nothing of them goes up', async (t) => {
  const { connect, raw, upstream } = await stage(t, { upstream: { handlers: asking(({ inputResponses }) => (inputResponses ? done(inputResponses) : ask({ k: form }))) } });
  const client = await connect({ token: 'mine', capabilities: ALL });
  const other = await connect({ token: 'theirs', capabilities: ALL });
  const stream = await client.stream('tools/call', { name: 'read' });
  const { id } = await stream.message((message) => message.method);
  const accept = { result: { action: 'accept', content: { ok: true } } };
  assert.equal((await respond(client, 'tg:00000000-0000-0000-0000-000000000000', accept)).status, 400);
  assert.equal((await respond(client, 7, accept)).status, 400);
  assert.equal((await respond(other, id, accept)).status, 400);
  const thief = raw({ token: 'theirs' });
  thief.session = client.session;
  assert.equal((await respond(thief, id, accept)).status, 400);
  assert.equal((await respond(raw({ token: 'mine' }), id, accept)).status, 400);
  assert.equal((await respond(client, id, { result: 'text' })).status, 400);
  assert.equal((await respond(client, id, { result: { text: 'x'.repeat(5_000_000) } })).status, 413);
  assert.equal(calls(upstream, 'tools/call').length, 1);
  assert.equal((await respond(client, id, accept)).status, 202);
  assert.equal((await respond(client, id, { result: { action: 'decline' } })).status, 400);
  const { result } = await stream.message((message) => message.id === stream.id);
  assert.deepEqual(JSON.parse(result.content[0].text), { k: accept.result });
  assert.equal(calls(upstream, 'tools/call').length, 2);
});

test('a malformed question of the server ends the call', async (t) => {
  let answer;
  const { connect } = await stage(t, { upstream: { handlers: asking(() => answer) } });
  const client = await connect({ capabilities: ALL });
  const wrong = [{ resultType: 'input_required' }, ask({ k: { method: 'ping' } }), ask([form]), { ...ask({ k: form }), requestState: 5 }, { resultType: 'task', taskId: 't' }, { resultType: 'other' }];
  for (answer of wrong) assert.equal((await client.result('tools/call', { name: 'read' })).isError, true, JSON.stringify(answer));
});

// ---- while a call runs ----

test('progress and log messages come down on the stream of the call, under the token of the client', async (t) => {
  const { connect } = await stage(t, {
    upstream: {
      handlers: {
        'tools/call'({ reply, params, id }) {
          const stream = reply.sse();
          stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, total: 2 } });
          stream.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: params._meta[`${PREFIX}logLevel`], data: 'x' } });
          stream.event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
          stream.event({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: {} });
          stream.event({ jsonrpc: '2.0', id, result: done(1) });
          stream.end();
        },
      },
    },
  });
  const client = await connect();
  await client.result('logging/setLevel', { level: 'info' });
  const { message, others } = await client.send('tools/call', { name: 'read', _meta: { progressToken: 'tok' } });
  assert.equal(message.result.content[0].text, '1');
  assert.deepEqual(others, [
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'tok', progress: 1, total: 2 } },
    { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } },
  ]);
});

test('notifications/cancelled closes the stream of the server, and the client gets no answer; so does a client that leaves', async (t) => {
  const { connect, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => void reply.sse() } } });
  const client = await connect({ token: 'mine' });
  const other = await connect({ token: 'mine' });
  const answer = client.send('tools/call', { name: 'read' }, { id: 'c' });
  const first = await upstream.received('tools/call');
  await other.notify('notifications/cancelled', { requestId: 'c' });
  await client.notify('notifications/cancelled', { requestId: 'other' });
  assert.equal(first.left, false);
  await client.notify('notifications/cancelled', { requestId: 'c' });
  await first.gone;
  assert.equal((await answer).message, undefined);
  const leaving = client.send('tools/call', { name: 'read' }).catch(() => 'left');
  const second = await upstream.received('tools/call', 2);
  client.close();
  await second.gone;
  assert.equal(await leaving, 'left');
  assert.equal(upstream.of('notifications/cancelled').length, 0);
});

test('a question ends with its call: a later answer is refused', async (t) => {
  const { connect } = await stage(t, { upstream: { handlers: asking(() => ask({ k: form })) } });
  const client = await connect({ capabilities: ALL });
  const stream = await client.stream('tools/call', { name: 'read' });
  const { id } = await stream.message((message) => message.method);
  await client.notify('notifications/cancelled', { requestId: stream.id });
  await stream.end();
  assert.equal((await respond(client, id, { result: { action: 'accept' } })).status, 400);
});

// ---- approvals ----

test('a client with tasks: an approved call goes up as a modern request, also after a restart, and its result is legacy', async (t) => {
  const { connect, upstream, gateway } = await stage(t, {
    rules: [{ match: 'write', action: 'approve' }],
    upstream: { handlers: { 'tools/call': ({ reply, params }) => reply.result({ resultType: 'complete', content: [{ type: 'text', text: params.name }], structuredContent: [1], _meta: { [`${PREFIX}serverInfo`]: { name: 's', version: '1' } } }) } },
  });
  const client = await connect({ token: 'mine' });
  assert.equal((await client.result('tools/list')).tools.find(({ name }) => name === 'write').execution.taskSupport, 'required');
  for (const restarts of [false, true]) {
    const { task } = await client.createTask('write', { a: 1 });
    if (restarts) {
      await gateway.restart();
      await client.result('tasks/get', { taskId: task.taskId });
    }
    await gateway.admin.approve(task.taskId);
    const result = await client.result('tasks/result', { taskId: task.taskId });
    const { _meta, ...rest } = result;
    assert.deepEqual(rest, { content: [{ type: 'text', text: 'write' }], structuredContent: { result: [1] } });
    assert.deepEqual(Object.keys(_meta), ['io.modelcontextprotocol/related-task']);
    const call = upstream.calls.at(-1);
    assert.deepEqual([call.headers['mcp-method'], call.headers['mcp-name'], call.headers['mcp-session-id'], call.headers.authorization], ['tools/call', 'write', undefined, 'Bearer mine']);
    assert.deepEqual(call.rpc.params, { name: 'write', arguments: { a: 1 }, _meta: envelope({ client: { name: 'raw-client', version: '1.0.0' } }) });
  }
  assert.equal(upstream.calls.length, 2);
});

test('a client without tasks: its call waits for the approval, and execute_tool calls a tool for it', async (t) => {
  const { connect, upstream, gateway } = await stage(t, { rules: [{ match: 'write', action: 'approve' }], config: { pseudo_tools: { only: 'all' } } });
  const client = await connect({ capabilities: {}, protocol: '2025-06-18' });
  assert.ok((await client.result('tools/list')).tools.some(({ name }) => name === 'execute_tool'));
  const answer = client.result('tools/call', { name: 'write' });
  await gateway.admin.approve((await gateway.admin.pending()).id);
  assert.equal((await answer).content[0].text, 'did write');
  const executed = await client.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'read', args: { a: 1 } } });
  assert.match(JSON.stringify(executed), /did read/);
  assert.deepEqual(upstream.calls.at(-1).rpc.params.arguments, { a: 1 });
  assert.equal(upstream.calls.at(-1).headers['mcp-name'], 'read');
});

// ---- the era ----

test('a server that wants a login is found to be modern by the first legacy client, and bridged', async (t) => {
  const { gateway, upstream, connect } = await scene(t, { upstream: { ...modernServer(), authorize: (r) => (r.headers.authorization ? undefined : 401) } });
  await gateway.logged(/wants a login/);
  const client = await connect({ token: 'good' });
  assert.match(client.session, /^tg-bridge-/);
  assert.equal((await client.result('tools/call', { name: 'read' })).content[0].text, 'did read');
  assert.equal(upstream.of('initialize').filter((r) => r.headers.authorization).length, 1);
  const second = await connect({ token: 'good' });
  assert.match(second.session, /^tg-bridge-/);
  assert.equal(upstream.of('initialize').filter((r) => r.headers.authorization).length, 1, 'what the server speaks is known now');
});

test('a legacy server refuses initialize in its own words, and a server of both eras is not bridged', async (t) => {
  const refusing = await scene(t, { upstream: { handlers: { initialize: ({ reply }) => reply.http(400, { 'content-type': 'application/json' }, '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}') } }, awaitUpstream: false });
  const refused = await refusing.raw().send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }, { id: 1 });
  assert.deepEqual([refused.status, refused.message.error], [400, { code: -1, message: 'no' }]);
  const both = await scene(t, { upstream: { ...modernServer({ legacy: true }), sessions: true } });
  const client = await both.connect();
  assert.doesNotMatch(client.session, /^tg-bridge-/);
});

test('with bridge: off a legacy client gets the refusal of the server', async (t) => {
  const { raw } = await stage(t, { source: { bridge: 'off' } });
  const answer = await raw().initialize();
  assert.deepEqual([answer.status, answer.message.error.code], [400, -32022]);
});

test('a list that was kept is answered in legacy form when the server is down, and a call with its failure', async (t) => {
  const { connect, upstream } = await stage(t, { upstream: { tools: [tool('list', { outputSchema: { type: 'array' } })] } });
  const client = await connect();
  const before = await client.result('tools/list');
  assert.equal(before.tools[0].outputSchema.type, 'object');
  await upstream.stop();
  assert.deepEqual(await client.result('tools/list'), before);
  assert.equal((await client.error('tools/call', { name: 'list' })).code, -32000);
  assert.equal((await client.error('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } })).code, -32000);
});

test('with several workers an answer finds its call wherever it comes in', async (t) => {
  const { connect, upstream } = await stage(t, { config: { workers: 4 }, upstream: { handlers: asking(({ inputResponses }) => (inputResponses ? done(inputResponses) : ask({ k: form }))) } });
  const client = await connect({ capabilities: ALL, keepAlive: false });
  for (let i = 0; i < 12; i += 1) {
    const stream = await client.stream('tools/call', { name: 'read', arguments: { i } });
    const { id } = await stream.message((message) => message.method);
    assert.equal((await respond(client, id, { result: { action: 'accept', content: { i } } })).status, 202);
    const { result } = await stream.message((message) => message.id === stream.id);
    assert.deepEqual(JSON.parse(result.content[0].text), { k: { action: 'accept', content: { i } } });
  }
  assert.equal(calls(upstream, 'tools/call').length, 24);
});
