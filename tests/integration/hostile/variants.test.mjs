// Keys of arguments that only case or look tells apart: a policy or a human reads one of them, the server the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from '../lib/gateway.mjs';
import { tool } from '../lib/upstream.mjs';
import { hostileScene, shielded } from './stage.mjs';

const FORBID = 'permit(principal, action, resource); forbid(principal, action, resource) when { resource.arguments has path && resource.arguments.path like "/etc/*" };';
const CALLER = { name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] };
const TOOLS = ['delete_user', 'wide_delete', 'judge_path', 'wide_judge', 'read'].map((name) => tool(name));

/** Approval, policies, both again where variants are allowed; everything else is forwarded. */
const stage = (t) =>
  hostileScene(t, {
    rules: [
      ['delete_*', 'approve'],
      { match: 'wide_delete', action: 'approve', case_variants: 'allow' },
      { match: 'judge_*', action: 'policy', policy_id: 'p' },
      { match: 'wide_judge', action: 'policy', policy_id: 'p', case_variants: 'allow' },
    ],
    approval: workflow('10m'),
    upstream: { tools: TOOLS },
    config: { admin: { tokens: [CALLER] } },
    env: { THOUGHTGATE_POLICIES: FORBID, CI_TOKEN: 'variants-ci-token-0000000001' },
  });

const ALIKE = {
  case: '{"path":"/tmp/a","Path":"/etc/shadow"}',
  'an escape': '{"path":"/tmp/a","\\u0050ath":"/etc/shadow"}',
  'full width': '{"path":"/tmp/a","\uFF50\uFF41\uFF54\uFF48":"/etc/shadow"}',
  'a character that is not shown': '{"path":"/tmp/a","pa\u200Bth":"/etc/shadow"}',
  'the kelvin sign and the long s': '{"key\u017F":1,"\u212Aeys":2}',
  'composed and decomposed': '{"caf\u00E9":1,"cafe\u0301":2}',
  'in a list in an object': '{"o":{"l":[[{"path":1,"PATH":2}]]}}',
  'among many': `{${Array.from({ length: 500 }, (_, i) => `"k${i}":1`)},"K250":2}`,
};

test('arguments with two keys that only case or look tells apart reach neither policy, human nor server', async (t) => {
  const scene = await stage(t);
  const client = await scene.connect();
  await shielded(scene, client, async () => {
    for (const [what, args] of Object.entries(ALIKE)) {
      for (const [name, task] of [['delete_user', ',"task":{}'], ['delete_user', ''], ['judge_path', ',"task":{}'], ['judge_path', '']]) {
        const { message, text } = await client.send('', undefined, { body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}","arguments":${args}${task}}}` });
        assert.equal(message?.error?.code, -32602, `${what}: ${text}`);
        assert.match(message.error.message, /params\.arguments: a key that only case or look tells from another at byte \d+/);
      }
    }
    for (const name of ['delete_user', 'judge_path']) {
      const refused = await scene.admin.as('variants-ci-token-0000000001').post('/api/v1/calls', { tool: name, arguments: { path: '/tmp/a', Path: '/etc/shadow' } });
      assert.equal(refused.status, 400, refused.text);
    }
  });
  assert.deepEqual((await scene.admin.list()).tasks, []);
});

test('such keys pass as they were written if nobody judges, or if the rule allows it', async (t) => {
  const scene = await stage(t);
  const client = await scene.connect();
  const args = { path: '/tmp/a', Path: '/etc/shadow' };
  assert.ok(await client.result('tools/call', { name: 'read', arguments: args }));
  assert.deepEqual(scene.upstream.calls.at(-1).rpc.params.arguments, args);
  const { taskId } = await client.createTask('wide_delete', args);
  assert.deepEqual((await scene.admin.task(taskId)).arguments, args);
  const other = { size: 1, Size: 2 };
  assert.ok((await client.call('tools/call', { name: 'wide_judge', arguments: other, task: {} })).result, 'no policy asks for it');
});

test('an argument that could be taken for the one that a policy asks for is an error of the policy', async (t) => {
  const scene = await stage(t);
  const client = await scene.connect();
  const judged = async (name, args) => (await client.call('tools/call', { name, arguments: args, task: {} })).error?.code;
  assert.equal(await judged('judge_path', { path: '/etc/shadow' }), -32003);
  await shielded(scene, client, async () => {
    for (const key of ['Path', 'PATH', '\uFF50ath', 'pa\u200Bth']) assert.equal(await judged('judge_path', { [key]: '/etc/shadow' }), -32003, key);
    assert.equal(await judged('wide_judge', { path: '/tmp/a', Path: '/etc/shadow' }), -32003);
  });
  assert.equal(await judged('judge_path', { path: '/tmp/a' }), undefined);
});
