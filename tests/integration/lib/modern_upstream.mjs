// A scriptable modern-only MCP server: the recording upstream with the answers of MCP 2026-07-28.
import { key, MODERN, TASKS_EXTENSION } from './modern_client.mjs';

const INFO = { name: 'modern-upstream', version: '1.0.0' };
const meta = { _meta: { [key('serverInfo')]: INFO } };

/** A complete modern result. */
export const complete = (more = {}) => ({ resultType: 'complete', ...more, ...meta });
/** The fixture's answer to `tools/call`. */
export const answerOf = (params) => complete({ content: [{ type: 'text', text: `did ${params.name}` }], structuredContent: { tool: params.name, arguments: params.arguments ?? {} } });
/** A form that asks for one text. */
export const form = (message) => ({ method: 'elicitation/create', params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { answer: { type: 'string' } } } } });

/** A refusal with the HTTP status that the era gives it. */
export function refuse(reply, status, code, message, data) {
  reply.http(status, { 'content-type': 'application/json' }, JSON.stringify({ jsonrpc: '2.0', id: reply.recorded.rpc.id, error: { code, message, ...(data === undefined ? {} : { data }) } }));
}

/** Options of `startUpstream` for a modern-only server; `makesTasks` lists the extension, `handlers` are laid over its own. */
export function modernUpstream({ makesTasks = false, handlers = {}, ...options } = {}) {
  return {
    sessions: false,
    ...options,
    handlers: {
      initialize: ({ reply }) => refuse(reply, 404, -32601, 'Method not found'),
      'server/discover': ({ upstream, reply }) =>
        reply.result(complete({ supportedVersions: [MODERN], capabilities: { ...upstream.capabilities, ...(makesTasks ? { extensions: { [TASKS_EXTENSION]: {} } } : {}) }, ttlMs: 5000, cacheScope: 'public' })),
      'tools/list': ({ upstream, reply }) => reply.result(complete({ tools: upstream.tools, ttlMs: 5000, cacheScope: 'public' })),
      'tools/call': ({ reply, params }) => reply.result(answerOf(params)),
      ...handlers,
    },
  };
}

/**
 * Handlers of a server that makes tasks of all calls. `tasks` maps an id to its DetailedTask, which the test changes;
 * updates and cancels are kept in `tasks.get(id).updates` and `.isCancelled`.
 */
export function taskMaker(tasks = new Map()) {
  const shown = ({ updates, isCancelled, ...task }) => task;
  const known = (handle) => (call) => {
    const task = tasks.get(call.params.taskId);
    return task ? handle(call, task) : call.reply.error(-32602, 'unknown task');
  };
  return {
    tasks,
    handlers: {
      'tools/call'({ reply }) {
        const now = new Date().toISOString();
        const task = { taskId: `up-${tasks.size + 1}`, status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: 60_000, pollIntervalMs: 20, updates: [], isCancelled: false };
        tasks.set(task.taskId, task);
        reply.result({ resultType: 'task', ...shown(task) });
      },
      'tasks/get': known(({ reply }, task) => reply.result(complete(shown(task)))),
      'tasks/update': known(({ reply, params }, task) => {
        task.updates.push(params.inputResponses);
        reply.result(complete());
      }),
      'tasks/cancel': known(({ reply }, task) => {
        task.isCancelled = true;
        Object.assign(task, { status: 'cancelled' });
        reply.result(complete());
      }),
    },
  };
}
