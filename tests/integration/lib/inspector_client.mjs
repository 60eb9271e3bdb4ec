// A client like the Inspector's: the official SDK's task API behind events, with a cache of the tasks it has seen.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListTasksResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { defer } from './lifetime.mjs';

const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const MOST_PAGES = 100;

export const relatedTask = (message) => message._meta?.[RELATED_TASK]?.taskId;

export class InspectorClient {
  /** `onElicitation` and `onSampling` get {params, taskId} and give the answer. */
  constructor(url, { name = 'inspector-like', headers = {}, onElicitation, onSampling } = {}) {
    this.tasks = new Map();
    this.events = [];
    this.client = new Client(
      { name, version: '1.0.0' },
      { capabilities: { tasks: {}, ...(onElicitation ? { elicitation: { form: {} } } : {}), ...(onSampling ? { sampling: {} } : {}) } },
    );
    this.client.onerror = (error) => this.events.push({ type: 'error', error });
    const answering = (type, answer) => (request) => {
      const asked = { type, params: request.params, taskId: relatedTask(request.params) };
      this.events.push(asked);
      return answer(asked);
    };
    if (onElicitation) this.client.setRequestHandler(ElicitRequestSchema, answering('elicitation', onElicitation));
    if (onSampling) this.client.setRequestHandler(CreateMessageRequestSchema, answering('sampling', onSampling));
    this.transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  }

  async connect() {
    await this.client.connect(this.transport);
    return this;
  }

  async disconnect() {
    this.tasks.clear();
    await this.transport.terminateSession().catch(() => {});
    await this.client.close();
  }

  getTaskCapabilities() {
    const tasks = this.client.getServerCapabilities()?.tasks;
    return tasks && { list: Boolean(tasks.list), cancel: Boolean(tasks.cancel) };
  }

  /** Every page of tools/list; gives up after a hundred. */
  async listAllTools() {
    const tools = [];
    let cursor;
    for (let page = 0; page < MOST_PAGES; page++) {
      const answer = await this.client.listTools(cursor ? { cursor } : undefined);
      tools.push(...answer.tools);
      if (!answer.nextCursor) return tools;
      cursor = answer.nextCursor;
    }
    throw new Error('tools/list has no end');
  }

  callTool(name, args = {}) {
    return this.client.callTool({ name, arguments: args });
  }

  keep(type, task) {
    this.tasks.set(task.taskId, task);
    this.events.push({ type, taskId: task.taskId, task });
    return task;
  }

  /** Calls by the streaming API, for every taskSupport: {result} or {error}, and the messages before. */
  async callToolStream(name, args = {}, { onEvent = () => {}, ...options } = {}) {
    const seen = { statuses: [] };
    for await (const message of this.client.experimental.tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, options)) {
      if (message.type === 'taskCreated') seen.taskId = this.keep('taskCreated', message.task).taskId;
      else if (message.type === 'taskStatus') seen.statuses.push(this.keep('taskStatusChange', message.task).status);
      else if (message.type === 'result') this.events.push({ type: 'taskCompleted', taskId: seen.taskId, result: (seen.result = message.result) });
      else this.events.push({ type: 'taskFailed', taskId: seen.taskId, error: (seen.error = message.error) });
      await onEvent(message);
    }
    return seen;
  }

  async getTask(taskId) {
    return this.keep('taskStatusChange', await this.client.experimental.tasks.getTask(taskId));
  }

  getTaskResult(taskId, options) {
    return this.client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options);
  }

  async cancelTask(taskId) {
    return this.keep('taskCancelled', await this.client.experimental.tasks.cancelTask(taskId));
  }

  /** One page; the SDK's own schema judges every entry. */
  async listTasks(cursor) {
    const answer = ListTasksResultSchema.parse(await this.client.experimental.tasks.listTasks(cursor));
    for (const task of answer.tasks) this.tasks.set(task.taskId, task);
    this.events.push({ type: 'tasksChange', tasks: answer.tasks });
    return answer;
  }

  getClientTasks() {
    return [...this.tasks.values()];
  }

  of(type) {
    return this.events.filter((event) => event.type === type);
  }
}

/** Connected, and gone after the test. */
export async function inspectorClient(t, url, options) {
  const client = new InspectorClient(url, options);
  defer(t, () => client.disconnect());
  return client.connect();
}
