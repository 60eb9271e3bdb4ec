// Tasks from their advertisement to their creation: capabilities, the announcement of each tool, time to live, the answer to a create.
import { Client } from '../client.mjs';
import { PROTOCOL } from '../run.mjs';
import { task as taskShape } from '../shapes.mjs';
import { demand, demandCode, errorOf, isObject, outcome, resultOf, shown, skip } from '../verdict.mjs';

const TASKS = 'MCP 2025-11-25 Tasks';
const ADVERTISED = ['tasks-capability-advertised'];
const CREATED = ['task-id-returned'];
const OVER_EVERY_MAXIMUM = 1_000_000_000_000; // 31 years

/** Demands that each of these values of `task` is refused, and that nothing is created. */
async function refusedAsTask(run, values) {
  for (const value of values) {
    const answer = await run.callAsTask(value);
    demand(isObject(answer.message?.error), `task: ${shown(value)}: ${outcome(answer)} instead of -32602`);
    const { code } = errorOf(answer);
    demand(code === -32602, `task: ${shown(value)}: error ${code} instead of -32602`);
  }
}

const badTtl = (name, source, ttl) => ({ name, source, seedOnly: true, needs: ADVERTISED, check: (run) => refusedAsTask(run, [{ ttl }]) });

/** The answer to a call without a task of a tool that demands one. */
function unaugmentedCall(run) {
  return run.once('call without a task', async () => {
    const { name, arguments: args, support } = await run.taskTool();
    if (support !== 'required') skip(`taskSupport of ${name} is ${support}; name a tool that requires tasks with --tool`);
    return run.client.send('tools/call', { name, arguments: args });
  });
}

export const tasks = [
  {
    name: 'tasks-capability-advertised',
    source: 'seed 002 §9.3 Capability advertisement / MCP 2025-11-25 Lifecycle',
    check: (run) => demand(isObject(run.capabilities.tasks), `capabilities.tasks is ${shown(run.capabilities.tasks)}`),
  },
  {
    name: 'tasks-capability-objects',
    source: `${TASKS}, Capabilities; official SDK: members are objects`,
    needs: ADVERTISED,
    check(run) {
      const { list, cancel, requests } = run.capabilities.tasks;
      demand(list === undefined || isObject(list), `tasks.list is ${shown(list)}`);
      demand(cancel === undefined || isObject(cancel), `tasks.cancel is ${shown(cancel)}`);
      demand(isObject(requests?.tools?.call), `tasks.requests is ${shown(requests)}, without an object tools.call`);
      return shown(run.capabilities.tasks);
    },
  },
  {
    name: 'tasks-capability-seed-spelling',
    source: 'seed 002 §5.1, F-001.4: "tools/call": true',
    seedOnly: true,
    needs: ADVERTISED,
    check(run) {
      const { requests } = run.capabilities.tasks;
      demand(requests?.['tools/call'] === true, `tasks.requests is ${shown(requests)}`);
    },
  },
  {
    name: 'task-status-capability-shape',
    source: 'seed 002 §6.1: notifications.tasks.status is true or absent',
    seedOnly: true,
    needs: ADVERTISED,
    check(run) {
      const { notifications } = run.capabilities;
      if (!isObject(notifications) || notifications.tasks === undefined) return 'not advertised';
      demand(notifications.tasks?.status === true, `capabilities.notifications is ${shown(notifications)}`);
      return 'advertised';
    },
  },
  {
    name: 'task-status-as-upstream',
    source: 'seed 002 §9.3 Conditional SSE advertisement, §9.4',
    seedOnly: true,
    needs: ['task-status-capability-shape'],
    async check(run) {
      const { upstream, headers, timeout } = run.options;
      if (!upstream) skip('what stands behind the endpoint is not known; give --upstream');
      const client = new Client(upstream, { headers, timeout });
      try {
        const theirs = resultOf(await client.initialize(PROTOCOL, {})).capabilities?.notifications?.tasks?.status === true;
        const ours = run.capabilities.notifications?.tasks?.status === true;
        demand(ours === theirs, `${ours ? 'advertised' : 'not advertised'}, but ${theirs ? '' : 'not '}by the server behind`);
        return `${ours ? 'advertised' : 'not advertised'}, like the server behind`;
      } finally {
        await client.end();
        client.close();
      }
    },
  },
  {
    name: 'task-required-refused',
    source: `${TASKS}, Tool-Level Negotiation: required without a task is an error`,
    needs: ADVERTISED,
    async check(run) {
      const answer = await unaugmentedCall(run);
      demand(isObject(answer.message?.error), `${outcome(answer)} instead of an error`);
      return `error ${answer.message.error.code}`;
    },
  },
  {
    name: 'task-required-code',
    source: 'seed 002 F-004.4, §6.8: -32009 TaskRequired',
    seedOnly: true,
    needs: ['task-required-refused'],
    async check(run) {
      const error = demandCode(await unaugmentedCall(run), -32009);
      demand(error.message === 'TaskRequired', `the message is ${shown(error.message)} instead of "TaskRequired"`);
    },
  },
  {
    name: 'task-required-data',
    source: 'seed 002 §6.8: data.tool, data.reason, data.hint',
    seedOnly: true,
    needs: ['task-required-code'],
    async check(run) {
      const { data } = errorOf(await unaugmentedCall(run));
      const { name } = await run.taskTool();
      const said = [data?.reason, data?.hint].every((text) => typeof text === 'string' && text !== '');
      demand(data?.tool === name && said, `data is ${shown(data)}`);
    },
  },
  {
    name: 'task-malformed-refused',
    source: 'seed 002 §9.5 EC-SEP-001: -32602',
    seedOnly: true,
    needs: ADVERTISED,
    check: (run) => refusedAsTask(run, ['soon', 5, [], null, true]),
  },
  badTtl('task-ttl-zero-refused', 'seed 002 §9.5 EC-SEP-002: -32602', 0),
  badTtl('task-ttl-negative-refused', 'seed 002 F-004.5: a positive integer', -1),
  badTtl('task-ttl-string-refused', 'seed 002 F-004.5; schema TaskMetadata.ttl: integer', '60000'),
  badTtl('task-ttl-fraction-refused', 'seed 002 F-004.5; schema TaskMetadata.ttl: integer', 1000.5),
  {
    name: 'task-id-returned',
    source: `seed 002 §9.3 Task metadata handling / ${TASKS}, Creating Tasks`,
    needs: ADVERTISED,
    async check(run) {
      await run.taskTool();
      return (await run.firstTask()).taskId;
    },
  },
  {
    name: 'task-create-nested',
    source: `${TASKS}; schema CreateTaskResult: result.task`,
    needs: CREATED,
    async check(run) {
      const wrong = taskShape((await run.firstTask()).result.task, 'result.task');
      demand(!wrong, wrong);
    },
  },
  {
    name: 'task-create-flat',
    source: 'seed 002 §6.6: result.taskId, result.status',
    seedOnly: true,
    needs: CREATED,
    async check(run) {
      const { result } = await run.firstTask();
      demand(typeof result.taskId === 'string' && typeof result.status === 'string', `the result is ${shown(result)}`);
      const { task } = result;
      const same = !isObject(task) || (task.taskId === result.taskId && task.status === result.status);
      demand(same, `the result says ${shown([result.taskId, result.status])}, its task ${shown([task?.taskId, task?.status])}`);
    },
  },
  {
    name: 'task-ttl-clamped',
    source: 'seed 002 F-004.5, §9.5 EC-SEP-003',
    seedOnly: true,
    needs: CREATED,
    async check(run) {
      const { ttl } = taskOf(await run.create({ ttl: OVER_EVERY_MAXIMUM }));
      demand(Number.isInteger(ttl) && ttl > 0 && ttl < OVER_EVERY_MAXIMUM, `asked for ${OVER_EVERY_MAXIMUM} ms, the task has ${shown(ttl)}`);
      return `${ttl} ms`;
    },
  },
  {
    name: 'task-ttl-default',
    source: 'seed 002 F-004.5: the default if not specified',
    seedOnly: true,
    needs: CREATED,
    async check(run) {
      const { ttl } = taskOf(await run.create({}));
      demand(Number.isInteger(ttl) && ttl > 0, `task: {} has the ttl ${shown(ttl)}`);
      return `${ttl} ms`;
    },
  },
];

/** The task of a create result, in either spelling. */
const taskOf = ({ result }) => (result.task?.ttl === undefined ? result : result.task);
