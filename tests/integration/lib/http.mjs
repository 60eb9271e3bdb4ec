// HTTP with nothing hidden: exact bytes out, headers as they came, bodies read or streamed.
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { SseReader } from './sse.mjs';
import { within } from './wait.mjs';

let trusted = {};

/** Options of TLS (`ca`, `cert`, `key`) for every https request of this process that names none itself. */
export function trust(options) {
  trusted = options;
}

/**
 * Sends one request and returns as soon as the response's head is there:
 * {status, headers, rawHeaders, message (the stream), bytes(), text(), json(), sse(), abort()}.
 */
export function open(url, { method = 'GET', headers = {}, body, agent, tls = {}, deadline = 30_000 } = {}) {
  const payload = body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(body);
  let request;
  const head = new Promise((resolve, reject) => {
    const secure = String(url).startsWith('https:');
    request = (secure ? https : http).request(url, {
      ...(secure ? { ...trusted, ...tls } : {}),
      method,
      agent: agent ?? false,
      headers: { ...(payload === undefined ? {} : { 'content-length': payload.length }), ...headers },
    });
    request.on('error', reject);
    request.on('response', (message) => resolve(new Response(request, message)));
    request.end(payload);
  });
  head.catch(() => {});
  const answer = within(head, `the answer to ${method} ${url}`, deadline);
  answer.abort = () => request.destroy();
  return answer;
}

/** One request with its body read whole. */
export async function exchange(url, options) {
  const response = await open(url, options);
  await response.bytes();
  return response;
}

class Response {
  constructor(request, message) {
    this.request = request;
    this.message = message;
    this.socket = message.socket; // a kept-alive request gives it back
    this.status = message.statusCode;
    this.headers = message.headers;
    this.rawHeaders = message.rawHeaders;
    this.reading = null;
  }

  /** The whole body; rejects when the connection is cut in the middle of it. */
  bytes(deadline = 60_000) {
    this.reading ??= new Promise((resolve, reject) => {
      const parts = [];
      this.message.on('data', (part) => parts.push(part));
      this.message.on('end', () => resolve(Buffer.concat(parts)));
      this.message.on('error', reject);
      this.message.on('aborted', () => reject(new Error('the connection was cut in the middle of the body')));
    }).then((bytes) => {
      this.body = bytes;
      return bytes;
    });
    return within(this.reading, `the body of ${this.request.method} ${this.request.path}`, deadline);
  }

  async text() {
    return (await this.bytes()).toString('utf8');
  }

  async json() {
    return JSON.parse(await this.text());
  }

  sse() {
    return new SseReader(this.message, () => this.abort());
  }

  abort() {
    this.request.destroy();
  }
}

/** A plain TCP connection: it sends the written bytes unchanged, and `received` has the received ones. */
export async function socketTo(port, host = '127.0.0.1') {
  const socket = net.connect(port, host);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  socket.on('error', () => {});
  socket.received = '';
  socket.on('data', (data) => (socket.received += data.toString('latin1')));
  return socket;
}
