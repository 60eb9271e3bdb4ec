// Bodies that two readers could understand differently: none is judged as one thing and sent as another.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { connectedRaw } from '../lib/client.mjs';
import { wholeFile } from '../lib/lifetime.mjs';
import { modernClient } from '../lib/modern_client.mjs';
import { modernUpstream } from '../lib/modern_upstream.mjs';
import { call, hostileScene, shielded, TOOLS } from './stage.mjs';

const file = wholeFile();
let stage, client, modernStage, modern;
before(async () => {
  stage = await hostileScene(file);
  client = await connectedRaw(file, stage.gateway.url);
  modernStage = await hostileScene(file, { source: { era: 'modern' }, upstream: modernUpstream({ tools: TOOLS }) });
  modern = modernClient(file, modernStage.gateway.url);
});
const inModern = (name) => `${name}, in a modern envelope`;
const mirrors = { headers: { 'mcp-method': 'tools/call', 'mcp-name': 'read' } };

/** The same body with the envelope of 2026-07-28 in its params. */
function enveloped(body) {
  const text = Buffer.from(body).toString('latin1');
  const meta = JSON.stringify(modern.envelope());
  return Buffer.from(text.replace(/^(\{"jsonrpc":"2\.0","id":1,"method":"[^"]*","params":\{)(.)/, (all, before, next) => `${before}"_meta":${meta}${next === '}' ? '' : ','}${next}`), 'latin1');
}

const READ = '"name":"read"';
const utf8 = (...parts) => Buffer.concat(parts.map((part) => Buffer.from(part)));
const deep = (open, close, depth) => call(`{${READ},"arguments":{"x":${open.repeat(depth)}1${close.repeat(depth)}}}`);

/** Every body is answered with HTTP 400 and an error without id. */
function refuses(name, bodies) {
  const attack = async (client, bodyOf, options) => {
    for (const [what, hostile] of Object.entries(bodies)) {
      const answer = await client.send('', undefined, { body: bodyOf(hostile), ...options });
      assert.equal(answer.status, 400, `${what}: HTTP ${answer.status} ${answer.text}`);
      assert.ok([-32700, -32600].includes(answer.message?.error.code), `${what}: ${answer.text}`);
      assert.ok(!('id' in answer.message), `${what}: ${answer.text}`);
    }
  };
  test(name, () => shielded(stage, client, () => attack(client, (body) => body)));
  test(inModern(name), () => shielded(modernStage, modern, () => attack(modern, enveloped, mirrors)));
}

/** Every body is answered with one of these errors, with any status. */
function errors(name, codes, bodies) {
  const attack = async (client, bodyOf, options) => {
    for (const [what, hostile] of Object.entries(bodies)) {
      const answer = await client.send('', undefined, { body: bodyOf(hostile), ...options });
      assert.ok([...codes, ...(options ? [-32020] : [])].includes(answer.message?.error?.code), `${what}: HTTP ${answer.status} ${answer.text}`);
    }
  };
  test(name, () => shielded(stage, client, () => attack(client, (body) => body)));
  test(inModern(name), () => shielded(modernStage, modern, () => attack(modern, enveloped, mirrors)));
}

refuses('duplicate keys at every level', {
  envelope: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"drop_table"}}`,
  id: '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
  params: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"},"params":{"name":"drop_table"}}',
  name: call(`{${READ},"name":"drop_table"}`),
  arguments: call(`{${READ},"arguments":{},"arguments":{"a":1}}`),
  task: call('{"name":"delete_user","task":{"ttl":5,"ttl":50000}}'),
  _meta: call(`{${READ},"_meta":{"progressToken":1,"progressToken":2}}`),
  'an argument': call(`{${READ},"arguments":{"path":"/a","path":"/etc"}}`),
  'deep in the arguments': call(`{${READ},"arguments":{"a":[[{"b":{"c":1,"d":2,"c":3}}]]}}`),
  'far apart': call(`{${READ},"arguments":{"k":0,${Array.from({ length: 500 }, (_, i) => `"k${i}":1`)},"k":2}}`),
  'the empty key': call(`{${READ},"arguments":{"":1,"":2}}`),
});

refuses('case-variant keys', {
  method: '{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}',
  id: '{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}',
  params: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"},"Params":{"name":"drop_table"}}',
  name: call(`{${READ},"Name":"drop_table"}`),
  'name alone': call('{"NAME":"drop_table"}'),
  arguments: call(`{${READ},"ARGUMENTS":{}}`),
  task: call(`{${READ},"Task":{}}`),
  ttl: call('{"name":"delete_user","task":{"TTL":5}}'),
  _meta: call(`{${READ},"_META":{}}`),
  progressToken: call(`{${READ},"_meta":{"progresstoken":1}}`),
  taskId: '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskid":"tg_x"}}',
});

refuses('Unicode-folded keys', {
  'the long s in tasks': call(`{${READ},"ta\u017fk":{}}`),
  'the kelvin sign in task': call(`{${READ},"tas\u212a":{}}`),
  'the long s in params': '{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"drop_table"}}',
  'a dotless i in id': '{"jsonrpc":"2.0","id":1,"\u0131d":2,"method":"ping"}',
  'a dotted I in uri': '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a","ur\u0130":"file:///b"}}',
  'both, escaped': call(`{${READ},"ta\\u017f\\u212a":{}}`),
});

refuses('escaped keys', {
  'a duplicate name': call(`{${READ},"n\\u0061me":"drop_table"}`),
  'a duplicate method': '{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"tools/call"}',
  'a case variant': call(`{${READ},"\\u004eame":"drop_table"}`),
  'a duplicate argument': call(`{${READ},"arguments":{"/":1,"\\/":2}}`),
  'a surrogate pair beside its character': call(`{${READ},"arguments":{"\u{1F600}":1,"\\ud83d\\ude00":2}}`),
  'half a surrogate pair': call(`{${READ},"arguments":{"\\ud83d":1}}`),
});

test('escaped names and methods are judged by what they mean', async () => {
  await shielded(stage, client, async () => {
    for (const [body, code] of [
      [call('{"\\u006eame":"dr\\u006fp_table"}'), -32014],
      ['{"jsonrpc":"2.0","id":1,"method":"tools\\/c\\u0061ll","params":{"name":"drop_table"}}', -32014],
      [call('{"name":"delete_\\u0075ser"}'), -32009],
    ]) {
      assert.equal((await client.send('', undefined, { body, id: 1 })).message.error.code, code, body);
    }
  });
});

errors('NUL in keys and names', [-32700, -32600, -32602, -32601], {
  'a raw NUL in a name': call('{"name":"drop\0_table"}'),
  'a raw NUL in a key': call(`{${READ},"na\0me":"drop_table"}`),
  'a raw NUL behind the message': `${call(`{${READ}}`)}\0`,
  'an escaped NUL in a key that would be read first': call(`{"name\\u0000":"drop_table",${READ}}`),
  'an escaped NUL in a key of the envelope': `{"jsonrpc":"2.0","id":1,"method\\u0000":"tools/call","method":"ping","params":{"name":"drop_table"}}`,
  'an escaped NUL in a key of the arguments': call(`{${READ},"arguments":{"a":{"table\\u0000":"drop_table","table":"read"}}}`),
  'an escaped NUL ends no name': call('{"name":"read\\u0000"}'),
  'nor begins one': call('{"name":"\\u0000read"}'),
  'nor hides a rest': call('{"name":"read\\u0000drop_table"}'),
  'an escaped NUL in a method': '{"jsonrpc":"2.0","id":1,"method":"tools/call\\u0000","params":{"name":"drop_table"}}',
});

refuses('invalid UTF-8', {
  'a stray continuation byte': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0x80], '"}}'),
  'an overlong slash': utf8(call(`{${READ},"arguments":{"x":"`).slice(0, -1), [0xc0, 0xaf], '"}}}'),
  'an overlong NUL': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xc0, 0x80], '"}}'),
  'a surrogate': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xed, 0xa0, 0x80], '"}}'),
  'beyond Unicode': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xf4, 0x90, 0x80, 0x80], '"}}'),
  'half a character before the quote': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xe2, 0x82], '"}}'),
  'in a key': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"', [0xff], '":1}}'),
  'Latin-1': Buffer.from(call('{"name":"caf\u00e9"}'), 'latin1'),
  'UTF-16': Buffer.from(call(`{${READ}}`), 'utf16le'),
});

refuses('a byte order mark', {
  'UTF-8': `\ufeff${call(`{${READ}}`)}`,
  'UTF-16': utf8([0xff, 0xfe], Buffer.from(call(`{${READ}}`), 'utf16le')),
  'in the middle': call(`{\ufeff${READ}}`),
});

refuses('trailing bytes', {
  'a letter': `${call(`{${READ}}`)}x`,
  'a brace': `${call(`{${READ}}`)}}`,
  'a second message': `${call(`{${READ}}`)}${call('{"name":"drop_table"}', 2)}`,
  'a second message on the next line': `${call(`{${READ}}`)}\n${call('{"name":"drop_table"}', 2)}`,
  'a record separator': `${call(`{${READ}}`)}\x1e`,
  'a vertical tab': `${call(`{${READ}}`)}\x0b`,
  'a no-break space': `${call(`{${READ}}`)}\u00a0`,
});

refuses('depth 10,000', {
  arrays: deep('[', ']', 10_000),
  objects: deep('{"a":', '}', 10_000),
  'both in turns': deep('[{"a":', '}]', 5_000),
  'only opened': '['.repeat(1_000_000),
  'in an unknown member': `{"jsonrpc":"2.0","id":1,"method":"ping","x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`,
});

test('64-bit and huge numbers pass as they were written, as arguments and as ids', async () => {
  const numbers = ['9007199254740993', '-9223372036854775809', '18446744073709551616', '1e400', '-0', '0.1000000000000000055511151231257827', '9'.repeat(5000)];
  for (const number of numbers) {
    const body = call(`{${READ},"arguments":{"n":${number}}}`, 7);
    await client.send('', undefined, { body, id: 7 });
    assert.equal(stage.upstream.calls.at(-1).text, body, number.slice(0, 40));
  }
  await shielded(stage, client, async () => {
    for (const id of ['9007199254740993', '-9223372036854775809', '18446744073709551616', '9'.repeat(5000)]) {
      const answer = await client.send('', undefined, { body: call('{"name":"drop_table"}', id) });
      assert.ok(answer.text.includes(`"id":${id}`), answer.text.slice(0, 200));
    }
  });
});

errors('numbers where a number decides something', [-32602], {
  'a ttl that wraps to a positive one': call('{"name":"delete_user","task":{"ttl":-18446744073709551615}}'),
  'a ttl of a fraction': call('{"name":"delete_user","task":{"ttl":0.5}}'),
  'a ttl with an exponent of minus': call('{"name":"delete_user","task":{"ttl":1e-400}}'),
});

errors('batch arrays', [-32600], {
  'of one': `[${call(`{${READ}}`)}]`,
  'of two': `[${call(`{${READ}}`)},${call('{"name":"drop_table"}', 2)}]`,
  empty: '[]',
  nested: `[[${call(`{${READ}}`)}]]`,
  'of 10,000': `[${Array.from({ length: 10_000 }, (_, i) => call(`{${READ}}`, i))}]`,
});

test('response-shaped frames without a request answer nothing', async () => {
  const { taskId } = await client.createTask('delete_user');
  const frames = [
    `{"jsonrpc":"2.0","id":"${taskId}","result":{"approved":true}}`,
    '{"jsonrpc":"2.0","id":"tg:00000000-0000-4000-8000-000000000000","result":{}}',
    '{"jsonrpc":"2.0","id":999,"error":{"code":-1,"message":"x"}}',
  ];
  for (const frame of frames) {
    const answer = await client.post(frame);
    await answer.bytes();
    assert.ok(answer.status < 500, `HTTP ${answer.status}`);
  }
  // A response goes to upstream, because it may answer upstream; it never becomes a call or a decision here.
  assert.equal(stage.upstream.requests.filter((r) => r.rpc?.method === undefined && r.method === 'POST').every((r) => frames.includes(r.text)), true);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  await shielded(stage, client, async () => {
    for (const body of ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop_table"},"result":{}}', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', '{"jsonrpc":"2.0","result":{}}', '{"jsonrpc":"2.0","id":1}']) {
      const answer = await client.send('', undefined, { body });
      assert.equal(answer.message?.error?.code, -32600, `${body}: HTTP ${answer.status} ${answer.text}`);
    }
  });
});

errors('unknown methods with a tool name inside', [-32601], Object.fromEntries(
  ['tools/Call', 'TOOLS/CALL', 'tools/call ', ' tools/call', 'tools//call', 'tools.call', 'tools\\\\call', 'tools/call/', '/tools/call', 'tool/call', 'x/tools/call', 'tools/call\\n', 'tools/\u0441all', ''].map((method) => [
    JSON.stringify(method),
    `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"name":"drop_table","arguments":{}}}`,
  ]),
));

test('a notification of a method that governs tools reaches upstream only when it is forwarded', async () => {
  await shielded(stage, client, async () => {
    for (const name of ['drop_table', 'delete_user']) {
      const answer = await client.post(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"${name}"}}`);
      await answer.bytes();
    }
  });
});

test('tool names with homoglyphs, zero-width and control characters against globs', async (t) => {
  // Everything that is not exactly a listed safe name needs a human: a name that looks like `read` is not `read`.
  const strict = await hostileScene(t, { defaultAction: 'deny', rules: [['read', 'forward'], ['read_[a-z]', 'forward']] });
  const agent = await strict.connect();
  const names = ['re\u0430d', 'read\u200b', '\u200bread', 're\u00adad', 'read\u202e', '\u202edaer', 'Read', 'READ', 'read ', ' read', 'read\n', 'read\t', 'read\u0001', '\uff52ead', 'rea\u0301d', 'read_\u0430', 'read_\u00df', 'read_A', 'read_ab', 'read_\u0001', ''];
  await shielded(strict, agent, async () => {
    for (const name of names) {
      const error = await agent.error('tools/call', { name });
      assert.ok([-32014, -32602].includes(error.code), `${JSON.stringify(name)}: ${JSON.stringify(error)}`);
    }
  });
});

test('a 100 MB body', async () => {
  const limit = 4 * 1024 * 1024;
  await shielded(stage, client, async () => {
    const text = call(`{${READ},"arguments":{"x":"${'a'.repeat(100 * 1024 * 1024)}"}}`);
    const status = await client.post(text).then((r) => r.status, (error) => error.code);
    // A client that is still sending may see the connection close before the answer.
    assert.ok([413, 'ECONNRESET', 'EPIPE'].includes(status), `${status}`);
    const chunked = await client.post(text.slice(0, limit + 1000), { headers: { 'transfer-encoding': 'chunked', 'content-length': undefined } }).then((r) => r.status, (error) => error.code);
    assert.ok([413, 'ECONNRESET', 'EPIPE'].includes(chunked), `${chunked}`);
    assert.equal((await client.post(text.slice(0, limit + 1000))).status, 413);
  });
});
