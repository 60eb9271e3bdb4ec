// The example server on its own: a good MCP citizen, and a fair target for the gateway's tests.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { request } from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import {
  Client, all, exampleBinary, exampleMissing, messages, startExample, temporaryFolder, textOf, until,
} from './lib/example.mjs';

const options = { skip: exampleMissing, timeout: 60_000 };

test('initialize begins a session with an id nobody can guess, in every known version', options, async (t) => {
  const { url } = await startExample(t);
  const ids = new Set();
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
    const client = new Client(url);
    const result = await client.initialize({}, version);
    assert.equal(result.protocolVersion, version);
    assert.deepEqual(result.capabilities, { tools: { listChanged: false }, logging: {} });
    assert.match(client.headers['Mcp-Session-Id'], /^[0-9a-f]{32}$/);
    ids.add(client.headers['Mcp-Session-Id']);
  }
  assert.equal(ids.size, 4);
  assert.equal((await new Client(url).initialize({}, '1999-01-01')).protocolVersion, '2025-11-25');
});

test('a missing session is 400, an unknown one 404, an ended one too', options, async (t) => {
  const { url } = await startExample(t);
  const client = new Client(url);
  assert.equal((await client.send('tools/list')).status, 400);
  assert.equal((await client.send('tools/list', {}, { headers: { 'Mcp-Session-Id': 'made-up' } })).status, 404);
  await client.initialize();
  assert.equal((await client.send('ping')).status, 200);
  const unsupported = { headers: { 'MCP-Protocol-Version': '1999-01-01' } };
  assert.equal((await client.send('ping', {}, unsupported)).status, 400);
  assert.equal((await client.end()).status, 200);
  assert.equal((await client.send('ping')).status, 404);
  assert.equal((await client.end()).status, 404);
  assert.equal((await client.listen()).status, 404);
});

test('answers what is not a good request with the right error', options, async (t) => {
  const { url } = await startExample(t);
  const client = new Client(url);
  await client.initialize();
  const refused = async (body, status, code) => {
    const response = await client.post(body);
    assert.equal(response.status, status, body);
    const message = await response.json();
    assert.equal(message.error.code, code, body);
    return message;
  };
  assert.ok(!('id' in (await refused('{"jsonrpc":"2.0","id":1', 400, -32700))));
  await refused('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32700);
  await refused('', 400, -32700);
  await refused('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600);
  await refused('{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600);
  await refused('{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600);
  assert.equal((await refused('{"jsonrpc":"2.0","id":"x","method":"no/such"}', 200, -32601)).id, 'x');
  await refused('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', 200, -32602);
  await refused('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such"}}', 200, -32602);
  await refused('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}', 200, -32602);
  await refused('{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}', 200, -32602);

  const text = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{}' });
  assert.equal(text.status, 415);
  const put = await fetch(url, { method: 'PUT', headers: client.headers, body: '{}' });
  assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, POST, DELETE']);
  assert.equal((await fetch(`${url}/more`)).status, 404);
  assert.equal((await fetch(url, { headers: { ...client.headers, Accept: 'text/html' } })).status, 406);
  // A newer client's probe, which has no session yet.
  const probe = await new Client(url).send('server/discover', {});
  assert.deepEqual([probe.status, (await probe.json()).error.code], [400, -32601]);
});

// fetch sets Origin itself, so this one goes by hand.
function statusWithOrigin(url, origin) {
  return new Promise((resolve, reject) => {
    const headers = { Origin: origin, 'Content-Type': 'application/json' };
    request(url, { method: 'POST', headers }, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  });
}

test('refuses the pages of other sites', options, async (t) => {
  const { url } = await startExample(t);
  for (const origin of ['http://evil.example', 'http://localhost.evil.example', 'null', 'http://127.0.0.1.evil']) {
    assert.equal(await statusWithOrigin(url, origin), 403, origin);
  }
  for (const origin of ['http://localhost:3000', 'https://127.0.0.1', 'http://[::1]:8080']) {
    assert.equal(await statusWithOrigin(url, origin), 400, origin);
  }
});

test('lists its tools, and tells the time', options, async (t) => {
  const { url } = await startExample(t);
  const client = new Client(url);
  await client.initialize();
  const { result } = await (await client.send('tools/list')).json();
  assert.deepEqual(result.tools.map((tool) => tool.name), ['get_time', 'delete_database', 'slow', 'ask', 'ask_model']);
  for (const tool of result.tools) assert.equal(tool.inputSchema.type, 'object');
  assert.match(await textOf(await client.call('get_time', {})), /^It is \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.$/);
});

test('delete_database deletes, counts its executions, and keeps the very bytes', options, async (t) => {
  const server = await startExample(t);
  const client = new Client(server.url);
  await client.initialize();
  const body =
    '{ "jsonrpc":"2.0", "id":7, "method":"tools/call", "params":{"arguments":{"name":"orders", "n":1.50},"name":"delete_database"} }';
  assert.match(await textOf(await client.post(body)), /^Deleted database "orders"\. Left: analytics, customers/);
  const again = await (await client.post(body)).json();
  assert.equal(again.id, 7);
  assert.equal(again.result.isError, true);
  assert.match(again.result.content[0].text, /no database "orders"/);
  assert.equal((await (await client.call('delete_database', {})).json()).result.isError, true);
  assert.equal(server.stderr.match(/^executed delete_database /gm).length, 3);
  assert.deepEqual(server.journal().split('\n').slice(0, 2), [body, body]);
});

test('with --data-dir each database is a file that goes away with it', options, async (t) => {
  const folder = path.join(temporaryFolder(t), 'data');
  const server = await startExample(t, '--data-dir', folder);
  assert.ok(existsSync(path.join(folder, 'staging.db')));
  const client = new Client(server.url);
  await client.initialize();
  await client.call('delete_database', { name: 'staging' });
  assert.ok(!existsSync(path.join(folder, 'staging.db')));
  const outside = await client.call('delete_database', { name: '../data/orders' });
  assert.equal((await outside.json()).result.isError, true);
  assert.equal(readdirSync(folder).length, 4);

  const later = new Client((await startExample(t, '--data-dir', folder)).url);
  await later.initialize();
  assert.match(await textOf(await later.call('delete_database', { name: 'orders' })), /Left: (?!.*staging)/);
});

test('slow reports rising progress on the token of the caller, then its result', options, async (t) => {
  const { url } = await startExample(t);
  const client = new Client(url);
  await client.initialize();
  const list = await all(await client.call('slow', { seconds: 0.6 }, { meta: { progressToken: 'mine' } }));
  const last = list.pop();
  assert.deepEqual([last.id, last.result.content[0].text], [client.lastId, 'Waited 0.6 s.']);
  assert.ok(list.length >= 2);
  let before = 0;
  for (const { method, params } of list) {
    assert.deepEqual([method, params.progressToken, params.total], ['notifications/progress', 'mine', 100]);
    assert.ok(params.progress > before);
    before = params.progress;
  }
  assert.equal((await all(await client.call('slow', { seconds: 0.1 }))).length, 1, 'no token, no progress');
  const json = await client.call('slow', { seconds: 0.1 }, { headers: { Accept: 'application/json' } });
  assert.match(json.headers.get('content-type'), /json/);
  assert.equal(await textOf(json), 'Waited 0.1 s.');
  for (const seconds of [0, -1, 1e9, 'x', undefined]) {
    assert.equal((await (await client.call('slow', { seconds })).json()).result.isError, true, String(seconds));
  }
});

test('slow stops when it is cancelled, when its client goes away, and when its session ends', options, async (t) => {
  const server = await startExample(t);
  const client = new Client(server.url);
  await client.initialize();
  const cancelled = await client.call('slow', { seconds: 60 });
  const params = { requestId: client.lastId, reason: 'enough' };
  const notified = await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
  assert.equal(notified.status, 202);
  assert.deepEqual(await all(cancelled), [], 'a cancelled call is not answered');
  await server.logged('stopped: the client cancelled the call');

  for (const Accept of ['application/json, text/event-stream', 'application/json']) {
    server.stderr = '';
    const away = new AbortController();
    const left = client.call('slow', { seconds: 60 }, { signal: away.signal, headers: { Accept } }).catch(() => {});
    await server.logged('executed slow');
    away.abort();
    await left;
    await server.logged('stopped: the client went away');
  }

  const open = await client.call('slow', { seconds: 60 });
  await client.end();
  assert.deepEqual(await all(open), []);
  await server.logged('stopped: the session ended');
});

test('a client that closed its side before it was answered is gone', options, async (t) => {
  const server = await startExample(t);
  const client = new Client(server.url);
  await client.initialize();
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'slow', arguments: { seconds: 60 } } });
  const head = Object.entries({ ...client.headers, Host: 'x', 'Content-Length': body.length }).map((pair) => pair.join(': '));
  const socket = net.connect(new URL(server.url).port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.end(`POST /mcp HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`);
  await server.logged('stopped: the client went away');
});

test('ask sends its question on the stream of the call, and ends with the answer', options, async (t) => {
  const { url } = await startExample(t);
  const client = new Client(url);
  await client.initialize({ elicitation: {} });
  const answers = [
    [{ result: { action: 'accept', content: { answer: 'blue' } } }, 'The human answered: blue'],
    [{ result: { action: 'decline' } }, 'The human chose to decline.'],
    [{ error: { code: -1, message: 'no window' } }, 'The client could not ask.'],
  ];
  for (const [answer, expected] of answers) {
    const stream = messages(await client.call('ask', { question: 'Which colour?' }));
    const { value: question } = await stream.next();
    assert.equal(question.method, 'elicitation/create');
    assert.equal(question.params.message, 'Which colour?');
    assert.deepEqual(question.params.requestedSchema.required, ['answer']);
    const other = new Client(url);
    await other.initialize();
    await other.post({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { answer: 'not mine' } } });
    assert.equal((await client.post({ jsonrpc: '2.0', id: question.id, ...answer })).status, 202);
    const { value: result } = await stream.next();
    assert.equal(result.result.content[0].text, expected);
    assert.equal((await stream.next()).done, true);
  }
});

test('ask_model asks the model of the client, and ends with its answer', options, async (t) => {
  const { url } = await startExample(t);
  const client = new Client(url);
  await client.initialize({ sampling: {} });
  const answers = [
    [{ result: { role: 'assistant', content: { type: 'text', text: 'blue' }, model: 'model-1' } }, 'model-1 answered: blue', undefined],
    [{ error: { code: -1, message: 'too dear' } }, "The client's model did not answer.", true],
  ];
  for (const [answer, expected, isError] of answers) {
    const stream = messages(await client.call('ask_model', { prompt: 'Which colour?' }));
    const { value: question } = await stream.next();
    assert.equal(question.method, 'sampling/createMessage');
    assert.deepEqual(question.params, { messages: [{ role: 'user', content: { type: 'text', text: 'Which colour?' } }], maxTokens: 200 });
    assert.equal((await client.post({ jsonrpc: '2.0', id: question.id, ...answer })).status, 202);
    const { value: result } = await stream.next();
    assert.deepEqual([result.result.content[0].text, result.result.isError], [expected, isError]);
  }
  const other = new Client(url);
  await other.initialize({ elicitation: {} });
  assert.match((await (await other.call('ask_model', {})).json()).result.content[0].text, /sampling capability/);
});

test('ask says so when the client cannot ask', options, async (t) => {
  const { url } = await startExample(t);
  for (const capabilities of [{}, { elicitation: { url: {} } }]) {
    const client = new Client(url);
    await client.initialize(capabilities);
    const { result } = await (await client.call('ask', {})).json();
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /elicitation capability/);
  }
});

test('GET opens the stream of notifications, at the level that was set', options, async (t) => {
  const { url } = await startExample(t);
  const [listener, actor] = [new Client(url), new Client(url)];
  await listener.initialize();
  await actor.initialize();
  const away = new AbortController();
  t.after(() => away.abort());
  const stream = messages(await listener.listen(away.signal));
  await actor.call('delete_database', { name: 'orders' });
  const { value: first } = await stream.next();
  assert.deepEqual(first, {
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { level: 'warning', logger: 'databases', data: { deleted: 'orders' } },
  });
  assert.deepEqual((await (await listener.send('logging/setLevel', { level: 'error' })).json()).result, {});
  await actor.call('delete_database', { name: 'staging' });
  await listener.send('logging/setLevel', { level: 'debug' });
  await listener.call('get_time', {});
  assert.deepEqual((await stream.next()).value.params.data, { called: 'get_time' });
  await listener.end();
  assert.equal((await stream.next()).done, true);
});

test('a stop ends what is open, without losing the connection to it', options, async (t) => {
  const server = await startExample(t);
  const client = new Client(server.url);
  await client.initialize();
  const [call, listening] = [await client.call('slow', { seconds: 60 }), await client.listen()];
  await server.stop();
  assert.deepEqual([await all(call), await all(listening)], [[], []]);
});

test('says what is wrong with its command line', options, async (t) => {
  const run = (...words) => spawnSync(exampleBinary, words, { encoding: 'utf8', timeout: 20_000 });
  assert.deepEqual([run('--help').status, run('--help').stdout.startsWith('taskgate-example-server: ')], [0, true]);
  for (const words of [['--port', 'x'], ['--port', '70000'], ['extra'], ['--no-such']]) {
    assert.equal(run(...words).status, 2, words.join(' '));
  }
  assert.match(run('--host', 'localhost').stderr, /give a numeric address/);
  assert.match(run('--data-dir', '/proc/none').stderr, /give a folder/);
  const { url } = await startExample(t);
  assert.match(run('--port', new URL(url).port).stderr, /choose another with --port/);
  await until(() => fetch(url).then(() => true), 'the first server to be well');
});
