// Requirements of MCP 2026-07-28, for endpoints that list this revision: {name, source, check(run)}, where `run` is a ModernRun.
import { key, refused } from '../modern.mjs';
import { jsonSchema } from '../shapes.mjs';
import { demand, demandCode, isObject, outcome, resultOf, shown, skip } from '../verdict.mjs';

const BASIC = 'MCP 2026-07-28 Basic';
const HTTP = 'MCP 2026-07-28 Streamable HTTP';
const CACHE = 'MCP 2026-07-28 Caching';
const TASKS = 'SEP-2663 Tasks';
const GONE = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'tasks/list', 'tasks/result', 'compliance/no-such-method'];
const NO_TOOL = 'compliance-no-such-tool';

function completeAndCacheable(result, what) {
  demand(result.resultType === 'complete', `${what}: resultType is ${shown(result.resultType)}`);
  demand(Number.isInteger(result.ttlMs) && result.ttlMs >= 0, `${what}: ttlMs is ${shown(result.ttlMs)}`);
  demand(['public', 'private'].includes(result.cacheScope), `${what}: cacheScope is ${shown(result.cacheScope)}`);
}

const when = (value, test) => value === undefined || test(value);
const isTime = (value) => typeof value === 'string' && Number.isFinite(Date.parse(value));
const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'];

/** Demands a task of the extension: flat, with whole numbers. */
function demandTask(task, what) {
  demand(!('task' in task) && !('ttl' in task) && !('pollInterval' in task), `${what}: it has members of 2025-11-25: ${shown(task)}`);
  demand(typeof task.taskId === 'string' && task.taskId !== '', `${what}: taskId is ${shown(task.taskId)}`);
  demand(STATUSES.includes(task.status), `${what}: status is ${shown(task.status)}`);
  demand(isTime(task.createdAt) && isTime(task.lastUpdatedAt), `${what}: createdAt and lastUpdatedAt are ${shown([task.createdAt, task.lastUpdatedAt])}`);
  demand(task.ttlMs === null || (Number.isInteger(task.ttlMs) && task.ttlMs > 0), `${what}: ttlMs is ${shown(task.ttlMs)}`);
  demand(when(task.pollIntervalMs, (ms) => Number.isInteger(ms) && ms > 0), `${what}: pollIntervalMs is ${shown(task.pollIntervalMs)}`);
}

export const modern = [
  {
    name: 'modern-discover',
    source: 'MCP 2026-07-28 Discover; Caching',
    check(run) {
      const result = resultOf(run.discovered);
      demand(run.discovered.status === 200, `HTTP ${run.discovered.status}`);
      demand(isObject(result.capabilities), `capabilities are ${shown(result.capabilities)}`);
      completeAndCacheable(result, 'server/discover');
      return result.supportedVersions.join(', ');
    },
  },
  {
    name: 'modern-discover-no-old-tasks',
    source: `${TASKS}, Capability Negotiation: not beside capabilities.tasks`,
    check(run) {
      const { capabilities } = resultOf(run.discovered);
      demand(capabilities?.tasks === undefined, `capabilities.tasks is ${shown(capabilities?.tasks)}`);
    },
  },
  {
    name: 'modern-client-info-optional',
    source: `${BASIC}, _meta: clientInfo should be there`,
    check: async (run) => void resultOf(await run.ask('server/discover', {}, { meta: { [key('clientInfo')]: undefined } })),
  },
  {
    name: 'modern-envelope-required',
    source: `${BASIC}, _meta: 400 and -32602`,
    async check(run) {
      for (const name of ['protocolVersion', 'clientCapabilities']) refused(await run.ask('server/discover', {}, { meta: { [key(name)]: undefined } }), 400, -32602);
    },
  },
  {
    name: 'modern-version-header-checked',
    source: `${HTTP}, Protocol Version Header: 400 and -32020`,
    check: async (run) => void refused(await run.ask('server/discover', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } }), 400, -32020),
  },
  {
    name: 'modern-version-unsupported',
    source: 'MCP 2026-07-28 Versioning: 400 and -32022 with what is supported',
    async check(run) {
      const version = 'v999.0.0';
      const { data } = refused(await run.ask('server/discover', {}, { meta: { [key('protocolVersion')]: version }, headers: { 'mcp-protocol-version': version } }), 400, -32022);
      demand(data?.requested === version, `data.requested is ${shown(data?.requested)}`);
      const listed = resultOf(run.discovered).supportedVersions;
      demand(Array.isArray(data.supported) && data.supported.every((one) => listed.includes(one)), `data.supported is ${shown(data.supported)}, discover lists ${shown(listed)}`);
    },
  },
  {
    name: 'modern-method-header-checked',
    source: `${HTTP}, Standard Headers: Mcp-Method, 400 and -32020`,
    async check(run) {
      for (const value of [undefined, 'tools/call', 'TOOLS/LIST']) refused(await run.ask('tools/list', {}, { headers: { 'mcp-method': value } }), 400, -32020);
    },
  },
  {
    name: 'modern-name-header-checked',
    source: `${HTTP}, Standard Headers: Mcp-Name, 400 and -32020`,
    async check(run) {
      for (const value of [undefined, `${NO_TOOL}-2`]) refused(await run.ask('tools/call', { name: NO_TOOL, arguments: {} }, { headers: { 'mcp-name': value } }), 400, -32020);
    },
  },
  {
    name: 'modern-methods-gone',
    source: 'MCP 2026-07-28 Changelog; SEP-2663: 404 and -32601',
    async check(run) {
      for (const method of GONE) refused(await run.ask(method, method.startsWith('tasks/') ? { taskId: 'none' } : {}, { declares: true }), 404, -32601);
    },
  },
  {
    name: 'modern-notification-accepted',
    source: `${HTTP}, Sending Messages: 202`,
    async check(run) {
      const { status, text } = await run.client.notify('notifications/cancelled', { requestId: 'none', _meta: run.envelope(false) }, { headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'notifications/cancelled' } });
      demand(status === 202 && text === '', `HTTP ${status}, ${shown(text)}`);
    },
  },
  {
    name: 'modern-no-session',
    source: `${HTTP}, Earlier Revisions: Mcp-Session-Id is ignored`,
    async check(run) {
      const answer = await run.ask('server/discover', {}, { headers: { 'mcp-session-id': 'none' } });
      resultOf(answer);
      demand(answer.headers['mcp-session-id'] === undefined, 'the answer has an Mcp-Session-Id');
    },
  },
  {
    name: 'modern-tools-list',
    source: `MCP 2026-07-28 Tools; ${CACHE}`,
    async check(run) {
      const answer = await run.ask('tools/list');
      if (answer.message?.error?.code === -32601) skip('the endpoint has no tools');
      const result = resultOf(answer);
      completeAndCacheable(result, 'tools/list');
      demand(Array.isArray(result.tools), `tools is ${shown(result.tools)}`);
      for (const tool of result.tools) {
        demand(isObject(tool) && typeof tool.name === 'string' && tool.name !== '', `a tool is ${shown(tool)}`);
        const wrong = jsonSchema(tool.inputSchema, `inputSchema of ${tool.name}`);
        demand(!wrong, wrong);
      }
      return `${result.tools.length} tools`;
    },
  },
  {
    name: 'modern-tool-unknown-refused',
    source: 'MCP 2026-07-28 Tools, Error Handling: -32602',
    check: async (run) => void demandCode(await run.ask('tools/call', { name: NO_TOOL, arguments: {} }), -32602),
  },
  {
    name: 'modern-call-shape',
    source: 'MCP 2026-07-28 Tools; schema CallToolResult',
    async check(run) {
      const tool = run.options.plainTool ?? skip('no tool is named with --plain-tool');
      const result = resultOf(await run.ask('tools/call', { name: tool.name, arguments: tool.arguments }));
      demand(result.resultType === 'complete', `resultType is ${shown(result.resultType)}`);
      demand(Array.isArray(result.content), `content is ${shown(result.content)}`);
    },
  },
  {
    name: 'modern-tasks-undeclared-refused',
    source: `${TASKS}, Errors: 400 and -32021`,
    async check(run) {
      run.needTasks();
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        const { data } = refused(await run.ask(method, { taskId: run.unknownId(), ...(method === 'tasks/update' ? { inputResponses: {} } : {}) }), 400, -32021);
        demand(isObject(data?.requiredCapabilities?.extensions), `data is ${shown(data)}`);
      }
    },
  },
  {
    name: 'modern-tasks-unknown-refused',
    source: `${TASKS}: -32602`,
    async check(run) {
      run.needTasks();
      demandCode(await run.ask('tasks/get', { taskId: run.unknownId() }, { declares: true }), -32602);
    },
  },
  {
    name: 'modern-task-create',
    source: `${TASKS}; schema CreateTaskResult`,
    async check(run) {
      const task = await run.task();
      demandTask(task, 'tools/call');
      for (const member of ['result', 'error', 'inputRequests', 'requestState']) demand(!(member in task), `tools/call: it has ${member}`);
      return task.taskId;
    },
  },
  {
    name: 'modern-task-get',
    source: `${TASKS}; schema GetTaskResult`,
    async check(run) {
      const { taskId, createdAt } = await run.task();
      const task = resultOf(await run.ask('tasks/get', { taskId }, { declares: true }));
      demand(task.resultType === 'complete', `resultType is ${shown(task.resultType)}`);
      demandTask(task, 'tasks/get');
      demand(task.taskId === taskId && task.createdAt === createdAt, `it is ${shown(task)}`);
    },
  },
  {
    name: 'modern-task-name-header-checked',
    source: `${TASKS}, Routing Headers: 400 and -32020`,
    async check(run) {
      const { taskId } = await run.task();
      refused(await run.ask('tasks/get', { taskId }, { declares: true, headers: { 'mcp-name': run.unknownId() } }), 400, -32020);
    },
  },
  {
    name: 'modern-task-cancel',
    source: `${TASKS}, Task Cancellation: an acknowledgement, also the second time`,
    async check(run) {
      const { taskId } = await run.task();
      for (const time of ['first', 'second']) {
        const answer = await run.ask('tasks/cancel', { taskId }, { declares: true });
        const { resultType, _meta, ...more } = resultOf(answer);
        demand(resultType === 'complete' && Object.keys(more).length === 0, `the ${time} time: ${outcome(answer)}`);
      }
    },
  },
];
