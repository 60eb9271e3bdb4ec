// Requests of 2026-07-28 whose headers or envelope do not say what the body says: each is refused, and nothing goes up.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { wholeFile } from '../lib/lifetime.mjs';
import { key, MODERN, modernClient } from '../lib/modern_client.mjs';
import { modernUpstream } from '../lib/modern_upstream.mjs';
import { tool } from '../lib/upstream.mjs';
import { hostileScene, shielded, TOOLS } from './stage.mjs';

const file = wholeFile();
/** A tool whose arguments are repeated in headers. */
const ROUTED = tool('route', { inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer', 'x-mcp-header': 'N' }, on: { type: 'boolean', 'x-mcp-header': 'On' } } } });
/** A modern server, and a legacy one that modern clients are bridged to. */
const STAGES = {
  'a modern server': { source: { era: 'modern' }, upstream: modernUpstream({ tools: [...TOOLS, ROUTED], makesTasks: true }) },
  'a legacy server, bridged': { source: { era: 'legacy', bridge: 'modern' }, upstream: { tools: [...TOOLS, ROUTED] } },
};
const stages = [];
before(async () => {
  for (const [where, options] of Object.entries(STAGES)) {
    const stage = await hostileScene(file, options);
    stages.push({ where, stage, client: modernClient(file, stage.gateway.url, { headers: { authorization: 'Bearer hostile' } }) });
  }
});

/** A test before each kind of server, which ends with the proof that nothing reached it. */
const attack = (run) => async () => {
  for (const { where, stage, client } of stages) {
    const refused = async (method, params, headers, code, what, options = {}) => {
      const answer = await client.send(method, params, { id: 'hostile', headers, ...options });
      assert.equal(answer.status, 400, `${where}: ${method} ${what}: HTTP ${answer.status} ${answer.text}`);
      assert.equal(answer.message.error.code, code, `${where}: ${method} ${what}: ${answer.text}`);
      assert.equal(answer.message.id, 'hostile', `${where}: ${method} ${what}`);
    };
    await client.result('tools/list');
    await client.result('tools/call', { name: 'read' });
    await shielded(stage, client, () => run({ client, refused }));
  }
};

const base64 = (text) => `=?base64?${Buffer.from(text).toString('base64')}?=`;
/** The requests whose name, uri or id a header repeats, and one without. */
const NAMED = [
  ['tools/call', { name: 'read' }, 'read'],
  ['prompts/get', { name: 'p' }, 'p'],
  ['resources/read', { uri: 'file:///ä' }, base64('file:///ä')],
  ['tasks/get', { taskId: 'up-1' }, 'up-1'],
  ['tasks/update', { taskId: 'tg_1', inputResponses: {} }, 'tg_1'],
  ['tasks/cancel', { taskId: 'up-1' }, 'up-1'],
];
const PLAIN = [['tools/list', {}], ['resources/list', {}], ['prompts/list', {}], ['server/discover', {}], ['subscriptions/listen', { notifications: { toolsListChanged: true } }], ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: 'b' } }]];

test('Mcp-Method: missing, wrong, of another case, twice, encoded, with a NUL or bytes beyond ASCII', attack(async ({ client, refused }) => {
  for (const [method, params] of [...NAMED, ...PLAIN]) {
    for (const value of [undefined, '', 'tools/callx', method.toUpperCase(), `${method} x`, [method, method], [method, 'ping'], `${method}, ${method}`, `=?base64?${method}?=`, `"${method}"`, Buffer.from(`${method}é`, 'latin1').toString('latin1')]) {
      await refused(method, params, { 'mcp-method': value }, -32020, JSON.stringify(value));
    }
  }
}));

test('Mcp-Name: missing, another, of another case, twice, undecodable, or made up where the body names nothing', attack(async ({ client, refused }) => {
  for (const [method, params, name] of NAMED) {
    for (const value of [undefined, '', 'drop_table', `${name}x`, name.toUpperCase() === name ? 'x' : name.toUpperCase(), [name, name], [name, 'drop_table'], `${name},${name}`, '=?base64??=', '=?base64?cmVhZA?=', '=?base64?cmVhZA===?=', '=?base64?cmVh ZA==?=', '=?base64?cmVhZB==?=', '=?base64?_w==?=', '=?BASE64?cmVhZA==?=', base64('drop_table'), base64(`${params.name ?? params.uri ?? params.taskId}\0`)]) {
      await refused(method, params, { 'mcp-name': value }, -32020, JSON.stringify(value));
    }
  }
  for (const [method, params] of PLAIN) await refused(method, params, { 'mcp-name': ['a', 'b'] }, -32020, 'twice without a name');
  await refused('tools/call', { arguments: {} }, { 'mcp-name': 'read' }, -32020, 'a name that the body lacks');
}));

test('Mcp-Param-*: missing, another, twice, undecodable, of another form, or of an argument that is not there', attack(async ({ refused }) => {
  const region = [undefined, '', 'us', 'EU', ['eu', 'eu'], ['eu', 'us'], 'eu,eu', '"eu"', '=?base64?ZXU?=', '=?base64?ZXV=?=', '=?base64?/w==?=', '=?BASE64?ZXU=?=', base64('us'), base64('eu\0')];
  const n = [undefined, '', '43', '4.2e1', '0x2a', '+42', '42.5', '42.', '.42e2', '42 ', 'forty-two', ['42', '42'], base64('43')].filter((value) => value !== '42 ');
  const on = [undefined, '', 'false', 'TRUE', 'True', '1', 'yes', ['true', 'true']];
  for (const [name, argument, values] of [['region', 'eu', region], ['n', 42, n], ['on', true, on]]) {
    for (const value of values) await refused('tools/call', { name: 'route', arguments: { [name]: argument } }, { [`mcp-param-${name}`]: value }, -32020, `${name} ${JSON.stringify(value)}`);
    for (const absent of [{}, { [name]: null }, undefined]) await refused('tools/call', { name: 'route', arguments: absent }, { [`mcp-param-${name}`]: `${argument}` }, -32020, `${name} that is not there`);
  }
}));

test('MCP-Protocol-Version: missing, wrong, twice, encoded', attack(async ({ client, refused }) => {
  for (const [method, params] of [...NAMED, ...PLAIN]) {
    for (const value of [undefined, '', '2025-11-25', '2099-01-01', `${MODERN}x`, [MODERN, MODERN], [MODERN, '2025-11-25'], base64(MODERN), `"${MODERN}"`]) {
      await refused(method, params, { 'mcp-protocol-version': value }, -32020, JSON.stringify(value));
    }
  }
}));

test('_meta: a key that is missing, or has a wrong type or value', attack(async ({ client, refused }) => {
  for (const [method, params] of [...NAMED, ...PLAIN]) {
    for (const [meta, code] of [
      [{ [key('protocolVersion')]: null }, -32602],
      [{ [key('protocolVersion')]: 20260728 }, -32602],
      [{ [key('protocolVersion')]: {} }, -32602],
      [{ [key('protocolVersion')]: undefined }, -32602],
      [{ [key('clientCapabilities')]: undefined }, -32602],
      [{ [key('clientCapabilities')]: null }, -32602],
      [{ [key('clientCapabilities')]: [] }, -32602],
      [{ [key('clientCapabilities')]: 'x' }, -32602],
      [{ progressToken: null }, -32602],
      [{ progressToken: 1.5 }, -32602],
      [{ progressToken: [1] }, -32602],
      [{ progressToken: true }, -32602],
      [{ [key('logLevel')]: 'loud' }, -32602],
      [{ [key('logLevel')]: 'DEBUG' }, -32602],
      [{ [key('logLevel')]: null }, -32602],
      [{ [key('clientInfo')]: 5 }, -32602],
      [{ [key('clientInfo')]: null }, -32602],
    ]) {
      await refused(method, params, {}, code, JSON.stringify(meta), { meta });
    }
  }
}));

test('_meta: keys twice, escaped, of another case, and look-alikes, with good headers', attack(async ({ client, refused }) => {
  const good = JSON.stringify(client.envelope()).slice(1, -1);
  const version = key('protocolVersion'), capabilities = key('clientCapabilities');
  for (const more of [`"${version}":"${MODERN}"`, `"${version}":"2025-11-25"`, `"${capabilities}":{}`, `"${key('clientInfo')}":{}`, `"${version.replace('io', '\\u0069o')}":"x"`, `"${version.replace('io', 'IO')}":"x"`, `"${version.toLowerCase()}":"x"`, `"${version.replace('k', '')}":1,"${capabilities.replace('s', '\u017f')}":{}`, `"${key('LogLevel')}":"debug"`, `"${key('progresstoken')}":1,"ProgressToken":1`, `"x":{"a":1,"a":2}`]) {
    for (const meta of [`${good},${more}`, `${more},${good}`]) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","_meta":{${meta}}}}`;
      const answer = await client.send('tools/call', { name: 'read' }, { body });
      assert.equal(answer.status, 400, `${more}: HTTP ${answer.status} ${answer.text}`);
      assert.equal(answer.message.error.code, -32600, `${more}: ${answer.text}`);
    }
  }
}));

test('a good envelope that was remembered makes no other one good', attack(async ({ client, refused }) => {
  const meta = JSON.stringify(client.envelope());
  const bodyOf = (params) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  for (let i = 0; i < 3; i++) assert.equal((await client.send('tasks/list', {}, { id: 1 })).status, 404);
  for (const params of [`{"name":"read","_meta":${meta},"_meta":${meta}}`, `{"name":"read","_meta":${meta}}}`, `{"name":"read","_meta":${meta},"Name":"drop_table"}`, `{"name":"read","_meta":${meta.slice(0, -1)},"a":1,"a":1}}`, `{"_meta":${meta},"name":"read","name":"drop_table"}`]) {
    const answer = await client.send('tools/call', { name: 'read' }, { body: bodyOf(params) });
    assert.equal(answer.status, 400, params);
  }
  const other = meta.replace(MODERN, '2026-07-29');
  await refused('tools/call', { name: 'read' }, {}, -32020, 'another version in the body', { body: `{"jsonrpc":"2.0","id":"hostile","method":"tools/call","params":{"name":"read","_meta":${other}}}` });
}));
