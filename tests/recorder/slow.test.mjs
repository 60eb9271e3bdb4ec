// Slow calls: those that become tasks, those whose client leaves or cancels, and execute_tool.
import { workflow } from '../integration/lib/gateway.mjs';
import { until } from '../integration/lib/wait.mjs';
import { answerTo, log, PAIRS, progress, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const promoting = (wait, more = {}) => ({ pseudo_tools: { promote: 'wait', only: 'all', wait, wait_max: wait, ...more } });
const tool = (client, name, args, more = {}) => client.send('tools/call', { name, arguments: args, ...more }, { deadline: 15_000 });

/** A server that keeps its calls of `slow` in `held`. */
function holding(pair) {
  const held = [];
  const handlers = { 'tools/call': (call) => (call.params.name === 'slow' ? held.push(call) : call.reply.result(pair.text(`did ${call.params.name}`))) };
  return { held, upstream: { tools: tools('slow', 'read'), handlers } };
}
/** The task in the answer of a call that became one. */
const taskOf = ({ result }) => result.structuredContent?.proxy_task?.task_id ?? JSON.parse(result.content[1].text).proxy_task.task_id;
/** Once the gateway's own timers of `ms` ms are over: a call of another client with that wait has ended. */
async function passed(stage, ms) {
  const began = performance.now();
  await until(async () => (await stage.admin.get('/health')).status === 200 && performance.now() - began > ms, `${ms} ms`);
}
const next = (held, count = 1) => until(() => held[count - 1], `call ${count} at the server`);

for (const pair of PAIRS) {
  // Clients that have no tools of the gateway wait for as long as the server does.
  if (!pair.isModernClient) {
    const { held, upstream } = holding(pair);
    scenario(`slow_${pair.name}`, { title: `slow calls become tasks: ${pair.title}`, ...pair.options({ upstream }), config: promoting('400ms') }, async (stage) => {
      const { admin } = stage;
      const client = await pair.connect(stage);
      const { message } = await tool(client, 'slow', { n: 1 });
      const id = taskOf(message);
      held[0].reply.result(pair.text('at last', { structuredContent: { n: 7 } }));
      await admin.inState(id, 'completed');
      await tool(client, 'get_task_result', { task_id: id });

      // With messages on the way: before and after it becomes a task.
      const streaming = tool(client, 'slow', { n: 2 }, { _meta: { progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'info' } });
      const stream = (await next(held, 2)).reply.sse();
      stream.event(progress('p', 1));
      const second = await streaming;
      stream.event(progress('p', 2));
      stream.event(log('error', 'late'));
      stream.event(answerTo(held[1].id, pair.text('on a stream')));
      stream.end();
      const other = (await admin.list()).tasks.find((task) => task.id !== id).id;
      await admin.inState(other, 'completed');
      if (!second.text.includes(other)) stage.note('the answer names no task');
      await tool(client, 'get_task_result', { task_id: other });
    });
  }

  const slow = holding(pair);
  scenario(`slow_tasks_${pair.name}`, { title: `a slow call of a client that knows tasks stays one: ${pair.title}`, ...pair.options({ upstream: slow.upstream }), config: promoting('200ms') }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const answer = tool(client, 'slow', { n: 1 }, { _meta: { progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'info' } });
    const call = await next(slow.held);
    const stream = call.reply.sse();
    stream.event(progress('p', 1));
    await passed(stage, 400);
    stream.event(answerTo(call.id, pair.text('in time')));
    stream.end();
    await answer;
  });

  const left = holding(pair);
  if (!pair.isModernClient) scenario(`left_${pair.name}`, { title: `a client leaves its call, which goes on: ${pair.title}`, ...pair.options({ upstream: left.upstream }), config: promoting('60s') }, async (stage) => {
    const client = await pair.connect(stage);
    tool(client, 'slow', { n: 1 }).catch(() => {});
    const call = await next(left.held);
    client.close();
    const id = await until(async () => (await stage.admin.list()).tasks[0]?.id, 'the call as a task');
    call.reply.result(pair.text('nobody listens'));
    await stage.admin.inState(id, 'completed');
    const again = await pair.connect(stage, 'client again', { token: 'token of client' });
    again.session = client.session;
    await tool(again, 'slow', { n: 1 });
    await tool(again, 'get_task_result', { task_id: id });
  });

  const closed = holding(pair);
  scenario(`left_never_${pair.name}`, { title: `a client leaves its call, which ends with it: ${pair.title}`, ...pair.options({ upstream: closed.upstream }), config: { pseudo_tools: { promote: 'never' } } }, async (stage) => {
    const client = await pair.connect(stage);
    tool(client, 'slow', { n: 1 }).catch(() => {});
    const call = await next(closed.held);
    client.close();
    await call.recorded.gone;
    if (pair.name === 'modern_to_legacy') await stage.upstream.received('notifications/cancelled');
    stage.note(`the server's call was left: ${call.recorded.left}`);
  });

  const cancelled = holding(pair);
  scenario(`cancelled_${pair.name}`, { title: `a client cancels its call: ${pair.title}`, ...pair.options({ upstream: cancelled.upstream }), config: promoting('60s') }, async (stage) => {
    const client = await pair.connect(stage);
    const answer = tool(client, 'slow', { n: 1 }, { _meta: { progressToken: 'p' } }).catch(() => {});
    const call = await next(cancelled.held);
    await client.notify('notifications/cancelled', { requestId: 1, reason: 'of another call' });
    await client.notify('notifications/cancelled', { requestId: client.lastId, reason: 'no more' });
    if (pair.name === 'legacy_to_modern') return call.recorded.gone;
    if (!pair.isModernClient) await stage.upstream.received('notifications/cancelled', 2);
    call.reply.result(pair.text('too late'));
    return answer;
  });

  const executing = holding(pair);
  scenario(`cancelled_task_${pair.name}`, { title: `a client cancels its task while the server runs it: ${pair.title}`, ...pair.options({ upstream: executing.upstream }), rules: [['slow', 'approve']], approval: workflow('10m') }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const id = await pair.task(client, 'slow', { n: 1 });
    await stage.admin.approve(id);
    const call = await next(executing.held);
    await client.send('tasks/cancel', { taskId: id });
    await call.recorded.gone;
    if (pair.name === 'modern_to_legacy') await stage.upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === call.session);
    await pair.outcome(client, id);
  });

  const patient = holding(pair);
  if (!pair.isModernClient) scenario(`execute_tool_${pair.name}`, { title: `execute_tool, with a patience of the agent's own: ${pair.title}`, ...pair.options({ upstream: patient.upstream }), config: promoting('400ms') }, async (stage) => {
    const client = await pair.connect(stage);
    const execute = (name, args, timeout_ms, more) => tool(client, 'execute_tool', { server: 'up', tool: name, args, timeout_ms }, more);
    await execute('read', { n: 1.5 }, 10_000);
    await execute('no_such', {}, 10_000);
    await tool(client, 'execute_tool', { server: 'elsewhere', tool: 'read', args: {} });
    const answer = execute('slow', { n: 1 }, 0);
    const call = await next(patient.held);
    const id = taskOf((await answer).message);
    call.reply.result(pair.text('later'));
    await stage.admin.inState(id, 'completed');
    await tool(client, 'get_task_result', { task_id: id });
  });
}
