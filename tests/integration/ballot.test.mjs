// Approvals by several: who may vote, what votes come to, and what is said about it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { toYaml } from './lib/yaml.mjs';

const PEOPLE = [
  { name: 'alice', groups: ['dba'] },
  { name: 'bob', groups: ['dba', 'security'] },
  { name: 'carol', groups: ['security'] },
  { name: 'olga', groups: ['oncall'] },
  { name: 'vera' },
];
const NAMES = PEOPLE.map((person) => person.name);
const ENV = { ...Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`])), CI: 'token-of-ci' };
const TOKENS = [
  ...NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver', 'caller'] })),
  { name: 'ci', groups: ['dba'], token_env: 'CI', roles: ['approver', 'caller'] },
];
const ADMIN = { people: PEOPLE, tokens: TOKENS };

/** A gateway whose workflow has these keys; `as.alice` is her API. */
async function stage(t, keys, more = {}) {
  const all = await scene(t, {
    rules: [['*', 'approve']],
    approval: { duty: { timeout: '10m', ...keys } },
    upstream: { tools: [tool('delete_user')] },
    env: ENV,
    config: { admin: ADMIN },
    ...more,
  });
  const as = Object.fromEntries([...NAMES, 'ci'].map((name) => [name, all.admin.as(`token-of-${name}`)]));
  const client = await all.connect();
  const call = async () => (await client.createTask('delete_user')).taskId;
  return { ...all, as, call, client };
}

/** "202 pending", or "403 own_call". */
async function vote(as, verb, id, body = {}) {
  const answer = await as.post(`/api/v1/tasks/${id}/${verb}`, body);
  return `${answer.status} ${answer.json.error?.code ?? answer.json.state}`;
}

async function reload(gateway, options) {
  const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
  const before = count();
  gateway.writeConfig(options);
  gateway.hangUp();
  await gateway.logged(() => count() > before);
}

test('quorum: 2: the first vote is 202 with what is missing, the second decides', async (t) => {
  const { as, call, upstream } = await stage(t, { quorum: 2 });
  const id = await call();
  const first = await as.alice.decide('approve', id, 'looked at it');
  assert.equal(first.status, 202, first.text);
  assert.deepEqual([first.json.state, first.json.missing, first.json.decidedBy], ['pending', { count: 1 }, null]);
  assert.deepEqual(first.json.votes.map(({ person, verb, reason }) => [person, verb, reason]), [['alice', 'approve', 'looked at it']]);
  assert.match(first.json.votes[0].at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.equal(upstream.calls.length, 0, 'one vote runs nothing');
  const second = await as.bob.decide('approve', id);
  assert.equal(second.status, 200, second.text);
  assert.deepEqual([second.json.missing, second.json.decidedBy, second.json.emergency], [{}, 'bob', false]);
  assert.deepEqual(second.json.votes.map(({ person }) => person), ['alice', 'bob']);
  await as.alice.inState(id, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('one vote a person, also the opposite; withdraw takes it back; no_vote without one', async (t) => {
  const { as, call } = await stage(t, { quorum: 2 });
  const id = await call();
  assert.equal(await vote(as.alice, 'withdraw', id), '409 no_vote');
  assert.equal(await vote(as.alice, 'approve', id), '202 pending');
  assert.equal(await vote(as.alice, 'approve', id), '409 already_voted');
  assert.equal(await vote(as.alice, 'reject', id), '409 already_voted');
  const back = await as.alice.post(`/api/v1/tasks/${id}/withdraw`, {});
  assert.deepEqual([back.status, back.json.votes, back.json.missing], [200, [], { count: 2 }]);
  assert.equal(await vote(as.alice, 'withdraw', id), '409 no_vote');
  assert.equal(await vote(as.alice, 'reject', id, { reason: 'no' }), '200 rejected');
  assert.equal(await vote(as.alice, 'withdraw', id), '409 conflict');
  assert.equal(await vote(as.bob, 'approve', id), '409 conflict');
});

test('one reject of anyone who may vote ends it', async (t) => {
  const { as, call, admin } = await stage(t, { quorum: 2 });
  const id = await call();
  await vote(as.alice, 'approve', id);
  assert.equal(await vote(as.bob, 'reject', id, { reason: 'not today' }), '200 rejected');
  const task = await admin.task(id);
  assert.deepEqual([task.decidedBy, task.statusMessage, task.votes.length], ['bob', 'Rejected by bob: not today', 2]);
});

test('quorum by group: one person fills one place, and places are given out so that most are filled', async (t) => {
  const { as, call } = await stage(t, { quorum: { dba: 1, security: 1 } });
  const id = await call();
  const answer = await as.bob.decide('approve', id);
  assert.deepEqual([answer.status, answer.json.missing, answer.json.quorum], [202, { security: 1 }, { dba: 1, security: 1 }]);
  assert.equal(await vote(as.alice, 'approve', id), '200 approved', 'bob stands for security then');
  const other = await call();
  assert.deepEqual((await as.vera.decide('approve', other)).json.missing, { dba: 1, security: 1 }, 'vera fills no place');
});

test('approvers: groups and people may vote, others are refused by not_an_approver', async (t) => {
  const { as, call, admin } = await stage(t, { approvers: { groups: ['dba'], people: ['carol'] }, quorum: 2 });
  const id = await call();
  for (const verb of ['approve', 'reject', 'withdraw']) {
    assert.equal(await vote(as.olga, verb, id), '403 not_an_approver', verb);
    assert.equal(await vote(as.ci, verb, id), '403 not_an_approver', `${verb}: a token of the group is no person`);
    assert.equal(await vote(admin, verb, id), '403 not_an_approver', `${verb}: THOUGHTGATE_ADMIN_TOKEN`);
  }
  assert.equal(await vote(as.carol, 'approve', id), '202 pending');
  assert.equal(await vote(as.alice, 'approve', id), '200 approved');
});

test('a token that names no person votes only where one decides and no group is asked for', async (t) => {
  for (const [keys, answer] of [
    [{}, '200 approved'],
    [{ reasons: { reject: 'required' } }, '200 approved'],
    [{ quorum: 2 }, '403 not_an_approver'],
    [{ quorum: { dba: 1 } }, '403 not_an_approver'],
    [{ approvers: { groups: ['dba'] } }, '403 not_an_approver'],
    [{ approvers: { people: ['alice'] } }, '403 not_an_approver'],
  ]) {
    const { as, call, admin } = await stage(t, keys);
    for (const [name, token] of [['ci', as.ci], ['THOUGHTGATE_ADMIN_TOKEN', admin]]) assert.equal(await vote(token, 'approve', await call()), answer, `${name}: ${JSON.stringify(keys)}`);
  }
});

test('refusals come in their order: role, own_call, not_an_approver, state, reason, already_voted', async (t) => {
  const tokens = [...TOKENS, { name: 'looker', person: 'olga', token_env: 'LOOKER', roles: ['viewer'] }];
  const { as, call, admin } = await stage(t, { approvers: { groups: ['dba'] }, quorum: 2, reasons: { approve: 'required', reject: 'required' } }, { env: { ...ENV, LOOKER: 'token-of-looker' }, config: { admin: { people: PEOPLE, tokens } } });
  const own = (await as.olga.post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json.id;
  const id = await call();
  assert.equal(await vote(admin.as('token-of-looker'), 'approve', own), '403 forbidden', 'the role comes before own_call');
  assert.equal(await vote(as.olga, 'approve', own), '403 own_call', 'which comes before not_an_approver');
  assert.equal(await vote(as.alice, 'approve', id, { reason: 'r' }), '202 pending');
  assert.equal(await vote(as.alice, 'approve', id), '422 reason_required', 'which comes before already_voted');
  assert.equal(await vote(as.alice, 'approve', id, { reason: 'again' }), '409 already_voted');
  assert.equal(await vote(as.bob, 'reject', id, { reason: 'no' }), '200 rejected');
  assert.equal(await vote(as.alice, 'approve', id), '409 conflict', 'the state comes before the reason');
  assert.equal(await vote(as.olga, 'approve', id), '403 not_an_approver', 'and behind not_an_approver');
});

test('own_call: nobody votes on a call of their own, with any token', async (t) => {
  const { as } = await stage(t, { quorum: 2 });
  const { id } = (await as.alice.post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json;
  for (const verb of ['approve', 'reject', 'withdraw']) assert.equal(await vote(as.alice, verb, id), '403 own_call', verb);
  assert.equal((await as.alice.task(id)).you.code, 'own_call');
  assert.equal(await vote(as.bob, 'approve', id), '202 pending');
  assert.equal(await vote(as.carol, 'approve', id), '200 approved');
});

test('reasons: required means 422 reason_required without one, for each verb by itself', async (t) => {
  const { as, call } = await stage(t, { reasons: { approve: 'required', reject: 'optional' } });
  const [id, other] = [await call(), await call()];
  assert.equal(await vote(as.alice, 'approve', id), '422 reason_required');
  assert.equal(await vote(as.alice, 'approve', id, { reason: '' }), '422 reason_required');
  assert.equal(await vote(as.alice, 'approve', id, { reason: 'asked for' }), '200 approved');
  assert.equal(await vote(as.alice, 'reject', other), '200 rejected');
  assert.deepEqual((await as.alice.task(other)).reasons, { approve: 'required', reject: 'optional' });
});

test('emergency: one person of its groups decides alone, with a reason', async (t) => {
  const { as, call, gateway, admin } = await stage(t, { approvers: { groups: ['dba'] }, quorum: 2, emergency: { groups: ['oncall'] } });
  const id = await call();
  assert.equal(await vote(as.alice, 'approve', id, { emergency: true, reason: 'r' }), '403 not_an_approver');
  assert.equal(await vote(as.olga, 'approve', id, { emergency: true }), '422 reason_required');
  assert.equal(await vote(as.olga, 'approve', id, { reason: 'r' }), '403 not_an_approver', 'not without saying so');
  assert.equal(await vote(as.olga, 'reject', id, { emergency: true, reason: 'r' }), '400 invalid_request');
  assert.equal(await vote(as.olga, 'approve', id, { emergency: 'yes', reason: 'r' }), '400 invalid_request');
  const done = await as.olga.post(`/api/v1/tasks/${id}/approve`, { emergency: true, reason: 'the site is down' });
  assert.deepEqual([done.status, done.json.state, done.json.decidedBy, done.json.emergency], [200, 'approved', 'olga', true]);
  const said = await gateway.logged((entry) => entry.msg === 'Approved in an emergency, by one person alone');
  assert.deepEqual([said.level, said.task, said.by, said.workflow], ['warn', id, 'olga', 'duty']);
  const { entries } = (await admin.get('/api/v1/audit')).json;
  const row = entries.find(({ event, taskId }) => event === 'approve' && taskId === id);
  assert.deepEqual([row.person, row.reason, row.votes.map(({ person, verb, reason, emergency }) => [person, verb, reason, emergency])], ['olga', 'the site is down', [['olga', 'approve', 'the site is down', true]]]);
});

test('the terms are those of the creation; a vote counts while its person may vote', async (t) => {
  const { as, call, gateway } = await stage(t, { quorum: 2 });
  const id = await call();
  await vote(as.alice, 'approve', id);
  const without = { people: PEOPLE, tokens: TOKENS.map((token) => (token.person === 'alice' ? { ...token, roles: ['viewer'] } : token)) };
  await reload(gateway, { approval: { duty: { timeout: '10m', quorum: 1 } }, config: { admin: without } });
  assert.deepEqual((await as.bob.task(id)).missing, { count: 2 }, 'the quorum of the creation; the vote of alice has fallen');
  assert.equal(await vote(as.bob, 'approve', id), '202 pending');
  await reload(gateway, { approval: { duty: { timeout: '10m', quorum: 1 } }, config: { admin: ADMIN } });
  assert.deepEqual((await as.bob.task(id)).missing, {}, 'it counts again; the next vote decides');
  assert.equal(await vote(as.carol, 'approve', id), '200 approved');
  assert.equal(await vote(as.alice, 'approve', await call()), '200 approved', 'a new call has the new terms');
});

test('a person who leaves a group no longer fills its place', async (t) => {
  const { as, call, gateway } = await stage(t, { quorum: { dba: 1, security: 1 } });
  const id = await call();
  await vote(as.carol, 'approve', id);
  assert.deepEqual((await as.alice.task(id)).missing, { dba: 1 });
  const moved = PEOPLE.map((person) => (person.name === 'carol' ? { ...person, groups: ['ops'] } : person));
  await reload(gateway, { config: { admin: { people: moved, tokens: TOKENS } } });
  assert.equal(await vote(as.alice, 'approve', id), '202 pending');
  assert.deepEqual((await as.alice.task(id)).missing, { security: 1 });
});

test('events tell of each vote, and what whoever reads them may do', async (t) => {
  const { as, call } = await stage(t, { quorum: 2 });
  const [alices, bobs] = [await as.alice.events(), await as.bob.events()];
  const id = await call();
  await vote(as.alice, 'approve', id);
  const heard = async (events) => JSON.parse((await events.next((event) => event.event === 'task' && JSON.parse(event.data).votes.length === 1)).data);
  const [hers, his] = [await heard(alices), await heard(bobs)];
  assert.deepEqual(hers.you, { approve: false, reject: false, emergency: false, grant: false, edit: false, withdraw: true, code: 'already_voted' });
  assert.deepEqual(his.you, { approve: true, reject: true, emergency: false, grant: false, edit: false, withdraw: false, code: null });
});

test('audit: each vote with its person and reason; the decision with all of them', async (t) => {
  const { as, call, gateway } = await stage(t, { quorum: 2 });
  const id = await call();
  await vote(as.alice, 'approve', id, { reason: 'first' });
  await vote(as.alice, 'withdraw', id);
  await vote(as.bob, 'approve', id, { reason: 'looked' });
  await vote(as.carol, 'approve', id);
  const { entries: rows } = (await gateway.admin.get('/api/v1/audit')).json;
  const of = rows.filter((row) => row.taskId === id && row.actorKind === 'operator');
  assert.deepEqual(of.map((row) => [row.event, row.from, row.to, row.person, row.reason ?? null, (row.votes ?? []).map((one) => [one.person, one.verb, one.reason ?? null])]), [
    ['vote', 'pending', 'pending', 'alice', 'first', [['alice', 'approve', 'first']]],
    ['withdraw', 'pending', 'pending', 'alice', null, []],
    ['vote', 'pending', 'pending', 'bob', 'looked', [['bob', 'approve', 'looked']]],
    ['approve', 'pending', 'approved', 'carol', null, [['bob', 'approve', 'looked'], ['carol', 'approve', null]]],
  ]);
  await gateway.stop();
  const verified = await run(BINARY, ['audit', 'verify', '--config', gateway.configPath], { cwd: gateway.folder, env: { ...ENV, TASKGATE_TOKEN: undefined, THOUGHTGATE_ADMIN_TOKEN: undefined } });
  assert.equal(verified.code, 0, verified.stderr);
});

test('the command line: approve, withdraw, --emergency, and what is missing', async (t) => {
  const { call, gateway, as } = await stage(t, { quorum: { dba: 1, security: 1 }, emergency: { groups: ['oncall'] } });
  const id = await call();
  const tasks = (who, ...args) => run(BINARY, ['tasks', ...args], { cwd: gateway.folder, env: { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: `token-of-${who}` } });
  const first = await tasks('alice', 'approve', id, '--reason', 'ok');
  assert.deepEqual([first.code, first.stdout], [0, `${id}  pending  delete_user  missing: 1 of security\n`]);
  const shown = (await tasks('alice', 'show', id)).stdout;
  assert.match(shown, /^Votes {6}alice approved, \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: ok$/m);
  assert.match(shown, /^Missing {4}1 of security$/m);
  assert.equal((await tasks('alice', 'approve', id)).code, 5);
  assert.equal((await tasks('alice', 'withdraw', id)).code, 0);
  assert.equal((await as.alice.task(id)).votes.length, 0);
  const refused = await tasks('alice', 'approve', id, '--emergency', '--reason', 'x');
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, /alice is in none of the groups that decide alone/);
  const alone = await tasks('olga', 'approve', id, '--emergency', '--reason', 'fire');
  assert.deepEqual([alone.code, alone.stdout], [0, `${id}  approved  delete_user  by olga\n`]);
  assert.match((await tasks('olga', 'show', id)).stdout, /^Emergency {2}decided by one person alone$/m);
});

/* ---- the configuration ---- */

async function check(t, keys, admin = ADMIN, args = ['check'], more = {}) {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 't.yaml');
  fs.writeFileSync(file, toYaml(configuration({ upstream: 'http://127.0.0.1:1/mcp', store: path.join(folder, 'db'), rules: [['*', 'approve']], approval: { duty: keys }, config: { admin }, ...more })));
  return run(BINARY, [...args, '--config', file], { cwd: folder, env: ENV });
}

for (const [name, keys, message, admin] of [
  ['quorum 0', { quorum: 0 }, /approval\.duty\.quorum: 0: a call that nobody has approved is never executed; write 1 or more/],
  ['a quorum that is no number', { quorum: 'two' }, /approval\.duty\.quorum: must be a whole number from 1 to 100/],
  ['a quorum of no group', { quorum: {} }, /approval\.duty\.quorum: the mapping names no group/],
  ['a group of 0', { quorum: { dba: 0 } }, /approval\.duty\.quorum: 0: a call/],
  ['a quorum of more than there are', { quorum: 6 }, /approval\.duty\.quorum: the people and tokens of this file cannot fill it: .*by 1; add people/],
  ['a place that nobody is left for', { quorum: { dba: 1, oncall: 2 } }, /approval\.duty\.quorum: .* by 1 of oncall;/],
  ['one person for two places', { quorum: { security: 2, dba: 1, oncall: 1 }, approvers: { people: ['bob', 'carol', 'olga'] } }, /approval\.duty\.quorum: .* by 1 of dba;/],
  ['approvers of whom none exists', { approvers: { groups: ['nobody'] } }, /approval\.duty\.approvers: .*cannot fill it/],
  ['a person who is not there', { approvers: { people: ['zoe', 'alice'] } }, /approval\.duty\.approvers\.people: there is no person zoe; add the person to admin\.people/],
  ['approvers that name nobody', { approvers: {} }, /approval\.duty\.approvers: the mapping names nobody/],
  ['an empty list of groups', { approvers: { groups: [] } }, /approval\.duty\.approvers\.groups: the list is empty/],
  ['a quorum of tokens that name nobody', { quorum: 2 }, /cannot fill it/, { tokens: [{ name: 'a', token_env: 'ALICE', roles: ['approver'] }, { name: 'b', token_env: 'BOB', roles: ['approver'] }] }],
  ['people without the role', { quorum: 2 }, /cannot fill it/, { people: PEOPLE, tokens: TOKENS.map((token) => ({ ...token, roles: ['viewer'] })) }],
  ['reasons of another word', { reasons: { approve: 'always' } }, /approval\.duty\.reasons\.approve: "always" is not an answer/],
  ['an emergency of nobody', { emergency: {} }, /approval\.duty\.emergency\.groups: the key is missing/],
]) {
  test(`check refuses ${name}`, async (t) => {
    const { code, stderr } = await check(t, keys, admin);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  });
}

test('check accepts a quorum that can be filled, and warns of callers who are not verified', async (t) => {
  const { code, stderr } = await check(t, { quorum: { dba: 1, security: 2 } });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /warning: approval\.duty\.quorum: callers of the source up are not verified.*add auth to the source/);
  const alone = await check(t, { quorum: 1, reasons: { reject: 'required' }, valid_for: '1m' });
  assert.equal(alone.code, 0);
  assert.doesNotMatch(alone.stderr, /approval\./);
});

test('check only warns when people may sign in who are not in the file', async (t) => {
  const oidc = { issuer: 'https://id.example', client_id: 'x', roles: { approver: ['dba'] } };
  const { code, stderr } = await check(t, { quorum: { dba: 40 } }, { ...ADMIN, public_url: 'https://gate.example', oidc });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /warning: approval\.duty\.quorum: .*cannot fill it: .*by 38 of dba; people who sign in must fill it/);
});

test('check warns of an emergency group in which nobody is', async (t) => {
  const { code, stderr } = await check(t, { emergency: { groups: ['nobody'] } });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /warning: approval\.duty\.emergency: nobody of this file is in the groups/);
});

test('check warns of arguments that can be changed and not seen', async (t) => {
  const { code, stderr } = await check(t, { allow_edit: ['count', 'to.zone', 'top'], redact_fields: ['to', 'counts', 'top.secret'] });
  assert.equal(code, 0, stderr);
  const warnings = stderr.split('\n').filter((line) => line.includes('approval.duty.allow_edit'));
  assert.deepEqual(warnings.map((line) => /allow_edit: (.*)$/.exec(line)[1]), [
    'to.zone is changed by people who do not see it: redact_fields hides to; take the path out of one of the lists',
    'top is changed by people who do not see it: redact_fields hides top.secret; take the path out of one of the lists',
  ]);
});

test('explain says who could decide, and whether they exist', async (t) => {
  const keys = { approvers: { groups: ['security'], people: ['alice'] }, quorum: 2, emergency: { groups: ['oncall'] } };
  const { stdout } = await check(t, keys, ADMIN, ['explain', 'delete_user']);
  assert.match(stdout, /^Decided by 2 persons in security, or alice; alone in an emergency: oncall; in this file: alice \(dba\), bob \(dba, security\), carol \(security\)$/m);
  const json = JSON.parse((await check(t, keys, ADMIN, ['explain', 'delete_user', '--json'])).stdout);
  assert.deepEqual(json.approvers, {
    groups: ['security'],
    people: ['alice'],
    quorum: { count: 2 },
    present: [{ name: 'alice', groups: ['dba'] }, { name: 'bob', groups: ['dba', 'security'] }, { name: 'carol', groups: ['security'] }],
    missing: {},
    open: false,
  });
  const plain = await check(t, {}, { tokens: [TOKENS.at(-1)] }, ['explain', 'delete_user']);
  assert.match(plain.stdout, /^Decided by 1 approver; in this file: ci \(dba\)$/m);
});
