// The context of a call for the people who decide: the words of the rule, the server's word of the tool, and lists in the order of the time that is left.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const show = { summary: 'Drops {schema}.{table} with {options}, for {who.name}{missing}', highlight: ['table', 'options.force'], risk: 'high' };
const rules = [
  { match: 'drop_*', action: 'approve', description: 'Tables hold what customers wrote.', show },
  ['*', 'approve'],
];
const annotations = { destructiveHint: true, title: 'Drop\n it' };
const drop = tool('drop_table', { description: 'Drops a table for good.', annotations });
const stage = (t, more = {}) => scene(t, { rules, approval: workflow('10m', { redact_fields: ['who.name', 'password'] }), upstream: { tools: [drop, tool('read', { description: undefined })] }, ...more });
const call = { schema: 'public', table: 'users', options: { force: true, limit: 1.5 }, who: { name: 'Ada Lovelace' } };
const told = ({ rule, ruleDescription, summary, highlight, risk, toolDescription, toolAnnotations, listed }) => ({ rule, ruleDescription, summary, highlight, risk, toolDescription, toolAnnotations, listed });
const expected = {
  rule: 'drop_*',
  ruleDescription: 'Tables hold what customers wrote.',
  summary: 'Drops "public"."users" with {"force":true,"limit":1.5}, for [REDACTED]',
  highlight: ['table', 'options.force'],
  risk: 'high',
  toolDescription: 'Drops a table for good.',
  toolAnnotations: annotations,
  listed: true,
};

test('a task tells the words of its rule and of its tool, on the API, in events and on the command line', async (t) => {
  const { admin, connect, gateway } = await stage(t);
  const events = await admin.events();
  const { taskId } = await (await connect()).createTask('drop_table', call);
  const task = await admin.task(taskId);
  assert.deepEqual(told(task), expected);
  assert.deepEqual(told((await admin.list()).tasks[0]), expected);
  const event = await events.next((e) => e.event === 'task');
  assert.deepEqual(told(JSON.parse(event.data)), expected);
  const shown = await run(BINARY, ['tasks', 'show', taskId], { env: { THOUGHTGATE_ADMIN_URL: gateway.admin.url, TASKGATE_TOKEN: ADMIN_TOKEN } });
  assert.equal(shown.code, 0, shown.stderr);
  for (const line of [/^Summary +Drops "public"\."users" with .*, for \[REDACTED\]$/m, /^Risk +high$/m, /^Tool says +Drops a table for good\.$/m, /^Rule +drop_\*$/m, /^Rule says +Tables hold/m, /^Look at +table, options\.force$/m, /"destructiveHint": true/]) assert.match(shown.stdout, line);
  assert.ok(!shown.stdout.includes('Ada'), 'a hidden value is in no sentence');
  assert.equal((await admin.list({ q: 'drops "PUBLIC"."users"' })).tasks.length, 1, 'the sentence is searched');
  assert.equal((await admin.list({ q: 'Lovelace' })).tasks.length, 0);
});

test('a task has what became of the other calls of its tool, and a list does not', async (t) => {
  const { admin, connect, gateway } = await stage(t);
  const [mine, other] = [await connect(), await connect()];
  const make = async (client, args = {}) => (await client.createTask('read', args)).taskId;
  const none = { approved: 0, rejected: 0, expired: 0, failed: 0 };
  const seen = await make(mine, { path: 'a' });
  assert.deepEqual((await admin.task(seen)).history, { days: 30, ...none, caller: none, last: null, same: null });
  const approved = await make(other, { path: 'a' });
  await admin.approve(approved, 'it is fine');
  await admin.inState(approved, 'completed');
  await admin.reject(await make(mine, { path: 'b' }), 'not today');
  const { history, ...task } = await admin.task(seen);
  const { last, same, ...counts } = history;
  assert.deepEqual(counts, { days: 30, ...none, approved: 1, rejected: 1, caller: { ...none, rejected: 1 } });
  assert.deepEqual([last.outcome, last.person, last.reason, same.approved], ['rejected', (await admin.task(approved)).decidedBy, 'not today', 1]);
  assert.equal(same.at, (await admin.task(approved)).decidedAt);
  assert.ok(last.at >= same.at);
  assert.deepEqual((await admin.list({ state: 'pending' })).tasks[0], task, 'the rest is that of a list');
  const shown = await run(BINARY, ['tasks', 'show', seen], { env: { THOUGHTGATE_ADMIN_URL: gateway.admin.url, TASKGATE_TOKEN: ADMIN_TOKEN } });
  assert.match(shown.stdout, /^History +30 days: 1 approved, 1 rejected, 0 expired, 0 failed; this caller: 0 approved, 1 rejected, 0 expired, 0 failed\n +approvals with these arguments: 1, last \S+ \S+Z\n +last rejected by \S+, \S+ \S+Z: not today$/m);
});

test('the history counts calls that expired and failed, and tasks show has the error of the latter', async (t) => {
  const { admin, connect, gateway, upstream } = await stage(t);
  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ isError: true, content: [{ type: 'text', text: 'the disk\u001b is full' }] });
  const [mine, other] = [await connect(), await connect()];
  const make = async (client, task) => (await client.createTask('read', { path: 'a' }, task)).taskId;
  const seen = await make(mine);
  const expired = await make(mine, { ttl: 1000 });
  await admin.inState(expired, 'expired');
  const failed = await make(other);
  await admin.approve(failed);
  await admin.inState(failed, 'failed');
  const { approved, rejected, expired: ran, failed: broken, caller } = (await admin.task(seen)).history;
  assert.deepEqual([approved, rejected, ran, broken, caller], [1, 0, 1, 1, { approved: 0, rejected: 0, expired: 1, failed: 0 }]);
  const shown = async (id) => (await run(BINARY, ['tasks', 'show', id], { env: { THOUGHTGATE_ADMIN_URL: gateway.admin.url, TASKGATE_TOKEN: ADMIN_TOKEN } })).stdout;
  assert.match(await shown(seen), /^History +30 days: 1 approved, 0 rejected, 1 expired, 1 failed; this caller: 0 approved, 0 rejected, 1 expired, 0 failed$/m);
  assert.match(await shown(failed), /^Message +the disk\\u001b is full$/m);
});

test('a rule and a tool that say nothing: null, and nothing is marked', async (t) => {
  const { admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('read');
  assert.deepEqual(told(await admin.task(taskId)), { rule: '*', ruleDescription: null, summary: null, highlight: [], risk: 'medium', toolDescription: null, toolAnnotations: null, listed: true });
});

test('the shown words outlive a reload, a restart by kill -9 and the end of the task; a value that is hidden then is hidden in the sentence', async (t) => {
  const { admin, connect, gateway } = await stage(t);
  const { taskId } = await (await connect()).createTask('drop_table', call);
  const text = fs.readFileSync(gateway.configPath, 'utf8');
  fs.writeFileSync(gateway.configPath, text.replaceAll('Drops {schema}', 'Reads {schema}').replaceAll('who.name', 'schema').replaceAll('password', 'who'));
  await gateway.kill9();
  await gateway.launch();
  const hidden = { ...expected, summary: 'Drops [REDACTED]."users" with {"force":true,"limit":1.5}, for ' };
  assert.deepEqual(told(await gateway.admin.task(taskId)), hidden);
  await gateway.admin.reject(taskId);
  assert.deepEqual(told(await gateway.admin.task(taskId)), hidden);
});

test('the tool is described by its own caller\'s list, never by that of a stranger', async (t) => {
  const lists = { 'Bearer a': [drop], 'Bearer b': [tool('drop_table', { description: 'Reads a table.', annotations: { readOnlyHint: true } })], 'Bearer c': [tool('read')] };
  const handlers = { 'tools/list': ({ recorded, reply }) => reply.result({ tools: lists[recorded.headers.authorization] ?? [drop] }) };
  const { admin, connect } = await stage(t, { upstream: { tools: [drop], handlers } });
  const words = {};
  for (const name of ['a', 'b', 'c']) {
    const client = await connect({ token: name });
    await client.result('tools/list');
    const { taskId } = await client.createTask('drop_table', call);
    const { toolDescription, toolAnnotations, listed } = await admin.task(taskId);
    words[name] = [toolDescription, toolAnnotations, listed];
  }
  assert.deepEqual(words, {
    a: ['Drops a table for good.', annotations, true],
    b: ['Reads a table.', { readOnlyHint: true }, true],
    c: [null, null, false],
  });
});

test('a long description is cut between two characters; annotations that are no object are none', async (t) => {
  const long = tool('drop_table', { description: `a${'é'.repeat(4000)}`, annotations: 'destructive' });
  const { admin, connect } = await stage(t, { upstream: { tools: [long] } });
  const { taskId } = await (await connect()).createTask('drop_table', { table: 'x'.repeat(5000) });
  const task = await admin.task(taskId);
  assert.equal(task.toolDescription, `a${'é'.repeat(1999)}…`);
  assert.equal(task.toolAnnotations, null);
  assert.equal(task.summary, `Drops ."${'x'.repeat(120)}…" with , for `);
});

test('sort=decideBy: the nearest deadline first, page by page, while tasks come and go', async (t) => {
  const { admin, connect } = await stage(t, { approval: { slow: { timeout: '30m' }, fast: { timeout: '1m' }, middle: { timeout: '10m' } }, rules: ['slow', 'fast', 'middle'].map((name) => ({ match: `${name}*`, action: 'approve', approval: name })), upstream: { tools: [tool('slow'), tool('fast'), tool('middle')] } });
  const client = await connect();
  const ids = {};
  for (const name of ['slow', 'fast', 'middle', 'fast', 'slow', 'middle']) (ids[name] ??= []).push((await client.createTask(name, {}, {})).taskId);
  const order = [...ids.fast, ...ids.middle, ...ids.slow];
  const all = await admin.list({ sort: 'decideBy' });
  assert.deepEqual(all.tasks.map(({ id }) => id), order);
  assert.deepEqual((await admin.list({ sort: 'created' })).tasks.map(({ id }) => id), (await admin.list()).tasks.map(({ id }) => id));
  const seen = [];
  let page = await admin.list({ sort: 'decideBy', state: 'pending', limit: 2 });
  seen.push(...page.tasks);
  await admin.reject(order[0]); // of the page before
  await admin.reject(order[3]); // not yet shown
  const { taskId: late } = await client.createTask('fast', {}, {}); // belongs right behind the cursor
  while (page.nextCursor) {
    page = await admin.list({ sort: 'decideBy', state: 'pending', limit: 2, cursor: page.nextCursor });
    seen.push(...page.tasks);
  }
  assert.deepEqual(seen.map(({ id }) => id), [...order.slice(0, 2), late, order[2], ...order.slice(4)]);
});

test('an unknown sort, and a cursor of another order or made up, are 400', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  for (let i = 0; i < 2; i++) await client.createTask('read');
  const { nextCursor } = await admin.list({ limit: 1, sort: 'decideBy' });
  const refused = [
    ['sort=newest', /sort must be created or decideBy/],
    [`cursor=${nextCursor}`, /another order/],
    [`sort=decideBy&cursor=${(await admin.list({ limit: 1 })).nextCursor}`, /another order/],
    ['sort=decideBy&cursor=d1', /does not come from a list/],
    ['sort=decideBy&cursor=d.1', /does not come from a list/],
    ['sort=decideBy&cursor=d01.1', /does not come from a list/],
    ['sort=decideBy&cursor=dffffffffffffffff.1', /does not come from a list/],
  ];
  for (const [query, reason] of refused) {
    const answer = await admin.get(`/api/v1/tasks?${query}`);
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_request'], query);
    assert.match(answer.json.error.message, reason);
  }
});

const RISKS = [
  { match: 'drop', action: 'approve', approval: 'default', show: { risk: 'high', confirm: 'db', highlight: ['n'] } },
  { match: 'low', action: 'approve', approval: 'default', show: { risk: 'low' } },
  { match: 'free', action: 'approve', approval: 'off', show: { risk: 'high' } },
  { match: 'server', action: 'approve', approval: 'high' },
  { match: '*', action: 'approve', approval: 'default' },
];
const HINTED = [tool('drop'), tool('low', { annotations: { destructiveHint: true } }), tool('free'), tool('server', { annotations: { destructiveHint: true } }), tool('kills', { annotations: { destructiveHint: true } }), tool('reads', { annotations: { readOnlyHint: true } }), tool('plain')];

async function typedStage(t) {
  const all = await scene(t, { rules: RISKS, approval: { ...workflow('10m'), high: { timeout: '10m', typed: 'high' }, off: { timeout: '10m', typed: 'off' } }, upstream: { tools: HINTED } });
  const client = await all.connect();
  await client.result('tools/list');
  const call = async (name, args = {}) => (await client.createTask(name, args)).taskId;
  const approve = async (id, body = {}) => {
    const { status, json } = await all.admin.post(`/api/v1/tasks/${id}/approve`, body);
    return [status, json.error?.code, json.error?.path];
  };
  return { ...all, client, call, approve };
}

test('the risk of a call: of the rule, else by the hints of the server, else medium; and what is typed for it', async (t) => {
  const { admin, call } = await typedStage(t);
  const wanted = {
    drop: ['high', 'rule', { path: '$tool' }],
    low: ['low', 'rule', null],
    free: ['high', 'rule', null],
    server: ['high', 'server', { path: '$tool' }],
    kills: ['high', 'server', null],
    reads: ['low', 'server', null],
    plain: ['medium', 'default', null],
  };
  for (const [name, parts] of Object.entries(wanted)) {
    const { risk, riskBy, typed } = await admin.task(await call(name));
    assert.deepEqual([risk, riskBy, typed], parts, name);
  }
});

test('an approval of high risk needs the typed value; a rejection does not', async (t) => {
  const { admin, call, approve, client, gateway } = await typedStage(t);
  const id = await call('drop', { db: 'PRODUCTION', n: 7 });
  assert.deepEqual((await admin.task(id)).typed, { path: 'db' });
  assert.deepEqual(await approve(id), [422, 'typed_required', 'db']);
  assert.deepEqual(await approve(id, { typed: ' ' }), [422, 'typed_required', 'db']);
  for (const typed of ['production', 'PRODUCTIO', 'drop']) assert.deepEqual(await approve(id, { typed }), [422, 'typed_wrong', 'db']);
  for (const typed of ['PRODUCTI\u041eN', 'PRODUCTION\u202e', '\u2066PRODUCTION\u2069', 'PRODU\u200bCTION', '\u00a0PRODUCTION', '\uff30RODUCTION', 'PRODUCTION'.repeat(10_000), '\u200b', '[REDACTED]', '7'])
    assert.deepEqual(await approve(id, { typed }), [422, 'typed_wrong', 'db'], JSON.stringify(typed.slice(0, 20)));
  for (const typed of [1, true, ['PRODUCTION'], { db: 'PRODUCTION' }, 'PRODUCTION\u0000', '\ud800']) assert.deepEqual(await approve(id, { typed }), [400, 'invalid_request', undefined]);
  const many = async (typed) => (await admin.post('/api/v1/decisions', { verb: 'approve', items: [{ id, ...(typed ? { typed } : {}) }] })).json.results[0];
  assert.deepEqual(await many(), { id, status: 422, code: 'typed_required', path: 'db' });
  assert.equal((await admin.task(id)).state, 'pending');
  assert.deepEqual(await many(' PRODUCTION '), { id, status: 200 });
  for (const [args, path, typed] of [
    [{ db: ['a', 'b'], n: 7.50 }, 'n', '7.5'],
    [{ db: ['one'] }, 'db', 'one'],
    [{ db: 'x'.repeat(65), n: '\u200b' }, '$tool', 'drop'],
    [{ db: 'p\u0430y', n: 1 }, 'n', '1'],
    [{ db: {}, n: true }, '$tool', 'drop'],
  ]) {
    const other = await call('drop', args);
    assert.deepEqual((await admin.task(other)).typed, { path }, JSON.stringify(args));
    assert.deepEqual(await approve(other, { typed: `${typed}x` }), [422, 'typed_wrong', path]);
    assert.deepEqual(await approve(other, { typed }), [200, undefined, undefined]);
  }
  const body = '{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"drop","arguments":{"db":7.50e0},"task":{}}}';
  await client.send('tools/call', undefined, { id: 71, body });
  const [{ id: written }] = (await admin.list({ state: 'pending' })).tasks;
  for (const typed of ['7.5', '7.50', '75e-1']) assert.deepEqual(await approve(written, { typed }), [422, 'typed_wrong', 'db'], typed);
  assert.deepEqual(await approve(written, { typed: '7.50e0' }), [200, undefined, undefined], 'a number as it was written');
  assert.deepEqual(await approve(await call('plain'), { typed: 'whatever' }), [200, undefined, undefined], 'ignored where it is not asked for');
  assert.equal((await admin.reject(await call('drop', { db: 'PRODUCTION' }))).state, 'rejected');
  assert.equal((await admin.approve(await call('free'))).state !== 'pending', true);
  assert.equal((await gateway.cli(['tasks', 'approve', await call('drop', { db: 'PRODUCTION' })])).code, 1);
  assert.equal((await gateway.cli(['tasks', 'approve', await call('drop', { db: 'PRODUCTION' }), '--typed', 'PRODUCTION'])).code, 0);
  assert.ok(!gateway.child.stderr.includes('PRODUCTIO'), 'the value is in no log');
});

test('a text that reads as something else is marked, with its place and in words; nothing of a hidden value', async (t) => {
  const { admin, connect, gateway } = await stage(t, { rules: [['*', 'approve']], upstream: { tools: [tool('dr\u043ep'), tool('read')] } });
  const client = await connect({ name: 'alice\u202e' });
  const { taskId } = await client.createTask('dr\u043ep', { 'd\u0430b': 1, list: ['x\u200b', { deep: '\u001b[2J', plain: 'a\tb\n' }, 'y\u200b'], who: { name: 'p\u0430y', 'n\u200b': 1 }, password: { 'k\u200b': '\u202e' } });
  const marks = [
    { where: 'tool', what: 'mixed_script' },
    { where: 'principal', what: 'bidi' },
    { where: 'd\u0430b', what: 'mixed_script' },
    { where: 'list', what: 'invisible' },
    { where: 'list.deep', what: 'control' },
    { where: 'who.n\u200b', what: 'invisible' },
  ];
  assert.deepEqual((await admin.task(taskId)).marks, marks);
  assert.deepEqual((await admin.list()).tasks[0].marks, marks);
  const { stdout } = await gateway.cli(['tasks', 'show', taskId]);
  assert.match(stdout, /^Look out +tool: letters of alphabets that look alike\n +principal: characters that change the order of letters\n/m);
  assert.match(stdout, /^ +who\.n\\u200b: characters that cannot be seen$/m);
  const plain = await (await connect()).createTask('read', { text: 'plain \u00fc', n: 1 });
  assert.deepEqual((await admin.task(plain.taskId)).marks, []);
  assert.doesNotMatch((await gateway.cli(['tasks', 'show', plain.taskId])).stdout, /Look out/);
  const { taskId: other } = await (await connect()).createTask('read', { 'a\u200b': {}, ['k'.repeat(300)]: '\u202e' });
  assert.deepEqual((await admin.task(other)).marks, [{ where: 'a\u200b', what: 'invisible' }, { where: `${'k'.repeat(200)}…`, what: 'bidi' }]);
});

test('marks of _meta and of further parameters have their places; at most 20, of a request of any size', async (t) => {
  const { admin, connect } = await stage(t, { rules: [['*', 'approve']], approval: workflow('10m', { redact_fields: ['secret'] }) });
  const client = await connect();
  const meta = await client.result('tools/call', { name: 'read', arguments: {}, task: {}, _meta: { 'a\u200b': 'x', secret: '\u202e' }, force: { b: '\u00a0', secret: '\u202e' } });
  assert.deepEqual((await admin.task(meta.task.taskId)).marks, [{ where: '_meta.a\u200b', what: 'invisible' }, { where: 'params.force.b', what: 'invisible' }, { where: 'params.force.secret', what: 'bidi' }]);
  const many = await client.createTask('read', Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`k${i}`, '\u200b\u202e'])));
  const { marks } = await admin.task(many.taskId);
  assert.equal(marks.length, 20);
  assert.deepEqual(marks.slice(0, 3), [{ where: 'k0', what: 'bidi' }, { where: 'k0', what: 'invisible' }, { where: 'k1', what: 'bidi' }]);
});

test('emergencies, grants and edits need the typed value, of the arguments that run; a use of the grant needs none; at last it is the digest', async (t) => {
  const name = 'dr\u043ep';
  const { admin, connect } = await scene(t, {
    rules: [{ match: '*', action: 'approve', show: { risk: 'high', confirm: 'db' } }],
    approval: workflow('10m', { approvers: { groups: ['dba'] }, emergency: { groups: ['oncall'] }, grants: { max: '1h', max_calls: 5 }, allow_edit: ['db'] }),
    upstream: { tools: [tool('drop'), tool(name)] },
    env: { ALICE: 'token-of-alice' },
    config: { admin: { people: [{ name: 'alice', groups: ['dba', 'oncall'] }], tokens: [{ name: 'cli', person: 'alice', token_env: 'ALICE', roles: ['approver'] }] } },
  });
  const client = await connect({ token: 'A' });
  await client.result('tools/list');
  const call = async (tool, args) => (await client.createTask(tool, args)).taskId;
  const approve = async (id, body) => {
    const { status, json } = await admin.as('token-of-alice').post(`/api/v1/tasks/${id}/approve`, body);
    return [status, json.error?.code, json.error?.path];
  };
  const [alone, edited, granted] = [await call('drop', { db: 'one' }), await call('drop', { db: 'two' }), await call('drop', { db: 'three' })];
  assert.deepEqual(await approve(alone, { emergency: true, reason: 'r' }), [422, 'typed_required', 'db']);
  assert.deepEqual(await approve(alone, { emergency: true, reason: 'r', typed: 'one' }), [200, undefined, undefined]);
  assert.deepEqual(await approve(edited, { arguments: { db: 'four' }, typed: 'two' }), [422, 'typed_wrong', 'db']);
  assert.deepEqual(await approve(edited, { arguments: { db: 'four' }, typed: 'four' }), [200, undefined, undefined]);
  const grant = { for: '1h', calls: 2 };
  assert.deepEqual(await approve(granted, { grant }), [422, 'typed_required', 'db']);
  assert.deepEqual(await approve(granted, { grant, typed: 'three' }), [200, undefined, undefined]);
  assert.match((await admin.task(await call('drop', { db: 'three' }))).decidedBy, /^grant:/);
  const marked = await call(name, {});
  const { typed, requestDigest } = await admin.task(marked);
  assert.deepEqual(typed, { path: '$digest' });
  assert.deepEqual(await approve(marked, { typed: requestDigest.slice(0, 7) }), [422, 'typed_wrong', '$digest']);
  assert.deepEqual(await approve(marked, { typed: requestDigest.slice(0, 8) }), [200, undefined, undefined]);
});

test('a typed digest is that of the task, also where a value is hidden and the digest keyed', async (t) => {
  const name = 'dr\u043ep';
  const { admin, connect } = await scene(t, {
    rules: [{ match: '*', action: 'approve', show: { risk: 'high', confirm: 'pin' } }],
    approval: workflow('10m', { redact_fields: ['pin'] }),
    upstream: { tools: [tool(name)] },
  });
  const { taskId } = await (await connect()).createTask(name, { pin: '4711' });
  const { typed, requestDigest, arguments: shown } = await admin.task(taskId);
  assert.deepEqual([typed, shown], [{ path: '$digest' }, { pin: '[REDACTED]' }]);
  const approve = async (value) => (await admin.post(`/api/v1/tasks/${taskId}/approve`, { typed: value })).json;
  for (const value of ['4711', '[REDACTED]', requestDigest, requestDigest.slice(0, 7)]) assert.deepEqual((await approve(value)).error?.code, 'typed_wrong', value);
  assert.equal((await approve(requestDigest.slice(0, 8))).decidedBy, 'admin');
});

test('the document of the API has the members of a task, and explains each', async (t) => {
  const text = fs.readFileSync(new URL('../../docs/approving-api.md', import.meta.url), 'utf8');
  const [, section] = /^## A task\n([^]*?)^## /m.exec(text);
  const [example, json] = /^```json\n([^]*?)^```/m.exec(section);
  const { admin, connect } = await stage(t, { rules: [['*', 'approve']] });
  const { taskId } = await (await connect()).createTask('read', {});
  const members = Object.keys(await admin.task(taskId));
  assert.deepEqual(Object.keys(JSON.parse(json)).toSorted(), members.toSorted());
  assert.deepEqual(members.filter((name) => !section.replace(example, '').includes(`\`${name}\``)), []);
});

test('a requestDigest is 64 hexadecimal digits of either case, and nothing that looks like them', async (t) => {
  const { admin, connect } = await stage(t, { rules: [['*', 'approve']] });
  const { taskId } = await (await connect()).createTask('read', { n: 1 });
  const { requestDigest: own } = await admin.task(taskId);
  const vote = async (requestDigest, verb = 'approve') => {
    const { status, json } = await admin.post(`/api/v1/tasks/${taskId}/${verb}`, { requestDigest });
    return [status, json.error?.code];
  };
  for (const verb of ['approve', 'reject', 'withdraw']) {
    for (const digest of ['', own.slice(1), `${own}0`, ` ${own}`, `${own}\n`, own.replace(/./, 'g'), own.replace(/./, '\uff11'), own.replace(/./, '\u0661'), `\u202e${own.slice(1)}`, `${own.slice(0, 63)}\u0000`, own.repeat(1000), 7, [own], { digest: own }])
      assert.deepEqual(await vote(digest, verb), [400, 'invalid_request'], JSON.stringify(digest).slice(0, 90));
    assert.deepEqual(await vote('0'.repeat(64), verb), [409, 'changed'], verb);
  }
  assert.deepEqual(await vote(own.toUpperCase()), [200, undefined]);
});
