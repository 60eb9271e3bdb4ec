// Calls of modern clients through the gateway: what goes up, what comes down, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { envelope, mirrored, modernClient, modernScene, VERSION } from './lib/modern.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const complete = (text) => ({ resultType: 'complete', content: [{ type: 'text', text }] });
const clients = (upstream, method = 'tools/call') => upstream.of(method, { own: false });

test('18: the bytes of a call, its mirrored headers and Mcp-Param-* reach the server unchanged', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const meta = JSON.stringify(envelope({ progressToken: 'p', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }));
  const body = ` {"params" : {"_meta":${meta}, "arguments":{"region":"eu \\u00fc", "n":1e2},"task":{"ttl":5},  "name":"re\\u0061d","requestState":"s==","inputResponses":{"q":{"action":"accept"}}},"method":"tools/call","jsonrpc":"2.0","id":"k\\u0031"} `;
  const headers = { 'MCP-Protocol-Version': VERSION, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'read', 'Mcp-Param-Region': '=?base64?ZXUgw7w=?=', 'X-Own': 'kept' };
  const answer = await modern().send('tools/call', { name: 'read' }, { body, headers, id: 'k1' });
  assert.equal(answer.status, 200);
  const [call] = clients(upstream);
  assert.equal(call.text, body);
  for (const [name, value] of Object.entries(headers)) assert.equal(call.headers[name.toLowerCase()], value, name);
  assert.equal(call.rawHeaders.filter((name) => name.toLowerCase() === 'mcp-param-region').length, 1);
});

test('19: mirrored headers of a legacy call do not reach the server, and nobody compares them', async (t) => {
  const { connect, upstream } = await scene(t, { source: { era: 'both' } });
  const client = await connect();
  const answer = await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-method': 'tools/list', 'mcp-name': 'delete_everything', 'mcp-param-region': 'x', connection: 'keep-alive, mcp-name' } });
  assert.equal(answer.message.result.content[0].text, 'did read');
  const { headers } = clients(upstream)[0];
  assert.deepEqual(Object.keys(headers).filter((name) => /^mcp-(method|name|param)/.test(name)), []);
  assert.equal(headers['mcp-session-id'], client.session);
});

test('20: a JSON answer comes down unchanged, whatever its resultType', async (t) => {
  const texts = ['{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{},"requestState":"x"}}', '{ "id":1 , "jsonrpc":"2.0","result":{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null}} '];
  const { modern, upstream } = await modernScene(t);
  for (const text of texts) {
    upstream.handlers['tools/call'] = ({ reply }) => reply.http(200, { 'content-type': 'application/json', 'x-of-upstream': 'kept' }, text);
    const answer = await modern().send('tools/call', { name: 'read' }, { id: 1 });
    assert.equal(answer.text, text);
    assert.equal(answer.headers['x-of-upstream'], 'kept');
    assert.equal(answer.headers['x-accel-buffering'], undefined);
  }
});

test('20: an event stream comes down event by event, with X-Accel-Buffering: no', async (t) => {
  const { modern, upstream } = await modernScene(t);
  for (const given of [{}, { 'x-accel-buffering': 'yes' }]) {
    let up;
    const opened = new Promise((resolve) => {
      upstream.handlers['tools/call'] = ({ reply, id }) => {
        up = reply.sse({ ...given, 'mcp-session-id': 'minted' });
        up.id = id;
        up.raw(': hello\n\n');
        resolve();
      };
    });
    const client = modern();
    const stream = await client.stream('tools/call', { name: 'read', _meta: undefined }, { meta: { progressToken: 1 } });
    await opened;
    assert.equal(stream.response.headers['x-accel-buffering'], 'no');
    assert.equal(stream.response.headers['mcp-session-id'], undefined);
    up.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
    await stream.message((m) => m.method === 'notifications/progress');
    up.event({ jsonrpc: '2.0', id: up.id, result: complete('done') });
    up.end();
    await stream.message((m) => m.id === stream.id);
  }
});

test('21: a client that closes its stream ends the server\'s within a second, and nothing else goes up', async (t) => {
  const { modern, upstream } = await modernScene(t);
  upstream.handlers['tools/call'] = ({ reply }) => reply.sse().raw(': waiting\n\n');
  const client = modern();
  const times = [];
  // Other tests take the processors away, so the best of a few counts.
  while (times.length < 3 && !(Math.min(...times) < 1000)) {
    const stream = await client.stream('tools/call', { name: 'read' });
    const call = clients(upstream).at(-1);
    const began = performance.now();
    stream.abort();
    await call.gone;
    times.push(performance.now() - began);
    assert.ok(call.left);
  }
  assert.ok(Math.min(...times) < 1000, `${times} ms`);
  await modern().result('server/discover');
  assert.deepEqual(upstream.requests.filter((r) => !r.isGatewaysOwn && r.rpc).map((r) => r.rpc.method).filter((m) => m !== 'server/discover'), times.map(() => 'tools/call'));
});

test('22: deny is 200 with -32014, a hidden tool -32015, and neither reaches the server', async (t) => {
  const { modern, upstream } = await modernScene(t, { upstream: { tools: [tool('drop'), tool('hidden'), tool('asked'), tool('read')] }, rules: [['drop', 'deny'], ['asked', 'approve']], expose: { mode: 'blocklist', tools: ['hidden'] } });
  const client = modern({ capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } });
  for (const [name, code] of [['drop', -32014], ['hidden', -32015]]) {
    for (const params of [{ name }, { name, task: {} }, { name, requestState: 'x', inputResponses: {} }]) {
      const answer = await client.send('tools/call', params);
      assert.equal(answer.status, 200);
      assert.equal(answer.message.error.code, code);
      assert.equal(answer.message.id, answer.id);
    }
  }
  for (const method of ['prompts/get', 'resources/read']) {
    const answer = await client.send(method, method === 'prompts/get' ? { name: 'hidden' } : { uri: 'hidden' });
    assert.equal(answer.message.error.code, -32015, method);
  }
  assert.equal(upstream.requests.filter((r) => !r.isGatewaysOwn && r.rpc).length, 0);
});

test('22: a server that is gone or cannot be read is never -32002', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  upstream.handlers['tools/list'] = ({ reply }) => reply.http(200, { 'content-type': 'application/json' }, 'no JSON');
  const unreadable = await client.send('tools/list');
  assert.deepEqual([unreadable.status, unreadable.message.error.code, unreadable.message.error.data.error_type], [200, -32603, 'upstream_error']);
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(200, { 'content-type': 'application/json' }, '{"jsonrpc":"2.0","id":"of another","result":{}}');
  const foreign = await client.send('tools/call', { name: 'read' });
  assert.equal(foreign.message.error.code, -32603);
  await upstream.stop();
  const gone = await client.send('tools/call', { name: 'read' });
  assert.deepEqual([gone.status, gone.message.error.code], [200, -32000]);
});

test('23: the server\'s own refusals come down as they are', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const refusals = [[400, { code: -32020, message: 'no', data: { mismatch: { header: 'a', body: 'b' } } }], [400, { code: -32021, message: 'no', data: { requiredCapabilities: { sampling: {} } } }], [404, { code: -32601, message: 'no' }]];
  for (const [status, error] of refusals) {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 7, error });
    upstream.handlers['tools/call'] = ({ reply }) => reply.http(status, { 'content-type': 'application/json' }, text);
    const answer = await client.send('tools/call', { name: 'read' }, { id: 7 });
    assert.deepEqual([answer.status, answer.text], [status, text]);
  }
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(401, { 'www-authenticate': 'Bearer resource_metadata="http://x/"' });
  const answer = await client.send('tools/call', { name: 'read' });
  assert.deepEqual([answer.status, answer.headers['www-authenticate'], answer.text], [401, 'Bearer resource_metadata="http://x/"', '']);
});

test('27: params.task of a modern call means nothing', async (t) => {
  const { modern, upstream } = await modernScene(t, { forceRequired: ['write'] });
  for (const name of ['read', 'write']) {
    for (const task of [{}, { ttl: -1 }, 5]) {
      const result = await modern().result('tools/call', { name, task });
      assert.equal(result.content[0].text, `did ${name}`);
    }
  }
  assert.equal(clients(upstream).length, 6);
});

/** Three rounds of a server that asks; `judged(round)` sees each before it is answered. */
const asking = (judged = () => {}) => {
  let round = 0;
  return ({ reply, params }) => {
    round++;
    judged(round, params);
    if (round < 3) return reply.result({ resultType: 'input_required', inputRequests: { [`q${round}`]: { method: 'elicitation/create', params: { message: 'm', requestedSchema: { type: 'object', properties: {} } } } }, requestState: `state-${round} ü=` });
    return reply.result(complete('done'));
  };
};

test('28: three rounds of the server\'s questions pass, requestState byte for byte', async (t) => {
  const seen = [];
  const { modern } = await modernScene(t, { upstream: { handlers: { 'tools/call': asking((round, params) => seen.push([params.requestState, params.inputResponses])) } } });
  const client = modern({ capabilities: { elicitation: {} } });
  let params = { name: 'read' };
  let result;
  for (let round = 1; round <= 3; round++) {
    result = await client.result('tools/call', params);
    const key = Object.keys(result.inputRequests ?? {})[0];
    params = { name: 'read', requestState: result.requestState, inputResponses: { [key]: { action: 'accept', content: {} } } };
  }
  assert.equal(result.content[0].text, 'done');
  assert.deepEqual(seen, [[undefined, undefined], ['state-1 ü=', { q1: { action: 'accept', content: {} } }], ['state-2 ü=', { q2: { action: 'accept', content: {} } }]]);
});

test('29: a rule that becomes deny between two rounds denies the second', async (t) => {
  const { modern, gateway, upstream } = await modernScene(t, { upstream: { handlers: { 'tools/call': asking() } } });
  const client = modern({ capabilities: { elicitation: {} } });
  const { requestState } = await client.result('tools/call', { name: 'read' });
  gateway.options.rules = [['read', 'deny']];
  gateway.writeConfig();
  gateway.hangUp();
  const again = { name: 'read', requestState, inputResponses: { q1: { action: 'accept', content: {} } } };
  const answer = await until(async () => {
    const tried = await client.send('tools/call', again);
    return tried.message.error && tried;
  }, () => 'the new rule');
  assert.equal(answer.message.error.code, -32014);
  const seen = clients(upstream).length;
  await client.send('tools/call', again);
  assert.equal(clients(upstream).length, seen);
});

test('30: resources/read of a hidden uri in its second round is denied', async (t) => {
  const { modern, upstream } = await modernScene(t, { expose: { mode: 'blocklist', tools: ['file:///secret*'] }, upstream: { handlers: { 'resources/read': ({ reply }) => reply.result({ resultType: 'input_required', requestState: 's', inputRequests: {} }) } } });
  const client = modern();
  const first = await client.result('resources/read', { uri: 'file:///open' });
  assert.equal(first.requestState, 's');
  const second = await client.send('resources/read', { uri: 'file:///secret/a', requestState: 's', inputResponses: {} });
  assert.deepEqual([second.status, second.message.error.code], [200, -32015]);
  assert.equal(clients(upstream, 'resources/read').length, 1);
});

test("a listen stream carries the server's messages, but for resources that are hidden", async (t) => {
  let up;
  const { modern, upstream } = await modernScene(t, { expose: { mode: 'blocklist', tools: ['file:///secret*'] } });
  upstream.handlers['subscriptions/listen'] = ({ reply, id }) => {
    up = reply.sse();
    up.event({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: { resourceSubscriptions: ['file:///open'] }, _meta: { 'io.modelcontextprotocol/subscriptionId': id } } });
  };
  const params = { notifications: { resourceSubscriptions: ['file:///open', 'file:///secret/a'], toolsListChanged: true } };
  const client = modernClient(t, modern().url);
  const stream = await client.stream('subscriptions/listen', params, { id: 'listen:0' });
  await stream.message((m) => m.method === 'notifications/subscriptions/acknowledged');
  const updated = (uri) => ({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri, _meta: { 'io.modelcontextprotocol/subscriptionId': 'listen:0' } } });
  for (const uri of ['file:///secret/a', 'file:///x/../secret/b', 'file:///open']) up.event(updated(uri));
  up.event({ jsonrpc: '2.0', id: 'listen:0', result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 'listen:0' } } });
  up.end();
  await stream.message((m) => m.id === 'listen:0');
  assert.deepEqual(stream.events.map((e) => e.json?.params?.uri).filter(Boolean), ['file:///open']);
  assert.deepEqual(clients(upstream, 'subscriptions/listen')[0].rpc.params.notifications, params.notifications);
  assert.deepEqual(mirrored('subscriptions/listen'), { 'mcp-protocol-version': VERSION, 'mcp-method': 'subscriptions/listen' });
});

/** A listen stream whose server acknowledges what it is asked for; `up` is the server's end of the last one. */
function listenable(upstream) {
  const state = {};
  upstream.handlers['subscriptions/listen'] = ({ reply, id, params }) => {
    state.up = reply.sse();
    state.up.event({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: params.notifications, _meta: { 'io.modelcontextprotocol/subscriptionId': id } } });
  };
  return state;
}
const listening = async (client, notifications, id) => {
  const stream = await client.stream('subscriptions/listen', { notifications }, { id });
  await stream.message((m) => m.method === 'notifications/subscriptions/acknowledged');
  return stream;
};

test('54: a reload tells those that asked to hear of tools, and nobody else', async (t) => {
  const { modern, gateway, upstream } = await modernScene(t);
  const server = listenable(upstream);
  const client = modern();
  const others = await listening(client, { promptsListChanged: true }, 'listen:1');
  const up = server.up;
  const hears = await listening(client, { toolsListChanged: true }, 'listen:0');
  gateway.hangUp();
  const told = await hears.message((m) => m.method === 'notifications/tools/list_changed');
  assert.deepEqual(told.params, { _meta: { 'io.modelcontextprotocol/subscriptionId': 'listen:0' } });
  up.event({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed', params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 'listen:1' } } });
  await others.message((m) => m.method === 'notifications/prompts/list_changed');
  assert.deepEqual(others.events.filter((e) => e.json?.method === 'notifications/tools/list_changed'), []);
});

test('a listen stream ends with its result when the gateway stops', async (t) => {
  const { modern, gateway, upstream } = await modernScene(t);
  listenable(upstream);
  const stream = await listening(modern(), { toolsListChanged: true }, 7);
  const stopped = gateway.stop();
  const last = await stream.message((m) => m.id === 7);
  const { resultType, _meta } = last.result;
  assert.deepEqual([resultType, _meta['io.modelcontextprotocol/subscriptionId'], _meta['io.modelcontextprotocol/serverInfo'].name], ['complete', 7, 'taskgate']);
  await stopped;
});

test('18: Mcp-Param-* of a tool that the client was shown must say what the arguments say', async (t) => {
  const shown = tool('route', { inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer', 'x-mcp-header': 'N' } } } });
  const { modern, upstream } = await modernScene(t, { upstream: { tools: [shown, tool('read')] } });
  const stranger = modern({ token: 'never-listed' });
  const client = modern({ token: 'listed' });
  await client.result('tools/list');
  const send = (args, headers, who = client) => who.send('tools/call', { name: 'route', arguments: args }, { headers });
  const bad = [[{ region: 'eu' }, {}], [{ region: 'eu' }, { 'mcp-param-region': 'us' }], [{ region: 'eu' }, { 'mcp-param-region': '=?base64?ZXU?=' }], [{ region: 'eu' }, { 'mcp-param-region': ['eu', 'eu'] }], [{}, { 'mcp-param-region': 'eu' }], [{ region: null }, { 'mcp-param-region': 'eu' }], [{ n: 42 }, { 'mcp-param-n': '43' }], [{ n: 42 }, { 'mcp-param-n': '4.2e1' }]];
  for (const [args, headers] of bad) {
    const answer = await send(args, headers);
    assert.deepEqual([answer.status, answer.message.error?.code], [400, -32020], JSON.stringify([args, headers]));
  }
  assert.equal(clients(upstream).length, 0);
  const good = [[{ region: 'eu' }, { 'Mcp-Param-Region': ' eu ' }], [{ region: 'bür' }, { 'mcp-param-region': '=?base64?YsO8cg==?=' }], [{ n: 42 }, { 'mcp-param-n': '42.0' }], [{}, {}], [{ region: null }, {}], [{ region: 'eu' }, { 'mcp-param-region': 'eu', 'mcp-param-other': 'x' }]];
  for (const [args, headers] of good) {
    const answer = await send(args, headers);
    assert.equal(answer.status, 200, `${JSON.stringify([args, headers])} ${answer.text}`);
  }
  const unchecked = await send({ region: 'eu' }, {}, stranger);
  assert.equal(unchecked.status, 200, 'the server judges what this client was never shown');
});
