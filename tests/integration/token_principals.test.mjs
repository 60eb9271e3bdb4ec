// Verified callers in rules (`principals`) and in Cedar policies: who may do what, who is told what, and what is recorded.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { startGateway, temporaryFolder, workflow } from './lib/gateway.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const AUDIENCE = 'https://gate.example/mcp';
const TOOLS = ['read', 'delete_user', 'pay'].map((name) => tool(name));

/** A gateway with `rules`, and clients by the claims of their tokens. */
async function stage(t, { rules, cedar, upstream: options, config = {}, ...more }) {
  const issuer = await startIssuer(t);
  const upstream = await startUpstream(t, { tools: TOOLS, ...options });
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'policies.cedar');
  if (cedar) fs.writeFileSync(file, cedar);
  const gateway = await startGateway(t, {
    upstream: upstream.url,
    source: { auth: { issuer: issuer.url, audience: AUDIENCE, upstream: 'drop' } },
    rules,
    config: { ...(cedar ? { cedar: { policies: [file] } } : {}), ...config },
    ...more,
  });
  const token = (claims) => issuer.token(AUDIENCE, claims);
  const connect = (claims, more) => connectedRaw(t, gateway.url, { token: token(claims), ...more });
  return { issuer, upstream, gateway, admin: gateway.admin, token, connect, folder };
}

const attempt = async (client, name, more = {}) => {
  const { message } = await client.send('tools/call', { name, arguments: {}, ...more });
  return message.error?.code ?? message.result._meta?.['taskgate/error']?.code ?? 'done';
};
const announced = async (client) => Object.fromEntries((await client.result('tools/list')).tools.map(({ name, execution }) => [name, execution.taskSupport]));

test('a rule with principals is for these callers alone: lists match by any, both lists must fit', async (t) => {
  const rules = [
    { match: '*', action: 'deny', principals: { groups: ['suspended'] } },
    { match: 'read', action: 'forward', principals: { subjects: ['svc-*', 'alice'], groups: ['dba', 'ops-*'] } },
    { match: 'pay', action: 'forward', principals: { subjects: ['alice'] } },
    { match: 'delete_*', action: 'forward', principals: { groups: ['dba'] } },
  ];
  const { upstream, connect } = await stage(t, { rules, defaultAction: 'deny' });
  const rows = [
    // claims, and what becomes of read, pay, delete_user
    [{ sub: 'alice' }, [-32014, 'done', -32014]],
    [{ sub: 'alice', groups: ['dba'] }, ['done', 'done', 'done']],
    [{ sub: 'alice', groups: ['x', 'ops-night'] }, ['done', 'done', -32014]],
    [{ sub: 'alice', groups: 'dba' }, ['done', 'done', 'done']],
    [{ sub: 'alice', groups: ['dba', 'suspended'] }, [-32014, -32014, -32014]],
    [{ sub: 'svc-1', groups: ['dba'] }, ['done', -32014, 'done']],
    [{ sub: 'svc-1', groups: [] }, [-32014, -32014, -32014]],
    [{ sub: 'Alice', groups: ['DBA'] }, [-32014, -32014, -32014]],
    [{ sub: 'bob', groups: ['ops-night'] }, [-32014, -32014, -32014]],
    [{ sub: 'bob', groups: [7, null, 'db'] }, [-32014, -32014, -32014]],
  ];
  for (const [claims, expected] of rows) {
    const client = await connect(claims);
    const before = upstream.calls.length;
    const actual = [];
    for (const name of ['read', 'pay', 'delete_user']) actual.push(await attempt(client, name));
    assert.deepEqual(actual, expected, JSON.stringify(claims));
    assert.equal(upstream.calls.length - before, expected.filter((one) => one === 'done').length, 'what was denied did not reach the server');
  }
});

test('a source without auth beside it: the rule matches nobody there', async (t) => {
  const issuer = await startIssuer(t);
  const upstreams = await Promise.all([1, 2].map(() => startUpstream(t, { sessions: false, tools: TOOLS })));
  const gateway = await startGateway(t, {
    upstream: upstreams[0].url,
    defaultAction: 'deny',
    rules: [{ match: 'read', action: 'forward', principals: { subjects: ['*'] } }],
    config: {
      sources: [
        { id: 'open', kind: 'mcp', url: upstreams[0].url },
        { id: 'closed', kind: 'mcp', url: upstreams[1].url, auth: { issuer: issuer.url, audience: AUDIENCE } },
      ],
    },
  });
  const token = issuer.token(AUDIENCE);
  const at = (id) => connectedRaw(t, `${gateway.origin}/${id}/mcp`, { token });
  assert.equal(await attempt(await at('open'), 'read'), -32014, 'a token that nobody has verified is none');
  assert.equal(await attempt(await at('closed'), 'read'), 'done');
});

test('tools/list announces by the caller, also the same bytes again, and after a token with other groups', async (t) => {
  const rules = [
    { match: 'delete_*', action: 'forward', principals: { groups: ['dba'] } },
    { match: 'delete_*', action: 'approve' },
    { match: 'pay', action: 'deny', principals: { subjects: ['bob'] } },
  ];
  const { connect, token } = await stage(t, { rules, approval: workflow('10m'), upstream: { capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } } });
  const [alice, bob] = [await connect({ groups: ['dba'] }), await connect({ sub: 'bob' })];
  const dba = { read: 'optional', delete_user: 'optional', pay: 'optional' };
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await announced(alice), dba);
    assert.deepEqual(await announced(bob), { read: 'optional', delete_user: 'required', pay: 'forbidden' });
  }
  alice.headers.authorization = `Bearer ${token()}`;
  assert.deepEqual(await announced(alice), { ...dba, delete_user: 'required' });
  alice.headers.authorization = `Bearer ${token({ groups: ['dba'] })}`;
  assert.deepEqual(await announced(alice), dba);
});

test('an approved call is judged by the groups that its owner has when it runs', async (t) => {
  const rules = [
    { match: 'delete_*', action: 'approve', principals: { groups: ['dba'] } },
    { match: 'delete_*', action: 'deny' },
  ];
  const { upstream, admin, connect, token } = await stage(t, { rules, approval: workflow('10m') });
  const client = await connect({ groups: ['dba'] });
  const kept = await client.createTask('delete_user');
  await admin.approve(kept.taskId);
  await admin.inState(kept.taskId, 'completed');
  const lost = await client.createTask('delete_user');
  client.headers.authorization = `Bearer ${token({ groups: ['other'] })}`;
  assert.equal((await client.result('tasks/get', { taskId: lost.taskId })).status, 'input_required', 'the same owner');
  await admin.approve(lost.taskId);
  await admin.inState(lost.taskId, 'failed');
  assert.equal((await client.error('tasks/result', { taskId: lost.taskId })).code, -32011);
  assert.equal(upstream.calls.length, 1);
});

const POLICIES = `
@id("pay") @name("roles")
permit(principal in ThoughtGate::Role::"payments", action == ThoughtGate::Action::"Forward", resource)
when { principal.issuer == resource.arguments.issuer && principal.subject == principal.name && principal.identity == "subject" };
@id("pay") @name("scope")
permit(principal, action == ThoughtGate::Action::"Approve", resource)
when { principal.scopes.contains("pay:ask") && principal.groups.containsAny(["clerks", "interns"]) };
@id("pay") @name("carol")
forbid(principal == ThoughtGate::App::"carol", action, resource);
`;

test('Cedar: the principal is the subject, in the roles that its groups are', async (t) => {
  const rules = [{ match: 'pay', action: 'policy', policy_id: 'pay' }];
  const { issuer, gateway, connect, folder } = await stage(t, { rules, cedar: POLICIES, approval: workflow('10m') });
  const pay = async (claims) => attempt(await connect(claims, { capabilities: { tasks: {} } }), 'pay', { arguments: { issuer: issuer.url }, task: {} });
  const rows = [
    [{ groups: ['payments', 'payments'] }, 'done'],
    [{ groups: ['payments', 'authorization', 'admin'] }, 'done'],
    [{ groups: ['Payments'] }, -32003],
    [{ groups: ['clerks'], scope: 'other pay:ask' }, 'done'],
    [{ groups: ['clerks'], scope: 'pay:asked' }, -32003],
    [{ scope: 'pay:ask' }, -32003],
    [{ sub: 'carol', groups: ['payments'] }, -32003],
  ];
  for (const [claims, expected] of rows) assert.equal(await pay(claims), expected, JSON.stringify(claims));
  // The records say enough for simulate to judge the calls again, and no more than the claims that count.
  const lines = () => gateway.logs.filter((line) => line.msg === 'Call decided' || line.msg === 'Task created');
  await until(() => lines().length >= rows.length, 'the lines of the calls');
  const clerk = lines().map((line) => line.decision ?? line).find((line) => line.groups?.[0] === 'clerks' && line.outcome === 'approve');
  assert.deepEqual([clerk.issuer, clerk.subject, clerk.groups, clerk.scopes], [issuer.url, 'alice', ['clerks'], ['other', 'pay:ask']]);
  const log = path.join(folder, 'log.jsonl');
  fs.writeFileSync(log, gateway.child.stderr);
  gateway.writeConfig({ rules: [{ match: 'pay', action: 'deny', principals: { groups: ['clerks'] } }, ...rules] });
  const { stdout } = await gateway.cli(['policy', 'simulate', '--config', gateway.configPath, '--log', log, '--json']);
  const changed = JSON.parse(stdout).changes.filter((one) => one.would_be?.outcome === 'deny').map((one) => [one.was.outcome, one.calls]);
  assert.deepEqual(changed.sort(), [['approve', 1], ['reject', 1]]);
});

test('explain, policy test and simulate know verified callers', async (t) => {
  const { gateway } = await stage(t, { rules: [{ match: 'read', action: 'forward', principals: { subjects: ['svc-*'], groups: ['finance'] } }], defaultAction: 'deny' });
  const explain = (...args) => gateway.cli(['explain', '--config', gateway.configPath, 'read', ...args]);
  const decision = async (principal) => JSON.parse((await explain('--json', '--principal', JSON.stringify(principal))).stdout).decision;
  assert.equal(await decision({ subject: 'svc-1', groups: ['x', 'finance'] }), 'forward');
  assert.equal(await decision({ subject: 'svc-1', groups: ['x'] }), 'deny');
  assert.equal(await decision({ subject: 'eve', groups: ['finance'] }), 'deny');
  assert.equal(await decision({ name: 'auth:12' }), 'deny');
  assert.match((await explain()).stdout, /Decision +depends on the caller: give --principal/);
  const refusals = [
    [{ groups: ['finance'] }, /--principal: subject is missing/],
    [{ subject: 'a', groups: 'finance' }, /--principal: groups must be a list of texts/],
    [{ subject: 'a', groups: [1] }, /--principal: groups must be a list of texts/],
    [{ subject: 1 }, /--principal: subject must be text/],
  ];
  for (const [principal, message] of refusals) {
    const { code, stderr } = await explain('--principal', JSON.stringify(principal));
    assert.equal(code, 2, JSON.stringify(principal));
    assert.match(stderr, message);
  }
  // Calls that were summed up say nothing of their callers.
  const log = path.join(gateway.folder, 'log.jsonl');
  fs.writeFileSync(log, `${JSON.stringify({ time: '2026-01-05T10:00:00.000Z', level: 'info', msg: 'Calls decided', tool: 'read', source: 'up', outcome: 'deny', rule: '', rule_index: -1, workflow: '', calls: 3 })}\n`);
  const { stdout } = await gateway.cli(['policy', 'simulate', '--config', gateway.configPath, '--log', log, '--json']);
  const told = JSON.parse(stdout);
  assert.deepEqual([told.calls, told.undecidable], [3, 3]);
});
