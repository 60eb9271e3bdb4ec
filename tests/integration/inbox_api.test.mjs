// The inbox: calls that wait as rows, those that are alike in one; filters, orders and pages; rows without long arguments.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { onDatabase } from './lib/replicas.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const env = { ALICE: 'token-of-alice', BOB: 'token-of-bob' };
const tokens = [{ name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver', 'caller'] }, { name: 'bob-cli', person: 'bob', token_env: 'BOB', roles: ['viewer'] }];
const people = [{ name: 'alice' }, { name: 'bob' }];
const RULES = [
  { match: 'drop_*', action: 'approve', approval: 'slow', show: { summary: 'Drops {name}', risk: 'high' } },
  { match: 'pay_*', action: 'approve', approval: 'money' },
  { match: '*', action: 'approve', approval: 'default' },
];
const approval = { ...workflow('10m'), slow: { timeout: '40s' }, money: { timeout: '30s', redact_fields: ['card'] } };
const tools = [tool('drop_table'), tool('pay_bill'), tool('read', { annotations: { readOnlyHint: true } }), tool('run')];

async function stage(t, more = {}) {
  const all = await scene(t, { rules: RULES, approval, upstream: { tools }, env, config: { admin: { people, tokens } }, ...more });
  const [alice, bob] = [all.admin.as(env.ALICE), all.admin.as(env.BOB)];
  const [one, two] = [await all.connect({ token: 'A' }), await all.connect({ token: 'B' })];
  const inbox = async (query = {}, as = bob) => {
    const answer = await as.get(`/api/v1/inbox?${new URLSearchParams(query)}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const call = async (client, name, args = {}) => (await client.createTask(name, args)).taskId;
  return { ...all, alice, bob, one, two, inbox, call };
}

const MEMBERS = ['stack', 'count', 'id', 'source', 'tool', 'principal', 'principalBy', 'workflow', 'risk', 'riskBy', 'summary', 'arguments', 'argumentsBytes', 'requestDigest', 'reasonOfAgent', 'typed', 'marks', 'createdAt', 'decideBy', 'votes', 'missing', 'you'];

for (const database of ['SQLite', 'PostgreSQL']) {
  test(`${database}: a row is a stack of alike calls, that of the call that runs out first, and says what the Task says`, { skip: database === 'PostgreSQL' && postgresMissing }, async (t) => {
    const postgres = database === 'PostgreSQL' ? await startPostgres(t) : undefined;
    const store = postgres ? onDatabase(postgres.url(), { id: 'p', rules: RULES, approval, env, config: { admin: { people, tokens } } }) : {};
    const { gateway, admin, alice, one, two, inbox, call } = await stage(t, store);
    const ids = { run: [], drop: [] };
    for (let i = 0; i < 3; i++) ids.run.push(await call(one, 'run', { i, note: 'Needle' }));
    const other = await call(two, 'run', { i: 9 });
    const drop = await call(one, 'drop_table', { name: 'users' });
    const paid = await call(one, 'pay_bill', { card: '4111', sum: 5 });
    const long = await call(one, 'read', { text: 'x'.repeat(2000) });
    const all = await inbox();
    assert.deepEqual([all.waiting, all.matching, all.nextCursor], [7, 7, null]);
    assert.deepEqual(all.rows.map(({ id, count }) => [id, count]), [[paid, 1], [drop, 1], [ids.run[0], 3], [other, 1], [long, 1]], 'nearest deadline first');
    for (const row of all.rows) {
      const task = await alice.as(env.BOB).task(row.id);
      assert.deepEqual(Object.keys(row).toSorted(), MEMBERS.toSorted());
      for (const member of MEMBERS.filter((name) => !['stack', 'count', 'arguments', 'argumentsBytes'].includes(name))) assert.deepEqual(row[member], task[member], `${row.tool}: ${member}`);
      assert.equal(row.argumentsBytes, JSON.stringify(task.arguments).length);
      assert.deepEqual(row.arguments, row.argumentsBytes > 512 ? null : task.arguments);
    }
    assert.deepEqual(all.rows.map(({ risk }) => risk), ['medium', 'high', 'medium', 'medium', 'low']);
    assert.equal(all.rows[1].summary, 'Drops "users"');
    assert.equal(all.rows[0].arguments.card, '[REDACTED]');

    const of = async (query, as) => (await inbox(query, as)).rows.map(({ id }) => id);
    const open = await inbox({ stack: all.rows[2].stack });
    assert.deepEqual([open.rows.map(({ id, count }) => [id, count]), open.matching, open.waiting], [ids.run.map((id) => [id, 1]), 3, 7]);
    assert.deepEqual(await of({ sort: 'age' }), [ids.run[0], other, drop, paid, long]);
    assert.deepEqual(await of({ sort: 'risk' }), [drop, paid, ids.run[0], other, long]);
    assert.deepEqual(await of({ tool: 'drop_table' }), [drop]);
    assert.deepEqual(await of({ workflow: 'money' }), [paid]);
    assert.deepEqual(await of({ source: 'none' }), []);
    assert.deepEqual(await of({ risk: 'low' }), [long]);
    assert.deepEqual(await of({ principal: all.rows[3].principal }), [other]);
    const some = await inbox({ tool: 'run', workflow: 'default', source: all.rows[0].source });
    assert.deepEqual([some.waiting, some.matching], [7, 4], 'all are counted');
    assert.deepEqual((await inbox({ stack: all.rows[2].stack, tool: 'run' })).matching, 3);
    const words = await inbox({ q: ' run  NEEDLE ' });
    assert.deepEqual([words.rows.map(({ id }) => id), words.matching, (await inbox({ q: 'needle drops' })).matching], [[ids.run[0]], 3, 0], 'each word');
    assert.deepEqual((await alice.list({ q: 'needle run' })).tasks.map(({ id }) => id), ids.run.toReversed());
    assert.deepEqual([await of({ q: 'needle' }), await of({ q: 'DROPS' }), await of({ q: '4111' })], [[ids.run[0]], [drop], []]);
    assert.deepEqual([(await of({ mine: 'true' }, alice)).length, (await of({ mine: 'true' })).length], [5, 0]);
    for (const sort of ['expiry', 'age', 'risk']) {
      const paged = [];
      let page = { nextCursor: undefined };
      do {
        page = await inbox({ sort, limit: 2, ...(page.nextCursor ? { cursor: page.nextCursor } : {}) });
        paged.push(...page.rows.map(({ id }) => id));
      } while (page.nextCursor);
      assert.deepEqual(paged, await of({ sort }), sort);
    }
    const { nextCursor } = await inbox({ limit: 1 });
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'sort=created', 'risk=huge', 'mine=yes', 'state=pending', 'q=%zz', 'cursor=x', `cursor=${nextCursor}x0.`, `cursor=${nextCursor}&sort=age`]) assert.equal((await alice.get(`/api/v1/inbox?${query}`)).status, 400, query);

    /* Calls that an earlier version has stored have no brief: the stack is that of the whole task. */
    if (postgres) postgres.query("UPDATE taskgate_task SET brief = ''");
    else execFileSync('sqlite3', [gateway.storePath, "UPDATE task SET brief = ''"]);
    assert.deepEqual(await of({ stack: all.rows[1].stack }), [drop]);
    assert.deepEqual([await of({ risk: 'high' }), await of({ sort: 'risk' })], [[drop], [drop, paid, ids.run[0], other, long]]);

    const events = { rows: await admin.events({}, '?rows=true'), tasks: await admin.events() };
    assert.equal((await admin.get('/api/v1/events?rows=x')).status, 400);
    await admin.reject(ids.run[0], 'not now');
    const [row, task] = [await events.rows.next(({ event }) => event === 'row'), await events.tasks.next(({ event }) => event === 'task')];
    assert.equal(row.id, task.id);
    const [said, full] = [JSON.parse(row.data), JSON.parse(task.data)];
    assert.deepEqual(Object.keys(said).toSorted(), [...MEMBERS, 'state', 'decidedBy', 'decidedAt', 'reason', 'statusMessage'].toSorted());
    assert.deepEqual([said.stack, said.count, said.state, said.reason, said.arguments], [all.rows[2].stack, 1, 'rejected', 'not now', { i: 0, note: 'Needle' }]);
    for (const member of ['id', 'decidedBy', 'decidedAt', 'statusMessage', 'requestDigest', 'you']) assert.deepEqual(said[member], full[member], member);
    const [after] = (await inbox({ tool: 'run' })).rows;
    assert.deepEqual([after.id, after.count, after.stack], [ids.run[1], 2, all.rows[2].stack]);
    /* A field that a reload hides is hidden in rows of before, too. */
    gateway.writeConfig({ approval: { ...approval, default: { timeout: '30s', redact_fields: ['note'] } } });
    gateway.hangUp();
    await gateway.logged(({ msg }) => msg === 'Configuration reloaded');
    const [hidden] = (await inbox({ tool: 'run' })).rows;
    assert.deepEqual([hidden.arguments.note, await of({ q: 'needle' })], ['[REDACTED]', []]);
    assert.equal(hidden.requestDigest, (await alice.task(hidden.id)).requestDigest);
    const { results } = (await alice.post('/api/v1/decisions', { items: [{ id: hidden.id, requestDigest: hidden.requestDigest }], verb: 'reject' })).json;
    assert.deepEqual(results, [{ id: hidden.id, status: 200 }]);
    const newest = await call(one, 'run', { i: 4 }); // it runs out before the older ones of its stack
    assert.deepEqual(await of({ sort: 'age' }), [newest, other, drop, paid, long], 'as old as its oldest call');
    const { nextCursor: behind } = await inbox({ sort: 'age', limit: 1 });
    assert.deepEqual(await of({ sort: 'age', limit: 1, cursor: behind }), [other]);
  });
}

test('stacks are told apart by each of their parts, not by these in a row', async (t) => {
  const rules = [{ match: 'pay', action: 'approve', approval: 'urgent' }, { match: 'payur', action: 'approve', approval: 'gent' }];
  const { admin, connect } = await scene(t, { rules, approval: { ...workflow('10m'), urgent: workflow('10m').default, gent: workflow('10m').default }, upstream: { tools: [tool('pay'), tool('payur')] } });
  const client = await connect();
  const ids = [];
  for (const name of ['pay', 'payur', 'payur']) ids.push((await client.createTask(name, {})).taskId);
  const { rows } = (await admin.get('/api/v1/inbox')).json;
  assert.deepEqual(rows.map(({ tool: name, count }) => [name, count]).toSorted(), [['pay', 1], ['payur', 2]]);
  assert.notEqual(rows[0].stack, rows[1].stack);
  for (const { stack, count, tool: name } of rows) {
    const { rows: calls, matching } = (await admin.get(`/api/v1/inbox?stack=${stack}`)).json;
    assert.deepEqual([matching, calls.map((row) => row.tool)], [count, Array(count).fill(name)]);
  }
});
