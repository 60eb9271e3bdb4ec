// Requests that the gateway sends for itself: the era of a server, its lists, sessions; and tokens that are exchanged.
import { startIssuer } from '../integration/lib/token_issuer.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { PAIRS, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const [LL, LM, , MM] = PAIRS;

for (const pair of [LL, MM]) {
  scenario(`start_${pair.server}`, { title: `the start before a ${pair.server} server whose lists have pages`, own: true, ...pair.options({ upstream: { tools: tools('a', 'b', 'c') } }), source: {} }, async (stage) => {
    await stage.upstream.received((r) => (pair.isModernServer ? r.rpc?.method === 'tools/list' : r.method === 'DELETE'));
  });

  const refreshed = { tools: tools('read', 'write'), capabilities: { tools: { listChanged: true } } };
  scenario(`list_changes_${pair.name}`, { title: `the server's tools change: ${pair.title}`, rules: [['write', 'approve']], approval: workflow('10m'), ...pair.options({ upstream: refreshed }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    await client.send('tools/list');
    stage.upstream.tools = [tool('read'), tool('write', { description: 'Another one' }), tool('added', { annotations: { readOnlyHint: true } })];
    await client.send('tools/list');
    await client.send('tools/call', { name: 'added', arguments: {} });
  });
}

const parameter = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };
for (const pair of [LM, MM]) {
  const server = {
    tools: [tool('where', { inputSchema: parameter }), tool('delete_where', { inputSchema: parameter })],
    handlers: {
      'tools/call': ({ reply, recorded, id }) =>
        recorded.headers['mcp-param-region'] === 'eu'
          ? reply.result(pair.text('in the EU'))
          : reply.http(400, { 'content-type': 'application/json' }, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32020, message: 'mismatch' } })),
    },
  };
  scenario(`parameters_${pair.name}`, { title: `parameters as headers, and a server that misses them: ${pair.title}`, rules: [['delete_*', 'approve']], approval: workflow('10m'), ...pair.options({ upstream: server }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const header = (value) => (pair.isModernClient ? { headers: { 'mcp-param-region': value } } : {});
    const call = (name, region) => client.send('tools/call', { name, arguments: { region } }, header(region));
    await call('where', 'eu');
    await call('where', 'us');
    await client.send('tools/list');
    await call('where', 'us');
    const params = { name: 'delete_where', arguments: { region: 'eu' }, ...(pair.isModernClient ? {} : { task: { ttl: 600_000 } }) };
    const { message } = await client.send('tools/call', params, header('eu'));
    const id = message.result.task?.taskId ?? message.result.taskId;
    await stage.admin.approve(id);
    await stage.admin.inState(id, 'completed', 'failed');
    await pair.outcome(client, id);
  });
}

const AUDIENCE = 'https://gate.example/mcp';
for (const pair of PAIRS) {
  let issuer;
  const refused = new Set();
  const server = {
    tools: tools('read', 'delete_user'),
    authorize: ({ headers, rpc }) => (rpc?.method === 'tools/call' && refused.has(headers.authorization) ? 401 : undefined),
  };
  const prepare = async (t) => {
    issuer = await startIssuer(t);
    const exchange = { token_url: `${issuer.url}/token`, client_id: 'gate', client_secret_env: 'EXCHANGE_SECRET', audience: 'https://up.example', scope: 'up:use' };
    return { source: { ...pair.options({}).source, auth: { issuer: issuer.url, audience: AUDIENCE, upstream: 'exchange', exchange } }, names: { [issuer.port]: 'issuer' } };
  };
  scenario(`exchanged_${pair.name}`, { title: `tokens are exchanged, and one is refused by the server: ${pair.title}`, prepare, env: { EXCHANGE_SECRET: 'secret' }, rules: [['delete_*', 'approve']], approval: workflow('10m'), ...pair.options({ upstream: server }), awaitUpstream: false }, async (stage) => {
    const token = issuer.token(AUDIENCE, { sub: 'alice' });
    const client = await pair.connect(stage, 'client', { knows: 'tasks', token });
    const call = (name) => client.send('tools/call', { name, arguments: {} });
    await call('read');
    refused.add(stage.upstream.calls.at(-1).headers.authorization);
    await call('read');
    await call('read');
    const id = await pair.task(client, 'delete_user');
    await stage.admin.approve(id);
    await stage.admin.inState(id, 'completed', 'failed');
    await pair.outcome(client, id);
    stage.note(`exchanges: ${issuer.exchanges.length}`);
  });
}
