// Tasks of the server's own: forwarded, and followed by the gateway after an approval; messages during an execution.
import { elicit, PARTY } from '../integration/lib/asking.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { WITH_TASKS } from '../integration/lib/modern_client.mjs';
import { TASKS, tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';
import { accept } from '../integration/lib/bridged_stage.mjs';
import { answerTo, log, PAIRS, progress, responded, shown, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const BORN = '2026-01-02T03:04:05.000Z';
const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };
const PENDING = 'io.modelcontextprotocol/pending-elicitations';
const RESPONSE = 'io.modelcontextprotocol/elicitation-response';

/** A server whose calls are its own tasks. Each works for two looks; `asks`: it asks a form before it ends. */
function following(pair, { asks = false } = {}) {
  const looks = new Map();
  const answered = new Set();
  const base = (taskId, status, more = {}) => ({ taskId, status, createdAt: BORN, lastUpdatedAt: BORN, ...(pair.isModernServer ? { ttlMs: 60_000, pollIntervalMs: 20 } : { ttl: 60_000, pollInterval: 20 }), ...more });
  const done = (taskId) => pair.text(`did ${taskId}`, { structuredContent: { taskId } });
  const status = (taskId) => {
    const count = (looks.get(taskId) ?? 0) + 1;
    looks.set(taskId, count);
    if (count < 3) return 'working';
    return asks && !answered.has(taskId) ? 'input_required' : 'completed';
  };
  const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'up-1' } } };
  const handlers = {
    'tools/call': ({ reply, upstream }) => {
      const task = base(`up-${upstream.calls.length}`, 'working');
      return reply.result(pair.isModernServer ? { resultType: 'task', ...task } : { task });
    },
    'tasks/get': ({ reply, params }) => {
      const now = status(params.taskId);
      if (!pair.isModernServer) return reply.result(base(params.taskId, now));
      const more = { completed: { result: done(params.taskId) }, input_required: { inputRequests: { k: { method: 'elicitation/create', params: { mode: 'form', ...PARTY } } } } }[now];
      return reply.result(pair.result(base(params.taskId, now, more)));
    },
    'tasks/result': async ({ reply, params, upstream, recorded, id }) => {
      if (!asks) return reply.result({ ...done(params.taskId), ...related });
      const stream = reply.sse();
      stream.event({ jsonrpc: '2.0', ...elicit('q-1', { ...PARTY, ...related }) });
      const response = await responded(recorded, upstream, 'q-1');
      if (!response) return undefined;
      answered.add(params.taskId);
      stream.event(answerTo(id, { ...done(JSON.stringify(response.result)), ...related }));
      return stream.end();
    },
    'tasks/update': ({ reply, params }) => {
      answered.add(params.taskId);
      reply.result(pair.result());
    },
    'tasks/cancel': ({ reply, params }) => reply.result(pair.isModernServer ? pair.result() : base(params.taskId, 'cancelled')),
    'tasks/list': ({ reply, upstream }) => reply.result({ tasks: upstream.calls.map((_, i) => base(`up-${i + 1}`, 'working')) }),
  };
  return { tools: [tool('delete_user', { support: 'required' }), tool('read', { support: 'optional' })], capabilities: { tools: {}, ...(pair.isModernServer ? WITH_TASKS : { tasks: TASKS }) }, handlers };
}

const sessionEnds = async (pair, { upstream }) => {
  if (pair.name === 'modern_to_legacy') await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === upstream.calls[0].headers['mcp-session-id']);
};

for (const pair of PAIRS) {
  scenario(`server_task_${pair.name}`, { title: `a forwarded call becomes a task of the server's own: ${pair.title}`, ...pair.options({ upstream: following(pair) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    await client.send('tools/list');
    const { message } = await client.send('tools/call', { name: 'read', arguments: { n: 1 }, ...(pair.isModernClient ? {} : { task: { ttl: 60_000 } }) });
    const taskId = message.result?.task?.taskId ?? message.result?.taskId;
    if (!taskId) return;
    for (let i = 0; i < 3; i++) await client.send('tasks/get', { taskId });
    await client.send('tasks/result', { taskId });
    await client.send('tasks/list');
    await client.send('tasks/cancel', { taskId });
  });

  scenario(`server_task_plain_${pair.name}`, { title: `a forwarded call of a client without tasks becomes a task of the server's own: ${pair.title}`, ...pair.options({ upstream: following(pair) }) }, async (stage) => {
    const client = await pair.connect(stage);
    await client.send('tools/call', { name: 'read', arguments: { n: 1 } });
  });

  scenario(`server_task_approved_${pair.name}`, { title: `an approved call becomes a task of the server's own, which the gateway follows: ${pair.title}`, ...approving, ...pair.options({ upstream: following(pair) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const id = await pair.task(client, 'delete_user', { n: 1 });
    await stage.admin.approve(id);
    await stage.admin.inState(id, 'completed', 'failed');
    await pair.outcome(client, id);
    await sessionEnds(pair, stage);
  });

  scenario(`server_task_asks_${pair.name}`, { title: `a task of the server's own asks during an approved call: ${pair.title}`, ...approving, ...pair.options({ upstream: following(pair, { asks: true }) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks asked' });
    const id = await pair.task(client, 'delete_user', { n: 1 });
    await stage.admin.approve(id);
    const isAsked = (task) => (pair.isModernClient ? task.inputRequests : task._meta?.[PENDING]?.length > 0);
    const task = await shown(stage, client, id, isAsked, 'the question');
    await client.send('tasks/get', { taskId: id });
    if (pair.isModernClient) await client.send('tasks/update', { taskId: id, inputResponses: { [Object.keys(task.inputRequests)[0]]: accept() } });
    else await client.send('tasks/get', { taskId: id, _meta: { [RESPONSE]: { elicitationId: task._meta[PENDING][0].elicitationId, ...accept() } } });
    await stage.admin.inState(id, 'completed', 'failed');
    await pair.outcome(client, id);
    await sessionEnds(pair, stage);
  });

  scenario(`server_task_cancelled_${pair.name}`, { title: `a task of the server's own is cancelled with the approved call: ${pair.title}`, ...approving, ...pair.options({ upstream: { ...following(pair, { asks: true }) } }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks asked' });
    const id = await pair.task(client, 'delete_user', { n: 1 });
    await stage.admin.approve(id);
    await shown(stage, client, id, (task) => (pair.isModernClient ? task.inputRequests : task._meta?.[PENDING]?.length > 0), 'the question');
    await client.send('tasks/cancel', { taskId: id });
    await stage.upstream.received('tasks/cancel');
    await sessionEnds(pair, stage);
    await pair.outcome(client, id);
  });

  const held = [];
  const server = { tools: tools('delete_user'), capabilities: { tools: {}, logging: {} }, handlers: { 'tools/call': (call) => held.push(call) } };
  scenario(`progress_approved_${pair.name}`, { title: `progress and logs during an approved call: ${pair.title}`, ...approving, ...pair.options({ upstream: server }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const { message } = await client.send('tools/call', { name: 'delete_user', arguments: { n: 1 }, ...(pair.isModernClient ? {} : { task: { ttl: 600_000 } }), _meta: { progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'info' } });
    const id = message.result.task?.taskId ?? message.result.taskId;
    const listening = pair.isModernClient ? await client.stream('subscriptions/listen', { notifications: { taskIds: [id] } }) : await client.stream('tasks/result', { taskId: id });
    await stage.admin.approve(id);
    const call = await until(() => held[0], 'the call at the server');
    const stream = call.reply.sse();
    const token = call.params._meta?.progressToken ?? 'p';
    stream.event(progress(token, 1));
    stream.event(log('warning', 'on the way'));
    stream.event(progress(token, 2));
    stream.event(answerTo(call.id, pair.text('did it')));
    stream.end();
    await stage.admin.inState(id, 'completed');
    if (pair.isModernClient) await listening.message(({ params }) => params?.status === 'completed');
    else await listening.message((m) => m.id === listening.id);
    await pair.outcome(client, id);
    await sessionEnds(pair, stage);
  });
}
