// Reactions in Slack: which are votes, how they are asked for, and how the workspace's limits are kept.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { chat, slackScene } from './lib/slack_scene.mjs';
import { TOKEN } from './lib/slack.mjs';
import { until } from './lib/wait.mjs';

const noSqlite = spawnSync('sqlite3', ['--version']).status === 0 ? false : 'sqlite3 is not here: apt-get install sqlite3';
const count = (slack, method) => slack.requests.filter((request) => request.method === method).length;
/** Two more looks at the message from now on. */
async function lookedAt(slack, message) {
  const looks = () => slack.requests.filter(({ method, args }) => method === 'conversations.history' || (method === 'reactions.get' && args.timestamp === message.ts)).length;
  const before = looks();
  await until(() => looks() >= before + 2, 'two more looks', { deadline: 20_000 });
}

test('a reaction approves, with any tone of the skin; a stranger votes nothing', async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t);
  const { taskId, message } = await asked({ secret: 1 });
  slack.react(message.ts, '+1', 'U0STRANGER');
  slack.react(message.ts, '+1', 'U0EVE');
  slack.react(message.ts, 'eyes', 'U0ALICE');
  await lookedAt(slack, message);
  assert.deepEqual((await admin.task(taskId)).votes, []);
  slack.react(message.ts, '+1::skin-tone-4', 'U0BOB');
  await admin.inState(taskId, 'completed');
  const task = await admin.task(taskId);
  assert.deepEqual([task.decidedBy, task.votes.map(({ person, verb }) => [person, verb])], ['bob', [['bob', 'approve']]]);
  await until(() => message.text === 'Done: write', 'the message says what became of it');
  const before = count(slack, 'reactions.get');
  const { message: next } = await asked({ n: 2 });
  await lookedAt(slack, next);
  const later = slack.requests.filter(({ method }) => method === 'reactions.get').slice(before);
  assert.ok(later.every(({ args }) => args.timestamp !== message.ts), 'a decided call is asked for no more');
  const { verb, args } = later.at(-1);
  assert.deepEqual([verb, args], ['GET', { channel: 'C0APPROVALS', timestamp: next.ts, full: 'true' }]);
  assert.ok(sample(await admin.metrics(), 'thoughtgate_slack_requests_total', { method: 'reactions.get', outcome: 'ok' }) > 0);
  assert.ok(!gateway.child.stderr.includes(TOKEN));
});

test('the other emoji rejects; who has put both has not approved', async (t) => {
  const { admin, slack, asked } = await slackScene(t, { env: { THOUGHTGATE_SLACK_APPROVE_REACTION: 'white_check_mark', THOUGHTGATE_SLACK_REJECT_REACTION: ':no_entry:' } });
  const { taskId, message } = await asked();
  assert.equal(message.blocks[2].text.text, 'React with :white_check_mark: to approve, or with :no_entry: to reject.');
  slack.react(message.ts, '+1', 'U0ALICE');
  slack.react(message.ts, '-1', 'U0BOB');
  await lookedAt(slack, message);
  assert.equal((await admin.task(taskId)).state, 'pending');
  slack.react(message.ts, 'white_check_mark', 'U0ALICE');
  slack.react(message.ts, 'no_entry', 'U0ALICE');
  assert.equal((await admin.inState(taskId, 'rejected', 'completed')).state, 'rejected');
});

test('a reaction that is taken back withdraws its vote, also after a restart, and no vote of elsewhere', async (t) => {
  const { gateway, slack, asked } = await slackScene(t, { keys: { quorum: 3 } });
  const { taskId, message } = await asked();
  const votes = async () => (await gateway.admin.task(taskId)).votes.map(({ person, verb }) => `${person} ${verb}`);
  const are = (...wanted) => until(async () => JSON.stringify(await votes()) === JSON.stringify(wanted), async () => `votes ${wanted}`, { deadline: 20_000 });
  slack.react(message.ts, '+1', 'U0ALICE');
  slack.react(message.ts, '+1', 'U0BOB');
  await are('alice approve', 'bob approve');
  await gateway.restart();
  slack.unreact(message.ts, '+1', 'U0BOB');
  await are('alice approve');
  // Taken back on the page: the reaction that still stands there does not give the vote again.
  const alice = gateway.admin.as('token-of-alice-0123456789');
  assert.equal((await alice.decide('withdraw', taskId)).status, 200);
  await lookedAt(slack, message);
  await are();
  // Given by the API: the reaction that goes takes back no vote that it was not.
  assert.equal((await alice.decide('approve', taskId)).status, 202);
  slack.unreact(message.ts, '+1', 'U0ALICE');
  await lookedAt(slack, message);
  await are('alice approve');
  const { entries } = (await gateway.admin.get('/api/v1/audit?limit=1000')).json;
  const rows = entries.filter((row) => row.taskId === taskId).map(({ event, person, via }) => `${event} ${person ?? ''} ${via ?? ''}`.trim());
  assert.deepEqual(rows, ['create', 'vote alice slack', 'vote bob slack', 'withdraw bob slack', 'withdraw alice token', 'vote alice token']);
});

test('a person who swaps the emoji has voted as the one that stays', async (t) => {
  const { admin, slack, asked } = await slackScene(t, { keys: { quorum: 2 } });
  const { taskId, message } = await asked();
  slack.react(message.ts, '+1', 'U0ALICE');
  await until(async () => (await admin.task(taskId)).votes.length === 1, 'the vote');
  slack.react(message.ts, '-1', 'U0ALICE'); // a second vote is none
  await lookedAt(slack, message);
  assert.deepEqual([(await admin.task(taskId)).state, (await admin.task(taskId)).votes.length], ['pending', 1]);
  slack.unreact(message.ts, '+1', 'U0ALICE');
  assert.equal((await admin.inState(taskId, 'rejected')).decidedBy, 'alice');
});

test('if a reason is required, a reaction does not count, and the message says so', async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t, { keys: { reasons: { approve: 'required' } } });
  const { taskId, message } = await asked();
  assert.equal(message.blocks[2].text.text, 'React with :-1: to reject. An approval needs a reason, so no reaction approves.');
  slack.react(message.ts, '+1', 'U0ALICE');
  await gateway.logged((line) => line.msg === 'A reaction in Slack is no vote' && line.reason === 'reason_required' && line.by === 'alice');
  await lookedAt(slack, message);
  assert.equal(gateway.logs.filter((line) => line.msg === 'A reaction in Slack is no vote').length, 1, 'it is asked once');
  assert.equal((await admin.task(taskId)).state, 'pending');
  slack.react(message.ts, '-1', 'U0ALICE');
  await admin.inState(taskId, 'rejected');
});

test('with many messages the history of the channel is asked for, page by page; names that it leaves out are asked for', async (t) => {
  const { admin, slack, asked } = await slackScene(t, { keys: { quorum: 2 }, env: { THOUGHTGATE_SLACK_RATE_LIMIT_PER_SEC: '4' }, prepare: (slack) => (slack.usersShown = 1) });
  const all = [];
  for (let n = 0; n < 8; n++) all.push(await asked({ n }));
  await until(() => slack.requests.some(({ method }) => method === 'conversations.history'), 'the history');
  const from = slack.requests.length;
  await until(() => slack.requests.slice(from).filter(({ method }) => method === 'conversations.history').length >= 3, 'three rounds');
  assert.ok(slack.requests.slice(from).every(({ method }) => method !== 'reactions.get'), 'not message by message');
  const { args } = slack.requests.findLast(({ method }) => method === 'conversations.history');
  assert.deepEqual(args, { channel: 'C0APPROVALS', oldest: all[0].message.ts, inclusive: 'true', limit: '200' });
  slack.react(all[3].message.ts, '+1', 'U0ALICE');
  slack.react(all[3].message.ts, '+1', 'U0BOB'); // the history names only the first of them
  await admin.inState(all[3].taskId, 'completed');
  assert.ok(slack.requests.slice(from).some(({ method, args: asked_ }) => method === 'reactions.get' && asked_.timestamp === all[3].message.ts));
});

test('a token without the scope for one way goes the other', async (t) => {
  const only = (scope) => (slack) => slack.scopes.delete(scope);
  const history = await slackScene(t, { prepare: only('reactions:read') });
  const first = await history.asked();
  history.slack.react(first.message.ts, '+1', 'U0ALICE');
  await history.admin.inState(first.taskId, 'completed');
  const single = await slackScene(t, { prepare: only('channels:history'), env: { THOUGHTGATE_SLACK_RATE_LIMIT_PER_SEC: '3' } });
  const all = [];
  for (let n = 0; n < 5; n++) all.push(await single.asked({ n }));
  for (const { message } of all) single.slack.react(message.ts, '+1', 'U0BOB');
  for (const { taskId } of all) await single.admin.inState(taskId, 'completed');
});

test('a token without any of these scopes is named in the log, and the page decides', async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t, { prepare: (slack) => ['reactions:read', 'channels:history'].forEach((scope) => slack.scopes.delete(scope)) });
  const { taskId, message } = await asked();
  slack.react(message.ts, '+1', 'U0ALICE');
  await gateway.logged(/^Slack does not tell reactions, so none is a vote/);
  assert.deepEqual([count(slack, 'reactions.get'), count(slack, 'conversations.history')], [1, 1], 'it is not asked again and again');
  await admin.approve(taskId);
  assert.equal((await admin.inState(taskId, 'completed')).decidedBy, 'admin');
});

test('a channel that the bot cannot read holds up no other one, and is said once', async (t) => {
  const { gateway, admin, slack, client } = await slackScene(t, { notify: (slack) => [chat(slack), chat(slack, { id: 'night', channel: '#night' })] });
  const { taskId } = await client.createTask('write');
  const night = await slack.messageOf(taskId, 'C0NIGHT');
  const day = await slack.messageOf(taskId, 'C0APPROVALS');
  slack.messages.splice(slack.messages.indexOf(night), 1); // deleted
  const looks = () => slack.requests.filter(({ args }) => args.timestamp === night.ts).length;
  await until(() => looks() >= 3, 'three rounds', { deadline: 20_000 });
  await until(() => gateway.logs.filter((line) => /^Slack (does not answer|answers again)/.test(line.msg)).length === 1, 'one log line');
  slack.react(day.ts, '+1', 'U0BOB');
  await admin.inState(taskId, 'completed');
});

test('a Retry-After of Slack is waited for, and the pace is kept', async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t, { prepare: (slack) => (slack.faults['reactions.get'] = [429, { ok: false, error: 'ratelimited' }, { 'retry-after': '3' }]) });
  const { taskId, message } = await asked();
  slack.react(message.ts, '+1', 'U0ALICE');
  await until(() => count(slack, 'reactions.get') === 1, 'the first request', { deadline: 20_000 });
  delete slack.faults['reactions.get'];
  await admin.inState(taskId, 'completed');
  const [first, second] = slack.requests.filter(({ method }) => method === 'reactions.get');
  assert.ok(second.at - first.at >= 2900, `${second.at - first.at} ms`);
  await gateway.logged(/^Slack answers again$/);
  assert.ok(sample(await admin.metrics(), 'thoughtgate_slack_requests_total', { method: 'reactions.get', outcome: 'limited' }) === 1);
});

test('posts wait as long as Slack asks: not only the message that was too much', async (t) => {
  const { slack, client } = await slackScene(t);
  slack.faults['chat.postMessage'] = [429, { ok: false, error: 'ratelimited' }, { 'retry-after': '3' }];
  await client.createTask('write', { n: 1 });
  await until(() => count(slack, 'chat.postMessage') === 1, 'the first post', { deadline: 20_000 });
  delete slack.faults['chat.postMessage'];
  await client.createTask('write', { n: 2 });
  await until(() => slack.messages.length === 2, 'both messages', { deadline: 20_000 });
  const [first, ...later] = slack.requests.filter(({ method }) => method === 'chat.postMessage');
  assert.deepEqual(later.map(({ at }) => at - first.at >= 2900), [true, true]);
});

test('a Slack that is down decides nothing, and votes come through once it is back', async (t) => {
  const { admin, slack, asked, gateway } = await slackScene(t);
  const { taskId, message } = await asked();
  slack.faults['reactions.get'] = [500, 'broken'];
  slack.react(message.ts, '+1', 'U0ALICE');
  await gateway.logged((line) => line.msg === 'Slack does not answer as it should, and is asked again' && line.reason === 'HTTP 500');
  await lookedAt(slack, message);
  assert.equal((await admin.task(taskId)).state, 'pending');
  delete slack.faults['reactions.get'];
  await admin.inState(taskId, 'completed');
});

test('a destination of the type slack: ThoughtGate\'s keys and variables alone, without a page of its own', async (t) => {
  const { admin, slack, asked } = await slackScene(t, {
    approval: (slack) => ({ default: { destination: { type: 'slack', channel: '#approvals', url: slack.url, mention: ['U0BOB', '@oncall'] }, timeout: '10m', redact_fields: ['password'] } }),
    notify: () => [],
    env: { THOUGHTGATE_SLACK_BOT_TOKEN: TOKEN },
    config: { admin: { people: [{ name: 'alice', slack: 'U0ALICE' }] } },
  });
  const { taskId, message } = await asked({ path: '/x', password: 'hunter2' });
  assert.equal(message.blocks[0].text.text, '<@U0BOB> *Approval needed*');
  assert.ok(message.blocks[1].text.text.includes('Arguments: {"path":"/x","password":"[REDACTED]"}'));
  slack.react(message.ts, 'thumbsup', 'U0ALICE');
  await admin.inState(taskId, 'completed');
});

test('without people in Slack nobody is asked there; a reload that names them begins', async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t);
  const { taskId, message } = await asked();
  const people = gateway.options.config.admin.people;
  const reloaded = async (admin_) => {
    const before = gateway.logs.filter((line) => line.msg === 'Configuration reloaded').length;
    gateway.writeConfig({ config: { ...gateway.options.config, admin: { ...gateway.options.config.admin, people: admin_ } } });
    gateway.hangUp();
    await gateway.logged(() => gateway.logs.filter((line) => line.msg === 'Configuration reloaded').length > before);
  };
  await reloaded(people.map(({ slack: _, roles, ...rest }) => rest));
  const asks = count(slack, 'reactions.get');
  slack.react(message.ts, '+1', 'U0ALICE');
  await admin.get('/ready');
  await reloaded(people);
  await admin.inState(taskId, 'completed');
  assert.ok(count(slack, 'reactions.get') > asks);
});

test('a reaction counts only for the request that its message shows', { skip: noSqlite }, async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t);
  const { taskId, message } = await asked();
  const { requestDigest } = await admin.task(taskId);
  const posted = (from, to) => execFileSync('sqlite3', [gateway.storePath, `UPDATE outbox_thread SET reference = replace(reference, '${from}', '${to}') WHERE reference LIKE '%${from}'; SELECT changes()`], { encoding: 'utf8' }).trim();
  await gateway.stop();
  assert.equal(posted(requestDigest, '0'.repeat(64)), '1');
  await gateway.launch();
  slack.react(message.ts, '+1', 'U0ALICE');
  await gateway.logged((line) => line.msg === 'A reaction in Slack is no vote' && line.reason === 'changed' && line.by === 'alice');
  await lookedAt(slack, message);
  assert.deepEqual((await admin.task(taskId)).votes, []);
  slack.unreact(message.ts, '+1', 'U0ALICE');
  await lookedAt(slack, message);
  await gateway.stop();
  assert.equal(posted('0'.repeat(64), requestDigest), '1');
  await gateway.launch();
  slack.react(message.ts, '+1', 'U0ALICE');
  await admin.inState(taskId, 'approved'); // it waits for its caller, since the restart
});
