// Edit and approve: what an approver may change, what then runs, and who is told.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { modernClient, modernScene } from './lib/modern.mjs';
import { kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const CHANGED = 'taskgate/arguments-changed';
const NAMES = ['alice', 'bob'];
const people = NAMES.map((name) => ({ name, groups: ['dba'] }));
const tokens = NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver', 'viewer', 'auditor', 'caller'] }));
const env = Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`]));
const inputSchema = {
  type: 'object',
  properties: { count: { type: 'integer', minimum: 1, maximum: 100 }, name: { type: 'string' }, to: { $ref: '#/$defs/place' }, odd: { pattern: '^a' } },
  required: ['name'],
  additionalProperties: false,
  $defs: { place: { type: 'object', properties: { zone: { enum: ['a', 'b'] } } } },
};
const ARGS = { name: 'staging', count: 90, to: { zone: 'a' } };

const options = (keys = {}, more = {}) => ({
  rules: [['delete_user', 'approve']],
  approval: workflow('10m', { allow_edit: ['count', 'to.zone', 'odd'], ...keys }),
  upstream: { tools: [tool('delete_user', { inputSchema })] },
  env,
  config: { admin: { people, tokens } },
  ...more,
});

function dress(all) {
  const as = Object.fromEntries(NAMES.map((name) => [name, all.admin.as(`token-of-${name}`)]));
  const edit = (id, args, more = {}, who = 'alice') => as[who].post(`/api/v1/tasks/${id}/approve`, { arguments: args, ...more });
  const executed = () => all.upstream.calls.map(({ rpc }) => rpc.params.arguments);
  return { ...all, as, edit, executed };
}

async function stage(t, keys, more) {
  const all = dress(await scene(t, options(keys, more)));
  const client = more?.withoutClient ? null : await all.connect();
  const call = async (args = ARGS, from = client) => (await from.createTask('delete_user', args)).taskId;
  return { ...all, client, call };
}

test('the edited arguments run; both are kept, and the client is told', async (t) => {
  const { admin, call, client, edit, executed, as } = await stage(t);
  const id = await call();
  const before = await admin.task(id);
  assert.deepEqual([before.originalArguments, before.originalArgumentsDigest, before.allowEdit], [null, null, ['count', 'to.zone', 'odd']]);
  const events = await admin.events({}, '?rows=true');
  const answer = await edit(id, { to: { zone: 'b' }, name: 'staging', count: 5 }, { reason: 'fewer' });
  assert.equal(answer.status, 200, answer.text);
  const row = JSON.parse((await events.next(({ event }) => event === 'row')).data);
  assert.deepEqual([row.state, row.arguments, row.requestDigest], ['approved', answer.json.arguments, answer.json.requestDigest]);
  const task = await admin.inState(id, 'completed');
  assert.deepEqual([task.arguments, task.originalArguments, task.originalArgumentsDigest, task.decidedBy], [{ to: { zone: 'b' }, name: 'staging', count: 5 }, ARGS, before.argumentsDigest, 'alice']);
  assert.notEqual(task.argumentsDigest, before.argumentsDigest);
  assert.notEqual(task.requestDigest, before.requestDigest);
  assert.deepEqual(executed(), [{ to: { zone: 'b' }, name: 'staging', count: 5 }]);
  const result = await client.result('tasks/result', { taskId: id });
  assert.equal(result._meta[CHANGED], true);
  assert.match((await client.result('tasks/get', { taskId: id })).statusMessage, /^An approver has changed the arguments of this call\./);
  const { entries } = (await as.alice.get('/api/v1/audit?limit=1000')).json;
  const rows = entries.filter((row) => row.taskId === id);
  const [created, changed, approved] = ['create', 'arguments_changed', 'approve'].map((event) => rows.find((row) => row.event === event));
  assert.deepEqual([created.argumentsDigest, changed.argumentsDigest, approved.argumentsDigest], [before.argumentsDigest, task.argumentsDigest, task.argumentsDigest]);
  assert.deepEqual([changed.person, changed.reason.includes(before.argumentsDigest)], ['alice', true]);
});

test('an approval without arguments changes nothing and says nothing', async (t) => {
  const { admin, call, client, edit, executed } = await stage(t);
  for (const args of [undefined, { count: 90, to: { zone: 'a' }, name: 'staging' }]) {
    const id = await call();
    assert.equal((await edit(id, args)).status, 200);
    assert.equal((await admin.inState(id, 'completed')).originalArguments, null);
    assert.equal((await client.result('tasks/result', { taskId: id }))._meta[CHANGED], undefined);
  }
  assert.deepEqual(executed(), [ARGS, ARGS]);
});

for (const [name, keys, body, status, code, message] of [
  ['another path', {}, { arguments: { ...ARGS, name: 'production' } }, 422, 'edit_not_allowed', /allow_edit/],
  ['a new argument', {}, { arguments: { ...ARGS, force: true } }, 422, 'edit_not_allowed', /allow_edit/],
  ['a missing argument', {}, { arguments: { count: 5, to: { zone: 'a' } } }, 422, 'edit_not_allowed', /allow_edit/],
  ['a workflow without allow_edit', { allow_edit: undefined }, { arguments: { ...ARGS, count: 5 } }, 422, 'edit_not_allowed', /allow_edit/],
  ['beyond the schema', {}, { arguments: { ...ARGS, count: 101 } }, 422, 'edit_not_allowed', /count: is too large/],
  ['of another type', {}, { arguments: { ...ARGS, count: '5' } }, 422, 'edit_not_allowed', /count: is of another type/],
  ['beyond a referenced schema', {}, { arguments: { ...ARGS, to: { zone: 'c' } } }, 422, 'edit_not_allowed', /to: zone: is none of the values/],
  ['a schema that cannot be checked', {}, { arguments: { ...ARGS, odd: 'abc' } }, 422, 'edit_not_allowed', /keyword pattern cannot be checked/],
  ['a quorum of two', { quorum: 2 }, { arguments: { ...ARGS, count: 5 } }, 422, 'edit_not_allowed', /one person alone/],
  ['with a grant', { grants: { max: '1h' } }, { arguments: { ...ARGS, count: 5 }, grant: { for: '1m', calls: 1 } }, 422, 'edit_not_allowed', /without a grant/],
  ['in an emergency', { emergency: { groups: ['dba'] } }, { arguments: { ...ARGS, count: 5 }, emergency: true, reason: 'fire' }, 422, 'edit_not_allowed', /without an emergency/],
  ['no object', {}, { arguments: [1] }, 400, 'invalid_request', /whole object/],
  ['without the reason that is needed', { reasons: { approve: 'required' } }, { arguments: { name: 'x' } }, 422, 'reason_required', /reason/],
]) {
  test(`refused, and the call waits on as it was: ${name}`, async (t) => {
    const { admin, as, call, executed } = await stage(t, keys);
    const id = await call();
    const answer = await as.alice.post(`/api/v1/tasks/${id}/approve`, body);
    assert.deepEqual([answer.status, answer.json.error.code], [status, code], answer.text);
    assert.match(answer.json.error.message, message);
    const task = await admin.task(id);
    assert.deepEqual([task.state, task.arguments, task.originalArguments], ['pending', ARGS, null]);
    assert.deepEqual(executed(), []);
  });
}

test('only a vote that fills the place by itself changes arguments, and no earlier vote stands for them', async (t) => {
  const persons = (groupOfCarol) => [['alice', 'dba'], ['bob', 'ops'], ['carol', groupOfCarol]].map(([name, group]) => ({ name, groups: [group] }));
  const admin = (groupOfCarol) => ({ people: persons(groupOfCarol), tokens: persons(groupOfCarol).map(({ name }) => ({ ...tokens[0], name: `${name}-cli`, person: name, token_env: name.toUpperCase() })) });
  const all = await stage(t, { quorum: { dba: 1 }, approvers: { groups: ['dba', 'ops'] } }, { config: { admin: admin('ops') }, env: { ...env, CAROL: 'token-of-carol' } });
  const [first, second] = [await all.call(), await all.call()];
  const refused = (answer) => assert.deepEqual([answer.status, answer.json.error?.code], [422, 'edit_not_allowed'], answer.text);
  refused(await all.edit(first, { ...ARGS, count: 5 }, {}, 'bob'));
  for (const id of [first, second]) assert.equal((await all.admin.as('token-of-carol').post(`/api/v1/tasks/${id}/approve`, {})).status, 202);
  all.gateway.writeConfig({ config: { admin: admin('dba') } });
  all.gateway.hangUp();
  await all.gateway.logged(/^Configuration reloaded$/);
  refused(await all.edit(first, { ...ARGS, count: 5 }, {}, 'bob'));
  assert.deepEqual([(await all.admin.task(first)).state, all.executed()], ['pending', []]);
  assert.equal((await all.edit(second, { ...ARGS, count: 5 })).status, 200);
  const { votes } = await all.admin.inState(second, 'completed');
  assert.deepEqual([votes.map(({ person }) => person), all.executed()], [['alice'], [{ ...ARGS, count: 5 }]]);
});

test('a rejection takes no arguments', async (t) => {
  const { as, call } = await stage(t);
  assert.equal((await as.alice.post(`/api/v1/tasks/${await call()}/reject`, { arguments: ARGS })).status, 400);
});

test('the caller and a second approver are refused as ever', async (t) => {
  const { as, call, edit } = await stage(t);
  const own = (await as.bob.post('/api/v1/calls', { tool: 'delete_user', arguments: ARGS })).json.id;
  assert.equal((await edit(own, { ...ARGS, count: 0 }, {}, 'bob')).json.error.code, 'own_call');
  const id = await call();
  const both = await Promise.all([edit(id, { ...ARGS, count: 5 }, {}, 'alice'), edit(id, { ...ARGS, count: 6 }, {}, 'bob')]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
  assert.equal((await as.alice.post('/api/v1/tasks/tg_no/approve', { arguments: ARGS })).status, 404);
});

test('the rules are asked again: the same workflow and forward pass, another workflow and a refusal do not', async (t) => {
  const file = path.join(temporaryFolder(t), 'p.cedar');
  const asks = (name, when, workflow) => `@thoughtgate_approval("${workflow}") permit(principal, action == ThoughtGate::Action::"${name}", resource) when { ${when} };\n`;
  fs.writeFileSync(file, asks('Approve', 'resource.arguments.count > 50', 'default') + asks('Approve', 'resource.arguments.count > 40 && resource.arguments.count <= 50', 'other') + 'permit(principal, action == ThoughtGate::Action::"Forward", resource) when { resource.arguments.count < 20 };\n');
  const { admin, call, edit } = await stage(t, {}, {
    rules: [{ match: 'delete_user', action: 'policy', policy_id: 'p' }],
    approval: { ...workflow('10m', { allow_edit: ['count'] }), other: { timeout: '10m' } },
    config: { admin: { people, tokens }, cedar: { policies: [file] } },
  });
  const id = await call();
  for (const count of [45, 30]) {
    const answer = await edit(id, { ...ARGS, count });
    assert.deepEqual([answer.status, answer.json.error.code], [422, 'edit_changes_route'], answer.text);
    assert.equal((await admin.task(id)).state, 'pending');
  }
  assert.equal((await edit(id, { ...ARGS, count: 60 })).status, 200);
  const second = await call();
  assert.equal((await edit(second, { ...ARGS, count: 10 })).status, 200);
  for (const one of [id, second]) await admin.inState(one, 'completed');
});

/** Policies that ask for the groups of the caller, whose token the gateway verifies. */
async function groupStage(t, more = {}) {
  const issuer = await startIssuer(t);
  const file = path.join(temporaryFolder(t), 'p.cedar');
  const dba = 'principal in ThoughtGate::Role::"dba"';
  fs.writeFileSync(file, `@thoughtgate_approval("default") permit(${dba}, action == ThoughtGate::Action::"Approve", resource) when { resource.arguments.count > 50 };
permit(${dba}, action == ThoughtGate::Action::"Forward", resource) when { resource.arguments.count < 20 };
@thoughtgate_approval("default") permit(principal, action == ThoughtGate::Action::"Approve", resource) when { resource.arguments.count > 80 };\n`);
  const all = await stage(t, {}, {
    rules: [{ match: 'delete_user', action: 'policy', policy_id: 'p' }],
    source: { auth: { issuer: issuer.url, audience: 'https://gate.example/mcp' } },
    config: { admin: { people, tokens }, cedar: { policies: [file] }, ...more },
    withoutClient: true,
  });
  const asCaller = (claims) => all.connect({ token: issuer.token('https://gate.example/mcp', claims) });
  const callAs = async (client) => (await client.createTask('delete_user', ARGS)).taskId;
  const said = async (id, count) => {
    const { status, json, text } = await all.edit(id, { ...ARGS, count });
    return [status, json.error?.code ?? json.arguments?.count, /not known here/.test(text)];
  };
  return { ...all, asCaller, callAs, said };
}

test('rules that ask for the groups of the caller are asked with those of the token that would run; without it no edit', async (t) => {
  const { admin, asCaller, callAs, gateway, said } = await groupStage(t);
  const [member, other] = [await asCaller({ sub: 'ann', groups: ['dba'] }), await asCaller({ sub: 'ben', groups: ['ops'] })];
  const [first, second, third] = [await callAs(member), await callAs(member), await callAs(other)];
  assert.deepEqual(await said(first, 30), [422, 'edit_changes_route', false], 'another way for members, too');
  assert.deepEqual(await said(first, 60), [200, 60, false]);
  assert.deepEqual(await said(second, 10), [200, 10, false], 'forward');
  assert.deepEqual(await said(third, 60), [422, 'edit_changes_route', false], 'who is no member may not');
  assert.deepEqual(await said(third, 85), [200, 85, false]);
  for (const id of [first, second, third]) await admin.inState(id, 'completed');
  const late = await callAs(member);
  await gateway.restart();
  // The gateway asks the server for its tools again; until then it does not know the schema.
  const answer = await until(async () => {
    const now = await said(late, 60);
    return now[1] !== 'edit_not_allowed' && now;
  }, 'the schema to be known');
  assert.deepEqual(answer, [422, 'edit_changes_route', true], 'nobody has shown a token since');
  assert.equal((await member.result('tasks/get', { taskId: late })).status, 'input_required');
  assert.deepEqual(await said(late, 60), [200, 60, false]);
});

test('the worker of four that has the token of the caller judges the edit', async (t) => {
  const { admin, asCaller, callAs, said } = await groupStage(t, { workers: 4 });
  for (let n = 0; n < 6; n++) {
    const [ours, theirs] = [await callAs(await asCaller({ sub: `ann${n}`, groups: ['dba'] })), await callAs(await asCaller({ sub: `ben${n}`, groups: ['ops'] }))];
    assert.deepEqual(await said(theirs, 60), [422, 'edit_changes_route', false], 'who is no member may not');
    assert.deepEqual(await said(ours, 60), [200, 60, false]);
    await admin.inState(ours, 'completed');
  }
});

test('after a kill -9 between the approval and the run the edited bytes run', async (t) => {
  const { gateway, connect } = await stage(t, {}, { rules: [{ match: 'delete_user', action: 'approve', execution: 'on_result' }] });
  const bearer = { headers: { authorization: 'Bearer one' } };
  const { taskId } = await (await connect(bearer)).createTask('delete_user', ARGS);
  assert.equal((await gateway.admin.as('token-of-alice').post(`/api/v1/tasks/${taskId}/approve`, { arguments: { ...ARGS, count: 3 } })).status, 200);
  await gateway.kill9();
  await gateway.launch();
  const again = await connect(bearer);
  const result = await again.result('tasks/result', { taskId });
  assert.equal(result._meta[CHANGED], true);
  assert.equal((await gateway.admin.task(taskId)).arguments.count, 3);
});

test('the other bytes of the request are the client’s own', async (t) => {
  const { admin, client, edit, upstream } = await stage(t);
  const { task } = await client.result('tools/call', { _meta: { n: 1.50 }, arguments: ARGS, name: 'delete_user', task: { ttl: 60_000 } });
  await edit(task.taskId, { ...ARGS, count: 4 });
  await admin.inState(task.taskId, 'completed');
  const { _meta, arguments: args, name } = upstream.calls[0].rpc.params;
  assert.deepEqual([_meta.n, args, name], [1.5, { ...ARGS, count: 4 }, 'delete_user']);
});

test('hidden values stay hidden, before and after', async (t) => {
  const { admin, call, edit } = await stage(t, { redact_fields: ['count'] });
  const id = await call();
  await edit(id, { ...ARGS, count: 4 });
  const task = await admin.inState(id, 'completed');
  assert.deepEqual([task.arguments.count, task.originalArguments.count], ['[REDACTED]', '[REDACTED]']);
});

test('a plain call of a client without tasks is told in the result', async (t) => {
  const { admin, connect, edit, executed } = await stage(t);
  const plain = await connect(kinds.old.client);
  const answer = plain.result('tools/call', { name: 'delete_user', arguments: ARGS });
  await edit((await admin.pending()).id, { ...ARGS, count: 4 });
  assert.equal((await answer)._meta[CHANGED], true);
  assert.equal(executed()[0].count, 4);
});

test('a modern client is told, with tasks and without', async (t) => {
  const { admin, edit, gateway, upstream } = dress(await modernScene(t, options({}, { upstream: { tools: [tool('delete_user', { inputSchema })] } })));
  for (const capabilities of [undefined, {}]) {
    const client = modernClient(t, gateway.url, { capabilities });
    const first = client.call('tools/call', { name: 'delete_user', arguments: ARGS });
    const { id } = await admin.pending();
    assert.equal((await edit(id, { ...ARGS, count: 4 })).status, 200);
    await admin.inState(id, 'completed');
    const answer = await first;
    const result = answer.result?.resultType === 'task' ? (await client.call('tasks/get', { taskId: id })).result.result : answer.result;
    assert.equal(result._meta[CHANGED], true, JSON.stringify(answer));
  }
  assert.ok(upstream.calls.every(({ rpc }) => rpc.params.arguments.count === 4));
});

test('the command line takes the arguments from a file', async (t) => {
  const { admin, call, gateway } = await stage(t);
  const cli = (...args) => gateway.cli(args, { env: { TASKGATE_TOKEN: 'token-of-alice' } });
  const file = path.join(gateway.folder, 'arguments.json');
  const id = await call();
  const missing = await cli('tasks', 'approve', id, '--arguments', file);
  assert.deepEqual([missing.code, /arguments.json: No such file/.test(missing.stderr)], [2, true]);
  fs.writeFileSync(file, '{"name": ');
  assert.equal((await cli('tasks', 'approve', id, '--arguments', file)).code, 2);
  fs.writeFileSync(file, JSON.stringify({ ...ARGS, count: 2 }, null, 2));
  const done = await cli('tasks', 'approve', id, '--arguments', file);
  assert.equal(done.code, 0, done.stderr);
  const task = await until(async () => (await admin.task(id)).state === 'completed' && admin.task(id), 'the end');
  assert.equal(task.arguments.count, 2);
  const shown = await cli('tasks', 'show', id);
  assert.match(shown.stdout, /Original[\s\S]*"count": ?90/);
});
