// MCP clients: the official SDK's, and a raw one that sends exactly the given bytes.
import http from 'node:http';
import https from 'node:https';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { defer } from './lifetime.mjs';
import { exchange, open } from './http.mjs';
import { SseReader } from './sse.mjs';

export const PROTOCOL = '2025-11-25';

/**
 * A connected SDK client, closed after the test. `prepare(client)` may set handlers before the connection.
 * The client terminates its session when it goes, as a well-behaved one does, unless `keepSession`.
 * `protocol`: the version that it asks for, as an older SDK would, in place of its own newest.
 * `awaitStream`: connected only with its GET stream open, where a server may ask it at once.
 */
export async function sdkClient(t, url, { name = 'sdk-client', protocol, capabilities = {}, headers = {}, prepare, keepSession = false, awaitStream = false, options = {} } = {}) {
  const client = new Client({ name, version: '1.0.0' }, { capabilities, ...options });
  const errors = (client.errors = []);
  client.onerror = (error) => errors.push(error);
  prepare?.(client);
  let opened;
  const stream = new Promise((resolve) => (opened = resolve));
  const asking = async (target, init) => {
    const response = await fetch(target, init);
    if (init.method === 'GET') opened();
    return response;
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, fetch: asking });
  if (protocol) askFor(protocol, transport);
  defer(t, async () => {
    if (!keepSession) await transport.terminateSession().catch(() => {});
    await client.close();
  });
  await client.connect(transport);
  if (awaitStream) await stream;
  return client;
}

/** Has the handshake over `transport` ask for another version than the SDK's newest. */
function askFor(protocolVersion, transport) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) =>
    send(message.method === 'initialize' ? { ...message, params: { ...message.params, protocolVersion } } : message, options);
}

/** Runs `client.experimental.tasks.callToolStream` and hands over each of its messages as it comes. */
export async function* toolStream(client, name, args, options = {}) {
  yield* client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task: {}, ...options });
}

/** Collects a whole tool stream: {taskId, statuses, result, error}. `onMessage` sees each message first. */
export async function collectStream(stream, onMessage = () => {}) {
  const seen = { statuses: [] };
  for await (const message of stream) {
    await onMessage(message);
    if (message.type === 'taskCreated') {
      seen.taskId = message.task.taskId;
      seen.created = message.task;
    } else if (message.type === 'taskStatus') {
      seen.statuses.push(message.task.status);
      seen.last = message.task;
    } else if (message.type === 'result') seen.result = message.result;
    else if (message.type === 'error') seen.error = message.error;
  }
  return seen;
}

/** The error of an answer; that of a refused call stands in the result that plain clients get. */
export const errorOf = (message) => message?.error ?? message?.result?._meta?.['taskgate/error'];

/** A raw client, with its connections closed after the test. */
export function rawClient(t, url, options) {
  const client = new RawClient(url, options);
  defer(t, () => client.close());
  return client;
}

/** A raw client after its handshake. */
export async function connectedRaw(t, url, options) {
  const client = rawClient(t, url, options);
  await client.connect();
  return client;
}

export class RawClient {
  constructor(url, { headers = {}, token, capabilities = { tasks: {} }, name = 'raw-client', protocol = PROTOCOL, keepAlive = true } = {}) {
    this.url = url;
    this.headers = { ...headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    this.capabilities = capabilities;
    this.name = name;
    this.protocol = protocol;
    this.session = undefined;
    this.lastId = 0;
    this.agent = new (url.startsWith('https:') ? https : http).Agent({ keepAlive });
    this.streams = new Set();
  }

  /** Drops every connection at once. */
  close() {
    for (const stream of this.streams) stream.abort();
    this.agent.destroy();
  }

  standardHeaders() {
    return {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(this.session ? { 'mcp-session-id': this.session } : {}),
      ...(this.initialized ? { 'mcp-protocol-version': this.protocol } : {}),
      ...this.headers,
    };
  }

  /** POSTs `body` (text, bytes, or an object) and returns the response's head. */
  post(body, { headers = {}, url = this.url, deadline } = {}) {
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    return open(url, { method: 'POST', headers: withoutUndefined({ ...this.standardHeaders(), ...headers }), body: bytes, agent: this.agent, deadline });
  }

  /** The `initialize` request alone; takes over the session id. Returns the whole exchange of `send`. */
  async initialize(params = {}) {
    const answer = await this.send('initialize', {
      protocolVersion: this.protocol,
      capabilities: this.capabilities,
      clientInfo: { name: this.name, version: '1.0.0' },
      ...params,
    });
    this.session = answer.headers['mcp-session-id'];
    if (answer.message?.result) {
      this.initialized = true;
      this.protocol = answer.message.result.protocolVersion;
    }
    return answer;
  }

  /** The whole handshake; returns the result of `initialize`. */
  async connect() {
    const answer = await this.initialize();
    if (!answer.message?.result) throw new Error(`initialize: HTTP ${answer.status} ${answer.text}`);
    await this.notify('notifications/initialized');
    return answer.message.result;
  }

  /**
   * One request to its answer: {status, headers, text, message (the answer), others (messages before it), id}.
   * Reads JSON and SSE replies alike.
   */
  async send(method, params, { id = ++this.lastId, headers, url, body, deadline } = {}) {
    const response = await this.post(body ?? { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }, { headers, url, deadline });
    return readAnswer(response, id, deadline);
  }

  /** The answer's JSON-RPC message alone. */
  async call(method, params, options) {
    return (await this.send(method, params, options)).message;
  }

  /** The `result` of a request that must succeed. */
  async result(method, params, options) {
    const answer = await this.send(method, params, options);
    if (!answer.message?.result) throw new Error(`${method}: HTTP ${answer.status} ${answer.text}`);
    return answer.message.result;
  }

  /** Whether it is one by its own declaration: no refusal is a result for it. */
  get isTasksClient() {
    return this.initialized && this.session !== undefined && this.capabilities?.tasks !== undefined && this.protocol >= '2025-11-25';
  }

  /** The `error` of a request that must fail, or that a refused call's result has. */
  async error(method, params, options) {
    const answer = await this.send(method, params, options);
    const error = this.isTasksClient ? answer.message?.error : errorOf(answer.message);
    if (!error) throw new Error(`${method} did not fail: HTTP ${answer.status} ${answer.text}`);
    return error;
  }

  async notify(method, params, options = {}) {
    const response = await this.post({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }, options);
    await response.bytes();
    return response;
  }

  /** `tools/call` with a task; returns the create result. */
  createTask(name, args = {}, task = { ttl: 60_000 }) {
    return this.result('tools/call', { name, arguments: args, task });
  }

  /** Sends a request and returns its reply as an open SSE stream. */
  async stream(method, params, { id = ++this.lastId, headers, deadline } = {}) {
    const response = await this.post({ jsonrpc: '2.0', id, method, params }, { headers, deadline });
    if (!/^text\/event-stream/.test(response.headers['content-type'] ?? '')) {
      throw new Error(`${method} is not answered by a stream: HTTP ${response.status} ${await response.text()}`);
    }
    const stream = response.sse();
    stream.id = id;
    stream.response = response;
    this.streams.add(stream);
    return stream;
  }

  /** Opens the GET stream of the session. */
  async listen({ headers = {}, url = this.url } = {}) {
    const { 'content-type': _, ...standard } = this.standardHeaders();
    const response = await open(url, { headers: withoutUndefined({ ...standard, accept: 'text/event-stream', ...headers }), agent: this.agent });
    if (response.status !== 200) throw new Error(`GET: HTTP ${response.status} ${await response.text()}`);
    const stream = response.sse();
    stream.response = response;
    this.streams.add(stream);
    return stream;
  }

  /** DELETEs the session. */
  async delete({ headers = {} } = {}) {
    const { 'content-type': _, ...standard } = this.standardHeaders();
    return exchange(this.url, { method: 'DELETE', headers: { ...standard, ...headers }, agent: this.agent });
  }
}

async function readAnswer(response, id, deadline = 60_000) {
  const answer = { status: response.status, headers: response.headers, id, others: [] };
  if (/^text\/event-stream/.test(response.headers['content-type'] ?? '')) {
    const stream = new SseReader(response.message, () => response.abort());
    await stream.end(deadline);
    answer.text = stream.raw;
    answer.events = stream.events;
    answer.over = stream.over;
    for (const { json } of stream.events) {
      if (json === undefined) continue;
      if (json.id === id && json.method === undefined) answer.message = json;
      else answer.others.push(json);
    }
    return answer;
  }
  answer.bytes = await response.bytes(deadline);
  answer.text = answer.bytes.toString('utf8');
  try {
    answer.message = JSON.parse(answer.text);
  } catch {
    // A body that is not JSON: see `text`.
  }
  return answer;
}

function withoutUndefined(headers) {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
}
