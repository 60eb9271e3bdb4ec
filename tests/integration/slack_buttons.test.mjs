// Buttons in Slack: whose presses are votes, and which are none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { report } from './lib/slack.mjs';
import { slackScene, withButtons } from './lib/slack_scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** A scene with buttons; `press` reports one as Slack does, once the gateway knows what its token is of. */
async function stage(t, options = {}) {
  const all = await slackScene(t, { notify: (slack) => [withButtons(slack)], ...options });
  await all.gateway.logged(/^Slack knows the token$/);
  await until(() => all.slack.requests.some(({ method }) => method === 'bots.info'), 'the app is asked for');
  const press = (message, action, user, more = {}, sign = {}) => report(all.gateway.adminUrl, { ...all.slack.pressOf(message, action, user), ...more }, sign);
  return { ...all, press };
}

const auditOf = async (admin, taskId) => (await admin.get('/api/v1/audit?limit=1000')).json.entries.filter((row) => row.taskId === taskId);

test('a press approves: the call runs, the audit names person and Slack, the message loses its buttons', async (t) => {
  const { admin, slack, asked, press, upstream } = await stage(t);
  const { taskId, message } = await asked({ path: '/x' });
  const { requestDigest } = await admin.task(taskId);
  for (const verb of ['approve', 'reject']) assert.equal(slack.button(message, verb).value, `${taskId} ${requestDigest}`);
  assert.deepEqual(message.blocks.map((block) => block.type), ['section', 'section', 'section', 'actions']);
  assert.equal(message.blocks[2].text.text, 'React with :+1: to approve, or with :-1: to reject.');
  assert.deepEqual(await press(message, 'approve', 'U0ALICE'), { status: 200, text: '' });
  await admin.inState(taskId, 'completed');
  assert.equal(upstream.calls.length, 1);
  const task = await admin.task(taskId);
  assert.deepEqual([task.decidedBy, task.votes.map(({ person, verb }) => [person, verb])], ['alice', [['alice', 'approve']]]);
  const row = (await auditOf(admin, taskId)).find(({ event }) => event === 'approve');
  assert.deepEqual([row.person, row.via], ['alice', 'slack']);
  await until(() => message.text === 'Done: write' && message.blocks.length === 2, () => `the end; the message is ${JSON.stringify(message)}`);
  assert.ok(message.blocks[1].text.text.includes('Decided by: alice'));
});

test('a press under a message of before a restart counts; two people fill a quorum; the second press of one is told so', async (t) => {
  const { gateway, admin, slack, asked, press } = await stage(t, { keys: { quorum: { dba: 1, security: 1 } } });
  const { taskId, message } = await asked();
  assert.equal((await press(message, 'approve', 'U0ALICE')).status, 200);
  assert.deepEqual((await admin.task(taskId)).missing, { security: 1 });
  await gateway.restart();
  await until(async () => (await press(message, 'approve', 'U0ALICE')).status === 200, 'Slack knows the token again');
  await until(() => slack.whispers.length > 0, 'a line for alice');
  assert.deepEqual(slack.whispers[0], { channel: 'C0APPROVALS', user: 'U0ALICE', text: 'You have voted already. Take that vote back first.' });
  assert.equal((await gateway.admin.task(taskId)).votes.length, 1);
  assert.equal((await press(message, 'approve', 'U0BOB')).status, 200);
  assert.equal((await gateway.admin.task(taskId)).votes.length, 2);
  assert.notEqual((await gateway.admin.task(taskId)).state, 'pending');
});

test('each vote changes the message that was sent, which keeps its buttons and calls nobody again', async (t) => {
  const { admin, slack, asked, press } = await stage(t, { keys: { quorum: 3 }, notify: (slack) => [{ ...withButtons(slack), mention: ['U0ALICE'] }] });
  const { taskId, message } = await asked();
  const [votes, kinds] = [() => /\nVotes: (.*)\n/.exec(message.blocks[1].text.text)?.[1], () => message.blocks.map((block) => block.type)];
  const says = (text) => until(() => votes() === text, () => `votes ${text}; the message is ${JSON.stringify(message)}`);
  const before = [message.blocks[2], message.blocks[3]];
  assert.deepEqual([votes(), kinds()], ['0 of 3', ['section', 'section', 'section', 'actions']]);
  await press(message, 'approve', 'U0ALICE');
  await says('1 of 3: alice');
  assert.deepEqual([message.text, message.blocks.slice(2), message.blocks[0].text.text.includes('U0ALICE')], ['Approval needed: write', before, false]);
  assert.equal((await admin.as('token-of-carol-0123456789').decide('approve', taskId)).status, 202);
  await says('2 of 3: alice, carol');
  assert.equal((await admin.as('token-of-alice-0123456789').decide('withdraw', taskId)).status, 200);
  await says('1 of 3: carol');
  assert.equal(slack.messages.length, 1, 'one message for the call');
  assert.equal((await press(message, 'reject', 'U0BOB')).status, 200, 'its buttons go on');
  await until(() => message.text === 'Rejected: write' && message.blocks.length === 2, 'the end');
});

test('a copy of a press does not give a vote again that was taken back', async (t) => {
  const { gateway, admin, slack, asked } = await stage(t, { keys: { quorum: 3 } });
  const { taskId, message } = await asked();
  const payload = slack.pressOf(message, 'approve', 'U0ALICE');
  const timestamp = String(Math.floor(Date.now() / 1000));
  const send = () => report(gateway.adminUrl, payload, { timestamp });
  assert.equal((await send()).status, 200);
  assert.equal((await admin.task(taskId)).votes.length, 1);
  assert.equal((await admin.as('token-of-alice-0123456789').decide('withdraw', taskId)).status, 200);
  assert.equal((await send()).status, 200);
  await gateway.logged(/^A press in Slack came twice, and counts once$/);
  assert.deepEqual((await admin.task(taskId)).votes, []);
  await gateway.restart();
  await gateway.logged(/^Slack knows the token$/);
  await until(async () => (await send()).status === 200, 'Slack has told what the token is of');
  assert.deepEqual((await admin.task(taskId)).votes, [], 'nor at a process that has not seen the first');
  assert.equal((await report(gateway.adminUrl, slack.pressOf(message, 'approve', 'U0ALICE'))).status, 200); // a press of its own
  assert.equal((await admin.task(taskId)).votes.length, 1);
});

test('a required reason is asked for by a dialog, and comes with the vote', async (t) => {
  const { gateway, admin, slack, asked, press } = await stage(t, { keys: { reasons: { reject: 'required', approve: 'required' } } });
  const { taskId, message } = await asked();
  assert.equal(message.blocks[2].text.text, 'A decision needs a reason, so no reaction counts.');
  assert.equal((await press(message, 'reject', 'U0BOB')).status, 200);
  const view = await until(() => slack.views[0], 'the dialog');
  assert.deepEqual([view.title.text, view.blocks[0].label.text], ['Reject', 'Reason']);
  assert.equal((await admin.task(taskId)).state, 'pending');
  const send = (reason, user) => report(gateway.adminUrl, slack.submissionOf(view, reason, user));
  const refused = await send('because', 'U0EVE');
  assert.deepEqual([refused.status, (await admin.task(taskId)).state], [200, 'pending']);
  const empty = await send('', 'U0BOB');
  assert.deepEqual(JSON.parse(empty.text), { response_action: 'errors', errors: { reason: 'This vote needs a reason.' } });
  assert.deepEqual(await send('not <before> the backup', 'U0BOB'), { status: 200, text: '' });
  const task = await admin.task(taskId);
  assert.deepEqual([task.state, task.decidedBy, task.reason], ['rejected', 'bob', 'not <before> the backup']);
  const late = await send('again', 'U0ALICE');
  assert.match(JSON.parse(late.text).errors.reason, /does not wait for a decision any more|not, or no longer, that of a call/);
});

test('nobody decides their own call, and nobody votes whom the workflow does not ask', async (t) => {
  const { gateway, admin, slack, asked, messageOf, press } = await stage(t, { keys: { approvers: { groups: ['security'] } } });
  const own = await admin.as('token-of-alice-0123456789').post('/api/v1/calls', { source: 'up', tool: 'write', arguments: {} });
  const ownId = own.json.id;
  await press(await messageOf(ownId), 'approve', 'U0ALICE');
  await until(() => slack.whispers.at(-1)?.text === 'This call is your own. Somebody else must decide it.', 'the refusal');
  const { taskId, message } = await asked();
  await press(message, 'approve', 'U0ALICE');
  await until(() => slack.whispers.at(-1)?.text === 'You may not vote in this workflow.', 'the other refusal');
  for (const id of [ownId, taskId]) assert.deepEqual([(await admin.task(id)).state, (await admin.task(id)).votes], ['pending', []]);
  assert.ok(!gateway.child.stderr.includes('xoxb-') && !gateway.child.stderr.includes('8f742231b10e'));
});

test('a request that Slack has not signed, or signed long ago, is 401; one that is no vote is 200 and changes nothing', async (t) => {
  const { gateway, admin, slack, asked, press } = await stage(t);
  const { taskId, message } = await asked();
  slack.tellsApp = false;
  const other = (await asked({ n: 2 })).message;
  const status = async (...press_) => (await press(...press_)).status;
  const unsigned = [{ secret: 'another secret' }, { age: 301 }, { age: -302 }, { signature: 'v0=00' }, { signature: '' }];
  for (const sign of unsigned) assert.equal(await status(message, 'approve', 'U0ALICE', {}, sign), 401, JSON.stringify(sign));
  assert.equal((await fetch(`${gateway.adminUrl}/slack/interactions`, { method: 'POST', body: 'payload={}' })).status, 401);
  assert.equal((await fetch(`${gateway.adminUrl}/slack/interactions`)).status, 405);
  const container = slack.pressOf(other, 'approve', 'U0ALICE').container;
  const votes = [
    [message, 'approve', 'U0STRANGER'],
    [message, 'approve', 'U0EVE'],
    [message, 'approve', 'U0ALICE', { team: { id: 'T0OTHER', domain: 'other' } }],
    [message, 'approve', 'U0ALICE', { api_app_id: 'A0OTHER' }],
    [other, 'approve', 'U0ALICE', { api_app_id: 'A0OTHER' }],
    [message, 'approve', 'U0ALICE', { message: { bot_id: 'B0OTHER' } }],
    [message, 'approve', 'U0ALICE', { container }],
    [message, 'approve', 'U0ALICE', { container: { ...container, message_ts: '1.2' } }],
    [message, 'approve', 'U0ALICE', { container: { ...slack.pressOf(message, 'approve', 'U').container, channel_id: 'C0NIGHT' } }],
    [message, 'approve', 'U0ALICE', { actions: [{ action_id: 'taskgate_approve', value: 'tg_none', type: 'button' }] }],
    [message, 'approve', 'U0ALICE', { actions: [{ action_id: 'something', value: taskId, type: 'button' }] }],
    [message, 'approve', 'U0ALICE', { type: 'shortcut' }],
  ];
  for (const vote of votes) assert.equal(await status(...vote), 200, JSON.stringify(vote.slice(2)));
  for (const body of ['', 'payload=', 'payload=%7B', 'payload=%zz', 'x=1']) assert.equal((await report(gateway.adminUrl, {}, { body })).status, 400, body);
  const { tasks } = await admin.list({ state: 'pending' });
  assert.deepEqual(tasks.map(({ votes }) => votes), [[], []]);
  assert.equal(await status(message, 'approve', 'U0ALICE', {}, { age: 290 }), 200);
  await admin.inState(taskId, 'completed');
});

test('as long as Slack has not told what the token is of, no press counts', async (t) => {
  const { gateway, admin, slack, asked } = await slackScene(t, { notify: (slack) => [withButtons(slack)], prepare: (slack) => (slack.faults['auth.test'] = [200, { ok: false, error: 'internal_error' }]) });
  await gateway.logged((line) => line.msg === 'Slack does not answer as it should, and is asked again' && line.method === 'auth.test');
  const { taskId, message } = await asked();
  const press = () => report(gateway.adminUrl, slack.pressOf(message, 'approve', 'U0ALICE'));
  assert.equal((await press()).status, 503);
  assert.equal((await admin.task(taskId)).state, 'pending');
  const second = await asked({ n: 2 });
  slack.react(second.message.ts, '+1', 'U0ALICE');
  await admin.inState(second.taskId, 'completed'); // a reaction needs no more than the token
  delete slack.faults['auth.test'];
  await gateway.logged(/^Slack knows the token$/);
  assert.equal((await press()).status, 200);
  await admin.inState(taskId, 'completed');
});

/** Requests that a message does not show to their end. */
const HIDDEN = {
  'padding before the dangerous value': { arguments: { a: 'x'.repeat(4096), db: 'PRODUCTION' } },
  'a long key': { arguments: { ['k'.repeat(3000)]: 1, db: 'PRODUCTION' } },
  'a long _meta': { arguments: {}, _meta: { note: 'x'.repeat(4096), db: 'PRODUCTION' } },
  'a long further member of params': { arguments: {}, extra: { note: 'x'.repeat(4096), db: 'PRODUCTION' } },
};

test('a message that does not show the whole request has no buttons, counts no reaction and no press, and says so', async (t) => {
  const { admin, slack, client, messageOf, press } = await stage(t, { rules: [{ match: 'write', action: 'approve', reason: 'optional' }], keys: { quorum: 2 } });
  const created = async (params) => (await client.result('tools/call', { name: 'write', task: { ttl: 600_000 }, ...params })).task.taskId;
  const ids = [];
  for (const [name, params] of Object.entries(HIDDEN)) {
    const taskId = await created(params);
    const message = await messageOf(taskId);
    ids.push(taskId);
    assert.deepEqual(message.blocks.map((block) => block.type), ['section', 'section', 'section'], name);
    assert.equal(message.blocks[2].text.text, 'This message does not show the whole call. Open the call to decide.');
    slack.react(message.ts, '+1', 'U0ALICE');
    const sent = structuredClone(message);
    const elements = [{ action_id: 'taskgate_approve', value: ids.at(-1) }];
    await press({ ...sent, blocks: [...sent.blocks, { type: 'actions', elements }] }, 'approve', 'U0BOB');
    await until(() => slack.whispers.at(-1)?.text === message.blocks[2].text.text && slack.whispers.length === ids.length, 'the press is refused');
  }
  const whole = await created({ arguments: { n: 1, taskgate_reason: 'tidying up' }, _meta: { note: 'm' }, extra: ['e'] });
  const message = await messageOf(whole);
  assert.match(message.blocks[1].text.text, /\nThe agent says: tidying up\nArguments: \{"n":1\}\n_meta: \{"note":"m"\}\nFurther parameters: \{"extra":\["e"\]\}$/);
  slack.react(message.ts, '+1', 'U0ALICE');
  await until(async () => (await admin.task(whole)).votes.length === 1, 'the reaction under a whole message', { deadline: 20_000 });
  for (const id of ids) assert.deepEqual((await admin.task(id)).votes, [], 'reactions of before that one');
});

test('without arguments there are no buttons, unless the endpoint lets people vote blindly', async (t) => {
  const { asked } = await stage(t, { notify: (slack) => [{ ...withButtons(slack), include_arguments: false }] });
  const { message } = await asked({ db: 'PRODUCTION' });
  assert.deepEqual(message.blocks.map((block) => block.type), ['section', 'section', 'section']);
  const blind = await stage(t, { notify: (slack) => [{ ...withButtons(slack), include_arguments: false, blind_votes: true }] });
  const other = await blind.asked({ db: 'PRODUCTION' });
  assert.deepEqual([(await blind.press(other.message, 'approve', 'U0ALICE')).status, JSON.stringify(other.message).includes('PRODUCTION')], [200, false]);
  await blind.admin.inState(other.taskId, 'completed');
});

test('without arguments neither a press nor a reaction counts, while both do under the message of an endpoint with them', async (t) => {
  const bare = (slack) => ({ ...withButtons(slack), id: 'bare', channel: '#night', include_arguments: false });
  const { admin, slack, asked, press } = await stage(t, { notify: (slack) => [withButtons(slack), bare(slack)], keys: { quorum: 3 } });
  const { taskId } = await asked({ db: 'PRODUCTION' });
  const [whole, less] = [await slack.messageOf(taskId, 'C0APPROVALS'), await slack.messageOf(taskId, 'C0NIGHT')];
  assert.equal(JSON.stringify(less).includes('PRODUCTION'), false);
  assert.equal(less.blocks[2].text.text, 'This message does not show the whole call. Open the call to decide.');
  slack.react(less.ts, '+1', 'U0ALICE');
  const elements = [{ action_id: 'taskgate_approve', value: slack.button(whole, 'approve').value }];
  assert.equal((await press({ ...less, blocks: [...less.blocks, { type: 'actions', elements }] }, 'approve', 'U0ALICE')).status, 200);
  await until(() => slack.whispers.at(-1)?.text === less.blocks[2].text.text, 'the press is refused');
  slack.react(whole.ts, '+1', 'U0BOB');
  const votes = async () => (await admin.task(taskId)).votes.map(({ person, verb }) => [person, verb]);
  await until(async () => (await votes()).length > 0, 'the reaction under the whole message', { deadline: 20_000 });
  assert.deepEqual(await votes(), [['bob', 'approve']]);
  assert.equal((await press(whole, 'approve', 'U0ALICE')).status, 200);
  assert.deepEqual(await votes(), [['bob', 'approve'], ['alice', 'approve']]);
});

test('a press for another request than that of the message counts nothing; one without a digest, of an older message, counts', async (t) => {
  const { admin, slack, asked, press } = await stage(t);
  const { taskId, message } = await asked();
  const pressed = (value) => press(message, 'approve', 'U0ALICE', { actions: [{ action_id: 'taskgate_approve', value, type: 'button' }] });
  assert.equal((await pressed(`${taskId} ${'0'.repeat(64)}`)).status, 200);
  await until(() => slack.whispers.at(-1)?.text === 'This call has changed since this message. Open the call to decide.', 'the refusal');
  assert.deepEqual((await admin.task(taskId)).votes, []);
  assert.equal((await pressed(taskId)).status, 200);
  await admin.inState(taskId, 'completed');
});

test('an approval of high risk: a reaction does not count and is told so once; a button asks for the value', async (t) => {
  const { gateway, admin, slack, asked, press } = await stage(t, { rules: [{ match: 'write', action: 'approve', show: { risk: 'high', confirm: 'db' } }], keys: { reasons: { approve: 'required' } } });
  const { taskId, message } = await asked({ db: 'PRODUCTION' });
  assert.match(message.blocks[2].text.text, /^React with :-1: to reject\. An approval needs a typed value, so no reaction approves\.$/);
  await press(message, 'approve', 'U0ALICE');
  const view = await until(() => slack.views[0], 'the dialog');
  assert.deepEqual(view.blocks.map((block) => [block.block_id, block.label.text]), [['typed', 'Type the value of db'], ['reason', 'Reason']]);
  const send = (typed) => report(gateway.adminUrl, slack.submissionOf(view, 'agreed', 'U0ALICE', typed));
  assert.deepEqual(JSON.parse((await send('SCRATCH')).text), { response_action: 'errors', errors: { typed: 'This is not the value that is asked for.' } });
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.deepEqual(await send('PRODUCTION'), { status: 200, text: '' });
  await admin.inState(taskId, 'completed');
});

test('a dialog that asks for the digest has its digits, and nothing of the digest of a hidden value', async (t) => {
  const name = 'wr\u0456te';
  const { gateway, admin, slack, client, messageOf, press } = await stage(t, { rules: [{ match: '*', action: 'approve', show: { risk: 'high' } }], keys: { redact_fields: ['pin'] }, upstream: { tools: [tool(name)] } });
  const { taskId } = await client.createTask(name, { pin: 4711 });
  const message = await messageOf(taskId);
  const { requestDigest, typed } = await admin.task(taskId);
  assert.equal(slack.button(message, 'approve').value, `${taskId} ${requestDigest}`);
  await press(message, 'approve', 'U0ALICE');
  const view = await until(() => slack.views[0], 'the dialog');
  assert.deepEqual([typed, view.blocks[0].label.text], [{ path: '$digest' }, `Type ${requestDigest.slice(0, 8)}`]);
  assert.deepEqual(await report(gateway.adminUrl, slack.submissionOf(view, 'agreed', 'U0ALICE', requestDigest.slice(0, 8))), { status: 200, text: '' });
  await admin.inState(taskId, 'completed');
});

test('a reaction to a call of high risk approves nothing, and its person is told so in the thread', async (t) => {
  const { admin, slack, asked } = await stage(t, { rules: [{ match: 'write', action: 'approve', show: { risk: 'high' } }] });
  const { taskId, message } = await asked();
  slack.react(message.ts, '+1', 'U0ALICE');
  await until(() => slack.whispers.length === 1, 'a line', { deadline: 20_000 });
  assert.deepEqual(slack.whispers[0], { channel: message.channel, user: 'U0ALICE', text: 'This approval needs a typed value, so a reaction does not count.', thread_ts: message.ts });
  assert.deepEqual((await admin.task(taskId)).votes, []);
  slack.react(message.ts, '-1', 'U0BOB');
  await admin.inState(taskId, 'rejected');
  assert.equal(slack.whispers.length, 1);
});
