// Votes under stress: many voters at once, a process that is killed, and people who sign in at a real provider.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { FormBrowser, startIssuer } from './lib/issuer.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const many = Array.from({ length: 50 }, (_, i) => `p${i}`);
const crowd = {
  people: many.map((name) => ({ name })),
  tokens: many.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })),
};
const env = Object.fromEntries(many.map((name) => [name.toUpperCase(), `token-of-${name}`]));

const stage = (t, keys, more = {}) =>
  scene(t, { rules: [['*', 'approve']], approval: workflow('10m', keys), upstream: { tools: [tool('delete_user')] }, env, config: { admin: crowd }, ...more });

test('50 people vote at once: the quorum decides once, each vote is kept or refused, none is lost', async (t) => {
  const { admin, connect, upstream } = await stage(t, { quorum: 20 });
  const { taskId } = await (await connect()).createTask('delete_user');
  const answers = await Promise.all(many.map((name) => admin.as(`token-of-${name}`).decide('approve', taskId)));
  const by = (status) => answers.filter((answer) => answer.status === status);
  assert.deepEqual([by(202).length, by(200).length, by(409).length], [19, 1, 30]);
  assert.ok(by(409).every((answer) => answer.json.error.code === 'conflict'));
  const task = await admin.task(taskId);
  assert.equal(task.votes.length, 20);
  assert.equal(new Set(task.votes.map((vote) => vote.person)).size, 20);
  assert.equal(task.decidedBy, task.votes.at(-1).person);
  await admin.inState(taskId, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('approvals and rejections at once: one outcome, and it is that of the votes', async (t) => {
  const { admin, connect } = await stage(t, { quorum: 5 });
  for (let round = 0; round < 5; round++) {
    const { taskId } = await (await connect()).createTask('delete_user');
    await Promise.all(many.map((name, i) => admin.as(`token-of-${name}`).decide(i % 8 === round ? 'reject' : 'approve', taskId)));
    const { votes, state, decidedBy } = await admin.task(taskId);
    const last = votes.at(-1);
    assert.equal(last.person, decidedBy);
    if (state === 'rejected') assert.deepEqual([last.verb, votes.filter((vote) => vote.verb === 'reject').length], ['reject', 1]);
    else assert.deepEqual([last.verb, votes.length, votes.every((vote) => vote.verb === 'approve')], ['approve', 5, true]);
  }
});

test('one person with many requests at once has one vote', async (t) => {
  const { admin, connect } = await stage(t, { quorum: 2 });
  const { taskId } = await (await connect()).createTask('delete_user');
  const answers = await Promise.all(many.map(() => admin.as('token-of-p0').decide('approve', taskId)));
  assert.deepEqual([answers.filter(({ status }) => status === 202).length, answers.filter(({ json }) => json.error?.code === 'already_voted').length], [1, 49]);
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('kill -9 at the deciding vote: vote and move are both there, or neither', async (t) => {
  const { admin, connect, gateway } = await stage(t, { quorum: 2 }, { rules: [{ match: '*', action: 'approve', execution: 'on_result' }] });
  let decided = 0;
  for (let round = 0; round < 6; round++) {
    const { taskId } = await (await connect()).createTask('delete_user');
    await admin.as('token-of-p0').decide('approve', taskId);
    const last = admin.as('token-of-p1').decide('approve', taskId).catch(() => null);
    if (round % 2 === 1) await last;
    else await new Promise((resolve) => setImmediate(resolve));
    await gateway.kill9();
    const answer = await last;
    await gateway.launch();
    const task = await gateway.admin.task(taskId);
    const people = task.votes.map((vote) => vote.person);
    if (answer?.status === 200) assert.equal(task.state, 'approved', 'what was answered has happened');
    if (task.state === 'approved') assert.deepEqual(people, ['p0', 'p1']);
    else assert.deepEqual([task.state, people], ['pending', ['p0']]);
    decided += task.state === 'approved';
    const { entries } = (await gateway.admin.get('/api/v1/audit?limit=1000')).json;
    const events = entries.filter((row) => row.taskId === taskId).map((row) => row.event);
    assert.deepEqual(events, task.state === 'approved' ? ['create', 'vote', 'approve'] : ['create', 'vote']);
  }
  assert.ok(decided >= 3, 'each second round is decided before the kill');
});

/* ---- people who sign in ---- */

const SECRET = 'a secret of the client';
const LOGINS = {
  bob: { email: 'bob@example.org', email_verified: true, groups: ['security'] },
  alicia: { email: 'Alice@example.org', email_verified: true, groups: ['security'] },
  wanda: { email: 'wanda@example.org', email_verified: true, groups: ['watchers'] },
};

async function signedIn(t, keys, admin = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, env: { OIDC_SECRET: SECRET } });
  const { gateway } = all;
  const issuer = await startIssuer(t, { people: LOGINS, clients: [{ client_id: 'gateway', client_secret: SECRET, redirect_uris: [`${gateway.adminUrl}/login/callback`] }] });
  const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
  const reload = async (more = {}) => {
    const before = count();
    gateway.writeConfig({
      approval: workflow('10m', keys),
      config: { admin: { public_url: gateway.adminUrl, oidc: { issuer: issuer.url, client_id: 'gateway', client_secret_env: 'OIDC_SECRET', roles: { approver: ['dba', 'security'], viewer: ['watchers'] } }, ...more } },
    });
    gateway.hangUp();
    await gateway.logged(() => count() > before);
  };
  await reload(admin);
  const signIn = async (login) => {
    const browser = new FormBrowser();
    await browser.signIn(`${gateway.adminUrl}/login`, login);
    const headers = { 'content-type': 'application/json', 'x-taskgate': '1', origin: gateway.adminUrl, cookie: browser.header(gateway.adminUrl) };
    return async (verb, id, body = {}) => {
      const answer = await fetch(`${gateway.adminUrl}/api/v1/tasks/${id}/${verb}`, { method: 'POST', headers, body: JSON.stringify(body) });
      const json = await answer.json();
      return { status: answer.status, json, said: `${answer.status} ${json.error?.code ?? json.state}` };
    };
  };
  return { ...all, signIn, reload };
}

test('two people who sign in at a provider fill a quorum by their groups, end to end', async (t) => {
  const { signIn, connect, admin, upstream } = await signedIn(t, { quorum: { dba: 1, security: 1 } });
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const [alice, bob, wanda] = [await signIn('alice'), await signIn('bob'), await signIn('wanda')];
  assert.equal((await wanda('approve', taskId)).said, '403 forbidden');
  const first = await alice('approve', taskId, { reason: 'the ticket is fine' });
  assert.deepEqual([first.said, first.json.missing], ['202 pending', { security: 1 }]);
  assert.equal((await alice('approve', taskId)).said, '409 already_voted');
  assert.equal((await bob('approve', taskId)).said, '200 approved');
  const task = await admin.inState(taskId, 'completed');
  assert.deepEqual(task.votes.map(({ person, verb, reason }) => [person, verb, reason]), [['alice', 'approve', 'the ticket is fine'], ['bob', 'approve', null]]);
  assert.equal(upstream.calls.length, 1);
});

test('two subjects with one verified address are one person, and have one vote', async (t) => {
  const { signIn, connect, admin } = await signedIn(t, { quorum: 2 });
  const { taskId } = await (await connect()).createTask('delete_user');
  const [alice, alicia] = [await signIn('alice'), await signIn('alicia')];
  assert.equal((await alice('approve', taskId)).said, '202 pending');
  assert.equal((await alicia('approve', taskId)).said, '409 already_voted');
  assert.equal((await alicia('withdraw', taskId)).said, '200 pending');
  assert.deepEqual((await admin.task(taskId)).votes, []);
});

test('the vote of somebody who signed in falls with the group that gave the role, and stands again with it', async (t) => {
  const { signIn, connect, admin, reload } = await signedIn(t, { approvers: { groups: ['dba', 'security'] }, quorum: 2 });
  const { taskId } = await (await connect()).createTask('delete_user');
  const [alice, bob] = [await signIn('alice'), await signIn('bob')];
  await alice('approve', taskId);
  const narrowed = (await admin.get('/api/v1/sign-in')).json;
  const oidc = { issuer: narrowed.issuer, client_id: 'gateway', client_secret_env: 'OIDC_SECRET' };
  await reload({ oidc: { ...oidc, roles: { approver: ['security'] } } });
  assert.deepEqual((await admin.task(taskId)).missing, { count: 2 });
  await reload();
  assert.deepEqual((await admin.task(taskId)).missing, { count: 1 });
  assert.equal((await bob('approve', taskId)).said, '200 approved');
});

test('a decision on another request than the one that was shown is 409 changed, and counts nothing', async (t) => {
  const { admin, connect } = await stage(t, { quorum: 2, reasons: { approve: 'required', reject: 'required' } });
  const [first, second] = ['p0', 'p1'].map((name) => admin.as(`token-of-${name}`));
  const id = (await (await connect()).createTask('delete_user')).taskId;
  const { requestDigest } = await first.task(id);
  const other = requestDigest.replace(/./, (digit) => (digit === '0' ? '1' : '0'));
  const ask = async (verb, body) => {
    const { status, json } = await first.post(`/api/v1/tasks/${id}/${verb}`, body);
    return [status, json.error?.code];
  };
  for (const verb of ['approve', 'reject']) {
    assert.deepEqual(await ask(verb, { requestDigest: other }), [409, 'changed'], `${verb}: before reason_required`);
    assert.deepEqual(await ask(verb, { requestDigest }), [422, 'reason_required']);
    for (const bad of ['', 'x'.repeat(64), requestDigest.slice(1), `${requestDigest}0`, 1]) assert.deepEqual(await ask(verb, { requestDigest: bad }), [400, 'invalid_request'], JSON.stringify(bad));
  }
  assert.deepEqual((await first.task(id)).votes, []);
  assert.deepEqual(await ask('approve', { requestDigest: requestDigest.toUpperCase(), reason: 'seen' }), [202, undefined]);
  assert.deepEqual(await ask('withdraw', { requestDigest: other }), [409, 'changed']);
  assert.deepEqual(await ask('withdraw', { requestDigest }), [200, undefined]);
  await second.decide('reject', id, 'no');
  assert.deepEqual(await ask('approve', { requestDigest: other }), [409, 'conflict'], 'conflict before changed');
});
