// The example server as a process, and a client that shows every byte of the transport.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
export const exampleBinary =
  process.env.TASKGATE_EXAMPLE_SERVER ?? path.join(root, 'build/examples/taskgate-example-server');
export const exampleMissing = existsSync(exampleBinary) ? false : `${exampleBinary} is not built`;

/** Waits until `look` returns something true, and returns it. */
export async function until(look, what, milliseconds = 10_000) {
  for (const deadline = Date.now() + milliseconds; ; ) {
    const seen = await look();
    if (seen) return seen;
    assert.ok(Date.now() < deadline, `waited ${milliseconds} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function temporaryFolder(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-scripts-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts the server on a free port; when the test ends it must stop with 0 and without a sanitizer's report. */
export async function startExample(t, ...options) {
  const journal = path.join(temporaryFolder(t), 'journal');
  const child = spawn(exampleBinary, ['--port', '0', '--journal', journal, ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const server = { stdout: '', stderr: '', journal: () => readFileSync(journal, 'utf8') };
  child.stdout.on('data', (bytes) => (server.stdout += bytes));
  child.stderr.on('data', (bytes) => (server.stderr += bytes));
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
  server.stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 8_000);
    assert.equal(await ended, 0, server.stderr);
    clearTimeout(timer);
    assert.doesNotMatch(server.stderr, /Sanitizer|runtime error/);
  };
  t.after(server.stop);
  server.url = await until(() => /listening on (\S+)/.exec(server.stdout)?.[1], 'the address');
  server.logged = (line) => until(() => server.stderr.includes(line), `"${line}" on stderr`);
  return server;
}

/** One client with a session of its own. */
export class Client {
  constructor(url) {
    this.url = url;
    this.headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    this.lastId = 0;
  }

  async initialize(capabilities = {}, protocolVersion = '2025-11-25') {
    const response = await this.send('initialize', {
      protocolVersion,
      capabilities,
      clientInfo: { name: 'test', version: '1' },
    });
    assert.equal(response.status, 200);
    this.headers['Mcp-Session-Id'] = response.headers.get('mcp-session-id');
    const { result } = await response.json();
    const initialized = await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.equal(initialized.status, 202);
    return result;
  }

  post(body, options = {}) {
    return fetch(this.url, {
      method: 'POST',
      headers: { ...this.headers, ...options.headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      signal: options.signal,
    });
  }

  send(method, params, options) {
    return this.post({ jsonrpc: '2.0', id: ++this.lastId, method, params }, options);
  }

  call(name, given, { meta, ...options } = {}) {
    return this.send('tools/call', { name, arguments: given, ...(meta ? { _meta: meta } : {}) }, options);
  }

  listen(signal) {
    return fetch(this.url, { headers: { ...this.headers, Accept: 'text/event-stream' }, signal });
  }

  end() {
    return fetch(this.url, { method: 'DELETE', headers: this.headers });
  }
}

/** The messages of an event stream, one by one, as they arrive. */
export async function* messages(response) {
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  let text = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    text += decoder.decode(bytes, { stream: true });
    for (let end; (end = text.indexOf('\n\n')) !== -1; text = text.slice(end + 2)) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end));
      if (data) yield JSON.parse(data[1]);
    }
  }
}

export async function all(response) {
  const list = [];
  for await (const message of messages(response)) list.push(message);
  return list;
}

export async function textOf(response) {
  const { result } = await response.json();
  return result.content[0].text;
}
