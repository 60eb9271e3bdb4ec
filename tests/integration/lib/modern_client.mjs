// A raw client of the modern era (MCP 2026-07-28): each request carries its version and its capabilities, in the body and in headers.
import fs from 'node:fs';
import { defer } from './lifetime.mjs';
import { RawClient } from './client.mjs';

export const MODERN = '2026-07-28';
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
/** The capabilities of a client that knows tasks. */
export const WITH_TASKS = { extensions: { [TASKS_EXTENSION]: {} } };

export const key = (name) => `io.modelcontextprotocol/${name}`;

const [, VERSION] = /^ *version: '([^']+)'/m.exec(fs.readFileSync(new URL('../../../meson.build', import.meta.url), 'utf8'));
/** The members of each result that the gateway itself has made. */
export const OWN = { _meta: { [key('serverInfo')]: { name: 'taskgate', version: VERSION } } };

/** A text as a mirrored header's value: as it is, or in base64 where a header cannot carry it. */
export function mirrored(text) {
  const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return plain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

const NAMED = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri', 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' };

/** A modern client, with its connections closed after the test. */
export function modernClient(t, url, options) {
  const client = new ModernClient(url, options);
  defer(t, () => client.close());
  return client;
}

export class ModernClient extends RawClient {
  constructor(url, { capabilities = WITH_TASKS, info = { name: 'modern-client', version: '1.0.0' }, ...options } = {}) {
    super(url, { ...options, capabilities, protocol: MODERN });
    this.info = info;
  }

  /** `_meta` of a request; members that are undefined are left out. */
  envelope(meta = {}) {
    return { [key('protocolVersion')]: this.protocol, [key('clientInfo')]: this.info, [key('clientCapabilities')]: this.capabilities, ...meta };
  }

  /** The headers that repeat a body. */
  mirror({ method, params }) {
    const name = params?.[NAMED[method]];
    return { 'mcp-protocol-version': this.protocol, 'mcp-method': method, ...(typeof name === 'string' ? { 'mcp-name': mirrored(name) } : {}) };
  }

  /**
   * One request to its answer, as RawClient.send. `meta` is laid over the envelope; `headers` over the mirrored ones, where undefined
   * leaves one out; `body` (an object or exact text) takes the place of the whole message.
   */
  send(method, params = {}, { id = ++this.lastId, meta, headers, body, ...options } = {}) {
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta: this.envelope({ ...params._meta, ...meta }) } };
    return super.send(method, undefined, { ...options, id, body: body ?? JSON.stringify(message), headers: { ...this.mirror(message), ...headers } });
  }

  discover(options) {
    return this.result('server/discover', {}, options);
  }

  /** A tools/call that must become a task; its CreateTaskResult. */
  async create(name, args = {}, options) {
    const result = await this.result('tools/call', { name, arguments: args }, options);
    if (result.resultType !== 'task') throw new Error(`no task: ${JSON.stringify(result)}`);
    return result;
  }

  get(taskId, options) {
    return this.result('tasks/get', { taskId }, options);
  }

  update(taskId, inputResponses, options) {
    return this.result('tasks/update', { taskId, inputResponses }, options);
  }

  cancel(taskId, options) {
    return this.result('tasks/cancel', { taskId }, options);
  }

  /** Sends a request and returns its reply as an open event stream, which ends when it is aborted. */
  async stream(method, params = {}, { id = ++this.lastId, meta, headers, deadline } = {}) {
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta: this.envelope(meta) } };
    const response = await this.post(JSON.stringify(message), { deadline, headers: { ...this.mirror(message), ...headers } });
    if (!/^text\/event-stream/.test(response.headers['content-type'] ?? '')) {
      throw new Error(`${method} is not answered by a stream: HTTP ${response.status} ${await response.text()}`);
    }
    const stream = response.sse();
    stream.id = id;
    stream.response = response;
    this.streams.add(stream);
    return stream;
  }
}
