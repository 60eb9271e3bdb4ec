// The client of the benchmark counts what it is answered: a refusal is no answer to what a row measures.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { before, test } from 'node:test';
import { root, temporaryFolder } from './lib/example.mjs';

let load;
before((t) => {
  load = path.join(temporaryFolder(t), 'load');
  execFileSync('cc', ['-std=c11', '-D_GNU_SOURCE', '-o', load, path.join(root, 'tests/bench/load.c')]);
});

/** The counts that load prints for 20 answers with this body, and its exit code. */
async function counted(t, body, { status = 200, type = 'application/json', isChunked = false, mode = [] } = {}) {
  const server = http.createServer((request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': type, ...(isChunked ? {} : { 'content-length': Buffer.byteLength(body) }) });
    if (isChunked) response.write(body.slice(0, 9));
    setImmediate(() => response.end(isChunked ? body.slice(9) : body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  const file = path.join(temporaryFolder(t), 'question');
  writeFileSync(file, 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
  const child = spawn(load, [server.address().port, 4, 20, 60_000, file, ...mode].map(String), { stdio: ['ignore', 'pipe', 'pipe'] });
  let [text, said] = ['', ''];
  child.stdout.on('data', (bytes) => (text += bytes));
  child.stderr.on('data', (bytes) => (said += bytes));
  const [code] = await once(child, 'close');
  const { answers, failed, errors } = JSON.parse(text);
  return { code, answers, failed, errors, said };
}

const message = (member) => `{"jsonrpc":"2.0","id":1,${member}}`;
const REFUSED = message('"error":{"code":-32013,"message":"busy"}');
const event = (data) => `event: message\ndata: ${data}\n\n`;
const refusals = {
  'an error': [REFUSED],
  'an error before the id': ['{"error":{"code":-32013,"message":"busy"},"id":1,"jsonrpc":"2.0"}'],
  'an error in chunks': [REFUSED, { isChunked: true }],
  'an error in an event stream': [event(REFUSED), { type: 'text/event-stream', isChunked: true }],
  'an error after a notification': [event('{"jsonrpc":"2.0","method":"notifications/message"}') + event(REFUSED), { type: 'text/event-stream', isChunked: true }],
  'the error of a tool': [message('"result":{"content":[{"type":"text","text":"a \\" {"}],"isError":true}')],
};
const answers = {
  'a result': [message('"result":{"content":[]}')],
  'a result that is no error': [message('"result":{"content":[],"isError":false}')],
  'a result with a text about an error': [message('"result":{"content":[{"type":"text","text":"{\\"error\\":{}} \\"isError\\":true"}]}')],
  'a result with a deeper member of that name': [message('"result":{"structuredContent":{"error":{"isError":true}},"list":[{"isError":true}]}')],
  'a result in an event stream': [event(message('"result":{"error":1}')), { type: 'text/event-stream', isChunked: true }],
};

for (const [name, [body, more]] of Object.entries(refusals))
  test(`load counts ${name} apart, and fails`, async (t) => {
    const { said, ...seen } = await counted(t, body, more);
    assert.deepEqual(seen, { code: 3, answers: 20, failed: 0, errors: 20 });
    assert.ok(said.startsWith('load: the first error: '), said);
    assert.equal((await counted(t, body, { ...more, mode: ['refused'] })).code, 0, 'where it is expected');
  });

for (const [name, [body, more]] of Object.entries(answers))
  test(`load takes ${name} for an answer`, async (t) => {
    assert.deepEqual(await counted(t, body, more), { code: 0, answers: 20, failed: 0, errors: 0, said: '' });
    assert.equal((await counted(t, body, { ...more, mode: ['refused'] })).code, 3, 'where a refusal is expected');
  });

test('load counts another status as failed', async (t) => {
  const { said, ...seen } = await counted(t, REFUSED, { status: 503 });
  assert.deepEqual(seen, { code: 3, answers: 20, failed: 20, errors: 20 });
  assert.match(said, /busy/);
});
