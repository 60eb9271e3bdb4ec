// A small MCP server with tasks that meets every requirement, until somebody meddles with it: what proves the harness.
// On /api/v1/tasks/ID/approve and /reject it takes decisions, like the gateway's admin port.
import http from 'node:http';
import { randomUUID } from 'node:crypto';

const VERSIONS = ['2025-11-25', '2025-06-18'];
const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const MAX_TTL = 86_400_000;
const TOOLS_A_PAGE = 2;
const TASKS_A_PAGE = 3;
const TERMINAL = ['completed', 'failed', 'cancelled'];

const tool = (name, taskSupport, more = {}) => ({
  name, description: `The tool ${name}`, inputSchema: { type: 'object' }, execution: { taskSupport }, annotations: { taskSupport, readOnlyHint: name === 'read', ...more },
});

class ProtocolError extends Error {
  constructor(code, message, data) {
    super(message);
    this.error = { code, message, ...(data === undefined ? {} : { data }) };
  }
}

export class StandIn {
  constructor({ sessions = true, sse = false, stream = true, advertise = false } = {}) {
    this.options = { sessions, sse, stream, advertise };
    this.tools = [tool('read', 'forbidden'), tool('write', 'required'), tool('research', 'optional')];
    this.sessions = new Set();
    this.tasks = new Map(); // id => {task, owner, tool, result, waiters}
    this.streams = new Set();
    this.toolsFail = false; // do the tools say isError when they have been approved?
    this.requests = []; // {verb, headers, body, rpc}
    this.newSession = () => randomUUID();
    this.newTaskId = (name) => `${name === 'write' ? 'tg_' : 'up-'}${randomUUID()}`;
    /** Stands between every request and its reply; `next()` is the right reply: {status, headers, message | text | stream}. */
    this.meddle = (request, next) => next();
  }

  async listen() {
    this.server = http.createServer((request, response) => this.receive(request, response));
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
    this.url = `${this.origin}/mcp`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async receive(incoming, response) {
    const parts = [];
    for await (const part of incoming) parts.push(part);
    const request = { verb: incoming.method, path: incoming.url, headers: incoming.headers, body: Buffer.concat(parts).toString('utf8') };
    try {
      request.rpc = JSON.parse(request.body);
    } catch {
      // Not JSON: answer() says so.
    }
    this.requests.push(request);
    this.write(response, request, await this.meddle(request, async () => this.answer(request)));
  }

  write(response, { rpc }, { status, headers = {}, message, text = '', stream = false, type }) {
    if (stream) {
      response.writeHead(status, { 'content-type': 'text/event-stream' }).flushHeaders();
      this.streams.add(response);
      response.on('close', () => this.streams.delete(response));
    } else if (message && rpc?.id !== undefined && status === 200 && this.options.sse) {
      response.writeHead(status, { 'content-type': 'text/event-stream', ...headers });
      response.end(`: hello\n\nevent: message\ndata: {"jsonrpc":"2.0","method":"notifications/message",\ndata: "params":{}}\n\ndata: ${JSON.stringify(message)}\n\n`);
    } else if (message) {
      response.writeHead(status, { 'content-type': type ?? 'application/json', ...headers }).end(JSON.stringify(message));
    } else {
      response.writeHead(status, headers).end(text);
    }
  }

  async answer(request) {
    const { verb, path, headers, rpc } = request;
    if (path.startsWith('/api/')) return this.decide(request);
    if (headers.origin && !/^https?:\/\/(localhost|127\.0\.0\.1)(:|$)/.test(headers.origin)) return { status: 403 };
    if (verb === 'POST' && headers['content-type'] !== 'application/json') return { status: 415 };
    if (verb === 'POST' && rpc === undefined) return refusal(400, -32700, 'no JSON');
    if (verb === 'POST' && Array.isArray(rpc)) return refusal(400, -32600, 'no batches');
    if (rpc?.method === 'initialize') return this.initialize(rpc);
    const session = headers['mcp-session-id'];
    if (this.options.sessions && session === undefined) return refusal(400, -32600, 'no session');
    if (this.options.sessions && !this.sessions.has(session)) return refusal(404, -32600, 'no such session');
    if (headers['mcp-protocol-version'] && !VERSIONS.includes(headers['mcp-protocol-version'])) return refusal(400, -32600, 'no such version');
    if (verb === 'GET') return this.options.stream ? { status: 200, stream: true } : { status: 405 };
    if (verb === 'DELETE') return { status: this.sessions.delete(session) ? 200 : 405 };
    if (rpc.id === undefined) return { status: 202 };
    try {
      const method = this[rpc.method] ?? (() => fault(-32601, 'Method not found'));
      return reply(rpc, { result: await method.call(this, rpc.params ?? {}, session ?? headers.authorization) });
    } catch (error) {
      if (!error.error) throw error;
      return reply(rpc, { error: error.error });
    }
  }

  initialize(rpc) {
    const { sessions, advertise } = this.options;
    const session = this.newSession();
    this.sessions.add(session);
    const asked = rpc.params.protocolVersion;
    const result = {
      protocolVersion: VERSIONS.includes(asked) ? asked : VERSIONS[0],
      capabilities: {
        tools: {},
        logging: {},
        tasks: { list: {}, cancel: {}, requests: { 'tools/call': true, tools: { call: {} } } },
        ...(advertise ? { notifications: { tasks: { status: true } } } : {}),
      },
      serverInfo: { name: 'stand-in', version: '1.0.0' },
    };
    return { ...reply(rpc, { result }), headers: sessions ? { 'mcp-session-id': session } : {} };
  }

  ping() {
    return {};
  }

  'tools/list'({ cursor }) {
    const { items, ...more } = page(this.tools, cursor, TOOLS_A_PAGE);
    return { tools: items, ...more };
  }

  'tools/call'({ name, task }, owner) {
    const support = this.tools.find((tool) => tool.name === name)?.execution.taskSupport ?? fault(-32602, 'Unknown tool');
    if (task === undefined && support === 'required') {
      fault(-32009, 'TaskRequired', { tool: name, reason: 'It must be called as a task', hint: 'Include task' });
    }
    if (task === undefined) return content(name);
    if (support === 'forbidden') fault(-32010, 'TaskForbidden', { tool: name, reason: 'It cannot be called as a task' });
    const ttl = isObject(task) ? (task.ttl ?? 600_000) : undefined;
    if (!Number.isInteger(ttl) || ttl <= 0) fault(-32602, 'task must be an object with a positive ttl');
    const now = new Date().toISOString();
    const created = { taskId: this.newTaskId(name, task), status: 'working', createdAt: now, lastUpdatedAt: now, ttl: Math.min(ttl, MAX_TTL), pollInterval: 20 };
    this.tasks.set(created.taskId, { task: created, owner, tool: name, waiters: [] });
    return { ...created, task: { ...created } };
  }

  'tasks/get'({ taskId }, owner) {
    return { ...this.owned(taskId, owner).task };
  }

  'tasks/list'({ cursor }, owner) {
    const all = [...this.tasks.values()].filter((entry) => entry.owner === owner).map(({ task }) => ({ ...task }));
    const { items, ...more } = page(all, cursor, TASKS_A_PAGE);
    return { tasks: items, ...more };
  }

  async 'tasks/result'({ taskId }, owner) {
    const entry = this.owned(taskId, owner);
    if (!TERMINAL.includes(entry.task.status)) await new Promise((resolve) => entry.waiters.push(resolve));
    if (!entry.result) fault(-32006, `the task is ${entry.task.status}`);
    return { ...entry.result, _meta: { [RELATED_TASK]: { taskId } } };
  }

  'tasks/cancel'({ taskId }, owner) {
    const entry = this.owned(taskId, owner);
    if (TERMINAL.includes(entry.task.status)) fault(-32602, 'the task has ended');
    this.end(entry, 'cancelled', 'the client did not want it');
    return { ...entry.task };
  }

  owned(taskId, owner) {
    if (typeof taskId !== 'string') fault(-32602, 'taskId must be a string');
    const entry = this.tasks.get(taskId);
    return entry && entry.owner === owner ? entry : fault(-32602, 'Task not found');
  }

  end(entry, status, statusMessage) {
    Object.assign(entry.task, { status, statusMessage, lastUpdatedAt: new Date().toISOString() });
    for (const waiter of entry.waiters) waiter();
    if (this.options.advertise) this.tell(entry.task);
  }

  /** Says on every open stream what has become of a task. */
  tell({ taskId, status, lastUpdatedAt }) {
    for (const stream of this.streams) stream.write(`event: task_status\ndata: ${JSON.stringify({ taskId, status, timestamp: lastUpdatedAt })}\n\n`);
  }

  decide({ path, headers }) {
    const [, , , , id, verb] = path.split('/');
    const entry = this.tasks.get(decodeURIComponent(id));
    if (headers.authorization !== 'Bearer decider') return { status: 401 };
    if (!entry || TERMINAL.includes(entry.task.status)) return { status: 409 };
    if (verb === 'approve') entry.result = { ...content(entry.tool), ...(this.toolsFail ? { isError: true } : {}) };
    if (verb === 'approve' && !this.toolsFail) this.end(entry, 'completed', 'done');
    else this.end(entry, 'failed', verb === 'approve' ? 'it went wrong' : 'rejected');
    return { status: 200 };
  }
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const content = (name) => ({ content: [{ type: 'text', text: `did ${name}` }] });
const reply = ({ id }, outcome) => ({ status: 200, message: { jsonrpc: '2.0', id, ...outcome } });
const refusal = (status, code, message) => ({ status, message: { jsonrpc: '2.0', error: { code, message } } });

function fault(code, message, data) {
  throw new ProtocolError(code, message, data);
}

function page(all, cursor, size) {
  const from = cursor === undefined ? 0 : Number(/^page-(\d+)$/.exec(cursor)?.[1] ?? fault(-32602, 'unknown cursor'));
  const next = from + size;
  return { items: all.slice(from, next).map((item) => structuredClone(item)), ...(next < all.length ? { nextCursor: `page-${next}` } : {}) };
}
