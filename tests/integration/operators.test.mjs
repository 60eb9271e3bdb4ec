// Operators by name: the holders of tokens, their rights, and the records of them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
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

/* ---- one person, whatever a reload calls them ---- */

const calledBy = async (who) => {
  const answer = await who.post('/api/v1/calls', { tool: 'delete_user', arguments: {} });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
};

async function isOwn(who, id) {
  const refused = await who.decide('approve', id);
  assert.deepEqual([refused.status, refused.json.error?.code], [403, 'own_call'], refused.text);
}

test('a call is its maker’s after a reload that names or renames the person, in SQLite after a restart, too', async (t) => {
  const { admin, gateway } = await stage(t);
  const cli = admin.as(ENV.ALICE_CI);
  const first = await calledBy(cli);
  const named = (name) => ({ people: [{ name }], tokens: TOKENS.filter(({ person }) => person === 'alice').map((token) => ({ ...token, person: name })) });
  await reload(gateway, people(named('alicia')));
  await isOwn(cli, first);
  await isOwn(admin.as(ENV.ALICE), first); // another token of the person that it is now
  const second = await calledBy(cli);
  // The token is nobody's by name, and then somebody's again.
  await reload(gateway, people({ tokens: TOKENS.filter(({ person }) => person === 'alice').map(({ person, ...token }) => token) }));
  for (const id of [first, second]) await isOwn(cli, id);
  const third = await calledBy(cli);
  await reload(gateway, people(named('ally')));
  await gateway.restart();
  for (const id of [first, second, third]) {
    await isOwn(cli, id);
    await isOwn(admin.as(ENV.ALICE), id);
  }
  assert.equal((await admin.decide('approve', first)).status, 200, 'somebody else may');
});

test('a token of the file keeps its rights when it is THOUGHTGATE_ADMIN_TOKEN as well', async (t) => {
  const { admin, gateway, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const env = { ...ENV, EYE: admin.token };
  await reload(gateway, people({ tokens: [{ name: 'eye', token_sha256: createHash('sha256').update(admin.token).digest('hex'), roles: ['viewer'] }] }));
  assert.deepEqual((await admin.get('/api/v1/whoami')).json, { name: 'eye', person: 'eye', groups: [], roles: ['viewer'], via: 'token' });
  assert.equal((await admin.decide('approve', taskId)).status, 403);
  const said = await run(BINARY, ['check', '--config', gateway.configPath], { env: { ...process.env, ...env, THOUGHTGATE_ADMIN_TOKEN: admin.token } });
  assert.match(said.stdout + said.stderr, /admin\.tokens\[0\]: this is the token of THOUGHTGATE_ADMIN_TOKEN, which has the rights that stand here/);
});

/* ---- routes and roles ---- */

const read = (name) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
const ROLES = ['viewer', 'approver', 'caller', 'auditor'];
/** Route => what each role may there. */
const DOCUMENTED = [...read('docs/identity.md').matchAll(/^\| `([A-Z]+ \/api\/[^`]+)` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$/gm)].map(([, route, ...rights]) => [route, rights]);
const RANK = ['no', 'own', 'all'];

test('the document has the routes of the table, and the rights of each role', () => {
  const rows = [...read('src/admin/routes_table.h').matchAll(/^ROUTE\("(\w+)",\s+"([^"]+)",\s+(\w+),\s+(\w+),\s+(\w+),\s+(\w+),/gm)];
  assert.ok(rows.length > 10);
  assert.deepEqual(DOCUMENTED, rows.map(([, method, path, ...rights]) => [`${method} ${path}`, rights.map((right) => right.toLowerCase())]));
});

test('every route does for every set of roles what the document says, with own calls and with those of others', async (t) => {
  const sets = Array.from({ length: 15 }, (_, i) => ROLES.filter((_, bit) => (i + 1) & (1 << bit)));
  const tokens = [...sets, ['caller']].map((roles, i) => ({ name: `t${i}`, token_env: `T${i}`, roles }));
  const env = Object.fromEntries(tokens.map(({ name }) => [name.toUpperCase(), `token-of-nobody-else-${name}`]));
  const { admin, gateway } = await stage(t, { env, ...people({ tokens }) });
  const as = (i) => admin.as(env[`T${i}`]);
  const nothing = 'tg_00000000-0000-4000-8000-000000000000';
  /** With the right, on an unknown task, block or grant. */
  const UNKNOWN = { 'POST /api/v1/blocks': 400, 'POST /api/v1/calls': 400, 'POST /api/v1/decisions': 400, 'POST /api/v1/definitions/accept': 400 };
  const ask = async (who, route, id) => {
    const [method, path] = route.replace('{id}', id).split(' ');
    const headers = { ...who.authorization(), ...(method === 'POST' && { 'content-type': 'application/json' }) };
    const answer = await fetch(gateway.adminUrl + path, { method, headers, body: method === 'POST' ? (route in UNKNOWN ? '{"what":1}' : '{}') : undefined });
    await (route.endsWith('/events') ? answer.body.cancel() : answer.text());
    return answer.status;
  };
  const wrong = [];
  let asked = 0;
  const expect = async (who, roles, route, id, what, statuses) => {
    const status = await ask(who, route, id);
    asked += 1;
    if (!statuses.includes(status)) wrong.push(`${route} of ${what} by ${roles.join('+') || 'nobody'}: ${status}, not ${statuses}`);
  };
  for (const [route, rights] of DOCUMENTED) {
    await expect(admin.as(undefined), [], route, nothing, 'nothing', [401]);
    const hasTask = route.includes('/tasks/{id}');
    for (const [i, roles] of sets.entries()) {
      const right = Math.max(...roles.map((role) => RANK.indexOf(rights[ROLES.indexOf(role)])));
      if (!hasTask) {
        await expect(as(i), roles, route, nothing, 'all', right === 0 ? [403] : route.includes('{id}') ? [404] : [UNKNOWN[route] ?? 200]);
        continue;
      }
      const isDecision = /(approve|reject|withdraw)$/.test(route);
      const good = route.endsWith('result') ? [202] : isDecision ? [200, 202, 409, 422] : [200];
      const others = [[403], [route.endsWith('cancel') ? 403 : 404], good][right];
      await expect(as(i), roles, route, await calledBy(as(15)), 'another', others);
      if (roles.includes('caller')) await expect(as(i), roles, route, await calledBy(as(i)), 'one’s own', right === 0 || /(approve|withdraw)$/.test(route) ? [403] : good);
    }
  }
  assert.ok(asked > 250, `${asked}`);
  assert.deepEqual(wrong, [], `of ${asked}`);
});
