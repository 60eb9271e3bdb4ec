// A client's attempts to get something unjudged to a server of the other era, and such a server's attempts to get something down.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf } from './lib/client.mjs';
import { envelope, modernServer, PREFIX } from './lib/modern.mjs';
import { key, modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';

const OWNER = { authorization: 'Bearer owner' };

/** A modern-only server, and legacy clients that are bridged to it. */
const legacyStage = (t, { upstream = {}, source = {}, ...options } = {}) => scene(t, { upstream: modernServer(upstream), source: { era: 'modern', ...source }, ...options });

/** A legacy-only server, and modern clients that are bridged to it. */
async function modernStage(t, { source = {}, ...options } = {}) {
  const staged = await scene(t, { source: { bridge: 'modern', ...source }, ...options });
  return { ...staged, modern: (more) => modernClient(t, staged.gateway.url, { capabilities: {}, headers: OWNER, ...more }) };
}

/** The requests that reached the server because of a client. */
const fromClients = (upstream) => upstream.requests.filter((r) => r.rpc?.params?._meta?.[`${PREFIX}clientInfo`]?.name !== 'taskgate' && r.rpc?.params?.clientInfo?.name !== 'taskgate');

/** A body whose members are given as text, so that keys may have escapes. */
const callBody = (members) => `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"read",${members}}}`;

test('modern client, legacy server: keys with escapes are the keys that they stand for, and do not go up', async (t) => {
  const { modern, upstream } = await modernStage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('read', { support: 'optional' })] } });
  const client = modern({ capabilities: WITH_TASKS });
  const meta = JSON.stringify(client.envelope({ kept: 1 })).replace(/^\{/, `{"io.modelcontextprotocol\\/related-task":{"taskId":"t"},"io.modelcontextprotoco\\u006c/x":2,`);
  const body = callBody(`"t\\u0061sk":{"ttl":60000},"inputR\\u0065sponses":{"a":{}},"_m\\u0065ta":${meta}`);
  const { message } = await client.send('tools/call', { name: 'read' }, { id: 'x', body });
  assert.equal(message.result?.content[0].text, 'did read', JSON.stringify(message));
  assert.deepEqual(upstream.calls[0].rpc.params, { name: 'read', _meta: { kept: 1 } });
});

test('legacy client, modern server: no reserved key of _meta goes up or comes down, however it is written', async (t) => {
  const { connect, upstream } = await legacyStage(t, {
    upstream: {
      handlers: {
        'tools/call': ({ reply, id, params }) => {
          const stream = reply.sse();
          const reserved = { [`${PREFIX}related-task`]: { taskId: 'tg_x' }, [`${PREFIX}subscriptionId`]: 1 };
          stream.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'a', _meta: { ...reserved, kept: 1 } } });
          stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, _meta: reserved } });
          stream.event({ jsonrpc: '2.0', id, result: { resultType: 'complete', content: [], _meta: { ...reserved, [`${PREFIX}serverInfo`]: { name: 's', version: '1' }, kept: 2 } } });
          stream.end();
        },
      },
    },
  });
  const client = await connect();
  const body = callBody(`"requestSt\\u0061te":"s","_m\\u0065ta":{"progressToken":"p","io.modelcontextprotocol\\/elicitation-response":{},"io.modelcontextprotoco\\u006c/clientCapabilities":{"roots":{}},"kept":0}`);
  const answer = await client.send('tools/call', undefined, { id: 'x', body });
  assert.deepEqual(answer.message.result, { content: [], _meta: { kept: 2 } });
  assert.deepEqual(answer.others.map(({ params }) => params._meta), [{ kept: 1 }, undefined]);
  const [call] = fromClients(upstream).filter((r) => r.rpc.method === 'tools/call');
  assert.deepEqual(call.rpc.params, { name: 'read', _meta: { progressToken: 'p', kept: 0, ...envelope({ client: { name: 'raw-client', version: '1.0.0' } }) } });
});

test('modern client, legacy server: what the server says of a call has no reserved key of its own', async (t) => {
  const handler = ({ reply, id, params }) => {
    const stream = reply.sse();
    stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, _meta: { [key('subscriptionId')]: 7 } } });
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  };
  const { modern } = await modernStage(t, { upstream: { handlers: { 'tools/call': handler } } });
  const { others } = await modern().send('tools/call', { name: 'read' }, { meta: { progressToken: 'p' } });
  assert.deepEqual(others.map(({ params }) => params), [{ progressToken: 'p', progress: 1 }]);
});

test('methods.allow opens no method of the other era: its gates are not asked there', async (t) => {
  const everything = { config: { methods: { allow: ['*'] } }, expose: { mode: 'blocklist', tools: ['secret*'] } };
  const capabilities = { tools: {}, resources: { subscribe: true }, logging: {}, tasks: TASKS };
  const down = await modernStage(t, { ...everything, upstream: { capabilities } });
  const client = down.modern({ capabilities: WITH_TASKS });
  for (const [method, params] of [['resources/subscribe', { uri: 'secret:1' }], ['resources/unsubscribe', { uri: 'secret:1' }], ['tasks/result', { taskId: 'a' }], ['tasks/list', {}], ['logging/setLevel', { level: 'debug' }], ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }], ['ping', {}]]) {
    const answer = await client.send(method, params);
    assert.deepEqual([method, answer.status, answer.message?.error?.code], [method, 404, -32601]);
    assert.equal(fromClients(down.upstream).filter((r) => r.rpc?.method === method && r.rpc.params?.clientInfo?.name !== 'modern-client').length, 0, method);
  }
  assert.equal((await client.call('x/own', {})).error.code, -32601);
  assert.equal(down.upstream.of('x/own').length, 1); // the configuration does open it

  const up = await legacyStage(t, everything);
  const legacy = await up.connect();
  for (const [method, params] of [['subscriptions/listen', { notifications: { resourceSubscriptions: ['secret:1'] } }], ['tasks/update', { taskId: 'a', inputResponses: {} }]]) {
    assert.equal((await legacy.error(method, params)).code, -32601, method);
    assert.equal(fromClients(up.upstream).filter((r) => r.rpc?.method === method).length, 0, method);
  }
});

test('legacy client, modern server: a session is bound to the token of its initialize, also after a restart', async (t) => {
  const { connect, upstream, gateway } = await legacyStage(t, { upstream: { capabilities: { tools: {}, resources: { subscribe: true }, logging: {} } } });
  const client = await connect({ token: 'mine' });
  for (const restarts of [false, true]) {
    if (restarts) await gateway.restart();
    const before = upstream.requests.length;
    for (const authorization of ['Bearer theirs', undefined]) {
      for (const [method, params] of [['tools/call', { name: 'read' }], ['tools/list'], ['resources/subscribe', { uri: 'a:b' }], ['logging/setLevel', { level: 'debug' }], ['ping'], ['tasks/get', { taskId: 'tg_1' }]]) {
        const answer = await client.send(method, params, { headers: { authorization } });
        assert.deepEqual([method, answer.status, answer.message.error.message], [method, 404, 'Session not found']);
      }
    }
    const theirs = { headers: { authorization: 'Bearer theirs' } };
    assert.equal((await client.delete(theirs)).status, 404);
    await assert.rejects(client.listen(theirs), /HTTP 404/);
    assert.deepEqual(upstream.requests.slice(before).map((r) => r.headers.authorization).filter(Boolean), []);
    assert.equal((await client.result('tools/call', { name: 'read' })).content[0].text, 'did read');
  }
});

test('legacy client, modern server: a session that was opened without a token, or where sessions are owners, takes a later token', async (t) => {
  const { connect } = await legacyStage(t);
  const client = await connect();
  assert.ok(await client.result('tools/call', { name: 'read' }, { headers: { authorization: 'Bearer later' } }));
  const other = await legacyStage(t, { source: { identity: 'session' } });
  const owner = await other.connect({ token: 'first' });
  assert.ok(await owner.result('tools/call', { name: 'read' }, { headers: { authorization: 'Bearer second' } }));
});

test('legacy client, modern server: each round is judged by the rules in force; what they forbid meanwhile is not sent again', async (t) => {
  const form = { method: 'elicitation/create', params: { mode: 'form', message: 'm', requestedSchema: { type: 'object', properties: {} } } };
  const asks = ({ reply }) => reply.result({ resultType: 'input_required', inputRequests: { k: form }, requestState: 's' });
  for (const [method, params, rules] of [['tools/call', { name: 'read' }, [['read', 'deny']]], ['tools/call', { name: 'read' }, [['read', 'approve']]], ['resources/read', { uri: 'a:b' }, [['a:*', 'deny']]]]) {
    const { connect, upstream, gateway } = await legacyStage(t, { upstream: { capabilities: { tools: {}, resources: {} }, handlers: { 'tools/call': asks, 'resources/read': asks } } });
    const client = await connect({ capabilities: { elicitation: {} } });
    const stream = await client.stream(method, params);
    const { id } = await stream.message((m) => m.method === 'elicitation/create');
    gateway.writeConfig({ rules });
    gateway.hangUp();
    await gateway.logged(/^Configuration reloaded$/);
    await client.result('ping');
    const before = upstream.of(method).length;
    await client.post({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } });
    const answer = await stream.message((m) => m.id === stream.id);
    assert.equal(errorOf(answer)?.code, -32014, JSON.stringify([method, rules, answer]));
    assert.equal(upstream.of(method).length, before);
  }
});

test('modern client, legacy server: what the rules forbid meanwhile is not sent once more when the server forgets the session', async (t) => {
  let held;
  const { modern, upstream, gateway } = await modernStage(t, { upstream: { capabilities: { resources: {} }, handlers: { 'resources/read': ({ reply }) => void (held = reply) } } });
  const client = modern();
  const answer = client.send('resources/read', { uri: 'a:b' });
  await upstream.received((r) => r.rpc?.method === 'resources/read');
  gateway.writeConfig({ rules: [['a:*', 'deny']] });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  held.http(404, {}, '');
  assert.equal((await answer).message.error.code, -32014);
  assert.equal(upstream.of('resources/read').length, 1);
});

test('hidden or denied names go up over neither bridge, whatever the method', async (t) => {
  const rules = [['secret*', 'deny'], ['denied:*', 'deny']];
  const expose = { mode: 'blocklist', tools: ['hidden*'] };
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {} };
  const requests = [
    ['tools/call', { name: 'secret' }], ['tools/call', { name: 'hidden' }], ['prompts/get', { name: 'secret' }], ['prompts/get', { name: 'hidden' }], ['resources/read', { uri: 'denied:1' }], ['resources/read', { uri: 'hidden:1' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'secret' }, argument: { name: 'a', value: '' } }], ['completion/complete', { ref: { type: 'ref/resource', uri: 'hidden:1' }, argument: { name: 'a', value: '' } }],
  ];
  const down = await modernStage(t, { rules, expose, upstream: { capabilities } });
  const up = await legacyStage(t, { rules, expose, upstream: { capabilities } });
  const modern = down.modern();
  const legacy = await up.connect({ token: 'mine' });
  for (const [client, upstream, more] of [[modern, down.upstream, []], [legacy, up.upstream, [['resources/subscribe', { uri: 'hidden:1' }], ['resources/subscribe', { uri: 'denied:1' }]]]]) {
    for (const [method, params] of [...requests, ...more]) {
      const { code } = await client.error(method, params);
      assert.ok([-32014, -32015].includes(code), `${method} ${code}`);
      assert.equal(upstream.of(method, { own: true }).length, 0, method);
    }
    const batch = await client.send('x', {}, { id: 1, body: JSON.stringify(requests.map(([method, params], id) => ({ jsonrpc: '2.0', id, method, params }))) });
    assert.deepEqual([batch.status, batch.message.error.code], [400, -32600]);
    const silent = await client.post({ jsonrpc: '2.0', method: 'tools/call', params: { name: 'secret', ...(client === modern ? { _meta: client.envelope() } : {}) } }, { headers: client === modern ? client.mirror({ method: 'tools/call', params: { name: 'secret' } }) : {} });
    assert.equal(silent.status, 202);
    assert.equal(upstream.of('tools/call').length, 0);
  }
});

test('modern client, legacy server: a state of another owner, tool, source or time is refused, and nothing of it goes up', async (t) => {
  const question = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'm', requestedSchema: { type: 'object', properties: {} } } };
  const upstreams = [];
  const { modern, gateway, upstream } = await modernStage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => reply.sse().event(question) } } });
  upstreams.push(upstream);
  const forms = { capabilities: { elicitation: {} } };
  const call = { name: 'read', arguments: { n: 1 } };
  const client = modern(forms);
  const { requestState } = await client.result('tools/call', call);
  const inputResponses = { 'r1.1': { action: 'accept', content: {} } };
  const attempts = [[modern({ ...forms, headers: { authorization: 'Bearer other' } }), call], [modern({ ...forms, headers: {} }), call], [client, { name: 'write', arguments: { n: 1 } }], [client, { name: 'read', arguments: { n: 2 } }]];
  for (const [by, again] of attempts) assert.equal((await by.error('tools/call', { ...again, requestState, inputResponses })).code, -32602);
  assert.equal((await client.error('tools/call', { ...call, requestState: `${requestState}x`, inputResponses })).code, -32602);
  await gateway.restart();
  assert.equal((await client.error('tools/call', { ...call, requestState, inputResponses })).code, -32602);
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.requests.filter((r) => r.rpc?.id === 'q').length, 0);
});
