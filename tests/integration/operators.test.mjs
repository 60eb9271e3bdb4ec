// Operators by name: the holders of tokens, their rights, and the records of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const PEOPLE = [{ name: 'alice', groups: ['dba', 'ops'] }, { name: 'bob' }];
const TOKENS = [
  { name: 'alice-cli', person: 'alice', groups: ['ops', 'oncall'], token_env: 'ALICE', roles: ['approver'] },
  { name: 'alice-ci', person: 'alice', token_env: 'ALICE_CI', roles: ['caller', 'approver'] },
  { name: 'bob-cli', person: 'bob', token_env: 'BOB', roles: ['approver', 'caller'] },
  { name: 'ledger', groups: ['audit'], token_env: 'LEDGER', roles: ['auditor'] },
];
const ENV = { ALICE: 'token-of-alice', ALICE_CI: 'token-of-alice-ci', BOB: 'token-of-bob', LEDGER: 'token-of-ledger' };

const people = (admin = { people: PEOPLE, tokens: TOKENS }) => ({ config: { admin } });
const stage = (t, more = {}) => scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, env: ENV, ...people(), ...more });

async function reload(gateway, options) {
  const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
  const before = count();
  gateway.writeConfig(options);
  gateway.hangUp();
  await gateway.logged(() => count() > before);
}

test('whoami: name, person, groups of both, roles as written, and what showed it', async (t) => {
  const { admin } = await stage(t);
  const who = async (token) => (await admin.as(token).get('/api/v1/whoami')).json;
  assert.deepEqual(await who(ENV.ALICE), { name: 'alice-cli', person: 'alice', groups: ['dba', 'ops', 'oncall'], roles: ['approver'], via: 'token' });
  assert.deepEqual(await who(ENV.ALICE_CI), { name: 'alice-ci', person: 'alice', groups: ['dba', 'ops'], roles: ['approver', 'caller'], via: 'token' });
  assert.deepEqual(await who(ENV.LEDGER), { name: 'ledger', person: 'ledger', groups: ['audit'], roles: ['auditor'], via: 'token' });
  assert.deepEqual((await admin.get('/api/v1/whoami')).json, { name: 'admin', person: 'admin', groups: [], roles: ['approver', 'auditor'], via: 'token' });
});

test('the person stands in decidedBy, in the log and in what others are told; never the token', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const task = await admin.as(ENV.ALICE).approve(taskId, 'asked');
  assert.equal(task.decidedBy, 'alice');
  const said = await gateway.logged((entry) => entry.msg === 'Task approved' && entry.task === taskId);
  assert.equal(said.by, 'alice');
  const late = await admin.as(ENV.BOB).decide('reject', taskId);
  assert.match(late.json.error.message, /decided by alice/);
  assert.doesNotMatch(gateway.child.stderr, /token-of-/);
});

test('nobody approves their own call, with whichever of their tokens', async (t) => {
  const { admin } = await stage(t);
  const called = await admin.as(ENV.ALICE_CI).post('/api/v1/calls', { tool: 'delete_user', arguments: {} });
  assert.equal(called.status, 201, called.text);
  const { id } = called.json;
  for (const token of [ENV.ALICE_CI, ENV.ALICE]) {
    const refused = await admin.as(token).decide('approve', id);
    assert.equal(refused.status, 403, refused.text);
    assert.match(refused.json.error.message, /the person that made this call may not approve it/);
  }
  assert.equal((await admin.as(ENV.BOB).approve(id)).decidedBy, 'bob');
});

test('a call of before the token had a person is still its own', async (t) => {
  const before = { tokens: [{ name: 'ci', token_env: 'ALICE_CI', roles: ['caller', 'approver'] }] };
  const { gateway, admin } = await stage(t, people(before));
  const { id } = (await admin.as(ENV.ALICE_CI).post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json;
  await reload(gateway, people({ people: PEOPLE, tokens: [{ ...before.tokens[0], person: 'alice' }] }));
  assert.equal((await admin.as(ENV.ALICE_CI).decide('approve', id)).status, 403);
});

test('an auditor looks and decides nothing', async (t) => {
  const { admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const auditor = admin.as(ENV.LEDGER);
  assert.equal((await auditor.task(taskId)).state, 'pending');
  assert.equal((await auditor.list()).tasks.length, 1);
  for (const verb of ['approve', 'reject', 'cancel']) assert.equal((await auditor.decide(verb, taskId)).status, 403, verb);
  assert.equal((await auditor.post('/api/v1/calls', { tool: 'delete_user' })).status, 403);
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('a person who is taken out is void after the reload, open streams and waits included', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const alice = admin.as(ENV.ALICE);
  const events = await alice.events();
  const result = alice.get(`/api/v1/tasks/${taskId}/result?wait=1m`);
  const began = performance.now();
  await reload(gateway, people({ people: [PEOPLE[1]], tokens: TOKENS.filter((token) => token.person !== 'alice') }));
  assert.equal((await alice.get('/api/v1/whoami')).status, 401);
  assert.equal((await alice.decide('approve', taskId)).status, 401);
  assert.equal((await result).status, 401);
  assert.equal(await events.end(), 'end');
  assert.ok(performance.now() - began < 8_000, 'with the reload, before the first keep-alive');
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.ok(!events.events.some((event) => event.event === 'task'), 'nothing is told to whoever is gone');
});

test('a token that becomes another person’s ends the streams of the first', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const events = await admin.as(ENV.ALICE).events();
  await reload(gateway, people({ people: PEOPLE, tokens: [{ ...TOKENS[0], person: 'bob' }] }));
  await admin.reject(taskId);
  await events.end();
  assert.ok(!events.events.some((event) => event.event === 'task'), 'alice is told nothing more');
  assert.equal((await admin.as(ENV.ALICE).get('/api/v1/whoami')).json.person, 'bob');
});

test('a role that changes ends what it allowed at the reload, and nothing else', async (t) => {
  const { gateway, admin } = await stage(t);
  const own = (await admin.as(ENV.BOB).post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json.id;
  const other = (await admin.as(ENV.ALICE_CI).post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json.id;
  const bob = admin.as(ENV.BOB);
  const [events, auditors] = [await bob.events(), await admin.as(ENV.LEDGER).events()];
  const [mine, theirs] = await Promise.all([own, other].map((id) => bob.held(`/api/v1/tasks/${id}/result?wait=1m`)));
  const began = performance.now();
  await reload(gateway, people({ people: PEOPLE, tokens: TOKENS.map((token) => (token.name === 'bob-cli' ? { ...token, roles: ['caller'] } : token)) }));
  assert.equal(await events.end(), 'end', 'a caller reads no stream');
  assert.equal((await theirs.answer).status, 401, 'a caller sees own calls alone');
  assert.ok(performance.now() - began < 8_000, 'with the reload, before the first keep-alive');
  await admin.reject(own);
  const result = await mine.answer;
  assert.deepEqual([result.status, result.json.state], [200, 'rejected'], 'the wait for the own call went on');
  await auditors.next((event) => event.event === 'task' && JSON.parse(event.data).id === own);
});

test('the command line prefers TASKGATE_TOKEN, and whoami says who that is', async (t) => {
  const { gateway } = await stage(t);
  const taskgate = (args, env) => run(BINARY, args, { cwd: gateway.folder, env: { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: undefined, THOUGHTGATE_ADMIN_TOKEN: undefined, ...env } });
  const alice = await taskgate(['whoami'], { TASKGATE_TOKEN: ENV.ALICE, THOUGHTGATE_ADMIN_TOKEN: ENV.BOB });
  assert.deepEqual([alice.code, alice.stdout], [0, 'person:  alice\nname:    alice-cli\ngroups:  dba, ops, oncall\nroles:   approver\nvia:     token\n']);
  const bob = await taskgate(['whoami', '--json'], { TASKGATE_TOKEN: '', THOUGHTGATE_ADMIN_TOKEN: ENV.BOB });
  assert.equal(JSON.parse(bob.stdout).person, 'bob');
  const wrong = await taskgate(['whoami'], { TASKGATE_TOKEN: 'wrong', THOUGHTGATE_ADMIN_TOKEN: ENV.BOB });
  assert.deepEqual([wrong.code, wrong.stdout], [3, '']);
  assert.match(wrong.stderr, /the token in TASKGATE_TOKEN was refused/);
  assert.match((await taskgate(['whoami'])).stderr, /set TASKGATE_TOKEN or THOUGHTGATE_ADMIN_TOKEN/);
});
