// The operators' API: shapes, codes, roles, live events, health and metrics.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import net from 'node:net';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { AdminClient, sample } from './lib/admin.mjs';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, BRIEF_DRAIN, startGateway, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] }, ...more });
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const codeAndText = async (running) => {
  const { code, stdout, stderr } = await running;
  return [code, stdout + stderr];
};
const UNKNOWN = 'tg_00000000-0000-4000-8000-000000000000';

test('a pending task has every member of the contract', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect({ token: 'agent-secret' });
  const args = { user_id: '123', n: 1.5, nested: { html: '<script>alert(1)</script>', list: [1, null, true] } };
  const { taskId } = await client.createTask('delete_user', args, { ttl: 60_000 });
  const task = await admin.task(taskId);
  assert.deepEqual([task.id, task.state, task.status, task.source, task.tool, task.workflow], [taskId, 'pending', 'input_required', 'up', 'delete_user', 'default']);
  assert.deepEqual(task.arguments, args);
  assert.match(task.argumentsDigest, /^(sha256:)?[0-9a-f]{64}$/);
  assert.ok(typeof task.principal === 'string' && task.principal.length > 0);
  assert.doesNotMatch(JSON.stringify(task), /agent-secret/);
  assert.match(task.createdAt, RFC3339);
  assert.equal(Date.parse(task.decideBy) - Date.parse(task.createdAt), 60_000);
  assert.equal(typeof task.statusMessage, 'string');
  for (const key of ['executeBy', 'decidedAt', 'decidedBy', 'reason']) assert.ok(task[key] === undefined || task[key] === null, key);
});

test('arguments that differ only in key order have the same digest, others another', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const digest = async (args) => (await admin.task((await client.createTask('delete_user', args)).taskId)).argumentsDigest;
  const first = await digest({ a: 1, b: { c: 2, d: 3 } });
  assert.equal(await digest({ b: { d: 3, c: 2 }, a: 1 }), first);
  assert.notEqual(await digest({ a: 1, b: { c: 2, d: 4 } }), first);
});

test('a decision is answered with the task, and kept with who, when and why', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const answer = await admin.decide('approve', taskId, 'asked Ada');
  assert.equal(answer.status, 200);
  assert.match(answer.headers['content-type'], /^application\/json/);
  for (const task of [answer.json, await admin.inState(taskId, 'completed')]) {
    assert.deepEqual([task.id, task.decidedBy, task.reason], [taskId, 'admin', 'asked Ada']);
    assert.match(task.decidedAt, RFC3339);
    assert.equal(Math.round((Date.parse(task.executeBy) - Date.parse(task.decidedAt)) / 1000), 300);
  }
  const rejected = (await client.createTask('delete_user')).taskId;
  assert.deepEqual([(await admin.reject(rejected)).state, (await admin.task(rejected)).status], ['rejected', 'failed']);
  const cancelled = (await client.createTask('delete_user')).taskId;
  assert.deepEqual([(await admin.cancel(cancelled, 'never mind')).state, (await admin.task(cancelled)).status], ['cancelled', 'cancelled']);
});

test('execution: null before an approval; then whether the call waits, runs, or is over, since when and how long', async (t) => {
  const { upstream, admin, connect, gateway } = await stage(t, { config: { execution: 'on_result' } });
  let release;
  upstream.handlers['tools/call'] = ({ reply }) => void (release = () => reply.result({ content: [{ type: 'image', data: '', mimeType: 'image/png' }, { type: 'text', text: `gone\u001b${'é'.repeat(600)}` }] }));
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  assert.equal((await admin.task(taskId)).execution, null);
  const approved = await admin.approve(taskId);
  const nothing = { until: null, startedAt: null, endedAt: null, durationMs: null, traceId: null };
  assert.deepEqual(approved.execution, { ...nothing, state: 'waiting_for_credentials', until: approved.executeBy });
  const fetched = client.call('tasks/result', { taskId });
  await upstream.received('tools/call');
  const running = (await admin.inState(taskId, 'executing')).execution;
  assert.deepEqual(running, { ...nothing, state: 'executing', startedAt: running.startedAt });
  assert.match(running.startedAt, RFC3339);
  release();
  await fetched;
  const { execution } = await admin.inState(taskId, 'completed');
  assert.deepEqual(execution, { ...running, state: 'done', endedAt: execution.endedAt, durationMs: Date.parse(execution.endedAt) - Date.parse(execution.startedAt) });
  const stopped = (await client.createTask('delete_user')).taskId;
  await admin.approve(stopped);
  await admin.cancel(stopped, 'never mind');
  assert.deepEqual((await admin.task(stopped)).execution, { ...nothing, state: 'done' });
  const rejected = (await client.createTask('delete_user')).taskId;
  assert.equal((await admin.reject(rejected)).execution, null);
  await gateway.restart();
  assert.deepEqual((await admin.task(taskId)).execution, execution, 'kept by the store');
  const shown = await run(BINARY, ['tasks', 'show', taskId], { env: { ...gateway.environment(), THOUGHTGATE_ADMIN_URL: gateway.adminUrl, THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN } });
  assert.match(shown.stdout, /^Execution +done, begun .+, took \d+ ms$/m);
  assert.equal(shown.code, 0);
  assert.equal(shown.stdout.trimEnd().split('\n').at(-1), `Result     gone\\u001b${'é'.repeat(509)}…`, 'its first KiB');
});

test("a stop of a call after somebody else's approval is not taken for the decision", async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t, {
    config: { admin: { tokens: [{ name: 'bob', token_env: 'BOB', roles: ['approver'] }] } },
    env: { BOB: 'bobs-token' },
  });
  upstream.handlers['tools/call'] = () => {};
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId, 'asked Ada');
  await admin.inState(taskId, 'executing');
  await admin.as('bobs-token').cancel(taskId, 'the wrong one');
  const task = await admin.task(taskId);
  assert.deepEqual([task.state, task.decidedBy, task.reason, task.statusMessage], ['cancelled', 'admin', 'asked Ada', 'Cancelled: the wrong one']);
  const said = await gateway.logged((entry) => entry.msg === 'Task cancelled' && entry.task === taskId);
  assert.deepEqual([said.by, said.reason], ['bob', 'the wrong one']);
});

test('approve answers after the commit and before the execution', async (t) => {
  const { upstream, admin, connect } = await stage(t, { env: BRIEF_DRAIN });
  upstream.handlers['tools/call'] = () => {};
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const answer = await admin.decide('approve', taskId);
  assert.equal(answer.status, 200);
  assert.ok(['approved', 'executing'].includes(answer.json.state), answer.json.state);
  await admin.inState(taskId, 'executing');
});

test('decisions that come too late are 409 and name the state', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  await admin.reject(taskId);
  for (const verb of ['approve', 'reject', 'cancel']) {
    const answer = await admin.decide(verb, taskId);
    assert.equal(answer.status, 409, verb);
    assert.equal(answer.json.error.state, 'rejected');
    assert.equal(typeof answer.json.error.message, 'string');
    assert.ok(['string', 'number'].includes(typeof answer.json.error.code));
  }
});

test('codes: 400 body, 401 token, 404 task and path, 415 type, 405 verb', async (t) => {
  const { admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const approve = `/api/v1/tasks/${taskId}/approve`;
  const status = async (answer) => {
    const { status, json } = await answer;
    assert.equal(typeof json?.error?.message, 'string', `${status} has an error body`);
    assert.notEqual(json.error.code, undefined);
    return status;
  };
  for (const body of ['{', '[]', '"x"', '{"reason":5}', '{"reason":"a"}x']) assert.equal(await status(admin.post(approve, body)), 400, body);
  assert.equal(await status(admin.post(approve, '{}', { 'content-type': 'text/plain' })), 415);
  assert.equal(await status(admin.as('wrong').get('/api/v1/tasks')), 401);
  assert.equal(await status(admin.as(undefined).get('/api/v1/tasks')), 401);
  assert.equal(await status(admin.as(`${ADMIN_TOKEN}x`).decide('approve', taskId)), 401);
  assert.equal(await status(admin.get('/api/v1/tasks', { authorization: `Basic ${ADMIN_TOKEN}` })), 401);
  assert.equal(await status(admin.get(`/api/v1/tasks/${UNKNOWN}`)), 404);
  assert.equal(await status(admin.decide('approve', UNKNOWN)), 404);
  assert.equal((await admin.get('/api/v1/nothing')).status, 404);
  assert.equal((await admin.get(approve)).status, 405);
  assert.equal((await admin.task(taskId)).state, 'pending', 'none of it decided anything');
});

test('the token is never taken from the query', async (t) => {
  const { admin } = await stage(t);
  assert.equal((await admin.as(undefined).get(`/api/v1/tasks?token=${ADMIN_TOKEN}`)).status, 401);
  assert.equal((await admin.as(undefined).get(`/api/v1/tasks?access_token=${ADMIN_TOKEN}`)).status, 401);
});

test('roles: a viewer sees, an approver decides and sees, a caller does neither', async (t) => {
  const sha = createHash('sha256').update('viewer-token').digest('hex');
  const { admin, connect } = await stage(t, {
    config: { admin: { tokens: [{ name: 'eye', token_sha256: sha, roles: ['viewer'] }, { name: 'hand', token_env: 'HAND_TOKEN', roles: ['approver'] }, { name: 'voice', token_env: 'VOICE_TOKEN', roles: ['caller'] }] } },
    env: { HAND_TOKEN: 'hand-token', VOICE_TOKEN: 'voice-token' },
  });
  const { taskId } = await (await connect()).createTask('delete_user');
  const [viewer, approver, caller] = ['viewer-token', 'hand-token', 'voice-token'].map((token) => admin.as(token));
  assert.equal((await viewer.task(taskId)).state, 'pending');
  for (const verb of ['approve', 'reject', 'cancel']) {
    const answer = await viewer.decide(verb, taskId);
    assert.equal(answer.status, 403);
    assert.equal(typeof answer.json.error.message, 'string');
    assert.equal((await caller.decide(verb, taskId)).status, 403);
  }
  assert.equal((await caller.get('/api/v1/tasks')).status, 403);
  assert.equal((await approver.list()).tasks.length, 1);
  assert.equal((await approver.approve(taskId)).decidedBy, 'hand');
});

test('without any token one is generated into a file only its owner reads; the log says where, never what', async (t) => {
  const upstream = await startUpstream(t);
  const gateway = await startGateway(t, { upstream: upstream.url, adminToken: null });
  const file = path.join(gateway.folder, 'admin-token');
  const token = fs.readFileSync(file, 'utf8').trim();
  assert.ok(token.length >= 32);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.equal(fs.statSync(gateway.storePath).mode & 0o777, 0o600);
  assert.deepEqual((await new AdminClient(gateway.adminUrl, token).list()).tasks, []);
  assert.ok(gateway.child.stderr.includes(file));
  assert.ok(!(gateway.child.stderr + gateway.child.stdout).includes(token));
  await gateway.restart();
  assert.equal(fs.readFileSync(file, 'utf8').trim(), token, 'kept over a restart');

  // As a start of before left them that was cut while it wrote.
  const key = path.join(gateway.folder, 'state.key');
  for (const name of [file, key]) fs.writeFileSync(name, '');
  await gateway.restart();
  const fresh = fs.readFileSync(file, 'utf8').trim();
  assert.match(fresh, /^[0-9a-f]{64}$/);
  assert.match(fs.readFileSync(key, 'utf8'), /^[0-9a-f]{64}\n$/);
  for (const name of [file, key]) assert.equal(fs.statSync(name).mode & 0o777, 0o600);
  assert.deepEqual((await new AdminClient(gateway.adminUrl, fresh).list()).tasks, []);
  assert.deepEqual(fs.readdirSync(gateway.folder).filter((name) => /(admin-token|state\.key)\./.test(name)), [], 'nothing is left beside them');
});

test('beside the gateway commands need neither address nor token: tasks list, page, health; version names what is loaded', async (t) => {
  const { gateway, connect } = await stage(t, { adminToken: null });
  const { taskId } = await (await connect()).createTask('delete_user');
  const env = { ...gateway.environment(), THOUGHTGATE_CONFIG: gateway.configPath, THOUGHTGATE_ADMIN_URL: '', TASKGATE_TOKEN: '' };
  const taskgate = (...words) => run(BINARY, words, { env });
  assert.deepEqual(JSON.parse((await taskgate('tasks', 'list', '--json')).stdout).tasks.map(({ id }) => id), [taskId]);
  const page = (await taskgate('page')).stdout.trim();
  const token = fs.readFileSync(path.join(gateway.folder, 'admin-token'), 'utf8').trim();
  assert.equal(page, `${gateway.adminUrl}/#token=${token}`);
  for (const words of [['health'], ['health', '--ready'], ['health', gateway.adminUrl]]) assert.deepEqual(await codeAndText(taskgate(...words)), [0, ''], words.join(' '));
  const wrong = await taskgate('health', `${gateway.url.replace(/\/mcp$/, '')}/nothing`);
  assert.deepEqual([wrong.code, /HTTP 404/.test(wrong.stderr)], [1, true], wrong.stderr);
  const version = JSON.parse((await taskgate('version', '--json')).stdout);
  assert.deepEqual(Object.keys(version), ['version', 'commit', 'arch', 'compiler', 'libraries']);
  assert.deepEqual(Object.keys(version.libraries), ['h2o', 'openssl', 'sqlite', 'libpq', 'libcurl', 'cjose', 'libyaml']);
  for (const [name, text] of Object.entries(version.libraries)) assert.match(text, /^\d+\.\d+/, name);
  const loaded = fs.readFileSync(`/proc/${gateway.child.pid}/maps`, 'utf8');
  assert.deepEqual([/libsqlite3/.test(loaded), /libpq|libcurl/.test(loaded)], [true, false], 'libraries that this store and this server do not need');
  assert.match(version.commit ?? '0'.repeat(40), /^[0-9a-f]{40}$/);
  await gateway.child.stop();
  const stopped = await taskgate('health');
  assert.deepEqual([stopped.code, /connect/.test(stopped.stderr)], [1, true], stopped.stderr);
});

test('a foreign Host, and a foreign Origin, are refused even with a good token', async (t) => {
  const { admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  for (const headers of [{ host: 'evil.example' }, { host: 'localhost.evil.example' }, { origin: 'https://evil.example' }]) {
    assert.equal((await admin.get('/api/v1/tasks', headers)).status, 403, JSON.stringify(headers));
    assert.equal((await admin.post(`/api/v1/tasks/${taskId}/approve`, {}, headers)).status, 403, JSON.stringify(headers));
  }
  assert.equal((await admin.task(taskId)).state, 'pending');
  // Probes come by pod address, but not over loopback, where the Host of a page's own name would get through.
  for (const [route, status] of [['/health', 200], ['/ready', 403], ['/metrics', 403]]) assert.equal((await admin.as(undefined).get(route, { host: 'pod-7.cluster' })).status, status, route);
});

test('a probe that names no Host is answered, over loopback too; what needs a token is not', async (t) => {
  const { gateway } = await stage(t);
  const { port } = new URL(gateway.adminUrl);
  const statusOf = async (route) => {
    const socket = net.connect(Number(port), '127.0.0.1');
    socket.end(`GET ${route} HTTP/1.0\r\n\r\n`);
    const answer = Buffer.concat(await socket.toArray()).toString();
    return Number(answer.split(' ')[1]);
  };
  for (const [route, status] of [['/health', 200], ['/ready', 200], ['/metrics', 200], ['/api/v1/tasks', 403]]) assert.equal(await statusOf(route), status, route);
});

test('lists are filtered by state, source and tool, and paged without loss', async (t) => {
  const { admin, connect } = await stage(t, { rules: [['*', 'approve']] });
  const client = await connect();
  const ids = [];
  for (let i = 0; i < 7; i++) ids.unshift((await client.createTask(i % 2 ? 'read' : 'delete_user', { i })).taskId);
  await admin.reject(ids[0]);
  assert.deepEqual((await admin.list()).tasks.map((x) => x.id), ids, 'newest first');
  assert.deepEqual((await admin.list({ state: 'rejected' })).tasks.map((x) => x.id), [ids[0]]);
  assert.equal((await admin.list({ state: 'pending' })).tasks.length, 6);
  assert.equal((await admin.list({ tool: 'read' })).tasks.length, 3);
  assert.equal((await admin.list({ source: 'up' })).tasks.length, 7);
  assert.equal((await admin.list({ source: 'other' })).tasks.length, 0);
  const seen = [];
  let cursor;
  do {
    const page = await admin.list({ limit: 3, ...(cursor ? { cursor } : {}) });
    assert.ok(page.tasks.length <= 3);
    seen.push(...page.tasks.map((x) => x.id));
    cursor = page.nextCursor;
  } while (cursor);
  assert.deepEqual(seen, ids);
  /* Each of these is more than a third of a page; the last one, of which every character is escaped, more than a page. */
  const large = [];
  for (const note of [...Array(4).fill('x'.repeat(1_500_000)), '\u0001'.repeat(690_000)]) large.unshift((await client.createTask('large', { note })).taskId);
  for (const sort of ['created', 'decideBy']) {
    const pages = [];
    do {
      const { text, json } = await admin.get(`/api/v1/tasks?tool=large&sort=${sort}&limit=100${cursor ? `&cursor=${cursor}` : ''}`);
      assert.ok(text.length < 4 * 2 ** 20 || json.tasks.length === 1, `${text.length} bytes of ${json.tasks.length} tasks`);
      pages.push(json.tasks.map((x) => x.id));
      cursor = json.nextCursor;
    } while (cursor);
    assert.deepEqual(pages.flat(), sort === 'created' ? large : large.toReversed());
    assert.equal(pages.length, 3, `${sort}: ${pages.map((page) => page.length)}`);
  }
  for (const query of ['limit=0', 'limit=x', 'cursor=nonsense', 'state=nonsense']) assert.equal((await admin.get(`/api/v1/tasks?${query}`)).status, 400, query);
});

test('events: every change of a task, live, numbered upwards', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const events = await admin.events();
  const { taskId } = await client.createTask('delete_user', { k: 'v' });
  const states = [];
  const numbers = [];
  const take = async () => {
    const event = await events.next((e) => e.event === 'task', 'a task event');
    assert.equal(event.json.id, taskId);
    assert.equal(event.json.tool, 'delete_user');
    assert.deepEqual(event.json.arguments, { k: 'v' });
    states.push(event.json.state);
    numbers.push(Number(event.id));
    return event.json.state;
  };
  assert.equal(await take(), 'pending');
  await admin.approve(taskId);
  while ((await take()) !== 'completed');
  assert.deepEqual(states.filter((s, i) => s !== states[i - 1]), ['pending', 'approved', 'executing', 'completed'].filter((s) => states.includes(s)));
  assert.ok(numbers.every((n, i) => Number.isInteger(n) && (i === 0 || n > numbers[i - 1])), numbers.join());
  events.abort();
  assert.equal((await admin.as(undefined).get('/api/v1/events')).status, 401);
});

test('redact_fields hide values on the API, the events and the command line', async (t) => {
  const { gateway, admin, connect } = await stage(t, { approval: workflow('10m', { redact_fields: ['password', 'card.number'] }) });
  const client = await connect();
  const events = await admin.events();
  const { taskId } = await client.createTask('delete_user', { password: 'hunter2', card: { number: '4111', name: 'Ada' }, user: 'ada' });
  const expected = { password: '[REDACTED]', card: { number: '[REDACTED]', name: 'Ada' }, user: 'ada' };
  assert.deepEqual((await admin.task(taskId)).arguments, expected);
  assert.deepEqual((await admin.list()).tasks[0].arguments, expected);
  assert.deepEqual((await events.next((e) => e.event === 'task')).json.arguments, expected);
  events.abort();
  const shown = await gateway.cli(['tasks', 'show', taskId, '--json']);
  assert.doesNotMatch(shown.stdout, /hunter2|4111/);
  assert.doesNotMatch(gateway.child.stderr, /hunter2|4111/);
});

test('the values of redact_fields go from the store at the end of the task, whatever the configuration says later', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t, { approval: workflow('10m', { redact_fields: ['password'] }) });
  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ content: [] }); // the result is kept as it is
  const client = await connect();
  const ended = (await client.createTask('delete_user', { password: 'hunter2', user: 'ada' })).taskId;
  const pending = (await client.createTask('delete_user', { password: 'hunter3' })).taskId;
  await admin.approve(ended);
  await admin.inState(ended, 'completed');
  assert.deepEqual(upstream.calls[0].rpc.params.arguments, { password: 'hunter2', user: 'ada' });
  await gateway.stop();
  const file = fs.readFileSync(gateway.storePath, 'latin1');
  assert.ok(!file.includes('hunter2'), 'an ended one has no secret any more');
  assert.ok(file.includes('hunter3'), 'an undecided one is executed as it was sent');
  gateway.writeConfig({ approval: workflow('10m') });
  await gateway.start();
  assert.deepEqual((await gateway.admin.task(ended)).arguments, { password: '[REDACTED]', user: 'ada' });
  assert.deepEqual((await gateway.admin.task(pending)).arguments, { password: 'hunter3' });
});

test('redacted values are still what is executed', async (t) => {
  const { upstream, admin, connect } = await stage(t, { approval: workflow('10m', { redact_fields: ['password'] }) });
  const { taskId } = await (await connect()).createTask('delete_user', { password: 'hunter2' });
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.deepEqual(upstream.calls[0].rpc.params.arguments, { password: 'hunter2' });
});

test('/health and /ready: shapes of the contract, without a token', async (t) => {
  const { upstream, admin } = await stage(t);
  const health = await admin.as(undefined).get('/health');
  assert.equal(health.status, 200);
  assert.equal(health.json.status, 'healthy');
  assert.equal(typeof health.json.version, 'string');
  assert.equal(typeof health.json.uptime_seconds, 'number');
  const ready = await until(async () => {
    const answer = await admin.as(undefined).get('/ready');
    return answer.json?.checks?.upstream_reachable === true && answer;
  }, 'upstream to be seen');
  assert.equal(ready.status, 200);
  assert.equal(ready.json.status, 'ready');
  assert.equal(ready.json.checks.config_loaded, true);
  assert.ok(ready.json.checks.store);
  assert.equal(ready.json.config_error, undefined);
  assert.equal(upstream.of('initialize').length >= 1, true);
});

test('/ready is 200 while upstream is down, and says so', async (t) => {
  const upstream = await startUpstream(t);
  await upstream.stop();
  const { admin } = await startGateway(t, { upstream: upstream.url });
  const ready = await until(async () => {
    const answer = await admin.get('/ready');
    return answer.json?.checks?.upstream_reachable === false && answer;
  }, 'upstream to be missed');
  assert.deepEqual([ready.status, ready.json.status], [200, 'ready']);
});

test('/metrics: Prometheus text, OpenMetrics when asked, no token, each counter one _total', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  await client.result('tools/call', { name: 'read' });
  const text = await admin.as(undefined).get('/metrics');
  assert.match(text.headers['content-type'], /^text\/plain; version=0\.0\.4/);
  const open = await admin.as(undefined).get('/metrics', { accept: 'application/openmetrics-text; version=1.0.0' });
  assert.match(open.headers['content-type'], /^application\/openmetrics-text; version=1\.0\.0/);
  assert.match(open.text, /\n# EOF\n$/);
  for (const body of [text.text, open.text]) {
    assert.doesNotMatch(body, /_total_total/);
    const families = body.split('\n').filter((line) => line.startsWith('# TYPE ')).map((line) => line.split(' ')[2]);
    assert.equal(new Set(families).size, families.length, 'a family twice');
    assert.ok(families.every((name) => name.startsWith('thoughtgate_') || /^(process|go)_/.test(name)), families.join());
  }
});

test('metrics count what happens', async (t) => {
  const { admin, connect } = await stage(t, { rules: [['delete_*', 'approve'], ['drop_*', 'deny']] });
  const client = await connect();
  const created = await client.createTask('delete_user');
  await client.createTask('delete_user');
  await client.error('tools/call', { name: 'drop_x' });
  await client.result('tools/call', { name: 'read' });
  let samples = await admin.metrics();
  assert.equal(sample(samples, 'thoughtgate_tasks_created_total'), 2);
  assert.equal(sample(samples, 'thoughtgate_tasks_pending'), 2);
  assert.ok(sample(samples, 'thoughtgate_requests_total', { method: 'tools/call' }) >= 4);
  assert.ok(sample(samples, 'thoughtgate_decisions_total', { outcome: 'deny' }) >= 1);
  assert.ok(sample(samples, 'thoughtgate_upstream_requests_total') >= 1);
  assert.ok(sample(samples, 'thoughtgate_request_duration_ms_count') >= 4);
  await admin.approve(created.taskId);
  await admin.inState(created.taskId, 'completed');
  await until(async () => sample((samples = await admin.metrics()), 'thoughtgate_tasks_completed_total') === 1, 'the completion counted');
  assert.equal(sample(samples, 'thoughtgate_tasks_pending'), 1);
  assert.match((await admin.get('/metrics')).text, /^thoughtgate_upstream_health\{source="up",status="healthy"\} 1$/m);
});

test('metrics name tools that a server has listed for somebody; made-up names are one, and displace no real one', async (t) => {
  const { admin, connect } = await stage(t);
  const [client, other] = [await connect({ token: 'A' }), await connect({ token: 'B' })];
  await client.result('tools/list');
  await Promise.all(Array.from({ length: 300 }, (_, i) => other.send('tools/call', { name: `made_up_${i}`, arguments: {} })));
  await other.result('tools/call', { name: 'read', arguments: {} }); // listed for another client
  await other.send('tools/call', { name: '__unlisted__', arguments: {} });
  const samples = Object.entries(await admin.metrics()).filter(([name]) => /^thoughtgate_requests_total\{.*method="tools\/call"/.test(name));
  const calls = {};
  for (const [name, value] of samples) {
    const label = /tool_name="([^"]*)"/.exec(name)[1];
    calls[label] = (calls[label] ?? 0) + value;
  }
  assert.deepEqual(calls, { read: 1, __unlisted__: 301 });
});

test('metrics say how long the oldest undecided task waits, and how long decisions took, by workflow', async (t) => {
  const { admin, connect } = await stage(t, { rules: [{ match: 'delete_*', action: 'approve', approval: 'a' }, { match: 'read', action: 'approve', approval: 'b' }], approval: { a: { timeout: '10m' }, b: { timeout: '10m' } } });
  const client = await connect();
  const value = async (name) => {
    const { text } = await admin.get('/metrics');
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    return line && Number(line.split(' ')[1]);
  };
  const { taskId } = await client.createTask('delete_user');
  const created = Date.now();
  await until(async () => (await value('thoughtgate_tasks_oldest_pending_seconds{workflow="a"}')) > 0, 'the age of the task', { deadline: 60_000 });
  assert.ok((await value('thoughtgate_tasks_oldest_pending_seconds{workflow="a"}')) <= (Date.now() - created) / 1000 + 1);
  assert.equal(await value('thoughtgate_tasks_oldest_pending_seconds{workflow="b"}'), undefined);
  const task = await admin.task(taskId), samples = await admin.metrics();
  const [waited, used] = ['oldest_pending_seconds', 'time_used_ratio'].map((name) => sample(samples, `thoughtgate_tasks_${name}`, { workflow: 'a' }));
  const given = (Date.parse(task.decideBy) - Date.parse(task.createdAt)) / 1000;
  assert.ok(used > 0 && Math.abs(used - waited / given) < 0.001, `${used} of ${given} s after ${waited} s`);
  assert.equal(await value('thoughtgate_tasks_time_used_ratio{workflow="b"}'), undefined);
  const short = await admin.task((await client.createTask('delete_user', {}, { ttl: 30_000 })).taskId);
  await client.createTask('delete_user', {}, { ttl: 500_000 });
  const lived = Date.parse(short.decideBy) - Date.parse(short.createdAt);
  assert.ok(lived <= 500 * given, `${lived} ms of ${given} s`);
  const largest = await until(async () => {
    const now = sample(await admin.metrics(), 'thoughtgate_tasks_time_used_ratio', { workflow: 'a' });
    const share = (Date.now() - Date.parse(short.createdAt)) / lived; // at least that of the answer
    const ofOldest = (Date.now() - Date.parse(task.createdAt)) / 1000 / given;
    return now > ofOldest && [now, share];
  }, 'the share of the younger task, which has used more of its time', { deadline: 60_000 });
  assert.ok(largest[0] <= largest[1] && largest[1] - largest[0] < 0.2, `${largest}`);
  await admin.reject(short.id, 'no');
  for (const { id } of (await admin.list({ state: 'pending' })).tasks) if (id !== taskId) await admin.reject(id, 'no');
  await admin.reject(taskId, 'no');
  assert.equal(await value('thoughtgate_decision_seconds_count{workflow="a",verb="reject"}'), 3);
  assert.ok((await value('thoughtgate_decision_seconds_sum{workflow="a",verb="reject"}')) > 0);
  await until(async () => (await value('thoughtgate_tasks_oldest_pending_seconds{workflow="a"}')) === undefined, 'nothing waits any more', { deadline: 60_000 });
});

test('the page at / needs no token, holds no data, and has a strict policy', async (t) => {
  const { admin, connect } = await stage(t);
  await (await connect()).createTask('delete_user', { secretish: 'needle-in-page' });
  const page = await exchange(`${admin.url}/`);
  const text = await page.text();
  assert.equal(page.status, 200);
  assert.match(page.headers['content-type'], /^text\/html/);
  const policy = page.headers['content-security-policy'];
  assert.match(policy, /default-src 'none'|default-src 'self'/);
  assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval|\*/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.equal(page.headers['x-content-type-options'], 'nosniff');
  assert.doesNotMatch(text, /needle-in-page|tg_[0-9a-f]{8}/);
  assert.doesNotMatch(text, /(src|href)="https?:/);
});

test('the page names all of its scripts to the browser at once, each of which is there', async (t) => {
  const { admin } = await stage(t);
  const { headers } = await exchange(`${admin.url}/`);
  const names = headers.link.split(', ').map((link) => /^<\.\/([\w.]+)>; rel=modulepreload$/.exec(link)[1]);
  const scripts = fs.readdirSync(new URL('../../src/admin/page', import.meta.url)).filter((name) => name.endsWith('.js'));
  assert.deepEqual(names.toSorted(), scripts.toSorted());
  for (const name of names) {
    const { status, headers: own } = await exchange(`${admin.url}/${name}`);
    assert.deepEqual([status, own.link], [200, undefined], name);
  }
});

test("the page's files come compressed where that is allowed, and not again where they are known", async (t) => {
  const { admin } = await stage(t);
  const get = (file, headers) => exchange(`${admin.url}${file}`, { headers });
  const head = ({ status, headers }) => [status, headers['content-encoding'], headers['cache-control'], headers.vary];
  let plainBytes = 0, gzipBytes = 0;
  for (const file of ['/', '/page.js', '/page.css', '/icon.svg']) {
    const plain = await get(file, {});
    const gzip = await get(file, { 'accept-encoding': 'gzip, deflate, br' });
    assert.deepEqual(head(plain), [200, undefined, 'no-cache', 'accept-encoding'], file);
    assert.deepEqual(head(gzip), [200, 'gzip', 'no-cache', 'accept-encoding'], file);
    assert.deepEqual(zlib.gunzipSync(await gzip.bytes()), await plain.bytes(), file);
    assert.match(plain.headers.etag, /^"[0-9a-f]{32}"$/);
    assert.equal(gzip.headers.etag, plain.headers.etag.replace(/"$/, '-gzip"'));
    plainBytes += (await plain.bytes()).length;
    gzipBytes += (await gzip.bytes()).length;
    for (const [known, accepted, expected] of [
      [gzip.headers.etag, 'gzip', [304, 0]], [`"other", W/${gzip.headers.etag}`, 'gzip', [304, 0]], ['*', 'gzip', [304, 0]],
      [plain.headers.etag, '', [304, 0]], [plain.headers.etag, 'gzip', [200, (await gzip.bytes()).length]], ['"other"', '', [200, (await plain.bytes()).length]],
    ]) {
      const again = await get(file, { 'if-none-match': known, 'accept-encoding': accepted });
      assert.deepEqual([again.status, (await again.bytes()).length], expected, `${file} with ${known} and ${accepted}`);
      assert.equal(again.headers.etag, accepted ? gzip.headers.etag : plain.headers.etag);
    }
  }
  assert.ok(gzipBytes < plainBytes / 2, `${gzipBytes} of ${plainBytes} bytes`);
  for (const [accepted, coding] of [['*', 'gzip'], ['br, GZIP;q=0.5', 'gzip'], ['gzip;q=0', undefined], ['gzip;q=0, *', undefined], ['*, gzip;q=0.000', undefined], ['*;q=0', undefined], ['br, xgzip', undefined]])
    assert.equal((await get('/page.js', { 'accept-encoding': accepted })).headers['content-encoding'], coding, accepted);
  assert.deepEqual(head(await admin.request('GET', '/api/v1/tasks')).slice(0, 3), [200, undefined, 'no-store']);
});

test("warnings about the configuration are log entries, too: all that a running gateway writes is JSON", async (t) => {
  const { gateway } = await stage(t, {
    approval: { default: { destination: { type: 'slack', channel: '#approvals' }, timeout: '10m' } },
    config: { telemetry: { enabled: false, sampling: { strategy: 'tail' } } },
  });
  const said = () => gateway.logs.filter((entry) => entry.msg === 'The configuration has warnings');
  await gateway.logged(/^The configuration has warnings$/);
  const [entry, ...more] = said();
  assert.deepEqual([entry.level, more], ['warn', []]);
  const lines = entry.warnings.split('\n');
  assert.ok(lines.every((line) => /^\S+config\.yaml:\d+:\d+: warning: (approval|telemetry)\b.*;? ?/.test(line)), entry.warnings);
  for (const key of ['approval.default.destination', 'telemetry']) assert.ok(lines.some((line) => line.includes(`warning: ${key}`)), entry.warnings);
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  assert.equal(said().at(-1).warnings, entry.warnings, 'a reload says them in the same way');
});

test('log lines are JSON with time, level and msg; arguments and tokens are never logged', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'agent-token-needle' });
  const { taskId } = await client.createTask('delete_user', { pw: 'argument-needle' });
  await admin.approve(taskId, 'line one\nline two \u001b[31m');
  await admin.inState(taskId, 'completed');
  for (const entry of gateway.logs) {
    assert.match(entry.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$/);
    assert.equal(typeof entry.level, 'string');
    assert.equal(typeof entry.msg, 'string');
  }
  assert.doesNotMatch(gateway.child.stderr, /argument-needle|agent-token-needle/);
  assert.ok(!gateway.child.stderr.includes(ADMIN_TOKEN));
  assert.ok(!gateway.child.stderr.includes('\u001b'));
});
