// The modern era at the door: which era a request is of, and what a modern one must have.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configuration } from './lib/gateway.mjs';
import { envelope, mirrored, modernScene, PREFIX, TASKS_EXTENSION, VERSION } from './lib/modern.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { toYaml } from './lib/yaml.mjs';

/** The requests that reached the server, without those of the gateway itself. */
const clients = (upstream) => upstream.requests.filter((r) => !r.isGatewaysOwn && r.rpc && !(r.rpc.method === 'notifications/initialized'));

const base64 = (text) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

test('2: discover without clientInfo is answered', async (t) => {
  const { modern } = await modernScene(t);
  const answer = await modern().send('server/discover', {}, { meta: { [`${PREFIX}clientInfo`]: undefined } });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.message.result.supportedVersions, [VERSION]);
});

test('3: an envelope that lacks a required key, or has it of another type, is 400 -32602 with the id', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const metas = [{ [`${PREFIX}protocolVersion`]: undefined }, { [`${PREFIX}protocolVersion`]: 5 }, { [`${PREFIX}clientCapabilities`]: undefined }, { [`${PREFIX}clientCapabilities`]: [] }, null];
  for (const method of ['server/discover', 'tools/list', 'tools/call']) {
    for (const meta of metas) {
      const answer = await client.send(method, { name: 'read' }, { meta, id: 'i' });
      assert.equal(answer.status, 400, `${method} ${JSON.stringify(meta)}`);
      assert.equal(answer.message.error.code, -32602);
      assert.equal(answer.message.id, 'i');
      assert.equal(answer.message.error.data.error_type, 'incomplete_envelope');
    }
  }
  assert.equal(clients(upstream).length, 0);
});

test('3: requestState and inputResponses of the wrong type, and a listen without notifications, are 400 -32602', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const bad = [['tools/call', { name: 'read', requestState: 5 }], ['tools/call', { name: 'read', inputResponses: [] }], ['prompts/get', { name: 'p', requestState: {} }], ['resources/read', { uri: 'a:b', inputResponses: 'x' }], ['subscriptions/listen', {}], ['subscriptions/listen', { notifications: [] }]];
  for (const [method, params] of bad) {
    const answer = await client.send(method, params);
    assert.equal(answer.status, 400, `${method} ${JSON.stringify(params)}`);
    assert.equal(answer.message.error.code, -32602);
  }
  assert.equal(clients(upstream).length, 0);
});

test('4 and 5: MCP-Protocol-Version absent or different is 400 -32020', async (t) => {
  const { modern, upstream, gateway } = await modernScene(t);
  const client = modern();
  for (const version of [undefined, '2025-11-25', '2026-07-29', 'x', '']) {
    const answer = await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-protocol-version': version } });
    assert.equal(answer.status, 400, version);
    assert.equal(answer.message.error.code, -32020, version);
    assert.equal(answer.message.id, answer.id);
  }
  assert.equal(clients(upstream).length, 0);
  await gateway.logged((line) => line.header === 'MCP-Protocol-Version' && line.level === 'warn');
});

test('6: a version that is not served is 400 -32022 with supported and requested', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const { supportedVersions } = await client.result('server/discover');
  const before = clients(upstream).length;
  for (const version of ['v999.0.0', '2999-01-01', '2025-11-25']) {
    for (const method of ['server/discover', 'tools/call']) {
      const answer = await client.send(method, { name: 'read' }, { meta: { [`${PREFIX}protocolVersion`]: version }, headers: { 'mcp-protocol-version': version } });
      assert.equal(answer.status, 400);
      assert.equal(answer.message.error.code, -32022);
      assert.equal(answer.message.id, answer.id);
      assert.equal(answer.message.error.data.requested, version);
      assert.ok(answer.message.error.data.supported.every((one) => supportedVersions.includes(one)));
    }
  }
  assert.equal(clients(upstream).length, before);
});

test('7: Mcp-Method missing, different or of another case is 400 -32020; padded or with any case in its name it is served', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  for (const value of [undefined, '', 'tools/list', 'TOOLS/CALL', 'tools/call,tools/call', 'tools/call x']) {
    const answer = await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-method': value } });
    assert.equal(answer.status, 400, value);
    assert.equal(answer.message.error.code, -32020, value);
  }
  assert.equal(clients(upstream).length, 0);
  for (const headers of [{ 'mcp-method': '  tools/call \t' }, { 'mcp-method': undefined, 'MCP-METHOD': 'tools/call' }, { 'mcp-method': base64('tools/call') }]) {
    const answer = await client.send('tools/call', { name: 'read' }, { headers });
    assert.equal(answer.status, 200, JSON.stringify(headers));
  }
});

test('8: a header that mirrors the body, twice in one request, is 400 -32020', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  for (const [name, value] of Object.entries(mirrored('tools/call', { name: 'read' }))) {
    const answer = await client.send('tools/call', { name: 'read' }, { headers: { [name]: [value, value] }, id: 8 });
    assert.equal(answer.status, 400, name);
    assert.equal(answer.message?.error.code, -32020, name);
    assert.equal(answer.message.id, 8);
  }
  assert.equal(clients(upstream).length, 0);
});

test('9: Mcp-Name missing, different or undecodable is 400 -32020; encoded it is relayed byte for byte', async (t) => {
  const { modern, upstream } = await modernScene(t, { upstream: { handlers: { 'resources/read': ({ reply }) => reply.result({ resultType: 'complete', contents: [], ttlMs: 0, cacheScope: 'private' }) } } });
  const client = modern();
  for (const value of [undefined, 'write', 'READ', '=?base64?!!?=', '=?base64?cmVhZA=?=', '=?base64?//8=?=', base64('write')]) {
    const answer = await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-name': value } });
    assert.equal(answer.status, 400, value);
    assert.equal(answer.message.error.code, -32020, value);
  }
  const unnamed = await client.send('tools/call', {}, { headers: { 'mcp-name': 'read' } });
  assert.equal(unnamed.message.error.code, -32020);
  assert.equal(clients(upstream).length, 0);
  const uri = 'file:///büro/ü.txt';
  for (const [method, params, name] of [['tools/call', { name: 'read' }, base64('read')], ['resources/read', { uri }, base64(uri)]]) {
    const answer = await client.send(method, params, { headers: { 'mcp-name': name } });
    assert.equal(answer.status, 200, name);
    assert.equal(upstream.requests.at(-1).headers['mcp-name'], name);
  }
});

test('10: methods that the era does not have are 404 -32601 with the id, and never go up', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const seen = clients(upstream).length;
  for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'tasks/list', 'tasks/result', 'x/y', 'notifications/initialized']) {
    const answer = await client.send(method, {});
    assert.equal(answer.status, 404, method);
    assert.equal(answer.message.error.code, -32601, method);
    assert.equal(answer.message.id, answer.id);
  }
  assert.equal(clients(upstream).length, seen);
});

test('11: clientInfo in _meta alone is no claim: the call is served as a legacy one', async (t) => {
  const { connect, upstream } = await scene(t, { source: { era: 'both' } });
  const client = await connect();
  const _meta = { [`${PREFIX}clientInfo`]: { name: 'openai-mcp', version: '1' }, [`${PREFIX}clientCapabilities`]: {} };
  const answer = await client.send('tools/call', { name: 'read', _meta });
  assert.equal(answer.status, 200);
  assert.equal(answer.message.result.content[0].text, 'did read');
  assert.equal(upstream.calls.at(-1).headers['mcp-session-id'], client.session);
});

test('12: initialize that names the modern version without an envelope is a legacy handshake', async (t) => {
  const { raw } = await scene(t, { source: { era: 'both' } });
  const client = raw({ protocol: VERSION });
  const result = await client.connect();
  assert.equal(result.protocolVersion, '2025-11-25');
  const header = await raw().send('initialize', { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: 'c', version: '1' } }, { headers: { 'mcp-protocol-version': VERSION } });
  assert.equal(header.status, 400);
  assert.equal(header.message.error.code, -32020);
});

test('13: GET and DELETE are 405 before a modern server; a session header means nothing there', async (t) => {
  const { modern, upstream } = await modernScene(t, { source: { bridge: 'off' }, upstream: { handlers: { 'tools/call': ({ reply }) => reply.result({ resultType: 'complete', content: [] }, { 'mcp-session-id': 'minted' }) } } });
  const client = modern();
  const seen = clients(upstream).length;
  await assert.rejects(client.listen(), /HTTP 405/);
  const gone = await client.delete();
  assert.equal(gone.status, 405);
  assert.equal(gone.headers.allow, 'POST');
  assert.equal(clients(upstream).length, seen);
  const answer = await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-session-id': 'mine', 'last-event-id': '7' } });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['mcp-session-id'], undefined);
  const sent = upstream.calls.at(-1).headers;
  assert.equal(sent['mcp-session-id'], undefined);
  assert.equal(sent['last-event-id'], undefined);
});

test('14: a modern notification is 202 and goes nowhere', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const seen = clients(upstream).length;
  for (const [params, headers] of [[{ requestId: 1, _meta: envelope() }, {}], [{ requestId: 1 }, { 'mcp-protocol-version': VERSION }]]) {
    const response = await client.notify('notifications/cancelled', params, { headers });
    assert.equal(response.status, 202);
  }
  await client.result('tools/call', { name: 'read' });
  assert.equal(clients(upstream).length, seen + 1);
});

test('15: duplicate and look-alike keys in _meta are refused', async (t) => {
  const { modern, upstream } = await modernScene(t);
  const client = modern();
  const good = JSON.stringify(envelope()).slice(1, -1);
  const metas = [`${good},"${PREFIX}protocolVersion":"2026-07-28"`, `${good},"IO.modelcontextprotocol/protocolVersion":"2025-11-25"`, `${good},"io.modelcontextprotocol/clientcapabilities":{}`, `"IO.modelcontextprotocol/protocolVersion":"2026-07-28"`];
  for (const meta of metas) {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","_meta":{${meta}}}}`;
    const answer = await client.send('tools/call', { name: 'read' }, { body });
    assert.equal(answer.status, 400, meta);
    assert.equal(answer.message.error.code, -32600, meta);
  }
  assert.equal(clients(upstream).length, 0);
});

test('16: both eras at once on one path, with the same ids: no answer crosses', async (t) => {
  const { modern, connect } = await modernScene(t, { era: 'both', upstream: { legacy: true, handlers: { 'tools/call': ({ reply, params, recorded }) => setTimeout(() => reply.result({ resultType: 'complete', content: [{ type: 'text', text: `${params.arguments.who} ${recorded.headers['mcp-method'] ?? 'legacy'}` }] }), params.arguments.n % 7) } } });
  const clients = [modern(), await connect()];
  const calls = [];
  for (let n = 0; n < 40; n++) {
    clients.forEach((client, which) => calls.push(client.result('tools/call', { name: 'read', arguments: { who: `c${which}-${n}`, n } }, { id: 1000 + n }).then((result) => assert.equal(result.content[0].text, `c${which}-${n} ${which === 0 ? 'tools/call' : 'legacy'}`))));
  }
  await Promise.all(calls);
});

test('17: before a legacy server discover is 400 -32601 with the id, and other modern calls are 400 -32022', async (t) => {
  const { upstream, modern } = await modernScene(t, { era: 'legacy', upstream: { legacy: true } });
  const client = modern();
  const seen = clients(upstream).length;
  const answer = await client.send('server/discover', {}, { id: 'server-discover-probe-1' });
  assert.equal(answer.status, 400);
  assert.equal(answer.message.error.code, -32601);
  assert.equal(answer.message.id, 'server-discover-probe-1');
  assert.match(answer.headers['content-type'], /^application\/json/);
  const call = await client.send('tools/call', { name: 'read' });
  assert.equal(call.status, 400);
  assert.equal(call.message.error.code, -32022);
  assert.equal(clients(upstream).length, seen);
});

test('`bridge` takes its four values and no other', async (t) => {
  const { gateway } = await scene(t);
  const check = async (bridge) => {
    gateway.replaceConfig(toYaml(configuration({ ...gateway.options, store: gateway.storePath, source: { bridge } })));
    return gateway.cli(['check', '--config', gateway.configPath]);
  };
  for (const bridge of ['off', 'legacy', 'modern', 'both']) assert.equal((await check(bridge)).code, 0, bridge);
  assert.equal((await check('sideways')).code, 2);
});

test('headers: lenient lets a client leave out Mcp-Name for tasks of the gateway\'s, and nothing else', async (t) => {
  const { modern, upstream } = await modernScene(t, { rules: [['delete_*', 'approve']], upstream: { tools: [tool('read'), tool('delete_user')] }, config: { clients: [{ match: 'lenient*', headers: 'lenient' }] } });
  const capabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const client = modern({ capabilities });
  const meta = { [`${PREFIX}clientInfo`]: { name: 'lenient-1', version: '1' } };
  const { taskId } = await client.result('tools/call', { name: 'delete_user' });
  const before = clients(upstream).length;
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const ask = (name, more = { meta }, id = taskId) => client.send(method, { taskId: id, inputResponses: {} }, { headers: { 'mcp-name': name }, ...more });
    assert.deepEqual([(await ask('tg_other')).message.error.code, (await ask(undefined, {})).message.error.code, (await ask(undefined, { meta }, 'theirs')).message.error.code], [-32020, -32020, -32020], method);
    const { status, message } = await ask(undefined);
    assert.deepEqual([status, message.error], [200, undefined], method);
  }
  assert.equal(clients(upstream).length, before);
  assert.equal((await client.send('tools/call', { name: 'read' }, { meta, headers: { 'mcp-name': undefined } })).message.error.code, -32020);
});
