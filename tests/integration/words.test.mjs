// Words of agents and people where others read them: names beside their witness, quoted values, reasons, digests of hidden values.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { SECRET, startReceiver } from './lib/receiver.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const TOKENS = ['alice', 'vic'];
const BAD = 'no\u001b[2J\u009b31m\u202e\u200b\u3164 \u05d0\r\tx';
const RAW = /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u200b-\u200f\u202a-\u202e\u3164]/;
const show = { summary: 'Pays {to}, {list.name}' };

const stage = (t, keys = {}, more = {}) =>
  scene(t, {
    rules: [{ match: 'pay', action: 'approve', show }],
    approval: workflow('10m', { redact_fields: ['pin'], ...keys }),
    upstream: { tools: [tool('pay')] },
    env: { NOTIFY_SECRET: SECRET, ...Object.fromEntries(TOKENS.map((name) => [name.toUpperCase(), `token-of-${name}`])) },
    config: {
      admin: {
        people: [{ name: 'alice', groups: ['oncall'] }],
        tokens: [
          { name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver', 'viewer', 'auditor', 'caller'] },
          { name: 'vic-cli', token_env: 'VIC', roles: ['viewer'] },
        ],
      },
      ...more,
    },
  });

test('a reason in which nothing can be seen is none, in an emergency too', async (t) => {
  const { admin, connect } = await stage(t, { reasons: { approve: 'required', reject: 'required' }, approvers: { groups: ['oncall'] }, emergency: { groups: ['oncall'] } });
  const { taskId } = await (await connect()).createTask('pay');
  const alice = admin.as('token-of-alice');
  for (const reason of ['', '   ', '\n\t', '\u200b\u2060', '\u00a0\u2003\u3000', '\u3164\ufe0f\u2800\u{e0041}']) {
    for (const [verb, more] of [['approve', {}], ['reject', {}], ['approve', { emergency: true }]]) {
      const answer = await alice.post(`/api/v1/tasks/${taskId}/${verb}`, { reason, ...more });
      assert.deepEqual([answer.status, answer.json.error?.code], [422, 'reason_required'], `${verb} ${JSON.stringify(reason)}`);
    }
  }
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.equal((await alice.post(`/api/v1/tasks/${taskId}/approve`, { emergency: true, reason: '\u200b.' })).status, 200);
});

test('a reason reaches the agent without what a terminal obeys; a value of the summary is quoted', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('pay', { to: `x" to bob ${BAD}`, list: [{ name: 'é'.repeat(200) }] });
  const { summary } = await admin.task(taskId);
  assert.doesNotMatch(summary, RAW);
  assert.equal(summary, `Pays "x\\" to bob no\\u001b[2J\\u009b31m\\u202e\\u200b\\u3164 \u05d0\\r\\tx", "${'é'.repeat(120)}…"`);
  await admin.reject(taskId, `two\nlines ${BAD}`);
  const { statusMessage } = await client.result('tasks/get', { taskId });
  assert.equal(statusMessage, 'Rejected by admin: two\nlines no\\u001b[2J\\u009b31m\\u202e\\u200b\\u3164 \u05d0\\r\tx');
  const error = await client.error('tasks/result', { taskId });
  assert.doesNotMatch(error.message, RAW);
});

test('audit export and grants list pass on nothing that a terminal obeys', async (t) => {
  const { admin, connect, gateway } = await stage(t, { grants: { max: '1h', max_calls: 5 } });
  const client = await connect({ name: `bot ${BAD}` });
  await admin.reject((await client.createTask('pay')).taskId, BAD);
  const { taskId } = await client.createTask('pay', undefined, { body: undefined });
  await client.send('tools/call', undefined, { body: `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"pay","arguments":{\r\t"to":\t"x"\r},"task":{"ttl":60000}}}` });
  for (const task of (await admin.list({ state: 'pending' })).tasks) {
    const answer = await admin.as('token-of-alice').post(`/api/v1/tasks/${task.id}/approve`, { grant: { for: '1h', calls: 2 } });
    assert.equal(answer.status, 200, answer.text);
  }
  assert.ok(taskId);
  const cli = (...args) => gateway.cli(args, { env: { TASKGATE_TOKEN: 'token-of-alice' } });
  for (const format of ['csv', 'cef', 'jsonl']) {
    const { stdout, code, stderr } = await cli('audit', 'export', '--format', format);
    assert.equal(code, 0, stderr);
    for (const line of stdout.split(format === 'csv' ? '\r\n' : '\n')) assert.doesNotMatch(line, RAW, format);
    assert.match(stdout, /u009b31m/);
    if (format === 'jsonl') assert.ok(stdout.split('\n').some((line) => line && JSON.parse(line).reason === BAD), 'the same value');
  }
  const { stdout } = await cli('grants', 'list');
  assert.doesNotMatch(stdout, /[\t\r]/);
  assert.match(stdout, /caller +unverified "bot no\\u001b\[2J/);
});

test('a client that names itself like a verified one: the witness stands before the quoted name on every channel', async (t) => {
  const receiver = await startReceiver(t);
  const { admin, connect, gateway } = await stage(t, {}, { notify: [{ url: receiver.url, secret_env: 'NOTIFY_SECRET' }] });
  const name = 'release-bot (Release Bot, says the issuer)';
  const { taskId } = await (await connect({ name })).createTask('pay');
  const cli = (...args) => gateway.cli(args, { env: { TASKGATE_TOKEN: 'token-of-alice' } });
  assert.match((await cli('tasks', 'show', taskId)).stdout, /^Asked by +unverified "release-bot \(Release Bot, says the issuer\) \(session \w+\)"$/m);
  assert.match((await cli('tasks', 'list')).stdout, / unverified "release-bot /);
  const { json } = await receiver.received(1);
  assert.deepEqual([json.task.principal.startsWith(name), json.task.principalBy], [true, 'client']);
  const made = await admin.as('token-of-alice').post('/api/v1/calls', { tool: 'pay', arguments: {} });
  assert.equal(made.status, 201, made.text);
  assert.match((await cli('tasks', 'show', made.json.id)).stdout, /^Asked by +gateway "/m);
});

test('the digest of hidden arguments is no way to guess them: keyed, and equal for equal calls', async (t) => {
  const receiver = await startReceiver(t);
  const { admin, connect } = await stage(t, {}, { notify: [{ url: receiver.url, secret_env: 'NOTIFY_SECRET' }] });
  const client = await connect();
  const digest = (value) => createHash('sha256').update(JSON.stringify(value)).digest('hex');
  const viewer = admin.as('token-of-vic');
  const view = async (args) => viewer.task((await client.createTask('pay', args)).taskId);
  const [first, again, other, bare] = [await view({ pin: 4711 }), await view({ pin: 4711 }), await view({ pin: 4712 }), await view({ to: 'x' })];
  assert.deepEqual(first.arguments, { pin: '[REDACTED]' });
  assert.match(first.argumentsDigest, /^[0-9a-f]{64}$/);
  assert.notEqual(first.argumentsDigest, digest({ pin: 4711 }));
  assert.equal(first.argumentsDigest, again.argumentsDigest);
  assert.equal(first.digest, again.digest);
  assert.notEqual(first.argumentsDigest, other.argumentsDigest);
  assert.equal(bare.argumentsDigest, digest({ to: 'x' }), 'nothing is hidden');
  const request = digest({ arguments: { pin: 4711 }, meta: first.meta, name: 'pay', otherParams: first.otherParams });
  assert.equal(bare.requestDigest, digest({ arguments: { to: 'x' }, meta: bare.meta, name: 'pay', otherParams: bare.otherParams }));
  assert.notEqual(first.requestDigest, request);
  const vote = (task, requestDigest) => admin.as('token-of-alice').post(`/api/v1/tasks/${task.id}/approve`, { requestDigest });
  assert.equal((await vote(first, other.requestDigest)).json.error?.code, 'changed');
  assert.equal((await vote(first, first.requestDigest)).status, 200, 'as it was shown');
  const [told] = await receiver.received(4).then(() => receiver.deliveries);
  assert.equal(told.json.task.argumentsDigest, first.argumentsDigest);
});
