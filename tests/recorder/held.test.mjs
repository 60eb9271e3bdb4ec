// Held calls: of clients that know tasks, of those that wait, and of those whose wait ends before.
import { workflow } from '../integration/lib/gateway.mjs';
import { PAIRS, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };

const server = (pair) => ({
  tools: tools('delete_user', 'read'),
  handlers: {
    'tools/call': ({ reply, params }) => {
      if (params.arguments.n === 4) return reply.error(-32602, 'wrong arguments', { field: 'n' });
      return reply.result(pair.text(`did ${params.name}`, { structuredContent: params.arguments, ...(params.arguments.n === 5 ? { isError: true } : {}) }));
    },
  },
});

const tool = (client, name, args) => client.send('tools/call', { name, arguments: args }, { deadline: 15_000 });
const delay = (wait) => ({ config: { pseudo_tools: { promote: 'wait', only: 'all', wait, wait_max: wait } } });

for (const pair of PAIRS) {
  const options = pair.options({ upstream: server(pair), ...approving });

  scenario(`approved_${pair.name}`, { title: `calls that become tasks, and their ends: ${pair.title}`, ...options }, async (stage) => {
    const { admin } = stage;
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    await client.send('tools/list');
    const ask = (n) => pair.task(client, 'delete_user', { n, odd: [1.5, null] }, { _meta: { 'example.com/mine': 1, progressToken: 'p' } });
    const id = await ask(1);
    await client.send('tasks/get', { taskId: id });
    await admin.approve(id, 'fine');
    await admin.inState(id, 'completed');
    await client.send('tasks/get', { taskId: id });
    await pair.outcome(client, id);
    const rejected = await ask(2);
    await admin.reject(rejected, 'not today');
    await pair.outcome(client, rejected);
    const cancelled = await ask(3);
    await client.send('tasks/cancel', { taskId: cancelled });
    await pair.outcome(client, cancelled);
    for (const [n, state] of [[4, 'failed'], [5, 'completed', 'failed']]) {
      const failed = await ask(n);
      await admin.approve(failed);
      await admin.inState(failed, state, 'failed');
      await pair.outcome(client, failed);
    }
    await client.send('tasks/list');
    await client.send('tasks/get', { taskId: 'tg_00000000-0000-4000-8000-000000000000' });
  });

  scenario(`held_${pair.name}`, { title: `a client without tasks waits for the vote: ${pair.title}`, ...options, ...delay('60s') }, async (stage) => {
    const { admin } = stage;
    const client = await pair.connect(stage);
    await client.send('tools/list');
    for (const [n, verb] of [[1, 'approve'], [2, 'reject'], [3, 'cancel'], [4, 'approve'], [5, 'approve']]) {
      const answer = tool(client, 'delete_user', { n });
      const { id } = await admin.pending();
      await admin.decided(verb, id, 'so be it');
      await answer;
    }
  });

  scenario(`pending_${pair.name}`, { title: `the wait of a client without tasks ends before the vote: ${pair.title}`, ...options, ...delay('300ms') }, async (stage) => {
    const { admin } = stage;
    const client = await pair.connect(stage);
    await tool(client, 'delete_user', { n: 1 });
    const { id } = await admin.pending();
    await tool(client, 'get_task', { task_id: id });
    await tool(client, 'delete_user', { n: 1 });
    await tool(client, 'list_tasks', {});
    const outcome = tool(client, 'get_task_result', { task_id: id });
    await admin.approve(id, 'fine');
    await outcome;
    await admin.inState(id, 'completed');
    await tool(client, 'get_task_result', { task_id: id });
    await tool(client, 'delete_user', { n: 1 });
    await tool(client, 'delete_user', { n: 2 });
    const second = await admin.pending(({ id: other }) => other !== id);
    await tool(client, 'cancel_task', { task_id: second.id });
    await tool(client, 'get_task_result', { task_id: second.id });
  });
}
