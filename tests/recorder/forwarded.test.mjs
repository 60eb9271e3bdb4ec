// Calls that no rule holds: forwarded, with whatever comes before their answers, and refused ones.
import { answerTo, log, PAIRS, progress, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const CAPABILITIES = { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} };

const calls = (pair) => ({ reply, params, id }) => {
  if (params.name === 'fail') return reply.result(pair.text('it failed', { isError: true }));
  if (params.name === 'refuse') return reply.error(-32602, 'wrong arguments', { field: 'n' });
  if (params.name !== 'stream') return reply.result(pair.text(`did ${params.name}`, { structuredContent: { n: 1.5 }, _meta: { 'example.com/kept': [1.5, null] } }));
  const stream = reply.sse();
  stream.event(progress(params._meta?.progressToken, 1), { id: 'e-1' });
  stream.event(log('warning', 'on the way'));
  stream.event(progress(params._meta?.progressToken, 2), { event: 'message' });
  stream.event(answerTo(id, pair.text('did stream')));
  return stream.end();
};

const others = (pair) => ({
  'resources/list': ({ reply }) => reply.result(pair.result({ resources: [{ uri: 'file:///a', name: 'a' }] })),
  'resources/templates/list': ({ reply }) => reply.result(pair.result({ resourceTemplates: [] })),
  'resources/read': ({ reply, params }) => (params.uri === 'file:///a' ? reply.result(pair.result({ contents: [{ uri: params.uri, text: 'x' }] })) : reply.error(-32002, 'no such resource', { uri: params.uri })),
  'prompts/list': ({ reply }) => reply.result(pair.result({ prompts: [{ name: 'hello' }] })),
  'prompts/get': ({ reply }) => reply.result(pair.result({ messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }] })),
  'completion/complete': ({ reply }) => reply.result(pair.result({ completion: { values: ['v'] } })),
  'logging/setLevel': ({ reply }) => reply.result({}),
});

for (const pair of PAIRS) {
  const server = { tools: tools('read', 'stream', 'fail', 'refuse'), capabilities: CAPABILITIES, handlers: { 'tools/call': calls(pair), ...others(pair) } };

  scenario(`forwarded_${pair.name}`, { title: `forwarded calls: ${pair.title}`, ...pair.options({ upstream: server }) }, async (stage) => {
    const client = await pair.connect(stage);
    await client.send('tools/list');
    await client.send('tools/call', { name: 'read', arguments: { n: 1.5 } });
    await client.send('tools/call', { name: 'stream', arguments: {}, _meta: { progressToken: 'p-1', 'io.modelcontextprotocol/logLevel': 'info' } });
    await client.send('tools/call', { name: 'fail' });
    await client.send('tools/call', { name: 'refuse', arguments: { n: 'x' } });
    if (!pair.isModernClient) await client.delete();
  });

  scenario(`methods_${pair.name}`, { title: `other methods than calls: ${pair.title}`, ...pair.options({ upstream: server }) }, async (stage) => {
    const client = await pair.connect(stage);
    if (pair.isModernClient) await client.send('server/discover');
    await client.send('ping');
    await client.send('logging/setLevel', { level: 'warning' });
    await client.send('resources/list');
    await client.send('resources/templates/list');
    await client.send('resources/read', { uri: 'file:///a' });
    await client.send('resources/read', { uri: 'file:///b' });
    await client.send('prompts/list');
    await client.send('prompts/get', { name: 'hello' });
    await client.send('completion/complete', { ref: { type: 'ref/prompt', name: 'hello' }, argument: { name: 'a', value: '' } });
    await client.send('no/such');
    await client.notify('notifications/roots/list_changed');
    await client.notify('notifications/progress', { progressToken: 'q', progress: 1 });
  });

  scenario(`odd_bytes_${pair.name}`, { title: `bytes and headers that nobody would write: ${pair.title}`, ...pair.options({ upstream: server }) }, async (stage) => {
    const client = await pair.connect(stage);
    const meta = pair.isModernClient ? `,"_meta":${JSON.stringify(client.envelope())}` : '';
    const body = `\r\n{ "jsonrpc" : "2.0",\t"params":{"arguments":{"n":1.0,"e":1E+2,"big":123456789012345678901234567890,"u":"\\u00e9é😀"},"n\\u0061me":"read"${meta}},"id":"a\\"b","method":"tools/call"}\n`;
    await client.send('tools/call', { name: 'read' }, {
      id: 'a"b',
      body,
      headers: {
        'last-event-id': 'evt-9',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        tracestate: 'vendor=1',
        'x-custom': 'kept',
        'accept-encoding': 'gzip, br',
        connection: 'keep-alive, x-hop',
        'x-hop': 'dropped',
        te: 'trailers',
        'proxy-authorization': 'Basic abc',
        'x-forwarded-for': '1.2.3.4',
        cookie: 'a=b',
      },
    });
    stage.upstream.handlers['tools/call'] = ({ reply, id }) => reply.http(200, { 'Content-Type': 'application/json; charset=utf-8', 'X-Upstream': 'yes', 'set-cookie': 'c=d', 'cache-control': 'no-store' }, `{ "result" : ${JSON.stringify(pair.text('\u0068i', { x: 1 })).replace('"x":1', '"x" : 1.50')} ,"id":${JSON.stringify(id)}, "jsonrpc":"2.0" }\n`);
    await client.send('tools/call', { name: 'read', arguments: { a: [] } });
  });

  const rules = { rules: [['drop_*', 'deny']], expose: { mode: 'blocklist', tools: ['hidden'] } };
  scenario(`refused_${pair.name}`, { title: `what the gateway refuses itself: ${pair.title}`, ...pair.options({ upstream: { tools: tools('read', 'drop_table', 'hidden') }, ...rules }) }, async (stage) => {
    const client = await pair.connect(stage);
    await client.send('tools/list');
    await client.send('tools/call', { name: 'drop_table', arguments: {} });
    await client.send('tools/call', { name: 'hidden', arguments: {} });
    await client.send('tools/call', { name: 'no_such_tool', arguments: {} });
    await client.send('tools/call', { arguments: {} });
    await client.send('tools/call', { name: 'read', arguments: [] });
    await client.send('tasks/get', { taskId: 'none' });
    await client.send('tools/call', { name: 'read' }, { body: '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' });
    await client.send('tools/call', { name: 'read' }, { headers: { 'content-type': 'text/plain' } });
    await client.send('tools/call', { name: 'read' }, { headers: { accept: 'text/html' } });
    await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-protocol-version': '1999-01-01' } });
    await client.send('tools/call', { name: 'read' }, { headers: { origin: 'https://elsewhere.example' } });
    await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-session-id': 'another' } });
    await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-method': 'tools/list', 'mcp-name': 'write' } });
  });
}
