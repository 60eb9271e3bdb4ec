// Prompts and resources under other spellings, and by way of the completion of their arguments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileScene, shielded } from './stage.mjs';

const SPELLINGS = (path) => [`file:///${path}`, `FILE:///${path}`, `File:///${path}`, `file:///%65${path.slice(1)}`, `file:///tmp/../${path}`, `file:///tmp/%2e%2E/${path}`, `file:///./${path}`, `file:///../${path}`];
const resources = [...SPELLINGS('etc/shadow'), 'file:///pub/x'].map((uri) => ({ uri, name: uri }));

async function stage(t, options) {
  const scene = await hostileScene(t, { rules: [['file:///etc/**', 'deny'], ['file:///even/**', 'approve'], ['secret*', 'deny'], ['asked*', 'approve']], ...options });
  const { handlers } = scene.upstream;
  handlers['resources/read'] = ({ reply, params }) => reply.result({ contents: [{ uri: params.uri, text: 'theirs' }] });
  handlers['resources/subscribe'] = ({ reply }) => reply.result({});
  handlers['resources/list'] = ({ reply }) => reply.result({ resources });
  handlers['completion/complete'] = ({ reply, params }) => reply.result({ completion: { values: [params.ref.uri ?? params.ref.name] } });
  return { ...scene, client: await scene.connect() };
}

const argument = { name: 'x', value: '' };
const resource = (uri) => ['completion/complete', { ref: { type: 'ref/resource', uri }, argument }];
const prompt = (name) => ['completion/complete', { ref: { type: 'ref/prompt', name }, argument }];

test('other spellings of a URI are no way past expose and the rules', async (t) => {
  const denied = await stage(t);
  await shielded(denied, denied.client, async () => {
    for (const uri of [...SPELLINGS('etc/shadow'), 'file:///etc/../pub/x', ...SPELLINGS('even/x')])
      for (const [method, params] of [['resources/read', { uri }], ['resources/subscribe', { uri }], resource(uri)]) assert.equal((await denied.client.error(method, params)).code, -32014, `${method} ${uri}`);
  });
  // The URI is judged twice, and sent as it was written.
  for (const uri of ['FILE:///pub/%78', 'file:///etcetera/x']) assert.equal((await denied.client.result('resources/read', { uri })).contents[0].uri, uri);
  const hidden = await stage(t, { rules: [], expose: { mode: 'blocklist', tools: ['file:///etc/**'] } });
  await shielded(hidden, hidden.client, async () => {
    for (const uri of SPELLINGS('etc/shadow')) for (const [method, params] of [['resources/read', { uri }], resource(uri)]) assert.equal((await hidden.client.error(method, params)).code, -32015, `${method} ${uri}`);
  });
  assert.deepEqual((await hidden.client.result('resources/list')).resources.map((x) => x.uri), ['file:///pub/x']);
});

test('completion passes expose and the rules by its reference', async (t) => {
  const scene = await stage(t, { expose: { mode: 'blocklist', tools: ['unseen*', 'file:///priv/**'] } });
  const { client } = scene;
  const code = async ([method, params]) => (await client.error(method, params)).code;
  await shielded(scene, client, async () => {
    for (const name of ['secret', 'asked']) assert.equal(await code(prompt(name)), -32014, name);
    assert.equal(await code(resource('file:///etc/{name}')), -32014);
    assert.equal(await code(prompt('unseen')), -32015);
    assert.equal(await code(resource('file:///priv/{name}')), -32015);
    const ambiguous = [{ type: 'ref/prompt', name: 'open', uri: 'file:///etc/x' }, { type: 'ref/resource', uri: 'file:///pub/x', name: 'secret' }, { type: 'ref/Prompt', name: 'secret' }, { type: 'ref/prompt', uri: 'file:///etc/x' }, { name: 'secret' }, { type: 'ref/prompt', name: 7 }, {}, [], 'secret', null];
    for (const ref of ambiguous) assert.equal(await code(['completion/complete', { ref, argument }]), -32602, JSON.stringify(ref));
    for (const ref of ['{"type":"ref/prompt","name":"open","Name":"secret"}', '{"type":"ref/prompt","name":"open","na\u200Bme":"secret"}', '{"type":"ref/prompt","name":"open","name":"secret"}'])
      assert.equal((await client.send('', undefined, { body: `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":${ref}}}` })).message?.error.code, -32600, ref);
    await client.notify(...prompt('secret'));
  });
  for (const [ask, value] of [[prompt('open'), 'open'], [resource('file:///pub/{name}'), 'file:///pub/{name}']]) assert.deepEqual((await client.result(...ask)).completion.values, [value]);
});
