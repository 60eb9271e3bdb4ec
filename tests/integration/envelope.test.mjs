// The judged bytes are sent: a body that two parsers could read differently never passes.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { wholeFile } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';

const file = wholeFile();
let stage, client;
before(async () => {
  stage = await scene(file, { rules: [['delete_*', 'approve']] });
  client = await connectedRaw(file, stage.gateway.url);
});

const call = (params) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
const utf8 = (...parts) => Buffer.concat(parts.map((p) => (typeof p === 'string' ? Buffer.from(p) : Buffer.from(p))));

const refused = {
  'an empty body': '',
  'white space only': ' \n',
  'a word': 'hello',
  'half an object': '{"jsonrpc":"2.0","id":1,"method":"ping"',
  'a string': '"ping"',
  'a number': '5',
  null: 'null',
  'a trailing comma': '{"jsonrpc":"2.0","id":1,"method":"ping",}',
  'a comment': '{"jsonrpc":"2.0","id":1,/* x */"method":"ping"}',
  'single quotes': "{'jsonrpc':'2.0','id':1,'method':'ping'}",
  NaN: call('{"name":"read","arguments":{"n":NaN}}'),
  'a leading zero': call('{"name":"read","arguments":{"n":01}}'),
  'a plus sign': call('{"name":"read","arguments":{"n":+1}}'),
  'a control character in a string': call('{"name":"re\u0001ad"}'),
  'a bad escape': call('{"name":"re\\xad"}'),
  'a second message behind the first': `${call('{"name":"read"}')}${call('{"name":"delete_user"}')}`,
  'a second message on the next line': `${call('{"name":"read"}')}\n${call('{"name":"delete_user"}')}`,
  'trailing bytes': `${call('{"name":"read"}')}x`,
  'a trailing NUL': `${call('{"name":"read"}')}\0`,
  'a batch of one': `[${call('{"name":"read"}')}]`,
  'a batch of two': `[${call('{"name":"read"}')},${call('{"name":"delete_user"}')}]`,
  'an empty batch': '[]',
  'a duplicate method': '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"delete_user"}}',
  'a duplicate id': '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
  'duplicate params': '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"},"params":{"name":"delete_user"}}',
  'a duplicate name': call('{"name":"read","name":"delete_user"}'),
  'duplicate arguments': call('{"name":"read","arguments":{},"arguments":{"x":1}}'),
  'a duplicate task': call('{"name":"delete_user","task":{},"task":{"ttl":1}}'),
  'a duplicate ttl': call('{"name":"delete_user","task":{"ttl":1,"ttl":2}}'),
  'a duplicate key in the arguments': call('{"name":"read","arguments":{"path":"/a","path":"/b"}}'),
  'a duplicate key deep in the arguments': call('{"name":"read","arguments":{"a":[{"b":{"c":[1,{"d":1,"d":1}]}}]}}'),
  'a duplicate spelled with an escape': call('{"name":"read","n\\u0061me":"delete_user"}'),
  'a duplicate spelled with an escape in the arguments': call('{"name":"read","arguments":{"path":1,"\\u0070ath":2}}'),
  'a duplicate empty key': call('{"name":"read","arguments":{"":1,"":2}}'),
  'a duplicate key in an unknown member': '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":{"k":1,"k":2}}}',
  'Method beside method': '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}',
  'METHOD alone': '{"jsonrpc":"2.0","id":1,"METHOD":"ping"}',
  'Id beside id': '{"jsonrpc":"2.0","id":1,"Id":2,"method":"ping"}',
  'Params beside params': '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"},"Params":{"name":"delete_user"}}',
  'JsonRpc beside jsonrpc': '{"jsonrpc":"2.0","JsonRpc":"2.0","id":1,"method":"ping"}',
  'Name beside name': call('{"name":"read","Name":"delete_user"}'),
  'nAME alone': call('{"nAME":"delete_user"}'),
  'Arguments beside arguments': call('{"name":"read","arguments":{},"Arguments":{"x":1}}'),
  'Task beside task': call('{"name":"delete_user","task":{},"Task":{}}'),
  'TASK alone': call('{"name":"read","TASK":{}}'),
  'Ttl in the task': call('{"name":"delete_user","task":{"Ttl":5}}'),
  '_Meta beside _meta': call('{"name":"read","_meta":{},"_Meta":{}}'),
  'ProgressToken in _meta': call('{"name":"read","_meta":{"ProgressToken":1}}'),
  'a case variant spelled with an escape': '{"jsonrpc":"2.0","id":1,"method":"ping","\\u004dethod":"tools/call"}',
  'a stray continuation byte': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0x80], '"}}'),
  'an overlong encoding': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xc0, 0xaf], '"}}'),
  'an encoded surrogate': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xed, 0xa0, 0x80], '"}}'),
  'a code point beyond Unicode': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xf4, 0x90, 0x80, 0x80], '"}}'),
  'a cut multi-byte character': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"', [0xe2, 0x82], '"}}'),
  'a byte 0xFF in a key': utf8('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"', [0xff], '":1}}'),
  'UTF-16': Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}', 'utf16le'),
  'arrays 20,000 deep': call(`{"name":"read","arguments":{"x":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`),
  'objects 20,000 deep': call(`{"name":"read","arguments":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`),
  '1,000,000 open brackets': '['.repeat(1_000_000),
};

for (const [what, body] of Object.entries(refused)) {
  test(`refused with HTTP 400 and an error without id: ${what}`, async () => {
    const before = stage.upstream.requests.length;
    const answer = await client.send('', undefined, { body, id: 1 });
    assert.equal(answer.status, 400, answer.text);
    assert.ok([-32700, -32600].includes(answer.message.error.code), answer.text);
    assert.ok(!('id' in answer.message), answer.text);
    assert.equal(answer.message.jsonrpc, '2.0');
    assert.match(answer.headers['content-type'], /^application\/json/);
    assert.equal(stage.upstream.requests.length, before, 'it reached upstream');
  });
}

test('unreadable JSON is -32700, readable JSON that is no request is -32600', async () => {
  const code = async (body) => (await client.send('', undefined, { body })).message.error.code;
  assert.equal(await code('{"jsonrpc":'), -32700);
  assert.equal(await code('[]'), -32600);
  assert.equal(await code(`[${call('{"name":"read"}')}]`), -32600);
});

const accepted = {
  'the same key in different objects': '{"name":"read","arguments":{"a":{"k":1},"b":{"k":2}}}',
  'case variants inside the arguments': '{"name":"read","arguments":{"name":1,"Name":2,"TASK":3,"Method":4}}',
  'depth 20': `{"name":"read","arguments":{"x":${'['.repeat(20)}1${']'.repeat(20)}}}`,
  'all escapes': '{"name":"read","arguments":{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\ud83d\\ude00"}}',
  'all planes of Unicode': '{"name":"read","arguments":{"s":"é€😀\u2028\ufffd"}}',
  'numbers beyond any machine type': '{"name":"read","arguments":{"n":[-0,1e400,-1.5E-7,123456789012345678901234567890]}}',
  'white space everywhere': '{\r\n\t "name" : "read" , "arguments" : { } }',
  'the name written with escapes': '{"\\u006eame":"re\\u0061d"}',
};

for (const [what, params] of Object.entries(accepted)) {
  test(`passes unchanged: ${what}`, async () => {
    const answer = await client.send('', undefined, { body: call(params), id: 1 });
    assert.equal(answer.message?.result?.content[0].text, 'did read', answer.text);
    assert.equal(stage.upstream.calls.at(-1).text, call(params));
  });
}

test('a name written with escapes is judged by what it means', async () => {
  const before = stage.upstream.calls.length;
  const answer = await client.send('', undefined, { body: call('{"name":"delete_\\u0075ser"}'), id: 1 });
  assert.equal(answer.message.error.code, -32009);
  assert.equal(stage.upstream.calls.length, before);
});

test('with a readable id, protocol errors are HTTP 200 with it', async () => {
  for (const [body, code] of [
    ['{"jsonrpc":"1.0","id":"q","method":"ping"}', -32600],
    ['{"id":"q","method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":"q","method":"no/such"}', -32601],
    ['{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{}}', -32602],
    ['{"jsonrpc":"2.0","id":"q","method":"tools/call"}', -32602],
    ['{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":5}}', -32602],
    ['{"jsonrpc":"2.0","id":"q","method":7}', -32600],
  ]) {
    const answer = await client.send('', undefined, { body, id: 'q' });
    assert.deepEqual([answer.status, answer.message.error?.code, answer.message.id], [200, code, 'q'], body);
    assert.equal(typeof answer.message.error.data.error_type, 'string', body);
  }
});

test('an id that is no string and no integer is refused', async () => {
  const before = stage.upstream.requests.length;
  for (const id of ['{}', '[]', 'true', '1.5', 'null']) {
    const answer = await client.send('', undefined, { body: `{"jsonrpc":"2.0","id":${id},"method":"ping"}` });
    assert.equal(answer.message.error?.code, -32600, id);
    assert.ok(!('id' in answer.message), answer.text);
  }
  assert.equal(stage.upstream.requests.length, before);
});

test('ids come back as they were: strings, big and negative integers', async () => {
  for (const id of ['"x"', '""', '0', '-7', '9007199254740993', '"\\u00e9"']) {
    const answer = await client.send('', undefined, { body: `{"jsonrpc":"2.0","id":${id},"method":"no/such"}` });
    assert.equal(answer.status, 200, id);
    const literal = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)/.exec(answer.text)[1];
    assert.ok(literal === id || JSON.parse(literal) === JSON.parse(id), `${id} came back as ${literal}`);
    if (!id.startsWith('"')) assert.equal(literal, id);
  }
});
