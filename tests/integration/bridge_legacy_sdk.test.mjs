// Check 56: the official SDK 1.32, a legacy client, in front of a server of SDK 2.4 that rejects legacy requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ElicitRequestSchema, LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { sdkClient } from './lib/client.mjs';
import { startGateway } from './lib/gateway.mjs';
import { fromJsonSchema, inputRequired, startModernSdkServer } from './lib/modern_sdk_server.mjs';
import { until } from './lib/wait.mjs';

const object = (properties = {}) => fromJsonSchema({ type: 'object', properties });
const text = (value) => ({ content: [{ type: 'text', text: value }] });

function register(server) {
  server.registerTool('add', { inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }), outputSchema: fromJsonSchema({ type: 'number' }) }, ({ a, b }) => ({ ...text(String(a + b)), structuredContent: a + b }));
  server.registerTool('where', { inputSchema: object({ region: { type: 'string', 'x-mcp-header': 'Region' } }) }, ({ region }) => text(`in ${region}`));
  server.registerTool('deploy', { inputSchema: object({ env: { type: 'string' } }) }, ({ env }, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.confirm;
    if (!answer) return inputRequired({ inputRequests: { confirm: inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } } }) } });
    return text(`${answer.action} ${JSON.stringify(answer.content ?? null)}`);
  });
  server.registerTool('work', { inputSchema: object() }, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [1, 2]) await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
    await ctx.mcpReq.log('warning', 'working');
    return text('done');
  });
  server.registerTool('hang', { inputSchema: object() }, (_, ctx) => new Promise((resolve) => ctx.mcpReq.signal.addEventListener('abort', () => resolve(text('aborted')))));
  server.registerResource('note', 'note://1', {}, () => ({ contents: [{ uri: 'note://1', text: 'a note' }] }));
  server.registerPrompt('greet', { argsSchema: fromJsonSchema({ type: 'object', properties: { name: { type: 'string' } } }) }, ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Hi ${name}` } }] }));
}

async function stage(t, options = {}) {
  const server = await startModernSdkServer(t, register, { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } });
  const gateway = await startGateway(t, { upstream: server.url });
  const client = await sdkClient(t, gateway.url, { capabilities: { elicitation: {} }, ...options });
  return { server, gateway, client };
}

test('56: initialize, list, call, wrapped output, header parameters, resources, prompts, ping', async (t) => {
  const { server, gateway, client } = await stage(t);
  assert.equal((await gateway.logged((line) => line.msg === 'The protocol of the server is known')).era, 'modern');
  assert.deepEqual(client.getServerVersion(), { name: 'sdk-modern', version: '2.4.0' });
  assert.equal(client.getInstructions(), 'Ask.');
  const { tools } = await client.listTools();
  assert.deepEqual(tools.slice(0, 5).map(({ name }) => name), ['add', 'where', 'deploy', 'work', 'hang']);
  assert.deepEqual(tools[0].outputSchema.properties.result.type, 'number');
  assert.deepEqual((await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })).structuredContent, { result: 3 });
  assert.equal((await client.callTool({ name: 'where', arguments: { region: 'eu west' } })).content[0].text, 'in eu west');
  assert.equal(server.of('tools/call').at(-1).headers['mcp-param-region'], 'eu west');
  assert.equal((await client.readResource({ uri: 'note://1' })).contents[0].text, 'a note');
  assert.equal((await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } })).messages[0].content.text, 'Hi Ada');
  assert.deepEqual(await client.ping(), {});
  assert.deepEqual(client.errors, []);
});

test('56: an elicitation in a call', async (t) => {
  const asked = [];
  const { server, client } = await stage(t, {
    prepare: (one) =>
      one.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        asked.push(params.message);
        return { action: 'accept', content: { ok: true } };
      }),
  });
  assert.equal((await client.callTool({ name: 'deploy', arguments: { env: 'prod' } })).content[0].text, 'accept {"ok":true}');
  assert.deepEqual(asked, ['Deploy to prod?']);
  assert.equal(server.of('tools/call').length, 2);
});

test('56: progress, the log level, and cancelling', async (t) => {
  const logged = [];
  const { server, client } = await stage(t, { prepare: (one) => one.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params.data)) });
  const progress = [];
  const work = () => client.callTool({ name: 'work', arguments: {} }, undefined, { onprogress: (one) => progress.push(one.progress) });
  assert.equal((await work()).content[0].text, 'done');
  assert.deepEqual([progress, logged], [[1, 2], []]);
  await client.setLoggingLevel('warning');
  await work();
  await until(() => logged.length === 1, () => 'the log message');
  await client.setLoggingLevel('error');
  await work();
  assert.deepEqual(logged, ['working']);
  const abort = new AbortController();
  const hanging = client.callTool({ name: 'hang', arguments: {} }, undefined, { signal: abort.signal });
  const call = await until(() => server.of('tools/call').find(({ rpc }) => rpc.params.name === 'hang'), () => 'the call at the server');
  abort.abort('enough');
  await assert.rejects(hanging, /enough/);
  await call.gone;
  assert.equal(call.left, true);
});

test('56: subscriptions and changed lists on the stream of the session', async (t) => {
  const heard = [];
  const { server, client } = await stage(t, {
    awaitStream: true,
    prepare: (one) => {
      one.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri));
      one.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('tools'));
    },
  });
  const listens = () => server.of('subscriptions/listen').filter((r) => !r.left && r.rpc.params.notifications.toolsListChanged);
  await until(() => listens().length === 1, () => 'the listen of the stream');
  await client.subscribeResource({ uri: 'note://1' });
  server.handler.notify.resourceUpdated('note://1');
  await until(() => heard.includes('note://1'), () => 'the update');
  await until(() => listens().some((r) => r.rpc.params.notifications.resourceSubscriptions), () => 'the renewed listen');
  server.handler.notify.toolsChanged();
  await until(() => heard.includes('tools'), () => 'the changed list');
  await client.unsubscribeResource({ uri: 'note://1' });
  await until(() => listens().at(-1).rpc.params.notifications.resourceSubscriptions === undefined, () => 'the listen without it');
  assert.deepEqual(client.errors, []);
});
