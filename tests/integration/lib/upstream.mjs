// A scriptable MCP server: records every request to the byte and answers as the test says.
import http from 'node:http';
import https from 'node:https';
import { randomUUID } from 'node:crypto';
import { defer } from './lifetime.mjs';
import { until } from './wait.mjs';

/** The capabilities of upstreams with task support, as the specification spells them. */
export const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

/** A minimal tool definition. `support` is the tool's own execution.taskSupport. */
export function tool(name, { support, ...more } = {}) {
  return {
    name,
    description: `The tool ${name}`,
    inputSchema: { type: 'object' },
    ...(support === undefined ? {} : { execution: { taskSupport: support } }),
    ...more,
  };
}

export async function startUpstream(t, options) {
  const upstream = new Upstream(options);
  defer(t, () => upstream.stop());
  await upstream.listen();
  return upstream;
}

export class Upstream {
  constructor({ tools = [tool('read'), tool('write')], capabilities = { tools: { listChanged: true } }, sessions = true, replyAs = 'json', pageSize = 0, authorize, handlers = {}, address = '127.0.0.1', tls } = {}) {
    this.tls = tls; // options of an https server; without them http
    this.address = address; // that it listens on
    this.tools = tools;
    this.capabilities = capabilities; // sent by the next `initialize`
    this.sessions = sessions; // hand out session ids?
    this.replyAs = replyAs; // 'json' or 'sse'
    this.pageSize = pageSize; // of tools/list and tasks/list; 0 is one page
    this.authorize = authorize; // (recorded request) => an HTTP status to refuse with, or nothing
    this.handlers = { ...handlers }; // JSON-RPC method => (call) => …, in place of the built-in ones
    this.onHttp = null; // (recorded request, reply) => true if it has answered
    this.requests = [];
    this.liveSessions = new Set();
    this.getStreams = new Set();
    this.tasks = new Map();
    this.port = 0;
  }

  get url() {
    return `${this.tls ? 'https' : 'http'}://${this.address === '0.0.0.0' ? '127.0.0.1' : this.address}:${this.port}/mcp`;
  }

  async listen() {
    const receive = (request, response) => this.receive(request, response);
    this.server = this.tls ? https.createServer(this.tls, receive) : http.createServer(receive);
    this.server.keepAliveTimeout = 120_000;
    let connections = 0;
    this.server.on('connection', (socket) => {
      socket.setNoDelay(true);
      socket.number = ++connections;
    });
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(this.port, this.address, resolve));
    this.port = this.server.address().port;
  }

  /** Cuts every connection and refuses new ones; `listen()` brings it back on the same port. */
  async stop() {
    if (!this.server) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    this.server = null;
    this.getStreams.clear();
    await closed;
  }

  /** Requests of one JSON-RPC method, without the gateway's own hand-shake unless `own`. */
  of(method, { own = true } = {}) {
    return this.requests.filter((r) => r.rpc?.method === method && (own || !r.isGatewaysOwn));
  }

  /** Every tools/call that has arrived. */
  get calls() {
    return this.of('tools/call');
  }

  /** The `count`-th request that `fits` (a method name or a predicate), awaited. */
  async received(fits, count = 1, deadline = 10_000) {
    const matches = typeof fits === 'string' ? (r) => r.rpc?.method === fits : fits;
    return until(() => this.requests.filter(matches)[count - 1], () => `request ${count} of ${fits} upstream; it got ${this.requests.map((r) => `${r.method} ${r.rpc?.method ?? ''}`).join(', ')}`, { deadline });
  }

  /** Sends one message on every open GET stream. */
  push(message, { id, event } = {}) {
    for (const stream of this.getStreams) stream.event(message, { id, event });
  }

  receive(request, response) {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('error', () => {});
    request.on('end', () => {
      const body = Buffer.concat(parts);
      const recorded = { method: request.method, path: request.url, headers: request.headers, rawHeaders: request.rawHeaders, body, text: body.toString('utf8'), certificate: request.socket.getPeerCertificate?.(), connection: request.socket.number, from: request.socket.remoteAddress, at: performance.now() };
      try {
        recorded.rpc = JSON.parse(recorded.text);
      } catch {
        // Not JSON; see `body`.
      }
      recorded.isGatewaysOwn = typeof recorded.rpc?.id === 'string' && recorded.rpc.id.startsWith('tg:');
      recorded.left = false; // did the gateway leave before the answer was complete?
      recorded.gone = new Promise((resolve) =>
        response.on('close', () => {
          recorded.left = !response.writableFinished;
          resolve();
        }),
      );
      const reply = (recorded.reply = new Reply(this, recorded, response));
      this.requests.push(recorded);
      if (this.onHttp?.(recorded, reply)) return;
      const refusal = this.authorize?.(recorded);
      if (refusal) return reply.http(refusal, { 'content-type': 'text/plain' }, `refused with ${refusal}`);
      if (recorded.method === 'GET') return this.openStream(recorded, reply);
      if (recorded.method === 'DELETE') return this.endSession(recorded, reply);
      return this.dispatch(recorded, reply);
    });
  }

  openStream(recorded, reply) {
    const stream = reply.sse();
    this.getStreams.add(stream);
    recorded.gone.then(() => this.getStreams.delete(stream));
  }

  endSession(recorded, reply) {
    this.liveSessions.delete(recorded.headers['mcp-session-id']);
    reply.http(200);
  }

  dispatch(recorded, reply) {
    const { rpc } = recorded;
    if (rpc?.method === undefined || rpc.id === undefined) return reply.http(202); // a notification, or the client's response
    const session = recorded.headers['mcp-session-id'];
    if (this.sessions && rpc.method !== 'initialize' && !this.liveSessions.has(session)) {
      return reply.http(404, { 'content-type': 'application/json' }, '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}');
    }
    const call = { recorded, rpc, id: rpc.id, params: rpc.params ?? {}, session, reply, upstream: this };
    const handle = this.handlers[rpc.method] ?? builtIn[rpc.method];
    if (!handle) return reply.error(-32601, 'Method not found');
    return handle(call);
  }
}

/** The ways to answer one request. */
class Reply {
  constructor(upstream, recorded, response) {
    this.upstream = upstream;
    this.recorded = recorded;
    this.response = response;
  }

  result(result, headers) {
    this.message({ jsonrpc: '2.0', id: this.recorded.rpc.id, result }, headers);
  }

  error(code, message, data) {
    this.message({ jsonrpc: '2.0', id: this.recorded.rpc.id, error: { code, message, ...(data === undefined ? {} : { data }) } });
  }

  /** One JSON-RPC message (object or exact text) in the way the upstream is set to answer. */
  message(message, headers = {}) {
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    if (this.upstream.replyAs === 'sse') {
      const stream = this.sse(headers);
      stream.event(text);
      stream.end();
    } else {
      this.http(200, { 'content-type': 'application/json', ...headers }, text);
    }
  }

  /** A whole HTTP response. */
  http(status, headers = {}, body = '') {
    this.response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    this.response.end(body);
  }

  /** An open event stream: `event(data, {id, event})`, `raw(text)`, `end()`, `cut()`. */
  sse(headers = {}) {
    const { response } = this;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers });
    response.flushHeaders();
    return {
      raw: (text) => response.write(text),
      event: (data, { id, event } = {}) => {
        const text = typeof data === 'string' ? data : JSON.stringify(data);
        return response.write(`${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}data: ${text}\n\n`);
      },
      end: () => response.end(),
      cut: () => response.destroy(),
      response,
    };
  }

  /** Closes the connection without another byte. */
  cut() {
    this.response.destroy();
  }
}

const page = (upstream, items, cursor) => {
  const from = cursor === undefined ? 0 : Number(/^page-(\d+)$/.exec(cursor)?.[1] ?? NaN);
  const size = upstream.pageSize || items.length || 1;
  const next = from + size;
  return { items: items.slice(from, next), ...(next < items.length ? { nextCursor: `page-${next}` } : {}) };
};

const builtIn = {
  initialize({ upstream, reply, params }) {
    const headers = {};
    if (upstream.sessions) {
      headers['mcp-session-id'] = randomUUID();
      upstream.liveSessions.add(headers['mcp-session-id']);
    }
    reply.result({ protocolVersion: params.protocolVersion, capabilities: upstream.capabilities, serverInfo: { name: 'scripted-upstream', version: '1.0.0' } }, headers);
  },

  ping: ({ reply }) => reply.result({}),

  'tools/list'({ upstream, reply, params }) {
    const { items, nextCursor } = page(upstream, upstream.tools, params.cursor);
    reply.result({ tools: items, ...(nextCursor ? { nextCursor } : {}) });
  },

  'tools/call'({ upstream, reply, params }) {
    if (params.task !== undefined) {
      const task = { taskId: `up-${randomUUID()}`, status: 'working', createdAt: new Date().toISOString(), lastUpdatedAt: new Date().toISOString(), ttl: params.task.ttl ?? null, pollInterval: 100 };
      upstream.tasks.set(task.taskId, { task, result: resultOf(params) });
      return reply.result({ task });
    }
    return reply.result(resultOf(params));
  },

  'tasks/get'({ upstream, reply, params }) {
    const entry = upstream.tasks.get(params.taskId);
    return entry ? reply.result(entry.task) : reply.error(-32602, 'upstream knows no such task');
  },

  'tasks/result'({ upstream, reply, params }) {
    const entry = upstream.tasks.get(params.taskId);
    return entry ? reply.result({ ...entry.result, _meta: { 'io.modelcontextprotocol/related-task': { taskId: params.taskId } } }) : reply.error(-32602, 'upstream knows no such task');
  },

  'tasks/cancel'({ upstream, reply, params }) {
    const entry = upstream.tasks.get(params.taskId);
    if (!entry) return reply.error(-32602, 'upstream knows no such task');
    entry.task = { ...entry.task, status: 'cancelled' };
    return reply.result(entry.task);
  },

  'tasks/list'({ upstream, reply, params }) {
    const all = [...upstream.tasks.values()].map((entry) => entry.task).reverse();
    const { items, nextCursor } = page(upstream, all, params.cursor);
    reply.result({ tasks: items, ...(nextCursor ? { nextCursor } : {}) });
  },
};

const resultOf = (params) => ({ content: [{ type: 'text', text: `did ${params.name}` }], structuredContent: { tool: params.name, arguments: params.arguments ?? {} } });
