// The life of a task: get, list, wait, cancel, its end, and the clients that may see it.
import { callToolResult, listTasksResult, task as taskShape } from '../shapes.mjs';
import { isTerminal, RELATED_TASK } from '../run.mjs';
import { demand, demandCode, errorOf, fail, isObject, outcome, resultOf, shown, skip } from '../verdict.mjs';

const TASKS = 'MCP 2025-11-25 Tasks';
const ADVERTISED = ['tasks-capability-advertised'];
const CREATED = ['task-id-returned'];

const requireCapability = (run, name) => run.capabilities.tasks[name] ?? skip(`capabilities.tasks.${name} is not advertised`);

const unknownTask = (method, row) => ({
  name: `${method.replace('/', '-')}-unknown-refused`,
  source: `seed 002 §9.5 ${row} / ${TASKS}, Error Handling: -32602`,
  needs: ADVERTISED,
  async check(run) {
    if (method === 'tasks/cancel') requireCapability(run, 'cancel');
    demandCode(await run.client.send(method, { taskId: run.unknownId() }), -32602);
  },
});

const hidden = (method) => ({
  name: `isolation-${method.replace('/', '-')}`,
  source: `${TASKS}, Security: Task Isolation and Access Control`,
  needs: CREATED,
  async check(run) {
    if (method === 'tasks/cancel') requireCapability(run, 'cancel');
    const { taskId } = await run.firstTask();
    const stranger = await run.stranger();
    const answer = await stranger.send(method, { taskId });
    demand(isObject(answer.message?.error), `another client's ${method}: ${outcome(answer)} instead of an error`);
    const error = errorOf(answer);
    demand(error.code === -32602, `another client's ${method}: error ${error.code} instead of -32602`);
  },
});

export const taskLife = [
  unknownTask('tasks/get', 'EC-SEP-005'),
  unknownTask('tasks/result', 'EC-SEP-006'),
  unknownTask('tasks/cancel', 'EC-SEP-007'),
  {
    name: 'tasks-get-without-id-refused',
    source: `${TASKS}, Error Handling: an invalid taskId is -32602`,
    needs: ADVERTISED,
    check: async (run) => void demandCode(await run.client.send('tasks/get', {}), -32602),
  },
  {
    name: 'tasks-get-shape',
    source: `${TASKS}; schema GetTaskResult`,
    needs: CREATED,
    async check(run) {
      const { taskId } = await run.firstTask();
      const task = await run.get(taskId);
      const wrong = taskShape(task, 'result');
      demand(!wrong, wrong);
      demand(task.taskId === taskId, `asked for ${taskId}, answered ${shown(task.taskId)}`);
      return task.status;
    },
  },
  {
    name: 'tasks-get-ttl-kept',
    source: `${TASKS}, TTL and Resource Management`,
    needs: ['tasks-get-shape', 'task-create-nested'],
    async check(run) {
      const { taskId, result } = await run.firstTask();
      const { ttl } = await run.get(taskId);
      demand(ttl === result.task.ttl, `created with the ttl ${shown(result.task.ttl)}, now ${shown(ttl)}`);
    },
  },
  {
    name: 'tasks-list-shape',
    source: `${TASKS}; schema ListTasksResult`,
    needs: ADVERTISED,
    async check(run) {
      const pages = await listed(run);
      for (const [at, page] of pages.entries()) {
        const wrong = listTasksResult({ ...page, nextCursor: undefined }, `page ${at + 1}`) ?? page.tasks.map((task, n) => taskShape(task, `tasks[${n}]`)).find(Boolean);
        demand(!wrong, wrong);
      }
    },
  },
  {
    name: 'tasks-list-complete',
    source: `seed 002 F-006.5 / ${TASKS}, Listing Tasks`,
    needs: ['tasks-list-shape', 'task-id-returned'],
    async check(run) {
      if (!run.client.session && !Object.keys(run.options.headers).length) skip('without a session and credentials nobody owns a list');
      const ids = tasksIn(await listed(run)).map(({ taskId }) => taskId);
      const missing = (await run.severalTasks()).filter((taskId) => !ids.includes(taskId));
      demand(missing.length === 0, `tasks/list has ${ids.length} tasks, and not ${missing[0]}`);
      return `${ids.length} tasks`;
    },
  },
  {
    name: 'tasks-list-cursors-end',
    source: `${TASKS}, Listing Tasks; official SDK: nextCursor is never null`,
    needs: ['tasks-list-shape'],
    async check(run) {
      const pages = await listed(run);
      for (const { nextCursor } of pages) demand(nextCursor === undefined || typeof nextCursor === 'string', `nextCursor is ${shown(nextCursor)}`);
      demand(!pages.endless, pages.endless);
      const ids = tasksIn(pages).map(({ taskId }) => taskId);
      const twice = ids.find((id, at) => ids.indexOf(id) !== at);
      demand(twice === undefined, `${twice} is listed twice`);
      return pages.length === 1 ? '1 page; see more with --tasks' : `${pages.length} pages`;
    },
  },
  {
    name: 'tasks-list-cursor-unknown-refused',
    source: `${TASKS}, Error Handling: -32602`,
    needs: ADVERTISED,
    async check(run) {
      requireCapability(run, 'list');
      demandCode(await run.client.send('tasks/list', { cursor: 'compliance-no-such-cursor' }), -32602);
    },
  },
  {
    name: 'tasks-result-blocks',
    source: `seed 002 §9.5 EC-SEP-009 / ${TASKS}, Result Retrieval`,
    needs: ['tasks-get-shape'],
    async check(run) {
      const { before, early } = await waitedFor(run);
      demand(!early, `tasks/result is answered while the task is ${before.status}`);
      return `${before.status} for ${run.options.patience} ms`;
    },
  },
  {
    name: 'tasks-cancel-shape',
    source: `seed 002 §6.6 / ${TASKS}; schema CancelTaskResult`,
    needs: ['tasks-get-shape'],
    async check(run) {
      const { taskId, answer } = await waitedFor(run);
      const task = resultOf(answer);
      const wrong = taskShape(task, 'result');
      demand(!wrong, wrong);
      demand(task.taskId === taskId && task.status === 'cancelled', `the answer is ${shown([task.taskId, task.status])}`);
    },
  },
  {
    name: 'tasks-methods-routed',
    source: 'seed 002 §9.3 Task method routing (one --tool for each owner)',
    seedOnly: true,
    needs: ['tasks-get-shape', 'tasks-list-shape', 'tasks-cancel-shape'],
    async check(run) {
      const seen = [];
      for (const tool of await run.taskTools()) {
        const { taskId } = await run.create(undefined, tool);
        demand((await run.get(taskId)).taskId === taskId, `tasks/get has no ${taskId}`);
        demand(tasksIn(await run.pages('tasks/list')).some((task) => task.taskId === taskId), `tasks/list has no ${taskId}`);
        const answer = await run.ask('tasks/cancel', { taskId });
        const ended = isObject(answer.message?.error) && isTerminal(await run.get(taskId));
        demand(ended || resultOf(answer).taskId === taskId, `tasks/cancel of ${taskId}: ${outcome(answer)}`);
        seen.push(`${tool.name}: ${taskId}`);
      }
      return seen.join(', ');
    },
  },
  {
    name: 'tasks-cancel-sticks',
    source: `${TASKS}, Task Cancellation: it remains cancelled`,
    needs: ['tasks-cancel-shape'],
    async check(run) {
      const { status } = await run.get((await waitedFor(run)).taskId);
      demand(status === 'cancelled', `after tasks/cancel the task is ${shown(status)}`);
    },
  },
  {
    name: 'tasks-cancel-again-refused',
    source: `seed 002 §9.5 EC-SEP-008 / ${TASKS}, Task Cancellation: -32602`,
    needs: ['tasks-cancel-shape'],
    check: async (run) => void demandCode(await run.ask('tasks/cancel', { taskId: (await waitedFor(run)).taskId }), -32602),
  },
  {
    name: 'tasks-result-ends-with-task',
    source: `${TASKS}, Result Retrieval: until a terminal status`,
    needs: ['tasks-result-blocks', 'tasks-cancel-shape'],
    async check(run) {
      const answer = await (await waitedFor(run)).waiter;
      demand(isObject(answer.message), `${outcome(answer)} after the task was cancelled`);
      return isObject(answer.message.error) ? `error ${answer.message.error.code}` : 'a result';
    },
  },
  {
    name: 'task-ends',
    source: `seed 002 §9.2 / ${TASKS}, Task Status Lifecycle: failed when the tool says isError`,
    needs: ['tasks-get-shape'],
    async check(run) {
      const { last, statuses } = await run.endedTask();
      const { message } = await resultOfEnded(run);
      const due = message?.result?.isError === true ? 'failed' : 'completed';
      const seen = `${statuses.join(', ')}${last.statusMessage ? ` (${last.statusMessage})` : ''}`;
      demand(isObject(message?.result), `${seen}, and tasks/result is ${shown(message)}; are the --arguments right?`);
      demand(last.status === due, `${seen}, and not ${due}, as tasks/result would have it: ${shown(message)}`);
      return seen;
    },
  },
  {
    name: 'tasks-result-shape',
    source: `seed 002 §6.6 / ${TASKS}: what the call would have returned`,
    needs: ['task-ends'],
    async check(run) {
      const wrong = callToolResult(resultOf(await resultOfEnded(run)), 'result');
      demand(!wrong, wrong);
    },
  },
  {
    name: 'tasks-result-related-task',
    source: `${TASKS}, Related Task Metadata`,
    needs: ['task-ends'],
    async check(run) {
      const { taskId } = await run.endedTask();
      const { _meta } = resultOf(await resultOfEnded(run));
      demand(_meta?.[RELATED_TASK]?.taskId === taskId, `_meta is ${shown(_meta)}`);
    },
  },
  {
    name: 'tasks-result-repeatable',
    source: `${TASKS}, Result Retrieval: for as long as the task is kept`,
    needs: ['task-ends'],
    async check(run) {
      const first = resultOf(await resultOfEnded(run));
      const second = resultOf(await run.client.send('tasks/result', { taskId: (await run.endedTask()).taskId }));
      demand(JSON.stringify(first) === JSON.stringify(second), `first ${shown(first)}, then ${shown(second)}`);
    },
  },
  {
    name: 'tasks-cancel-ended-refused',
    source: `seed 002 §9.5 EC-SEP-008 / ${TASKS}, Task Cancellation: -32602`,
    needs: ['task-ends'],
    async check(run) {
      requireCapability(run, 'cancel');
      const { taskId, last } = await run.endedTask();
      demandCode(await run.ask('tasks/cancel', { taskId }), -32602);
      const { status } = await run.get(taskId);
      demand(status === last.status, `the task was ${last.status}, and is now ${shown(status)}`);
    },
  },
  {
    name: 'task-rejected-fails',
    source: `${TASKS}, Task Status: failed, and the reason in statusMessage`,
    needs: ['tasks-get-shape'],
    async check(run) {
      const { last } = await run.rejectedTask();
      const said = typeof last.statusMessage === 'string' && last.statusMessage !== '';
      demand(last.status === 'failed' && said, `after a rejection the task is ${shown([last.status, last.statusMessage])}`);
      return last.statusMessage;
    },
  },
  {
    name: 'task-rejected-result',
    source: `${TASKS}, Result Retrieval: an error for a call that was not run`,
    needs: ['task-rejected-fails'],
    async check(run) {
      const answer = await run.client.send('tasks/result', { taskId: (await run.rejectedTask()).taskId });
      if (isObject(answer.message?.error)) return `error ${answer.message.error.code}`;
      return demand(resultOf(answer).isError === true, `the result of a rejected task is ${outcome(answer)}`);
    },
  },
  {
    name: 'task-status-stream',
    source: 'seed 002 §6.7, §9.4: task_status events exactly when advertised',
    seedOnly: true,
    needs: ['get-stream-or-405', 'task-status-capability-shape', 'tasks-cancel-shape'],
    async check(run) {
      const advertised = run.capabilities.notifications?.tasks?.status === true;
      const stream = await run.stream();
      if (!advertised) return silent(run, stream);
      demand(stream.opened, `advertised, and GET is HTTP ${stream.status}`);
      const { taskId } = await waitedFor(run);
      const found = await run.until(() => stream.seen.find((event) => event.event === 'task_status' && event.json?.taskId === taskId && event.json.status === 'cancelled'));
      demand(found, `no event task_status says that ${taskId} was cancelled; seen: ${shown(stream.seen.map(({ event, json }) => event ?? json?.method))}`);
      demand(typeof found.json.timestamp === 'string', `the event has no timestamp: ${shown(found.json)}`);
      return 'advertised, and the event came';
    },
  },
  hidden('tasks/get'),
  hidden('tasks/result'),
  {
    name: 'isolation-tasks-list',
    source: `${TASKS}, Security: Task Isolation and Access Control`,
    needs: ['tasks-list-shape', 'task-id-returned'],
    async check(run) {
      const stranger = await run.stranger();
      const theirs = tasksIn(await run.pages('tasks/list', stranger)).find(({ taskId }) => run.idsGiven.includes(taskId));
      demand(!theirs, `another client's tasks/list has ${theirs?.taskId}`);
    },
  },
  hidden('tasks/cancel'),
  {
    name: 'isolation-gives-nothing-away',
    source: `${TASKS}, Security: a foreign task is like none`,
    needs: ['isolation-tasks-get', 'tasks-get-unknown-refused'],
    async check(run) {
      const { taskId } = await run.firstTask();
      const stranger = await run.stranger();
      const foreign = errorOf(await stranger.send('tasks/get', { taskId }));
      const unknownId = run.unknownId();
      const unknown = errorOf(await stranger.send('tasks/get', { taskId: unknownId }));
      const [one, other] = [foreign.message.replaceAll(taskId, 'ID'), unknown.message.replaceAll(unknownId, 'ID')];
      demand(one === other, `a foreign task: ${shown(one)}; an unknown one: ${shown(other)}`);
    },
  },
];

const tasksIn = (pages) => pages.flatMap((page) => (Array.isArray(page.tasks) ? page.tasks.filter(isObject) : []));

/** All pages of tasks/list, with as many tasks in them as --tasks says. */
function listed(run) {
  return run.once('tasks/list', async () => {
    requireCapability(run, 'list');
    await run.severalTasks().catch(() => {}); // an empty list has a shape, too
    const pages = await run.pages('tasks/list');
    for (const page of pages) run.seen('tasks/list', { message: { result: page } });
    return pages;
  });
}

/** The cancelled task, as far as it lived long enough to be waited for. */
async function waitedFor(run) {
  requireCapability(run, 'cancel');
  const waited = await run.cancelledTask();
  if (isTerminal(waited.before)) skip(`the task was ${waited.before.status} before it could be waited for; name a slower tool with --tool`);
  return waited;
}

const resultOfEnded = (run) => run.once('result of the ended task', async () => run.client.send('tasks/result', { taskId: (await run.endedTask()).taskId }));

function silent(run, stream) {
  const heard = stream.seen.find(({ event }) => event === 'task_status');
  if (heard) fail(`not advertised, and the event task_status came: ${shown(heard.json)}`);
  return stream.opened ? 'not advertised, and none came' : 'not advertised, and there is no stream';
}
