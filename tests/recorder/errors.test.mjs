// Servers that refuse, break or keep silent: at the call of a client, and at a call that was approved.
import { workflow } from '../integration/lib/gateway.mjs';
import { until } from '../integration/lib/wait.mjs';
import { answerTo, PAIRS, progress, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const JSON_TYPE = { 'content-type': 'application/json' };
const rpcError = (id, code, message, data) => JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } });

/** Answers that are no good, by the name that a call gives in its arguments. */
const REPLIES = {
  'status 401': ({ reply }) => reply.http(401, { 'www-authenticate': 'Bearer resource_metadata="https://a.example/x"', 'x-internal': '1' }, 'who are you'),
  'status 403': ({ reply }) => reply.http(403, { 'www-authenticate': 'Bearer error="insufficient_scope"', ...JSON_TYPE }, '{"error":"no"}'),
  'status 404': ({ reply, id }) => reply.http(404, JSON_TYPE, rpcError(id, -32601, 'Method not found')),
  'status 429': ({ reply }) => reply.http(429, { 'retry-after': '7' }, 'slower'),
  'status 500': ({ reply }) => reply.http(500, { 'content-type': 'text/plain' }, 'broken'),
  'status 503': ({ reply }) => reply.http(503, { 'retry-after': '3' }, 'later'),
  'status 202': ({ reply }) => reply.http(202),
  'status 307': ({ reply }) => reply.http(307, { location: 'http://elsewhere.example/' }),
  'error with status 400': ({ reply, id }) => reply.http(400, JSON_TYPE, rpcError(id, -32602, 'wrong arguments', { a: 1 })),
  'header mismatch': ({ reply, id }) => reply.http(400, JSON_TYPE, rpcError(id, -32020, 'mismatch')),
  'own code': ({ reply }) => reply.error(-32002, 'of the server', { own: true }),
  'missing capability': ({ reply, id }) => reply.http(400, JSON_TYPE, rpcError(id, -32021, 'missing', { requiredCapabilities: { sampling: {} } })),
  'url elicitation': ({ reply }) => reply.error(-32042, 'sign in first', { elicitations: [{ mode: 'url', elicitationId: 'visit-1', url: 'https://sign.in.example/', message: 'Sign in' }] }),
  'no JSON': ({ reply }) => reply.http(200, JSON_TYPE, '{"jsonrpc":"2.0","id":'),
  'no JSON-RPC': ({ reply }) => reply.http(200, { 'content-type': 'text/plain' }, 'surprise'),
  'another id': ({ reply }) => reply.http(200, JSON_TYPE, JSON.stringify(answerTo('another', { content: [] }))),
  'no body': ({ reply }) => reply.http(200, JSON_TYPE),
  'cut before the head': ({ reply }) => reply.cut(),
  'two answers': ({ reply, id, pair }) => {
    const stream = reply.sse();
    stream.event(answerTo(id, pair.text('the first')));
    stream.event(answerTo(id, pair.text('the second')));
    stream.end();
  },
  'stream without JSON': ({ reply, id, pair }) => {
    const stream = reply.sse();
    stream.raw('data: {"jsonrpc":\n\n');
    stream.event(answerTo(id, pair.text('after it')));
    stream.end();
  },
  // The last one: the gateway tries to resume it, and lists may be fetched anew after it.
  'stream without an answer': ({ reply }) => {
    const stream = reply.sse();
    stream.event(progress('p', 1));
    stream.end();
  },
};

const server = (pair) => ({ tools: tools('read', 'delete_user'), handlers: { 'tools/call': (call) => REPLIES[call.params.arguments.reply]({ ...call, pair }) } });

for (const pair of PAIRS) {
  scenario(`errors_${pair.name}`, { title: `answers that are no good, at forwarded calls: ${pair.title}`, ...pair.options({ upstream: server(pair) }) }, async (stage) => {
    const client = await pair.connect(stage);
    for (const reply of Object.keys(REPLIES)) await client.send('tools/call', { name: 'read', arguments: { reply }, _meta: { progressToken: 'p' } });
  });

  scenario(`errors_asked_${pair.name}`, { title: `answers that are no good, at forwarded calls of a client that can be asked: ${pair.title}`, ...pair.options({ upstream: server(pair) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks asked' });
    for (const reply of ['status 401', 'status 503', 'own code', 'url elicitation', 'missing capability', 'no JSON', 'cut before the head']) await client.send('tools/call', { name: 'read', arguments: { reply } });
  });

  // The cut by itself: once the server is back the tools are listed anew, for the client or for the call, as time decides.
  const cut = 'cut before the head';
  for (const [name, replies] of [['errors_approved', Object.keys(REPLIES).filter((reply) => reply !== cut)], ['cut_approved', [cut]]]) scenario(`${name}_${pair.name}`, { title: `answers that are no good, at approved calls: ${pair.title}`, ...pair.options({ upstream: server(pair) }), rules: [['delete_*', 'approve']], approval: workflow('10m') }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks asked' });
    for (const reply of replies) {
      const id = await pair.task(client, 'delete_user', { reply });
      await stage.admin.approve(id);
      // Refused credentials bring the call back to its approval.
      const { state } = await until(async () => {
        const task = await stage.admin.task(id);
        return (['completed', 'failed'].includes(task.state) || /refused the credentials/.test(task.statusMessage)) && task;
      }, `the end of ${reply}`);
      await (state === 'approved' ? client.send('tasks/cancel', { taskId: id }) : pair.outcome(client, id));
    }
  });

  scenario(`session_forgotten_${pair.name}`, { title: `the server forgets the session: ${pair.title}`, ...pair.options({ upstream: { tools: tools('read') } }) }, async (stage) => {
    const client = await pair.connect(stage);
    const call = () => client.send('tools/call', { name: 'read', arguments: { n: 1 } });
    await call();
    stage.upstream.liveSessions.clear();
    await call();
    await call();
    stage.upstream.liveSessions.clear();
    await client.send('tools/list');
  });

  scenario(`unreachable_${pair.name}`, { title: `the server is away for a while: ${pair.title}`, ...pair.options({ upstream: { tools: tools('read', 'delete_user') } }), rules: [['delete_*', 'approve']], approval: workflow('10m') }, async (stage) => {
    stage.upstream.server.maxRequestsPerSocket = 1; // no connection is left over
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const call = () => client.send('tools/call', { name: 'read', arguments: { n: 1 } });
    await call();
    const id = await pair.task(client, 'delete_user');
    stage.serverTap.refuse();
    await call();
    await client.send('tools/list');
    await stage.admin.approve(id);
    await stage.admin.inState(id, 'failed');
    await pair.outcome(client, id);
    await stage.serverTap.accept();
    await call();
  });

  scenario(`silence_${pair.name}`, { title: `a server that keeps silent: ${pair.title}`, ...pair.options({ upstream: { tools: tools('read', 'delete_user'), handlers: { 'tools/call': () => {} } } }), rules: [['delete_*', 'approve']], approval: workflow('10m'), env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '1' } }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    await client.send('tools/call', { name: 'read', arguments: {} });
    const id = await pair.task(client, 'delete_user');
    await stage.admin.approve(id);
    await stage.admin.inState(id, 'completed', 'failed');
    await pair.outcome(client, id);
  });
}

const [LL] = PAIRS;
scenario('refused_thrice_legacy_to_legacy', { title: `the server refuses the credentials of three tries: ${LL.title}`, ...LL.options({ upstream: { tools: tools('delete_user'), authorize: ({ rpc }) => (rpc?.method === 'tools/call' ? 401 : undefined) } }), rules: [['delete_*', 'approve']], approval: workflow('10m') }, async (stage) => {
  const client = await LL.connect(stage, 'client', { knows: 'tasks' });
  const id = await LL.task(client, 'delete_user', { n: 1 });
  await stage.admin.approve(id);
  for (const next of ['second', 'third', undefined]) {
    await until(async () => /refused/.test((await stage.admin.task(id)).statusMessage), 'the refusal');
    if (!next) break;
    client.headers.authorization = `Bearer ${next}`;
    const count = stage.upstream.calls.length;
    await stage.twin(client).send('tasks/get', { taskId: id });
    await stage.upstream.received('tools/call', count + 1);
    await until(async () => (await stage.admin.task(id)).state !== 'executing', 'the end of a try');
  }
  await LL.outcome(client, id);
});
