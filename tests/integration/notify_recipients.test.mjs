// The recipients of notifications: workflows that name their endpoints, reminders, escalations, emergencies, anchors, and channels that are dead.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { run } from './lib/child.mjs';
import { BINARY, temporaryFolder } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { freePort } from './lib/ports.mjs';
import { SECRET, startReceiver } from './lib/receiver.mjs';
import { scene } from './lib/scene.mjs';
import { startMailServer } from './lib/smtp_sink.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ENV = { NOTIFY_SECRET: SECRET, ALICE: 'the-long-token-of-alice', OLGA: 'the-long-token-of-olga', PAGER_KEY: 'R0123456789secretofpagerduty0000' };
const ADMIN = {
  public_url: 'https://gate.example',
  people: [{ name: 'alice' }, { name: 'olga', groups: ['oncall'] }],
  tokens: [{ name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver'] }, { name: 'olga-cli', person: 'olga', token_env: 'OLGA', roles: ['approver'] }],
};

const told = (receiver, id, more = {}) => ({ id, url: receiver.url, secret_env: 'NOTIFY_SECRET', ...more });
/** Receivers on paths of their own, since each URL may occur once. */
const receivers = (t, ...names) => Promise.all(names.map((name) => startReceiver(t, { path: `/${name}` })));

/** A gateway whose `write` goes through the workflow `duty`, and `night` through `night`. */
const stage = (t, notify, duty, more = {}) => scene(t, {
  rules: [{ match: 'write', action: 'approve', approval: 'duty' }, { match: 'night', action: 'approve', approval: 'night' }],
  approval: { duty: { timeout: '10m', ...duty }, night: { timeout: '10m' } },
  upstream: { tools: [tool('write'), tool('night')] },
  env: ENV,
  config: { notify, admin: ADMIN, ...more },
});

/** PagerDuty's Events API v2: it keeps incidents by their key, and refuses what PagerDuty refuses. */
async function startPager(t) {
  const pager = { events: [], open: new Map() };
  const server = http.createServer(async (request, response) => {
    const { routing_key: key, event_action: action, dedup_key: id, payload } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const isGood = request.method === 'POST' && request.url === '/v2/enqueue' && key === ENV.PAGER_KEY && ['trigger', 'resolve'].includes(action)
      && (action === 'resolve' || (payload.summary && payload.source && ['critical', 'error', 'warning', 'info'].includes(payload.severity)));
    if (isGood) pager.events.push(`${action} ${payload?.severity ?? ''} ${payload?.summary ?? ''}`.trim());
    if (isGood && action === 'trigger') pager.open.set(id, payload);
    if (isGood && action === 'resolve') pager.open.delete(id);
    response.writeHead(isGood ? 202 : 400, { 'content-type': 'application/json' }).end(JSON.stringify(isGood ? { status: 'success', dedup_key: id } : { status: 'invalid event' }));
  });
  const port = await freePort();
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  return Object.assign(pager, { url: `http://127.0.0.1:${port}/v2/enqueue` });
}

/** Once `witness` has heard all of a later task, whoever was to hear of the earlier ones has heard of it. */
async function afterALaterTask({ admin, connect }, witness, name = 'night') {
  const { taskId } = await (await connect()).createTask(name);
  await admin.reject(taskId);
  await until(() => witness.heard(taskId).length === 2, 'the later task');
}

test('a workflow that names endpoints tells these alone; others go by their filters; each notice has the link', async (t) => {
  const [desk, rest, nobody] = await receivers(t, 'desk', 'rest', 'nobody');
  const all = await stage(t, [told(desk, 'desk', { workflows: ['night'] }), told(rest, 'rest'), told(nobody, 'nobody', { workflows: ['other'] })], { notify: ['desk'] });
  const { taskId } = await (await all.connect()).createTask('write');
  const { json } = await desk.received(1);
  assert.deepEqual([json.event, json.link, 'emergency' in json], ['created', `https://gate.example/#task=${taskId}`, false]);
  await all.admin.reject(taskId);
  await until(() => desk.heard(taskId).length === 2, 'the end');
  await afterALaterTask(all, rest);
  await until(() => desk.heard().length === 4, 'its filter fits the other workflow');
  assert.deepEqual([rest.heard(taskId), rest.heard().length, nobody.heard()], [[], 2, []]);
  all.gateway.writeConfig({ approval: { duty: { timeout: '10m', notify: [] }, night: { timeout: '10m' } } });
  all.gateway.hangUp();
  await all.gateway.logged(/^Configuration reloaded/);
  const silent = (await (await all.connect()).createTask('write')).taskId;
  await all.admin.reject(silent);
  await afterALaterTask(all, rest);
  assert.deepEqual([desk.heard(silent), rest.heard(silent)], [[], []], 'notify: [] tells nobody');
});

test('a call that waits is reminded of once and escalated once, also over a restart; those called hear how it ends', async (t) => {
  const [desk, lead] = await receivers(t, 'desk', 'lead');
  const { gateway, admin, connect } = await stage(t, [told(desk, 'desk'), told(lead, 'lead', { events: ['decided', 'ended'] })],
    { notify: ['desk'], remind_after: '1s', escalate: { after: '4s', notify: ['lead'] } });
  const { taskId } = await (await connect()).createTask('write');
  await until(() => desk.heard(taskId).length === 2, 'the reminder', { deadline: 20_000 });
  await gateway.kill9(); // between the two
  await gateway.launch();
  await until(() => lead.heard(taskId).length === 1, 'the escalation', { deadline: 20_000 });
  const { json } = lead.deliveries[0];
  assert.deepEqual([json.event, json.task.state, json.link], ['escalated', 'pending', `https://gate.example/#task=${taskId}`]);
  await gateway.restart();
  await admin.reject(taskId, 'no');
  // A notice that the gateway had not noted as delivered when it was killed comes again.
  const heard = (receiver) => [...new Set(receiver.heard(taskId))];
  await until(() => heard(lead).length === 2 && heard(desk).length === 3, 'the end, for both');
  assert.deepEqual([heard(desk), heard(lead)], [['created:pending', 'reminded:pending', 'decided:rejected'], ['escalated:pending', 'decided:rejected']]);
  const { entries } = (await admin.get('/api/v1/audit')).json;
  assert.deepEqual(entries.filter((entry) => entry.taskId === taskId).map(({ event }) => event), ['create', 'remind', 'escalate', 'reject']);
});

test('a decided call is not reminded of', async (t) => {
  const [desk, lead] = await receivers(t, 'desk', 'lead');
  const { admin, connect } = await stage(t, [told(desk, 'desk', { workflows: ['duty'] }), told(lead, 'lead', { workflows: [] })],
    { remind_after: '2s', escalate: { after: '2s', notify: ['lead'] }, notify: ['desk'] });
  const client = await connect();
  const first = (await client.createTask('write', { n: 1 })).taskId;
  await admin.reject(first);
  const second = (await client.createTask('write', { n: 2 })).taskId; // its times are over later than those of the first
  await until(() => desk.heard(second).includes('reminded:pending') && lead.heard(second).includes('escalated:pending'), 'the later one', { deadline: 20_000 });
  assert.deepEqual([desk.heard(first), lead.heard(first)], [['created:pending', 'decided:rejected'], []]);
});

test('a mail reminds in the thread of the call; a pager is called by an escalation and let go by the decision', async (t) => {
  const mail = await startMailServer(t);
  const pager = await startPager(t);
  const { admin, connect } = await stage(t, [
    { id: 'mail', type: 'smtp', url: mail.url, from: 'taskgate@gate.example', to: ['dba@corp.example'] },
    { id: 'pager', type: 'pagerduty', url: pager.url, routing_key_env: 'PAGER_KEY' },
  ], { notify: ['mail'], remind_after: '1s', escalate: { after: '2s', notify: ['pager', 'mail'] } });
  const { taskId } = await (await connect()).createTask('write');
  const [asked, reminded, escalated] = [await mail.received(1), await mail.received(2), await mail.received(3)];
  assert.match(reminded.text, /^Reminder: approval still needed: write\n/);
  assert.match(escalated.text, /^Escalated: approval still needed: write\n/);
  assert.deepEqual([reminded.headers.subject, reminded.headers['in-reply-to'], 'importance' in reminded.headers, escalated.headers.importance], ['Re: Approval needed: write', asked.headers['message-id'], false, 'high']);
  await until(() => pager.open.has(taskId), 'the pager');
  await admin.reject(taskId);
  await until(() => pager.events.length === 2, 'the pager is let go');
  assert.deepEqual([pager.events, pager.open.size], [['trigger warning Escalated: approval still needed: write', 'resolve'], 0]);
});

/** Slack's chat.postMessage and chat.update, and a Teams webhook; each request is kept. */
async function startChats(t) {
  const chats = { requests: [], messages: new Map() };
  const server = http.createServer(async (request, response) => {
    const json = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const answer = { ok: true, channel: 'C0DESK', ts: json.ts ?? `1768000000.00010${chats.messages.size}` };
    const isKnown = !(json.ts ?? json.thread_ts) || chats.messages.has(json.ts ?? json.thread_ts);
    if (request.url.startsWith('/api/') && isKnown) chats.messages.set(answer.ts, json);
    chats.requests.push({ path: request.url, json });
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(isKnown ? answer : { ok: false, error: 'message_not_found' }));
  });
  const port = await freePort();
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  return Object.assign(chats, { url: `http://127.0.0.1:${port}` });
}

test('in Slack a reminder answers the message of the call, which the decision changes; anchors go to chats as a line', async (t) => {
  const chats = await startChats(t);
  const { admin, connect } = await stage(t, [
    { id: 'slack', type: 'slack', url: `${chats.url}/api`, channel: 'C0DESK', token_env: 'ALICE', mention: ['U0ALICE'] },
    { id: 'teams', type: 'teams', url: `${chats.url}/teams`, workflows: ['none'] },
  ], { remind_after: '1s' }, { audit: { anchor: { every: '1s', notify: ['slack', 'teams'] } } });
  const about = (path, text) => chats.requests.filter((request) => request.path === path && JSON.stringify(request.json).includes(text));
  const { taskId } = await (await connect()).createTask('write');
  await until(() => about('/api/chat.postMessage', 'Reminder').length === 1, 'the reminder', { deadline: 20_000 });
  const [reminder] = about('/api/chat.postMessage', 'Reminder').map(({ json }) => json);
  const [first] = [...chats.messages].find(([, { text }]) => text === 'Approval needed: write');
  assert.deepEqual([reminder.thread_ts, reminder.reply_broadcast, reminder.text], [first, true, 'Reminder: approval still needed: write']);
  assert.ok(reminder.blocks[0].text.text.startsWith('<@U0ALICE> '), 'people are called again');
  await admin.reject(taskId, 'no');
  await until(() => about('/api/chat.update', 'Rejected: write').length === 1, 'the decision');
  assert.equal(about('/api/chat.update', 'Rejected: write')[0].json.ts, first, 'the first message says what became of the call');
  await until(() => about('/api/chat.postMessage', 'Anchor of the audit trail').length > 0 && about('/teams', 'Anchor of the audit trail').length > 0, 'anchors', { deadline: 20_000 });
  const line = about('/api/chat.postMessage', 'Anchor')[0].json.text.split('\n')[1];
  assert.deepEqual(Object.keys(JSON.parse(line)), ['sequence', 'hash', 'time']);
  assert.equal(about('/teams', taskId).length, 0, 'the anchor does not open the filter');
});

test('an emergency is told to all at once, whatever their filters', async (t) => {
  const mail = await startMailServer(t);
  const pager = await startPager(t);
  const [desk, other] = await receivers(t, 'desk', 'other');
  const { admin, connect } = await stage(t, [
    told(desk, 'desk'), told(other, 'other', { workflows: ['other'], events: ['created'] }),
    { id: 'mail', type: 'smtp', url: mail.url, from: 'taskgate@gate.example', to: ['security@corp.example'], workflows: ['other'] },
    { id: 'pager', type: 'pagerduty', url: pager.url, routing_key_env: 'PAGER_KEY' },
  ], { notify: ['desk', 'pager'], quorum: 2, emergency: { groups: ['oncall'] } });
  const { taskId } = await (await connect()).createTask('write');
  await desk.received(1);
  const done = await admin.as(ENV.OLGA).post(`/api/v1/tasks/${taskId}/approve`, { emergency: true, reason: 'the site is down' });
  assert.deepEqual([done.status, done.json.emergency], [200, true]);
  await until(() => desk.heard(taskId).includes('decided:approved') && other.heard(taskId).length > 0 && mail.mails.length > 0, 'all are told');
  assert.deepEqual(other.heard(taskId), ['decided:approved']);
  assert.equal(other.deliveries[0].json.emergency, true);
  const { text, headers } = await mail.received(1);
  assert.match(text, /^Approved in an EMERGENCY, by one alone: write\n[\s\S]*\nDecided by: olga\nReason: the site is down\n/);
  assert.equal(headers.importance, 'high');
  await admin.inState(taskId, 'completed');
  await until(() => pager.events.length === 3, () => `${pager.events}`);
  assert.deepEqual([pager.events.slice().sort(), [...pager.open.keys()]], [['resolve', 'trigger critical Approved in an EMERGENCY, by one alone: write', 'trigger warning Approval needed: write'], [`${taskId}/emergency`]], 'a person closes the incident of the emergency');
});

test('anchors go to those who are named: each can be held against the trail', async (t) => {
  const folder = temporaryFolder(t);
  const keyFile = path.join(folder, 'key.pem');
  fs.writeFileSync(keyFile, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  const mail = await startMailServer(t);
  const [vault, desk] = await receivers(t, 'vault', 'desk');
  const { gateway, admin, connect } = await stage(t, [
    told(vault, 'vault', { events: ['expired'] }), told(desk, 'desk'),
    { id: 'mail', type: 'smtp', url: mail.url, from: 'taskgate@gate.example', to: ['audit@corp.example'], workflows: ['none'] },
  ], {}, { audit: { key_file: keyFile, anchor: { every: '1s', notify: ['vault', 'mail'] } } });
  const { taskId } = await (await connect()).createTask('write');
  await admin.reject(taskId);
  const { json } = await vault.received(1, 20_000);
  assert.deepEqual(Object.keys(json), ['event', 'delivery', 'at', 'anchor']);
  assert.deepEqual([json.event, Object.keys(json.anchor)], ['anchored', ['sequence', 'hash', 'time', 'signature']]);
  const logged = await gateway.logged((entry) => entry.msg === 'Audit anchor' && entry.sequence === json.anchor.sequence);
  assert.deepEqual([logged.hash, logged.time, logged.signature], [json.anchor.hash, json.anchor.time, json.anchor.signature]);
  const letter = await mail.received(1, 20_000);
  assert.deepEqual([letter.headers.subject, letter.to], ['Anchor of the audit trail', ['audit@corp.example']]);
  const file = path.join(folder, 'anchors.txt');
  fs.writeFileSync(file, letter.text);
  const verify = () => run(BINARY, ['audit', 'verify', '--config', gateway.configPath, '--anchor', file], { cwd: gateway.folder, env: { ...process.env, ...ENV } });
  const good = await verify();
  assert.deepEqual([good.code, /1 anchors? fits?/.test(good.stdout) || /anchor/.test(good.stdout)], [0, true], good.stderr);
  fs.writeFileSync(file, letter.text.replace(/"hash":"./, (start) => start.slice(0, -1) + (start.endsWith('0') ? '1' : '0')));
  assert.equal((await verify()).code, 1);
  assert.ok(desk.heard().every((event) => !event.startsWith('anchored')), 'nobody else gets them');
});

test('a dead channel is named in /ready and by a metric, and nothing secret is', async (t) => {
  const [good, dead] = await receivers(t, 'good', 'dead-with-secret');
  dead.answer = () => 500;
  const { gateway, admin, connect } = await stage(t, [told(good, 'good'), told(dead, 'lead', { workflows: ['duty'] })], {});
  const up = async () => {
    const samples = await admin.metrics();
    return ['good', 'lead'].map((notifier) => sample(samples, 'thoughtgate_notifier_up', { notifier }));
  };
  assert.deepEqual(await up(), [1, 1]);
  await (await connect()).createTask('write');
  await gateway.logged((line) => line.msg === 'Notifications fail, and are tried again');
  const { json, text } = await admin.get('/ready');
  assert.deepEqual([json.status, json.checks.notifiers, json.failing_notifiers], ['ready', false, ['lead']]);
  assert.ok(!text.includes('secret'));
  assert.deepEqual(await up(), [1, 0]);
  dead.answer = () => 204;
  await gateway.logged((line) => line.msg === 'Notifications arrive again');
  const after = (await admin.get('/ready')).json;
  assert.deepEqual([after.checks.notifiers, after.failing_notifiers, await up()], [true, undefined, [1, 1]]);
  gateway.writeConfig({ config: { notify: [told(good, 'renamed')], admin: ADMIN } });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded/);
  await until(async () => (await up()).every((value) => value === undefined), 'those that are gone have no sample');
});

test('check refuses ids that no endpoint has, and warns of times that never come', async (t) => {
  const { gateway } = await stage(t, []);
  const endpoint = { id: 'desk', url: 'https://hooks.example/', secret_env: 'NOTIFY_SECRET' };
  const pager = { id: 'pager', type: 'pagerduty', routing_key_env: 'PAGER_KEY' };
  const check = async (duty, audit) => {
    gateway.writeConfig({ approval: { duty: { timeout: '10m', ...duty }, night: { timeout: '10m' } }, config: { notify: [endpoint, pager], admin: ADMIN, ...(audit && { audit }) } });
    return run(BINARY, ['check', '--config', gateway.configPath], { cwd: gateway.folder, env: { ...process.env, ...ENV } });
  };
  for (const [duty, audit, finding] of [
    [{ notify: ['desc'] }, undefined, /config\.yaml:\d+:\d+: approval\.duty\.notify\[0\]: no endpoint of notify has the id "desc"; did you mean "desk"\?/],
    [{ escalate: { after: '5m', notify: ['desk', 'nobody'] } }, undefined, /config\.yaml:\d+:\d+: approval\.duty\.escalate\.notify\[1\]: no endpoint of notify has the id "nobody"; these are there: /],
    [{ escalate: { notify: ['desk'] } }, undefined, /approval\.duty\.escalate\.after: .*missing/],
    [{ escalate: { after: '5m' } }, undefined, /approval\.duty\.escalate\.notify: .*missing/],
    [{ remind_after: 'soon' }, undefined, /approval\.duty\.remind_after/],
    [{}, { anchor: { every: '1h', notify: ['vault'] } }, /config\.yaml:\d+:\d+: audit\.anchor\.notify\[0\]: no endpoint of notify has the id "vault"/],
    [{}, { anchor: { every: '1h', notify: ['pager'] } }, /audit\.anchor\.notify\[0\]: an anchor needs no person/],
  ]) {
    const { code, stderr } = await check(duty, audit);
    assert.equal(code, 2, stderr);
    assert.match(stderr, finding);
  }
  const { code, stderr } = await check({ notify: ['desk'], remind_after: '10m', escalate: { after: '5m', notify: ['pager'] } });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /warning: .*approval\.duty\.remind_after: nobody is told: the time to decide is over by then; shorten it/);
  assert.ok(!stderr.includes('escalate'));
});
