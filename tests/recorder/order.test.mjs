// Orders that no single message shows: of a session's stream and its call, of two users of a session, of kept messages.
import { elicit } from '../integration/lib/asking.mjs';
import { accept } from '../integration/lib/bridged_stage.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { until } from '../integration/lib/wait.mjs';
import { answerTo, log, PAIRS, progress, responded, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const [LL, , ML] = PAIRS;
const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };
const sessionEnds = ({ upstream }, session) => upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === session);

for (const patience of ['opens', 'never opens']) {
  const name = patience === 'opens' ? 'stream_before_call' : 'stream_too_late';
  scenario(`${name}_modern_to_legacy`, {
    title: `the stream on which the server may ask ${patience} before an approved call: ${ML.title}`,
    ...approving,
    order: [/server: GET/, /server: POST tools\/call/],
    ...ML.options({ upstream: { tools: tools('delete_user') } }),
  }, async (stage) => {
    const { upstream } = stage;
    const client = await ML.connect(stage, 'client', { knows: 'tasks asked' });
    const id = await ML.task(client, 'delete_user', { n: 1 });
    if (patience !== 'opens') upstream.onHttp = ({ method }) => method === 'GET'; // it is never answered
    await stage.admin.approve(id);
    await stage.admin.inState(id, 'completed');
    await sessionEnds(stage, upstream.calls[0].headers['mcp-session-id']);
    await ML.outcome(client, id);
  });
}

for (const knows of ['asked', 'plain']) {
  const held = [];
  scenario(`two_users_${knows}_modern_to_legacy`, { title: `two calls at once of a client that ${knows === 'asked' ? 'can be asked' : 'cannot be asked'}: ${ML.title}`, ...ML.options({ upstream: { tools: tools('read'), handlers: { 'tools/call': (call) => held.push(call) } } }) }, async (stage) => {
    const client = await ML.connect(stage, 'client', { knows });
    const call = (n) => client.send('tools/call', { name: 'read', arguments: { n } });
    const first = call(1);
    await until(() => held[0], 'the first call');
    const second = call(2);
    await until(() => held[1], 'the second call');
    held[1].reply.result(ML.text('the second'));
    await second;
    held[0].reply.result(ML.text('the first'));
    await first;
    stage.note(`sessions of the two calls: ${new Set(held.map(({ session }) => session)).size}`);
  });
}

const meanwhile = [];
scenario('kept_messages_modern_to_legacy', {
  title: `messages that come while no request of the client is open: ${ML.title}`,
  ...ML.options({
    upstream: {
      tools: tools('read'),
      capabilities: { tools: {}, logging: {} },
      handlers: {
        'tools/call': async (call) => {
          const stream = call.reply.sse();
          const token = call.params._meta.progressToken;
          meanwhile.push(() => {
            stream.event(progress(token, 2));
            stream.event(log('error', 'meanwhile'));
            stream.event({ jsonrpc: '2.0', id: 'ping-1', method: 'ping' });
          });
          stream.event(progress(token, 1));
          stream.event({ jsonrpc: '2.0', ...elicit('q-1') });
          if (!(await responded(call.recorded, call.upstream, 'q-1'))) return;
          stream.event(progress(token, 3));
          stream.event(answerTo(call.id, ML.text('done')));
          stream.end();
        },
      },
    },
  }),
}, async (stage) => {
  const client = await ML.connect(stage, 'client', { knows: 'asked' });
  const params = { name: 'read', arguments: { n: 1 } };
  const meta = (progressToken) => ({ meta: { progressToken, 'io.modelcontextprotocol/logLevel': 'info' } });
  const { result } = (await client.send('tools/call', params, meta('first'))).message;
  meanwhile[0]();
  await stage.upstream.received((r) => r.rpc?.id === 'ping-1'); // all before it has been read, too
  await client.send('tools/call', { ...params, requestState: result.requestState, inputResponses: { [Object.keys(result.inputRequests)[0]]: accept() } }, meta('second'));
});

scenario('question_outlives_stream_legacy_to_legacy', { title: `a question on a GET stream that ends before it is answered: ${LL.title}`, ...LL.options({ upstream: { tools: tools('read') } }), config: { pseudo_tools: { promote: 'wait', only: 'all' } } }, async (stage) => {
  const { upstream } = stage;
  const client = await LL.connect(stage);
  const tool = (name, args = {}) => client.send('tools/call', { name, arguments: args });
  const get = await client.listen();
  const theirs = await until(() => [...upstream.getStreams].find(({ response }) => response.req.headers.authorization), 'the stream at the server');
  theirs.event({ jsonrpc: '2.0', ...elicit('q-1') });
  const open = async () => (await stage.twin(client).result('tools/call', { name: 'get_elicitations', arguments: {} })).structuredContent.elicitations[0]?.requestId;
  const id = await until(open, 'the question');
  get.abort();
  await until(() => upstream.getStreams.size === 0, 'the end of the stream');
  await client.listen();
  await tool('get_elicitations');
  await tool('respond_to_elicitation', { request_id: id, ...accept() });
  await upstream.received((r) => r.rpc?.id === 'q-1' && !r.rpc.method);
});
