// The modern era (MCP 2026-07-28) of an endpoint: what each request carries, and what the checks know of the endpoint.
import { randomUUID } from 'node:crypto';
import { Client, Unreachable } from './client.mjs';
import { demand, isObject, outcome, resultOf, shown, skip } from './verdict.mjs';

export const MODERN = '2026-07-28';
const PREFIX = 'io.modelcontextprotocol/';
const EXTENSION = `${PREFIX}tasks`;
const DECLARED = { extensions: { [EXTENSION]: {} } };
const NAMED = { 'tools/call': 'name', 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' };

export const key = (name) => PREFIX + name;

export class ModernRun {
  constructor(options) {
    this.options = options;
    this.client = new Client(options.url, { headers: options.headers, timeout: options.timeout });
    this.left = [];
  }

  /** A run on an endpoint that lists the revision; undefined where it does not. */
  static async open(options) {
    const run = new ModernRun(options);
    try {
      run.discovered = await run.ask('server/discover');
      const versions = run.discovered.message?.result?.supportedVersions;
      if (Array.isArray(versions) && versions.includes(MODERN)) return run;
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
    }
    run.client.close();
    return undefined;
  }

  async close() {
    for (const taskId of this.left) await this.ask('tasks/cancel', { taskId }, { declares: true }).catch(() => {});
    this.client.close();
  }

  envelope(declares) {
    return { [key('protocolVersion')]: MODERN, [key('clientInfo')]: { name: 'mcp-compliance', version: '1.0.0' }, [key('clientCapabilities')]: declares ? DECLARED : {} };
  }

  /**
   * One request in good order to its answer, as Client.send. `meta` and `headers` are laid over what it carries: a value of undefined takes a
   * member out. `declares`: with the tasks extension.
   */
  ask(method, params = {}, { declares = false, meta = {}, headers = {}, id } = {}) {
    const name = params[NAMED[method]];
    return this.client.send(method, { ...params, _meta: { ...this.envelope(declares), ...meta } }, {
      ...(id === undefined ? {} : { id }),
      headers: { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...(typeof name === 'string' ? { 'mcp-name': name } : {}), ...headers },
    });
  }

  get hasTasks() {
    return isObject(this.discovered.message.result.capabilities?.extensions?.[EXTENSION]);
  }

  /** Skips what only concerns endpoints with the tasks extension. */
  needTasks() {
    if (!this.hasTasks) skip('the endpoint does not advertise the tasks extension');
  }

  /** A call of the tool for tasks that declares the extension; skips without a tool, or if the call is no task. */
  async task() {
    this.needTasks();
    const tool = this.options.tools[0] ?? skip('no tool is named with --tool');
    this.created ??= this.ask('tools/call', { name: tool.name, arguments: tool.arguments }, { declares: true });
    const result = resultOf(await this.created);
    if (result.resultType !== 'task') skip(`a call of ${tool.name} becomes no task here`);
    if (!this.left.includes(result.taskId)) this.left.push(result.taskId);
    return result;
  }

  unknownId() {
    return `tg_${randomUUID()}`;
  }
}

/** Demands an error with this code and HTTP status, and the request's id. */
export function refused(answer, status, code) {
  const { message } = answer;
  demand(isObject(message?.error), `${answer.method}: ${outcome(answer)} instead of an error ${code}`);
  demand(message.error.code === code, `${answer.method}: error ${shown(message.error.code)} instead of ${code}`);
  demand(answer.status === status, `${answer.method}: error ${code} with HTTP ${answer.status} instead of ${status}`);
  demand(message.id === answer.id, `${answer.method}: the id ${shown(answer.id)} came back as ${shown(message.id)}`);
  return message.error;
}
