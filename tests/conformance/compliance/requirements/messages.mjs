// Requirements on every message and every task of the run; they come last.
import { STATUSES } from '../run.mjs';
import { demand, errorOf, isObject, resultOf, shown, skip } from '../verdict.mjs';

const TASKS = 'MCP 2025-11-25 Tasks';
const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** Demands of every answer of the run that `wrong(answer)` says nothing. */
function ofEveryAnswer(run, wrong) {
  const answers = run.exchanges.filter(({ message }) => isObject(message));
  for (const answer of answers) {
    const complaint = wrong(answer);
    demand(!complaint, `${answer.method}: ${complaint}`);
  }
  return `${answers.length} answers`;
}

/** Demands the same of every task object. */
function ofEveryTask(run, wrong) {
  if (run.tasks.length === 0) skip('no task was seen');
  for (const { where, task } of run.tasks) {
    const complaint = wrong(task);
    demand(!complaint, `${where}: ${complaint}`);
  }
  return `${run.tasks.length} task objects`;
}

export const messages = [
  {
    name: 'ids-echoed',
    source: 'JSON-RPC 2.0 §5; MCP 2025-11-25 Overview, Responses: the same id',
    async check(run) {
      for (const id of ['compliance/ä-1', 0, Number.MAX_SAFE_INTEGER]) resultOf(await run.client.send('ping', undefined, { id }));
      errorOf(await run.client.send('compliance/no-such-method', {}, { id: 'an error' }));
      return ofEveryAnswer(run, ({ id, message }) => (message.id === id ? undefined : `the id ${shown(id)} came back as ${shown(message.id)}`));
    },
  },
  {
    name: 'envelope-strict',
    source: 'JSON-RPC 2.0 §5; official SDK: no other members',
    check: (run) =>
      ofEveryAnswer(run, ({ message }) => {
        const { jsonrpc, id, result, error, ...rest } = message;
        const whole = jsonrpc === '2.0' && (result === undefined) !== (error === undefined) && Object.keys(rest).length === 0;
        return whole ? undefined : shown(message);
      }),
  },
  {
    name: 'errors-well-formed',
    source: 'JSON-RPC 2.0 §5.1: an integer code and a message',
    check: (run) =>
      ofEveryAnswer(run, ({ message: { error } }) =>
        (error ?? undefined) === undefined || (Number.isInteger(error.code) && typeof error.message === 'string') ? undefined : shown(error),
      ),
  },
  {
    name: 'errors-http-200',
    source: 'MCP 2025-11-25 Transports; official SDK: with another status the code is lost',
    check: (run) => ofEveryAnswer(run, ({ status, message }) => (!isObject(message.error) || status === 200 ? undefined : `error ${message.error.code} in HTTP ${status}`)),
  },
  {
    name: 'answers-content-type',
    source: 'MCP 2025-11-25 Transports: application/json or text/event-stream',
    check: (run) =>
      ofEveryAnswer(run, ({ type }) => (['application/json', 'text/event-stream'].includes(type) ? undefined : `the content type is ${type || 'missing'}`)),
  },
  {
    name: 'task-status-closed',
    source: `seed 002 §6.6 / ${TASKS}; schema TaskStatus`,
    check: (run) => ofEveryTask(run, ({ status }) => (status === undefined || STATUSES.includes(status) ? undefined : `the status ${shown(status)} is none of ${STATUSES.join(', ')}`)),
  },
  {
    name: 'task-poll-interval',
    source: `seed 002 §6.6 / ${TASKS}; schema Task.pollInterval: an integer; official SDK: 0 spins`,
    check: (run) =>
      ofEveryTask(run, ({ pollInterval }) => (pollInterval === undefined || (Number.isInteger(pollInterval) && pollInterval > 0) ? undefined : `pollInterval is ${shown(pollInterval)}`)),
  },
  {
    name: 'task-timestamps',
    source: `${TASKS}: ISO 8601`,
    check: (run) =>
      ofEveryTask(run, ({ createdAt, lastUpdatedAt }) => {
        const odd = [createdAt, lastUpdatedAt].find((time) => time !== undefined && !(ISO_8601.test(time) && Number.isFinite(Date.parse(time))));
        if (odd !== undefined) return `the time ${shown(odd)}`;
        return Date.parse(lastUpdatedAt) < Date.parse(createdAt) ? `updated at ${lastUpdatedAt}, created at ${createdAt}` : undefined;
      }),
  },
  {
    name: 'task-ids-distinct',
    source: `${TASKS}, Task IDs: unique`,
    needs: ['task-id-returned'],
    check(run) {
      const ids = run.idsGiven;
      const twice = ids.find((id, at) => ids.indexOf(id) !== at);
      demand(twice === undefined, `two tasks have the id ${twice}`);
      return `${ids.length} tasks`;
    },
  },
];
