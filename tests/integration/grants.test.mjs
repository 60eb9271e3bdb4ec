// Grants: the same call again without a question, for a while and so often, and every way in which a grant ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { connectedRaw } from './lib/client.mjs';
import { workflow } from './lib/gateway.mjs';
import { modernClient, modernScene } from './lib/modern.mjs';
import { kinds } from './lib/pseudo.mjs';
import { SECRET, startReceiver } from './lib/receiver.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const NAMES = ['alice', 'bob', 'carol'];
const people = NAMES.map((name) => ({ name, groups: name === 'carol' ? [] : ['dba'] }));
const tokens = NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver', 'viewer', 'auditor', 'caller'] }));
const env = { NOTIFY_SECRET: SECRET, ...Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`])) };
const GRANTS = { max: '1h', max_calls: 20, vary: ['note', 'to.zone'] };
const DELETE = { name: 'staging', note: 'first' };

const options = (keys = {}, more = {}) => ({
  rules: [['delete_user', 'approve']],
  approval: workflow('10m', { grants: GRANTS, ...keys }),
  upstream: { tools: [tool('delete_user'), tool('read')] },
  env,
  config: { admin: { people, tokens } },
  ...more,
});

async function dress(all) {
  const as = Object.fromEntries(NAMES.map((name) => [name, all.admin.as(`token-of-${name}`)]));
  const ask = (id, grant, who = 'alice', more = {}) => as[who].post(`/api/v1/tasks/${id}/approve`, { grant, ...more });
  const grants = async (query = '') => (await as.alice.get(`/api/v1/grants${query}`)).json.grants;
  const audit = async (...events) => (await as.alice.get('/api/v1/audit?limit=1000')).json.entries.filter(({ event }) => events.includes(event));
  return { ...all, as, ask, grants, audit };
}

async function stage(t, keys, more) {
  const all = await dress(await scene(t, options(keys, more)));
  const client = await all.connect();
  const call = async (args = DELETE, from = client) => all.admin.task((await from.createTask('delete_user', args)).taskId);
  /** A call that was approved with a grant. */
  const give = async (grant = { for: '1h', calls: 3 }, args = DELETE) => {
    const task = await call(args);
    const answer = await all.ask(task.id, grant);
    assert.equal(answer.status, 200, answer.text);
    await all.admin.inState(task.id, 'completed');
    return answer.json.grant.id;
  };
  const reload = async (again) => {
    const count = () => all.gateway.logs.filter(({ msg }) => msg === 'Configuration reloaded').length;
    const before = count();
    all.gateway.writeConfig(again);
    all.gateway.hangUp();
    await all.gateway.logged(() => count() > before);
  };
  return { ...all, client, call, give, reload };
}

/* ---- giving and using ---- */

test('a grant lets the same call run again, counts down, and says so in the task, the list, the metric and the trail', async (t) => {
  const { admin, call, give, grants, audit, upstream } = await stage(t);
  const id = await give({ for: '10m', calls: 2 });
  assert.match(id, /^gr_[0-9a-f-]{36}$/);
  const [given] = await grants();
  assert.deepEqual(
    [given.id, given.state, given.tool, given.workflow, given.rule, given.calls, given.used, given.left, given.for, given.givers, given.vary, given.arguments],
    [id, 'active', 'delete_user', 'default', 'delete_user', 2, 0, 2, '10m', ['alice'], ['note', 'to.zone'], DELETE],
  );
  assert.equal(Date.parse(given.until) - Date.parse(given.createdAt), 600_000);
  assert.equal(sample(await admin.metrics(), 'thoughtgate_grants_active'), 1);
  const first = await call();
  assert.deepEqual([first.decidedBy, first.grant.id, first.grant.use, first.grant.calls, first.votes], [`grant:${id}`, id, 1, 2, []]);
  assert.equal((await admin.inState(first.id, 'completed')).decidedBy, `grant:${id}`);
  assert.equal((await call()).grant.use, 2);
  assert.equal((await call()).state, 'pending', 'both are used');
  await until(() => upstream.calls.length === 3, 'the approved call and two by the grant');
  const [ended] = await grants();
  assert.deepEqual([ended.state, ended.used, ended.left, ended.endCause], ['ended', 2, 0, 'calls']);
  assert.deepEqual(await grants('?state=active'), []);
  assert.equal(sample(await admin.metrics(), 'thoughtgate_grants_active'), 0);
  const rows = await audit('grant_given', 'grant_used', 'grant_ended');
  assert.deepEqual(rows.map(({ event, person = '' }) => [event, person]), [['grant_given', 'alice'], ['grant_used', ''], ['grant_used', ''], ['grant_ended', '']]);
  assert.ok(rows.every(({ reason }) => reason.startsWith(id)));
  const uses = (await audit('approve')).filter(({ actorKind }) => actorKind === 'grant');
  assert.deepEqual(uses.map(({ actor }) => actor), [`grant:${id}`, `grant:${id}`]);
});

test('vary paths may differ or be missing; every other argument is bound, and so are new ones', async (t) => {
  const { call, give } = await stage(t);
  const args = { name: 'staging', note: 'first', to: { zone: 'a', host: 'h' } };
  await give({ for: '10m', calls: 20 }, args);
  for (const [same, changed] of [
    [true, args],
    [true, { to: { host: 'h', zone: ['b'] }, name: 'staging', note: { any: 1 } }],
    [true, { name: 'staging', to: { host: 'h' } }],
    [false, { ...args, name: 'production' }],
    [false, { ...args, force: true }],
    [false, { ...args, to: { zone: 'a', host: 'other' } }],
    [false, { ...args, to: { zone: 'a', host: 'h', port: 1 } }],
    [false, { name: 'staging', note: 'first' }],
    [false, { ...args, Note: 'x' }],
  ]) {
    const answer = await call(changed).catch((error) => error);
    assert.equal(String(answer.decidedBy).startsWith('grant:'), same, JSON.stringify(changed));
  }
});

test('_meta is bound as well, but for the trace and the progress token', async (t) => {
  const { admin, client, give } = await stage(t);
  await give({ for: '10m', calls: 5 });
  const make = async (_meta) => admin.task((await client.result('tools/call', { name: 'delete_user', arguments: DELETE, task: { ttl: 60_000 }, _meta })).task.taskId);
  assert.ok((await make({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', progressToken: 7 })).grant);
  assert.equal((await make({ tenant: 'other' })).state, 'pending');
});

test('another source with the same tool does not have the grant, for the same caller', async (t) => {
  const [one, two] = [await startUpstream(t, { tools: [tool('delete_user')] }), await startUpstream(t, { tools: [tool('delete_user')] })];
  const { admin, gateway, ask, as } = await dress(await scene(t, options({}, { upstream: { tools: [] } })));
  gateway.writeConfig({ upstream: { one: one.url, two: two.url } });
  await gateway.restart();
  const at = (source) => connectedRaw(t, `${gateway.origin}/${source}/mcp`, { headers: { authorization: 'Bearer caller' } });
  const [first, second] = [await at('one'), await at('two')];
  const call = async (client) => admin.task((await client.createTask('delete_user', DELETE)).taskId);
  const answer = await ask((await call(first)).id, { for: '10m', calls: 5 });
  assert.deepEqual([answer.status, answer.json.source], [200, 'one']);
  assert.deepEqual([(await call(second)).state, (await call(first)).grant?.use], ['pending', 1]);
  const { grants } = (await as.alice.get('/api/v1/grants')).json;
  assert.deepEqual(grants.map(({ source, used }) => [source, used]), [['one', 1]]);
});

test('another session and another tool do not have the grant', async (t) => {
  const { admin, connect, call, give } = await stage(t, {}, { rules: [['*', 'approve']] });
  await give();
  const other = await connect();
  assert.equal((await call(DELETE, other)).state, 'pending');
  assert.equal((await admin.task((await other.createTask('read', DELETE)).taskId)).state, 'pending');
  assert.equal(String((await call()).decidedBy).slice(0, 6), 'grant:');
});

test('50 calls at once at a grant of 20 use exactly 20', async (t) => {
  const { call, give, grants, upstream, admin } = await stage(t);
  await give({ for: '10m', calls: 20 });
  const tasks = await Promise.all(Array.from({ length: 50 }, (_, i) => call({ ...DELETE, note: `n${i}` })));
  const used = tasks.filter(({ grant }) => grant);
  assert.deepEqual(used.map(({ grant }) => grant.use).sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i + 1));
  assert.equal((await grants())[0].endCause, 'calls');
  for (const { id } of used) await admin.inState(id, 'completed');
  assert.equal(upstream.calls.length, 21);
});

test('kill -9 amid uses: never more uses than calls, each counted once, and the grant lives on', async (t) => {
  const { gateway, connect } = await stage(t, {}, { rules: [{ match: 'delete_user', action: 'approve', execution: 'on_result' }] });
  const client = await connect({ headers: { authorization: 'Bearer one' } });
  const { taskId } = await client.createTask('delete_user', DELETE);
  const { id } = (await gateway.admin.as('token-of-alice').post(`/api/v1/tasks/${taskId}/approve`, { grant: { for: '10m', calls: 12 } })).json.grant;
  for (let round = 0; round < 3; round++) {
    const again = await connect({ headers: { authorization: 'Bearer one' } });
    const calls = Array.from({ length: 6 }, () => again.createTask('delete_user', DELETE).catch(() => null));
    await Promise.race(calls);
    await gateway.kill9();
    await Promise.all(calls);
    await gateway.launch();
  }
  const admin = gateway.admin.as('token-of-alice');
  const [grant] = (await admin.get('/api/v1/grants')).json.grants.filter((one) => one.id === id);
  const { tasks } = await admin.list({ limit: 100 });
  const uses = tasks.filter(({ decidedBy }) => decidedBy === `grant:${id}`).map(({ grant: { use } }) => use).sort((a, b) => a - b);
  assert.ok(uses.length >= 3 && uses.length <= 12, `${uses.length}`);
  assert.deepEqual(uses, Array.from({ length: uses.length }, (_, i) => i + 1));
  assert.equal(grant.used, uses.length);
});

/* ---- who may ask for what ---- */

for (const [name, keys, who, body, status, code] of [
  ['a workflow without grants', { grants: undefined }, 'alice', { grant: { for: '1m', calls: 1 } }, 422, 'grant_not_allowed'],
  ['an emergency', { emergency: { groups: ['dba'] } }, 'alice', { grant: { for: '1m', calls: 1 }, emergency: true, reason: 'fire' }, 422, 'grant_not_allowed'],
  ['too long', {}, 'alice', { grant: { for: '61m', calls: 1 } }, 422, 'grant_too_large'],
  ['too many calls', {}, 'alice', { grant: { for: '1h', calls: 21 } }, 422, 'grant_too_large'],
  ['somebody outside of by', { grants: { ...GRANTS, by: ['dba'] } }, 'carol', { grant: { for: '1m', calls: 1 } }, 403, 'not_a_granter'],
  ['a member too many', {}, 'alice', { grant: { for: '1m', calls: 1, tool: '*' } }, 400, 'invalid_request'],
  ['a member missing', {}, 'alice', { grant: { calls: 1 } }, 400, 'invalid_request'],
  ['no calls', {}, 'alice', { grant: { for: '1m', calls: 0 } }, 400, 'invalid_request'],
  ['no time', {}, 'alice', { grant: { for: '0s', calls: 1 } }, 400, 'invalid_request'],
  ['a reason that is missing', { reasons: { approve: 'required' } }, 'alice', { grant: { for: '9h', calls: 1 } }, 422, 'reason_required'],
]) {
  test(`refused, and the task waits on: ${name}`, async (t) => {
    const { admin, as, call, grants } = await stage(t, keys);
    const task = await call();
    const answer = await as[who].post(`/api/v1/tasks/${task.id}/approve`, body);
    assert.deepEqual([answer.status, answer.json.error.code], [status, code], answer.text);
    assert.equal((await admin.task(task.id)).state, 'pending');
    assert.deepEqual(await grants(), []);
  });
}

test('a rejection takes no grant, and the task tells what may be asked for', async (t) => {
  const { as, call } = await stage(t, { grants: { ...GRANTS, by: ['dba'] } });
  const task = await as.alice.task((await call()).id);
  assert.deepEqual([task.grantOffer, task.grant, task.you.grant], [{ max: '1h', maxCalls: 20, vary: ['note', 'to.zone'] }, null, true]);
  assert.equal((await as.carol.task(task.id)).you.grant, false);
  assert.equal((await as.alice.post(`/api/v1/tasks/${task.id}/reject`, { grant: { for: '1m', calls: 1 } })).status, 400);
});

for (const identity of ['authorization', 'anonymous'])
  test(`a caller without a session or a token is nobody, and gets no grant (identity: ${identity})`, async (t) => {
    const { admin, ask, raw } = await stage(t, {}, { source: { identity }, upstream: { tools: [tool('delete_user')], sessions: false } });
    const { taskId } = await raw().createTask('delete_user', DELETE);
    const answer = await ask(taskId, { for: '1m', calls: 1 });
    assert.deepEqual([answer.status, answer.json.error.code], [422, 'grant_not_allowed']);
    assert.equal((await admin.task(taskId)).state, 'pending');
  });

test('a quorum of two: the same grant in both votes gives it, another or none does not', async (t) => {
  const { ask, call, grants } = await stage(t, { quorum: 2 });
  for (const [first, second, given] of [
    [{ for: '10m', calls: 2 }, { for: '10m', calls: 3 }, 0],
    [{ for: '10m', calls: 2 }, undefined, 0],
    [undefined, { for: '10m', calls: 2 }, 0],
    [{ for: '10m', calls: 2 }, { for: '600s', calls: 2 }, 1],
  ]) {
    const { id } = await call();
    const vote = await ask(id, first, 'alice');
    assert.deepEqual([vote.status, vote.json.votes[0].grant], [202, first ?? null]);
    assert.equal((await ask(id, second, 'bob')).status, 200);
    assert.equal((await grants()).length, given, JSON.stringify([first, second]));
  }
  assert.deepEqual((await grants())[0].givers, ['alice', 'bob']);
});

test('other headers of the agent are another call, other credentials are not', async (t) => {
  const { admin, client, call, give } = await stage(t);
  client.headers = { 'x-tenant': 'test', cookie: 'c=1' };
  await give();
  client.headers = { 'x-tenant': 'test', cookie: 'c=2' };
  await admin.inState((await call()).id, 'completed');
  client.headers = { 'x-tenant': 'prod', cookie: 'c=1' };
  const { state, headers } = await call();
  assert.deepEqual([state, headers], ['pending', { 'x-tenant': 'prod', cookie: null }]);
});

/* ---- how it ends ---- */

test('revoked: at once, by a reason, once', async (t) => {
  const { as, call, give, grants, audit } = await stage(t);
  const id = await give();
  const answer = await as.carol.post(`/api/v1/grants/${id}/revoke`, { reason: 'no more' });
  assert.deepEqual([answer.status, answer.json.state, answer.json.endCause, answer.json.endedBy, answer.json.endReason], [200, 'ended', 'revoked', 'carol', 'no more']);
  assert.equal((await call()).state, 'pending');
  assert.equal((await as.carol.post(`/api/v1/grants/${id}/revoke`, {})).status, 409);
  assert.equal((await as.carol.post('/api/v1/grants/gr_no/revoke', {})).status, 404);
  assert.equal((await grants())[0].used, 0);
  const [row] = await audit('grant_revoked');
  assert.deepEqual([row.person, row.tool, row.workflow], ['carol', 'delete_user', 'default']);
});

test('over by its time', async (t) => {
  const { call, give, grants } = await stage(t);
  await give({ for: '1s', calls: 5 });
  await until(async () => (await grants())[0].state === 'ended', 'the end by time');
  assert.equal((await grants())[0].endCause, 'time');
  assert.equal((await call()).state, 'pending');
});

test('event: grant on /events: given, each use, and each end, as the list has it, without a number', async (t) => {
  const { as, call, give, grants } = await stage(t, { redact_fields: ['note'] });
  const stream = await as.carol.events();
  const heard = async (what) => {
    const { id, json } = await stream.next(({ event }) => event === 'grant', what);
    assert.equal(id, undefined, 'Last-Event-ID counts changes of tasks');
    return json;
  };
  const first = await give({ for: '1h', calls: 2 });
  const given = await heard('the grant');
  assert.deepEqual([given.id, given.state, given.left, given.arguments], [first, 'active', 2, { name: 'staging', note: '[REDACTED]' }]);
  assert.deepEqual(given, (await grants())[0]);
  await call();
  assert.deepEqual([(await heard('its first use')).used], [1]);
  await call();
  const used = await heard('its last use');
  assert.deepEqual([used.id, used.used, used.state, used.endCause], [first, 2, 'ended', 'calls']);
  const second = await give();
  assert.equal((await heard('the second')).id, second);
  await as.alice.post(`/api/v1/grants/${second}/revoke`, { reason: 'enough' });
  const revoked = await heard('its end');
  assert.deepEqual([revoked.id, revoked.state, revoked.endCause, revoked.endedBy, revoked.endReason], [second, 'ended', 'revoked', 'alice', 'enough']);
  const third = await give({ for: '1s', calls: 2 });
  assert.equal((await heard('the third')).state, 'active');
  const over = await heard('the end that nobody asks about');
  assert.deepEqual([over.id, over.endCause], [third, 'time']);
});

test('the tool has changed: the grant has ended, also when the tool is as before again', async (t) => {
  const { call, give, grants, upstream, client } = await stage(t);
  await give();
  const before = upstream.tools;
  upstream.tools = [tool('delete_user', { description: 'deletes everything' })];
  await client.result('tools/list');
  assert.equal((await call()).state, 'pending');
  assert.equal((await grants())[0].endCause, 'tool_changed');
  upstream.tools = before;
  await client.result('tools/list');
  assert.equal((await call()).state, 'pending');
});

for (const [name, again, cause] of [
  ['the rule of the same pattern is for one source alone', { rules: [{ match: 'delete_user', action: 'approve', source: 'up' }] }, 'rule_changed'],
  ['another rule is before it', { rules: [['delete_*', 'approve'], ['delete_user', 'approve']] }, 'rule_changed'],
  ['the workflow asks for two', { approval: workflow('10m', { grants: GRANTS, quorum: 2 }) }, 'rule_changed'],
  ['the workflow gives no grants any more', { approval: workflow('10m') }, 'rule_changed'],
  ['less may vary', { approval: workflow('10m', { grants: { ...GRANTS, vary: ['note'] } }) }, 'rule_changed'],
  ['its giver has no token any more', { config: { admin: { people, tokens: tokens.slice(1) } } }, 'giver_left'],
  ['its giver approves no more', { config: { admin: { people, tokens: [{ ...tokens[0], roles: ['viewer'] }, ...tokens.slice(1)] } } }, 'giver_left'],
]) {
  test(`after a reload: ${name}`, async (t) => {
    const { as, call, give, reload } = await stage(t);
    await give();
    await reload(again);
    assert.equal((await call()).state, 'pending');
    const { grants } = (await as.bob.get('/api/v1/grants')).json;
    assert.deepEqual(grants.map(({ endCause, used }) => [endCause, used]), [[cause, 0]]);
  });
}

test('a token without a person is taken out: its grant has ended, and its namesake does not revive it', async (t) => {
  const desk = { name: 'desk', token_env: 'DESK', roles: ['approver'] };
  const more = { env: { ...env, DESK: 'token-of-the-desk' }, config: { admin: { people, tokens: [...tokens, desk] } } };
  const all = await stage(t, {}, more);
  const { call, admin, reload, grants } = all;
  const given = async (token, cause, again) => {
    const task = await call();
    const answer = await admin.as(token).post(`/api/v1/tasks/${task.id}/approve`, { grant: { for: '1h', calls: 5 } });
    assert.equal(answer.status, 200, answer.text);
    await admin.inState(task.id, 'completed');
    assert.equal((await admin.inState((await call()).id, 'completed')).decidedBy, `grant:${answer.json.grant.id}`);
    await again();
    assert.equal((await call()).state, 'pending');
    const { endCause } = (await grants()).find(({ id }) => id === answer.json.grant.id);
    assert.equal(endCause, cause);
  };
  await given('token-of-the-desk', 'giver_left', () => reload({ config: { admin: { people, tokens } } }));
  // A token of the file with the name of the one that the environment has.
  const named = { ...desk, name: 'admin' };
  await reload({ config: { admin: { people, tokens: [...tokens, named] } } });
  await given('token-of-the-desk', 'giver_left', () => reload({ config: { admin: { people, tokens } } }));
});

test('a reload that changes nothing of it keeps it, and so does a restart', async (t) => {
  const { admin, gateway, connect, reload } = await stage(t);
  const client = await connect({ headers: { authorization: 'Bearer one' } });
  const { taskId } = await client.createTask('delete_user', DELETE);
  const { id } = (await admin.as('token-of-alice').post(`/api/v1/tasks/${taskId}/approve`, { grant: { for: '10m', calls: 3 } })).json.grant;
  await reload({ rules: [['delete_user', 'approve'], ['read', 'approve']] });
  const use = async () => {
    const again = await connect({ headers: { authorization: 'Bearer one' } });
    return (await gateway.admin.task((await again.createTask('delete_user', DELETE)).taskId)).grant;
  };
  assert.deepEqual([(await use()).id, (await use()).use], [id, 2]);
  await gateway.kill9();
  await gateway.launch();
  assert.equal((await use()).use, 3);
});

test('a rule that denies now denies: the grant opens nothing', async (t) => {
  const { client, give, reload } = await stage(t);
  await give();
  await reload({ rules: [['delete_user', 'deny']] });
  assert.ok(await client.error('tools/call', { name: 'delete_user', arguments: DELETE, task: {} }));
});

test('the command line gives, lists and revokes', async (t) => {
  const { call, gateway, grants } = await stage(t);
  const cli = (...args) => gateway.cli(args, { env: { TASKGATE_TOKEN: 'token-of-alice' } });
  const { id: task } = await call();
  for (const [args, message] of [
    [['--grant-for', '10m'], /--grant-for and --grant-calls go together/],
    [['--grant-for', '10m', '--grant-calls', 'many'], /--grant-calls wants a whole number/],
  ]) {
    const wrong = await cli('tasks', 'approve', task, ...args);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, message);
  }
  assert.equal((await cli('tasks', 'approve', task, '--grant-for', '10m', '--grant-calls', '7', '--reason', 'routine')).code, 0);
  const [{ id, calls, reason }] = await grants();
  assert.deepEqual([calls, reason], [7, 'routine']);
  const list = await cli('grants', 'list');
  assert.equal(list.code, 0);
  assert.match(list.stdout, new RegExp(`^${id}\n[\\s\\S]*delete_user[\\s\\S]*0 of 7`));
  assert.equal(JSON.parse((await cli('grants', 'list', '--json')).stdout).grants[0].id, id);
  const revoked = await cli('grants', 'revoke', id, '--reason', 'enough');
  assert.equal(revoked.code, 0, revoked.stderr);
  assert.match(revoked.stdout, /because +revoked/);
  assert.equal((await cli('grants', 'revoke', id)).code, 5);
  assert.equal((await cli('grants', 'revoke', 'gr_no')).code, 4);
  assert.equal((await cli('grants', 'list')).stdout, 'No grants.\n');
  assert.match((await cli('grants', 'list', '--all')).stdout, new RegExp(id));
});

/* ---- every way of a call ---- */

test('a plain call of a client without tasks is answered with the result', async (t) => {
  const { admin, ask, connect, grants } = await stage(t);
  const plain = await connect(kinds.old.client);
  const first = plain.result('tools/call', { name: 'delete_user', arguments: DELETE });
  const { id } = await admin.pending();
  await ask(id, { for: '10m', calls: 2 });
  await first;
  const second = await plain.result('tools/call', { name: 'delete_user', arguments: { ...DELETE, note: 'again' } });
  assert.ok(!second.isError && !JSON.stringify(second).includes('waits for'), JSON.stringify(second));
  assert.equal((await grants())[0].used, 1);
});

test('a call of execute_tool uses it, too', async (t) => {
  const { admin, ask, connect, grants, upstream } = await stage(t, undefined, { config: { admin: { people, tokens }, pseudo_tools: { only: 'all' } } });
  const plain = await connect(kinds.old.client);
  const first = plain.result('tools/call', { name: 'delete_user', arguments: DELETE });
  const { id } = await admin.pending();
  await ask(id, { for: '10m', calls: 2 });
  await first;
  await plain.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: DELETE } });
  await until(() => upstream.calls.length === 2, 'the second call at the server');
  assert.equal((await grants())[0].used, 1);
});

test('a call of the control plane uses it, and its maker gives none', async (t) => {
  const { admin, as, ask, grants } = await stage(t);
  const make = async () => (await as.bob.post('/api/v1/calls', { tool: 'delete_user', arguments: DELETE })).json;
  const first = await make();
  assert.equal((await ask(first.id, { for: '10m', calls: 2 }, 'bob')).json.error.code, 'own_call');
  await ask(first.id, { for: '10m', calls: 2 });
  const second = await make();
  assert.equal((await admin.inState(second.id, 'completed')).grant.use, 1);
  assert.equal((await grants())[0].used, 1);
});

test('a modern client: with tasks, and without', async (t) => {
  const all = await dress(await modernScene(t, options({}, { upstream: { tools: [tool('delete_user')] } })));
  const { admin, ask, gateway, grants } = all;
  for (const capabilities of [undefined, {}]) {
    const client = modernClient(t, gateway.url, { capabilities, headers: { authorization: `Bearer ${capabilities ? 'plain' : 'tasks'}` } });
    const first = client.call('tools/call', { name: 'delete_user', arguments: DELETE });
    const { id } = await admin.pending();
    assert.equal((await ask(id, { for: '10m', calls: 2 })).status, 200);
    await first;
    await client.call('tools/call', { name: 'delete_user', arguments: { ...DELETE, note: 'again' } });
    await until(async () => (await grants())[0].used === 1, 'the use');
  }
});

test('endpoints hear that a grant has decided, and are not asked to', async (t) => {
  const receiver = await startReceiver(t);
  const { call, give } = await stage(t, {}, { config: { admin: { people, tokens }, notify: [{ url: receiver.url, secret_env: 'NOTIFY_SECRET' }] } });
  await give();
  const { id } = await call();
  await until(() => receiver.heard(id).includes('ended:completed'), 'the end');
  assert.deepEqual(receiver.heard(id), ['decided:approved', 'ended:completed']);
});
