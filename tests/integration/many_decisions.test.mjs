// Many tasks at once: one decision on several, lists by what one looks for, and what metrics say of votes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const NAMES = ['alice', 'bob', 'vera'];
const people = NAMES.map((name) => ({ name, groups: name === 'vera' ? [] : ['dba'] }));
const tokens = NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver', 'caller'] }));
const env = Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`]));

async function stage(t, keys = {}, more = {}) {
  const all = await scene(t, {
    rules: [{ match: 'pay_*', action: 'approve', approval: 'money' }, { match: '*', action: 'approve', approval: 'default' }],
    approval: { ...workflow('10m', keys), money: { timeout: '10m', redact_fields: ['card'] } },
    upstream: { tools: [tool('delete_user'), tool('pay_bill')] },
    env,
    config: { admin: { people, tokens } },
    ...more,
  });
  const as = Object.fromEntries(NAMES.map((name) => [name, all.admin.as(`token-of-${name}`)]));
  const client = await all.connect();
  const call = async (name = 'delete_user', args = {}) => (await client.createTask(name, args)).taskId;
  return { ...all, as, call, client };
}

const items = (...all) => all.map((id) => ({ id }));
const ids = ({ tasks }) => tasks.map((task) => task.id);

test('one decision on several tasks: in order, each by itself', async (t) => {
  const { as, call } = await stage(t, { quorum: 2 });
  const [first, second, third] = [await call(), await call(), await call()];
  const own = (await as.bob.post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json.id;
  await as.alice.approve(await call('pay_bill'));
  await as.alice.decide('approve', second);
  await as.alice.reject(third);
  const answer = await as.bob.post('/api/v1/decisions', { items: items(first, second, third, own, 'tg_no', first), verb: 'approve', reason: 'as agreed' });
  assert.deepEqual([answer.status, answer.json.results], [
    200,
    [
      { id: first, status: 202 },
      { id: second, status: 200 },
      { id: third, status: 409, code: 'conflict' },
      { id: own, status: 403, code: 'own_call' },
      { id: 'tg_no', status: 404, code: 'not_found' },
      { id: first, status: 409, code: 'already_voted' },
    ],
  ]);
  const { votes, state } = await as.alice.task(first);
  assert.deepEqual([state, votes.map(({ person, reason }) => [person, reason])], ['pending', [['bob', 'as agreed']]]);
  const rejected = await as.alice.post('/api/v1/decisions', { items: items(first, own), verb: 'reject' });
  assert.deepEqual(rejected.json.results.map(({ status }) => status), [200, 200]);
});

test('each item counts only for the request that was shown', async (t) => {
  const { as, call } = await stage(t);
  const [right, wrong] = [await call(), await call('delete_user', { n: 2 })];
  const { requestDigest } = await as.alice.task(right);
  const { json } = await as.alice.post('/api/v1/decisions', { items: [right, wrong].map((id) => ({ id, requestDigest })), verb: 'approve' });
  assert.deepEqual(json.results, [{ id: right, status: 200 }, { id: wrong, status: 409, code: 'changed' }]);
  assert.deepEqual((await as.alice.task(wrong)).votes, []);
});

for (const [name, body, message] of [
  ['no items', { verb: 'approve' }, /needs items and verb/],
  ['no verb', { items: items('a') }, /needs items and verb/],
  ['items and ids', { items: items('a'), ids: ['a'], verb: 'approve' }, /items or ids/],
  ['items that are no list', { items: 'a', verb: 'approve' }, /items must be a list/],
  ['an item that is no object', { items: ['a'], verb: 'approve' }, /items must be a list/],
  ['an item without an id', { items: [{ requestDigest: 'a'.repeat(64) }], verb: 'approve' }, /items must be a list/],
  ['an id that is no text', { items: items(1), verb: 'approve' }, /must be a text/],
  ['an id with a NUL character', { items: items('a\u0000b'), verb: 'approve' }, /must be a text/],
  ['a digest that is none', { items: [{ id: 'a', requestDigest: 'a'.repeat(63) }], verb: 'approve' }, /64 hexadecimal digits/],
  ['an unknown member of an item', { items: [{ id: 'a', digest: 'x' }], verb: 'approve' }, /unknown member/],
  ['an empty list', { items: [], verb: 'approve' }, /items must be a list/],
  ['another verb', { items: items('a'), verb: 'cancel' }, /verb must be/],
  ['an unknown member', { items: items('a'), verb: 'approve', why: 'x' }, /unknown member/],
  ['a list', [], /needs items and verb/],
  ['more than 10,000 items', { items: items(...Array(10_001).fill('a')), verb: 'approve' }, /more than 10000/],
]) {
  test(`decisions: ${name} is 400`, async (t) => {
    const { as } = await stage(t);
    const answer = await as.alice.post('/api/v1/decisions', body);
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_request']);
    assert.match(answer.json.error.message, message);
  });
}

test('10,000 items are answered in order', async (t) => {
  const { as, call } = await stage(t);
  const id = await call();
  const { requestDigest } = await as.alice.task(id);
  const asked = Array.from({ length: 10_000 }, (_, i) => (i === 5_000 ? id : `tg_${String(i).padStart(36, '0')}`));
  // As long as items of real tasks are, each with a typed value.
  const { json } = await as.alice.post('/api/v1/decisions', { items: asked.map((one) => ({ id: one, requestDigest, typed: 'x'.repeat(64) })), verb: 'approve' });
  assert.deepEqual(json.results.map((result) => result.id), asked);
  assert.equal(json.results[5_000].status, 200);
  assert.equal(json.results.filter(({ status }) => status === 404).length, 9_999);
});

test('lists by workflow, principal, group of equal calls, and text', async (t) => {
  const { as, call, connect } = await stage(t);
  const first = await call('delete_user', { name: 'Zoe' });
  const again = await call('delete_user', { name: 'Zoe' });
  const pays = await call('pay_bill', { card: '4111-secret', note: 'for Zoe' });
  const other = (await (await connect()).createTask('delete_user', { name: 'zoe' })).taskId;
  const list = async (query) => ids(await as.alice.list(query));
  assert.deepEqual(await list({ workflow: 'money' }), [pays]);
  assert.deepEqual(await list({ workflow: 'nothing' }), []);
  const { principal, digest, rule } = await as.alice.task(first);
  assert.deepEqual(await list({ principal }), [pays, again, first]);
  assert.match(digest, /^[0-9a-f]{64}$/);
  assert.equal(rule, '*');
  assert.deepEqual(await list({ digest }), [again, first]);
  assert.deepEqual(await list({ q: 'zOE' }), [other, pays, again, first]);
  assert.deepEqual(await list({ q: 'pay_' }), [pays]);
  assert.deepEqual(await list({ q: '4111' }), [], 'hidden values are not found');
  assert.deepEqual(await list({ q: 'zoe', workflow: 'default', principal }), [again, first]);
  const page = await as.alice.list({ q: 'zoe', limit: 2 });
  assert.deepEqual(ids(page), [other, pays]);
  assert.deepEqual(await list({ q: 'zoe', limit: 2, cursor: page.nextCursor }), [again, first]);
  assert.equal((await as.alice.get('/api/v1/tasks?mine=maybe')).status, 400);
});

test('mine=true: what waits for my vote, not my own calls, not what I have voted on', async (t) => {
  const { as, call } = await stage(t, { quorum: 2, approvers: { groups: ['dba'] } });
  const [open, voted] = [await call(), await call()];
  const own = (await as.alice.post('/api/v1/calls', { tool: 'delete_user', arguments: {} })).json.id;
  const ended = await call();
  await as.bob.reject(ended);
  await as.alice.decide('approve', voted);
  const mine = async (name) => ids(await as[name].list({ mine: true }));
  assert.deepEqual(await mine('alice'), [open]);
  assert.deepEqual(await mine('bob'), [own, voted, open]);
  assert.deepEqual(await mine('vera'), [], 'she is no approver of the workflow');
});

test('metrics: votes, decisions, emergencies, and the oldest that waits', async (t) => {
  const { as, call, admin } = await stage(t, { quorum: 2, emergency: { groups: ['dba'] } });
  const [first, second] = [await call(), await call()];
  await as.alice.decide('approve', first);
  await as.bob.decide('approve', first);
  await as.alice.decide('approve', second);
  await as.alice.post(`/api/v1/tasks/${second}/withdraw`, {});
  const waited = await until(async () => sample(await admin.metrics(), 'thoughtgate_tasks_oldest_pending_seconds', { workflow: 'default' }), 'a sweep', { deadline: 30_000 });
  assert.ok(waited > 0 && waited < 60, `${waited} s`);
  await as.bob.post(`/api/v1/tasks/${second}/approve`, { emergency: true, reason: 'fire' });
  const metrics = await admin.metrics();
  const votes = (verb) => sample(metrics, 'thoughtgate_votes_total', { workflow: 'default', verb });
  assert.deepEqual([votes('approve'), votes('withdraw'), votes('reject')], [4, 1, undefined]);
  assert.equal(sample(metrics, 'thoughtgate_decision_seconds_count', { workflow: 'default', verb: 'approve' }), 2);
  assert.equal(sample(metrics, 'thoughtgate_emergency_approvals_total'), 1);
  await until(async () => sample(await admin.metrics(), 'thoughtgate_tasks_oldest_pending_seconds', { workflow: 'default' }) === undefined, 'a sweep that finds nothing', { deadline: 30_000 });
});
