// One MCP client over Streamable HTTP that sends exactly the given bytes and hides nothing of the answer.
import http from 'node:http';
import https from 'node:https';

/** Nothing answered: the endpoint is not there, or not in time. */
export class Unreachable extends Error {}

export class Client {
  /** `headers` go with every request; every exchange of `send` that is not `odd` is handed to `record`. */
  constructor(url, { headers = {}, timeout = 10_000, record = () => {} } = {}) {
    this.url = new URL(url);
    this.headers = headers;
    this.timeout = timeout;
    this.record = record;
    this.transport = this.url.protocol === 'https:' ? https : http;
    this.agent = new this.transport.Agent({ keepAlive: true });
    this.session = undefined;
    this.version = undefined; // the negotiated one, from the end of the handshake on
    this.lastId = 0;
  }

  /** Drops every connection. */
  close() {
    this.agent.destroy();
  }

  standardHeaders() {
    return {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(this.session ? { 'mcp-session-id': this.session } : {}),
      ...(this.version ? { 'mcp-protocol-version': this.version } : {}),
      ...this.headers,
    };
  }

  /** Any HTTP request to its head: {status, headers, incoming, abort()}. A header of `undefined` is left out. */
  open(method, { headers = {}, body, timeout = this.timeout } = {}) {
    const all = Object.entries({ ...this.standardHeaders(), ...headers }).filter(([, value]) => value !== undefined);
    return new Promise((resolve, reject) => {
      const request = this.transport.request(this.url, { method, agent: this.agent, headers: Object.fromEntries(all) });
      const timer = setTimeout(() => request.destroy(new Unreachable(`no answer to ${method} within ${timeout} ms`)), timeout);
      request.on('error', (error) => {
        clearTimeout(timer);
        reject(error instanceof Unreachable ? error : new Unreachable(`${method} ${this.url}: ${error.message || error.code}`));
      });
      request.on('response', (incoming) => {
        clearTimeout(timer);
        incoming.setEncoding('utf8');
        resolve({ status: incoming.statusCode, headers: incoming.headers, incoming, abort: () => request.destroy() });
      });
      request.end(body);
    });
  }

  /** Any HTTP request to the end of its body: {status, headers, text}. */
  async exchange(method, options = {}) {
    const response = await this.open(method, options);
    let text = '';
    await overWithin(response, options.timeout ?? this.timeout, (part) => void (text += part));
    return { status: response.status, headers: response.headers, text };
  }

  /**
   * One JSON-RPC request to its answer: {id, method, status, headers, type, message, others}. `message` is missing when none
   * came; over a stream it is the one with the request's id, and reading ends with it. `body` replaces the request's text.
   */
  async send(method, params, { id = ++this.lastId, body, headers, odd = false, timeout = this.timeout } = {}) {
    const text = body ?? JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) });
    const response = await this.open('POST', { headers, body: text, timeout });
    const answer = { id, method, status: response.status, headers: response.headers, type: mediaType(response.headers), others: [] };
    if (answer.type === 'text/event-stream') {
      await events(response, timeout, ({ json }) => {
        if (json === undefined) return false;
        if (json?.method === undefined) answer.message = json;
        else answer.others.push(json);
        return answer.message !== undefined;
      });
    } else {
      answer.text = '';
      await overWithin(response, timeout, (part) => void (answer.text += part));
      answer.message = parsed(answer.text);
    }
    if (!odd) this.record(answer);
    return answer;
  }

  /** A notification: {status, headers, text}. */
  notify(method, params, options = {}) {
    return this.exchange('POST', { ...options, body: JSON.stringify({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }) });
  }

  /** The `initialize` request alone; takes over the session id. */
  async initialize(protocolVersion, capabilities, options) {
    const answer = await this.send('initialize', { protocolVersion, capabilities, clientInfo: { name: 'mcp-compliance', version: '1.0.0' } }, options);
    this.session = answer.headers['mcp-session-id'];
    return answer;
  }

  /** Ends the session, if there is one. */
  async end() {
    if (this.session) await this.exchange('DELETE', { headers: { 'content-type': undefined } }).catch(() => {});
  }

  /** Opens the GET stream: {status, type, seen: [{event, json}], opened, abort()}; `seen` grows while it is open. */
  async listen() {
    const response = await this.open('GET', { headers: { accept: 'text/event-stream', 'content-type': undefined } });
    const stream = { status: response.status, type: mediaType(response.headers), seen: [], abort: response.abort };
    stream.opened = stream.status === 200 && stream.type === 'text/event-stream';
    if (stream.opened) events(response, 0, (event) => void stream.seen.push(event)).catch(() => {});
    else response.incoming.resume();
    return stream;
  }
}

const mediaType = (headers) => (headers['content-type'] ?? '').split(';')[0].trim().toLowerCase();

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Hands over the body part by part until its end; `each` may return true to leave earlier. `timeout` 0: for ever. */
function overWithin(response, timeout, each) {
  return new Promise((resolve, reject) => {
    const timer = timeout && setTimeout(() => end(new Unreachable(`the answer has no end after ${timeout} ms`)), timeout);
    const end = (error) => {
      clearTimeout(timer);
      if (error) response.abort();
      error ? reject(error) : resolve();
    };
    response.incoming.on('data', (part) => {
      if (!each(part)) return;
      response.abort();
      end();
    });
    response.incoming.on('end', () => end());
    response.incoming.on('error', (error) => end(new Unreachable(`the answer was cut: ${error.message}`)));
    response.incoming.on('close', () => end());
  });
}

/** Hands over each event of a stream, {event, data, json}, until `each` returns true. */
function events(response, timeout, each) {
  let rest = '';
  return overWithin(response, timeout, (part) => {
    const blocks = (rest += part).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    return blocks.some((block) => each(event(block)));
  });
}

function event(block) {
  const found = {};
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === 'data') found.data = found.data === undefined ? value : `${found.data}\n${value}`;
    else if (field === 'event') found.event = value;
  }
  if (found.data) found.json = parsed(found.data);
  return found;
}
