// Slack, Teams and PagerDuty: endpoints that speak their wire formats, and what people read there.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { run } from './lib/child.mjs';
import { BINARY, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { freePort } from './lib/ports.mjs';
import { scene } from './lib/scene.mjs';
import { startMailServer } from './lib/smtp_sink.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ENV = { SLACK_TOKEN: 'xoxb-secret-of-slack', PAGER_KEY: 'R0123456789secretofpagerduty0000' };
const HTML = 'text/html';

/** An HTTP endpoint that answers each request by `answer(path, json, request)`: [status, body, headers]. */
async function startEndpoint(t, answer) {
  const endpoint = { requests: [], answer };
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const json = JSON.parse(Buffer.concat(parts).toString('utf8'));
    const record = { method: request.method, path: request.url, headers: request.headers, json, at: Date.now() };
    const [status, body, headers = {}] = endpoint.answer(record);
    endpoint.requests.push(record);
    response.writeHead(status, { 'content-type': typeof body === 'string' ? HTML : 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const port = await freePort();
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  endpoint.url = `http://127.0.0.1:${port}`;
  endpoint.seen = (count) => until(() => endpoint.requests.length >= count && endpoint.requests, () => `request ${count}; there are ${JSON.stringify(endpoint.requests.map((r) => r.json))}`, { deadline: 30_000 });
  return endpoint;
}

/** Slack's Web API as far as it is used: it keeps messages, and refuses what Slack refuses. */
async function startSlack(t) {
  const messages = new Map(); // ts -> message
  const slack = await startEndpoint(t, ({ path, headers, json }) => {
    if (slack.fault) return slack.fault;
    const refuse = (error) => [200, { ok: false, error }];
    if (headers.authorization !== `Bearer ${ENV.SLACK_TOKEN}`) return refuse('invalid_auth');
    if (!/^application\/json/.test(headers['content-type'])) return refuse('invalid_post_type');
    if (!json.text || json.blocks.some((block) => block.type !== 'section' || block.text.text.length > 3000)) return refuse('invalid_blocks');
    if (path === '/api/chat.postMessage') {
      if (!['#approvals', 'C0APPROVALS'].includes(json.channel)) return refuse('channel_not_found');
      const ts = `17680000${10 + messages.size}.000100`;
      messages.set(ts, json);
      return [200, { ok: true, channel: 'C0APPROVALS', ts, message: { text: json.text } }];
    }
    if (path !== '/api/chat.update') return refuse('unknown_method');
    if (json.channel !== 'C0APPROVALS' || !messages.has(json.ts)) return refuse('message_not_found');
    messages.set(json.ts, json);
    return [200, { ok: true, channel: 'C0APPROVALS', ts: json.ts, text: json.text }];
  });
  return Object.assign(slack, { messages });
}

/** A gateway whose `write` needs an approval, with `notify(url of its page)`. */
async function stage(t, notify, more = {}) {
  const all = await scene(t, {
    rules: [{ match: 'write', action: 'approve', approval: 'default' }, { match: 'night', action: 'approve', approval: 'night-shift' }],
    approval: { ...workflow('10m', { redact_fields: ['password'] }), 'night-shift': { timeout: '10m' } },
    upstream: { tools: [tool('read'), tool('write'), tool('night')] },
    env: ENV,
    config: { notify, admin: { public_url: 'https://gate.example' } },
    ...more,
  });
  return all;
}

const slackTo = (slack, more = {}) => ({ id: 'chat', type: 'slack', url: `${slack.url}/api`, channel: '#approvals', token_env: 'SLACK_TOKEN', ...more });
const ready = async (admin) => (await admin.get('/ready')).json;

test('Slack: one message for each call, with mention, link and facts; it says later what became of the call', async (t) => {
  const slack = await startSlack(t);
  const { gateway, admin, connect } = await stage(t, [slackTo(slack, { mention: ['U0ALICE', 'S0DBA'], include_arguments: true })]);
  const client = await connect();
  const { taskId } = await client.createTask('write', { path: '<!channel> *x*\u202egpj', password: 'hunter2-argument' });
  await slack.seen(1);
  const [line, facts] = slack.requests[0].json.blocks.map((block) => block.text);
  assert.deepEqual([line.type, line.text], ['mrkdwn', `<@U0ALICE> <!subteam^S0DBA> *Approval needed*  <https://gate.example/#task=${taskId}|Open the call>`]);
  assert.equal(facts.type, 'plain_text', 'nothing of an agent is formatted');
  assert.match(facts.text, /^Tool: write\nServer: up\nAsked by: unverified "/);
  assert.match(facts.text, /\nWorkflow: default\nDecide by: \d{4}-/);
  assert.ok(facts.text.includes(`Arguments: {"path":"<!channel> *x*\\u202egpj","password":"[REDACTED]"}`), facts.text);
  assert.equal(slack.requests[0].json.text, 'Approval needed: write');
  await until(async () => sample(await admin.metrics(), 'thoughtgate_notifications_total', { outcome: 'delivered' }) === 1, 'the gateway to note the message');
  await gateway.restart(); // the message is remembered
  await admin.approve(taskId, 'asked & <fine>');
  await until(() => slack.requests.at(-1).json.text === 'Approved: write' || slack.requests.at(-1).json.text === 'Done: write', 'the decision');
  const decided = slack.requests[1];
  assert.deepEqual([decided.path, decided.json.channel, decided.json.ts], ['/api/chat.update', 'C0APPROVALS', [...slack.messages.keys()][0]]);
  assert.match(decided.json.blocks[1].text.text, /\nDecided by: admin\nReason: asked & <fine>\n/);
  assert.ok(!decided.json.blocks[0].text.text.includes('U0ALICE'), 'nobody is called again');
  const again = await connect();
  await again.createTask('write');
  await until(() => slack.messages.size === 2, 'the next call has a message of its own');
  assert.ok(!gateway.child.stderr.includes(ENV.SLACK_TOKEN) && !gateway.child.stderr.includes('hunter2-argument'));
});

test('the sentence of the rule goes with the arguments, its risk to all, and who has voted to chats', async (t) => {
  const slack = await startSlack(t);
  const [whole, bare] = [await startEndpoint(t, () => [204, '']), await startEndpoint(t, () => [204, ''])];
  const names = ['alice', 'bob'];
  const hook = ({ url }, more = {}) => ({ url, secret_env: 'HOOK_SECRET', ...more });
  const { admin, connect } = await stage(t, [], {
    rules: [{ match: 'write', action: 'approve', approval: 'default', show: { summary: 'Writes {path} with {password}', risk: 'high' } }],
    approval: workflow('10m', { redact_fields: ['password'], quorum: 2 }),
    env: { ...ENV, HOOK_SECRET: 'a-secret-of-the-hooks', ALICE: 'token-of-alice-0123456789', BOB: 'token-of-bob-0123456789' },
    config: {
      notify: [slackTo(slack, { include_arguments: true }), hook(whole, { include_arguments: true }), hook(bare)],
      admin: { public_url: 'https://gate.example', people: names.map((name) => ({ name })), tokens: names.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })) },
    },
  });
  slack.fault = [500, '']; // so that the vote is there when the message is
  const { taskId } = await (await connect()).createTask('write', { path: '/x', password: 'hunter2' });
  await slack.seen(1);
  assert.equal((await admin.as('token-of-alice-0123456789').post(`/api/v1/tasks/${taskId}/approve`, { typed: 'write' })).status, 202);
  slack.fault = null;
  await until(() => slack.messages.size === 1, 'the message');
  const facts = [...slack.messages.values()][0].blocks[1].text.text;
  assert.match(facts, /^Summary: Writes "\/x" with \[REDACTED\]\nTool: write\n/);
  assert.match(facts, /\nWorkflow: default\nRisk: high\nVotes: 1 of 2: alice\nDecide by: /);
  const [full] = await whole.seen(1), [short] = await bare.seen(1);
  assert.deepEqual([full.json.task.summary, full.json.task.risk], ['Writes "/x" with [REDACTED]', 'high']);
  assert.deepEqual([short.json.task.summary, short.json.task.risk, short.json.task.arguments], [undefined, 'high', undefined]);
  assert.ok(!JSON.stringify(short.json).includes('/x'), 'no argument in the sentence');
});

test('Slack: markup in a name is no markup; a long call is cut', async (t) => {
  const slack = await startSlack(t);
  const name = 'w<!here>&';
  const { connect } = await stage(t, [slackTo(slack, { include_arguments: true })], { rules: [{ match: 'w*', action: 'approve', approval: 'default' }], upstream: { tools: [tool(name)] } });
  await (await connect()).createTask(name, { text: 'ä'.repeat(20_000) });
  await slack.seen(1);
  const { text, blocks } = slack.requests[0].json;
  assert.equal(text, 'Approval needed: w&lt;!here&gt;&amp;');
  assert.ok(blocks[1].text.text.startsWith(`Tool: ${name}\n`));
  assert.ok(blocks[1].text.text.endsWith('ä…') && Buffer.byteLength(blocks[1].text.text) <= 2905);
});

test('no channel passes on what cannot be seen, or hides a line behind white space', async (t) => {
  const HIDDEN = /[\u200b\u2060\ufe0f\u3164\u00a0\u202e\u{e0000}-\u{e0fff}]/u;
  const name = 'write\u{e0041}\u3164';
  const path = `a\u200b\u2060\ufe0f\u00a0\u202eb${'\n'.repeat(60)}DROP TABLE \u05d0\u05d1 12${' '.repeat(3000)}x`;
  const shown = '"a\\u200b\\u2060\\ufe0f\\u00a0\\u202eb[60 line breaks]DROP TABLE \u2068\u05d0\u05d1\u2069 12[3,000 blanks]x"';
  const slack = await startSlack(t);
  const pager = await startEndpoint(t, ({ json }) => [202, { status: 'success', message: 'Event processed', dedup_key: json.dedup_key }]);
  const teams = await startEndpoint(t, () => [202, '']);
  const post = await startMailServer(t);
  const more = { include_arguments: true };
  const { admin, connect, gateway } = await stage(t, [
    slackTo(slack, more),
    { type: 'pagerduty', url: `${pager.url}/v2/enqueue`, routing_key_env: 'PAGER_KEY', ...more },
    { type: 'teams', url: `${teams.url}/x`, ...more },
    { type: 'smtp', url: post.url, from: 'taskgate@gate.example', to: ['dba@corp.example'], ...more },
  ], { rules: [{ match: 'w*', action: 'approve', approval: 'default' }], upstream: { tools: [tool(name)] } });
  const { taskId } = await (await connect()).createTask(name, { path });
  assert.ok((await gateway.cli(['tasks', 'show', taskId])).stdout.includes('b[60 line breaks]DROP TABLE'));
  assert.deepEqual((await admin.task(taskId)).arguments, { path }, 'JSON has it as it is');
  await Promise.all([slack.seen(1), pager.seen(1), teams.seen(1)]);
  const [, facts] = slack.requests[0].json.blocks.map((block) => block.text.text);
  const card = teams.requests[0].json.attachments[0].content.body.map((block) => block.inlines[0].text);
  const { summary, custom_details: details } = pager.requests[0].json.payload;
  const mail = await post.received(1);
  for (const text of [facts, card[1], details.call, mail.text]) {
    assert.ok(text.includes(`Arguments: {"path":${shown}}`), text);
    assert.ok(text.includes('\nLook out: tool: characters that cannot be seen; path: characters that change the order of letters; path: characters that cannot be seen\n'), text);
    assert.ok(text.includes('Tool: write\\udb40\\udc41\\u3164\n'), text);
  }
  for (const text of [facts, ...card, details.call, mail.text, summary, slack.requests[0].json.text, mail.headers.subject]) assert.doesNotMatch(text, HIDDEN);
});

test('each channel shows a high risk, and another one only where the rule says it', async (t) => {
  const slack = await startSlack(t);
  const pager = await startEndpoint(t, ({ json }) => [202, { status: 'success', message: 'Event processed', dedup_key: json.dedup_key }]);
  const teams = await startEndpoint(t, () => [202, '']);
  const hook = await startEndpoint(t, () => [204, '']);
  const post = await startMailServer(t);
  const tools = [tool('drop', { annotations: { destructiveHint: true } }), tool('look', { annotations: { readOnlyHint: true } }), tool('move'), tool('tame'), tool('half')];
  const says = (risk) => ({ action: 'approve', approval: 'default', show: { risk } });
  const { connect, gateway } = await stage(t, [
    slackTo(slack),
    { type: 'pagerduty', url: `${pager.url}/v2/enqueue`, routing_key_env: 'PAGER_KEY' },
    { type: 'teams', url: `${teams.url}/x` },
    { type: 'webhook', url: `${hook.url}/x`, secret_env: 'HOOK_SECRET', events: ['created'] },
    { type: 'smtp', url: post.url, from: 'taskgate@gate.example', to: ['dba@corp.example'] },
  ], { rules: [{ match: 'tame', ...says('low') }, { match: 'half', ...says('medium') }, { match: '*', action: 'approve', approval: 'default' }], upstream: { tools }, env: { ...ENV, HOOK_SECRET: 'a-secret-of-the-hooks' } });
  const client = await connect();
  await client.result('tools/list');
  const wanted = { drop: 'high', look: undefined, move: undefined, tame: 'low', half: 'medium' };
  const ids = {};
  for (const name of Object.keys(wanted)) ids[name] = (await client.createTask(name)).taskId;
  await Promise.all([slack, pager, teams, hook].map((endpoint) => endpoint.seen(5)));
  const riskIn = (text) => /^Risk: +(\w+)$/m.exec(text)?.[1];
  const mails = [];
  for (let i = 1; i <= 5; i++) mails.push((await post.received(i)).text);
  const texts = {
    slack: slack.requests.map(({ json }) => json.blocks.map((block) => block.text.text).join('\n')),
    pagerduty: pager.requests.map(({ json }) => json.payload.custom_details.call),
    teams: teams.requests.map(({ json }) => json.attachments[0].content.body.map((block) => block.inlines[0].text).join('\n')),
    mail: mails,
  };
  for (const [name, of] of Object.entries(texts)) {
    const shown = Object.fromEntries(Object.keys(wanted).map((one) => [one, riskIn(of.find((text) => text.includes(`\nTool: ${one}\n`) || text.startsWith(`Tool: ${one}\n`)) ?? assert.fail(`${name}: ${one} in ${of}`))]));
    assert.deepEqual(shown, wanted, name);
  }
  assert.deepEqual(Object.fromEntries(hook.requests.map(({ json: { task } }) => [task.tool, task.risk ?? undefined])), wanted, 'webhook');
  for (const [name, risk] of Object.entries(wanted)) {
    const { stdout } = await gateway.cli(['tasks', 'show', ids[name]]);
    assert.equal(/^Risk +(\w+)/m.exec(stdout)?.[1], risk, `tasks show ${name}`);
  }
});

test('mail, Teams and PagerDuty say who vouches for the name of the caller', async (t) => {
  const issuer = await startIssuer(t);
  const AUDIENCE = 'https://gate.example/mcp';
  const asks = async (more, ask) => {
    const pager = await startEndpoint(t, ({ json }) => [202, { status: 'success', message: 'Event processed', dedup_key: json.dedup_key }]);
    const teams = await startEndpoint(t, () => [202, '']);
    const post = await startMailServer(t);
    const notify = [
      { type: 'pagerduty', url: `${pager.url}/v2/enqueue`, routing_key_env: 'PAGER_KEY' },
      { type: 'teams', url: `${teams.url}/x` },
      { type: 'smtp', url: post.url, from: 'taskgate@gate.example', to: ['dba@corp.example'] },
    ];
    const tokens = [{ name: 'ann-cli', token_env: 'ANN', roles: ['caller'] }];
    await ask(await stage(t, [], { env: { ...ENV, ANN: 'token-of-ann-0123456789' }, config: { notify, admin: { public_url: 'https://gate.example', tokens } }, ...more }));
    await Promise.all([pager.seen(1), teams.seen(1)]);
    const texts = [(await post.received(1)).text, teams.requests[0].json.attachments[0].content.body[1].inlines[0].text, pager.requests[0].json.payload.custom_details.call];
    return texts.map((text) => /^Asked by: (.*)$/m.exec(text)?.[1].replace(/ \(session \w+\)/, ''));
  };
  const thrice = (line) => [line, line, line];
  assert.deepEqual(await asks({}, async ({ connect }) => (await connect({ name: 'verified "bot"' })).createTask('write')), thrice('unverified "verified \\"bot\\""'));
  const made = ({ admin }) => admin.as('token-of-ann-0123456789').post('/api/v1/calls', { tool: 'write', arguments: {} });
  assert.deepEqual(await asks({}, made), thrice('gateway "admin:ann-cli"'));
  const source = { auth: { issuer: issuer.url, audience: AUDIENCE } };
  assert.deepEqual(await asks({ source }, async ({ connect }) => (await connect({ token: issuer.token(AUDIENCE) })).createTask('write')), thrice('verified "alice"'));
});

test('mail, Teams, PagerDuty and webhooks: the message has one link to the page and nothing that decides, and its answer decides nothing', async (t) => {
  const decision = (id) => ({ status: 'success', action: 'approve', verb: 'approve', decision: 'approve', response: 'approve', id, taskId: id, dedup_key: id, items: [{ id }] });
  const idIn = (json) => /tg_[0-9a-f-]{36}/.exec(JSON.stringify(json))[0];
  const endpoint = (status) => startEndpoint(t, ({ json }) => [status, decision(idIn(json)), { 'x-taskgate-decision': 'approve' }]);
  const [pager, teams, hook] = [await endpoint(202), await endpoint(202), await endpoint(200)];
  const post = await startMailServer(t);
  const more = { include_arguments: true };
  const { admin, connect, upstream, gateway } = await stage(t, [
    { type: 'pagerduty', url: `${pager.url}/v2/enqueue`, routing_key_env: 'PAGER_KEY', ...more },
    { type: 'teams', url: `${teams.url}/x`, ...more },
    { type: 'webhook', url: `${hook.url}/x`, secret_env: 'HOOK_SECRET', events: ['created'], ...more },
    { type: 'smtp', url: post.url, from: 'taskgate@gate.example', to: ['dba@corp.example'], ...more },
  ], { env: { ...ENV, HOOK_SECRET: 'a-secret-of-the-hooks' } });
  const { taskId } = await (await connect()).createTask('write', { path: '/x' });
  await Promise.all([pager.seen(1), teams.seen(1), hook.seen(1)]);
  const mail = await post.received(1);
  const page = `https://gate.example/#task=${taskId}`;
  const texts = { pagerduty: JSON.stringify(pager.requests[0].json), teams: JSON.stringify(teams.requests[0].json), webhook: JSON.stringify(hook.requests[0].json), mail: mail.text };
  for (const [name, text] of Object.entries(texts)) {
    const links = text.match(/(?:https?|mailto|javascript):[^\s"\\<>]+/g) ?? [];
    assert.deepEqual([...new Set(links)].filter((link) => !link.startsWith('http://adaptivecards.io/')), [page], name);
  }
  const { actions, body } = teams.requests[0].json.attachments[0].content;
  assert.deepEqual([actions.map(({ type }) => type), body.every(({ type }) => type === 'RichTextBlock')], [['Action.OpenUrl'], true], 'no Action.Submit, no Action.Http, no input');
  assert.deepEqual(Object.keys(mail.headers).filter((name) => /^(reply-to|list-|disposition)/.test(name)), []);
  const delivered = async () => Object.entries(await admin.metrics()).reduce((sum, [name, value]) => (/^thoughtgate_notifications_total\{.*outcome="delivered"/.test(name) ? sum + value : sum), 0);
  await until(async () => (await delivered()) === 4, 'the gateway to have read all answers');
  // Nor is there an address that an answer could be sent to.
  for (const path of ['/teams/interactions', '/pagerduty/webhook', '/webhook', '/mail', '/smtp/interactions', '/notify/answer']) {
    const { status } = await fetch(gateway.adminUrl + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(decision(taskId)) });
    assert.ok([401, 404].includes(status), `${path}: ${status}`);
  }
  const { state, votes } = await admin.task(taskId);
  assert.deepEqual([state, votes, upstream.calls], ['pending', [], []]);
});

test('a channel that refuses is tried again, told in /ready and a metric, and decides nothing', async (t) => {
  const slack = await startSlack(t);
  const { gateway, admin, connect } = await stage(t, [slackTo(slack)]);
  const failing = async () => sample(await admin.metrics(), 'thoughtgate_notifiers_failing');
  assert.equal((await ready(admin)).checks.notifiers, true);
  slack.fault = [200, { ok: false, error: 'account_inactive' }];
  const { taskId } = await (await connect()).createTask('write');
  await gateway.logged((line) => line.msg === 'Notifications fail, and are tried again' && line.reason === `${slack.url} answered: account_inactive`);
  const { status, checks } = await ready(admin);
  assert.deepEqual([status, checks.notifiers, await failing()], ['ready', false, 1]);
  assert.equal((await admin.task(taskId)).state, 'pending');
  for (const fault of [[200, '<html>'], [500, '']]) {
    slack.fault = fault;
    const before = slack.requests.length;
    await slack.seen(before + 1);
  }
  slack.fault = null;
  await gateway.logged((line) => line.msg === 'Notifications arrive again');
  assert.deepEqual([(await ready(admin)).checks.notifiers, await failing(), slack.messages.size], [true, 0, 1]);
});

test('an endpoint that asks for a pause gets it', async (t) => {
  const slack = await startSlack(t);
  slack.fault = [429, '', { 'retry-after': '3' }];
  const { connect } = await stage(t, [slackTo(slack)]);
  await (await connect()).createTask('write');
  await slack.seen(1);
  slack.fault = null;
  await until(() => slack.messages.size === 1, 'the second attempt', { deadline: 30_000 });
  const [first, second] = slack.requests;
  assert.ok(second.at - first.at >= 2900, 'not after the usual second');
});

test('PagerDuty: an incident for a call that waits, resolved when it is decided or over', async (t) => {
  const pager = await startEndpoint(t, ({ json }) => (json.routing_key === ENV.PAGER_KEY ? [202, { status: 'success', message: 'Event processed', dedup_key: json.dedup_key }] : [400, { status: 'invalid event' }]));
  const { gateway, admin, connect } = await stage(t, [{ type: 'pagerduty', url: `${pager.url}/v2/enqueue`, routing_key_env: 'PAGER_KEY', workflows: ['night-*'] }]);
  const client = await connect();
  await client.createTask('write', { day: true });
  const { taskId } = await client.createTask('night');
  await pager.seen(1);
  const { path, json } = pager.requests[0];
  assert.deepEqual([path, json.event_action, json.dedup_key, json.client, json.client_url], ['/v2/enqueue', 'trigger', taskId, 'taskgate', `https://gate.example/#task=${taskId}`]);
  assert.deepEqual(json.links, [{ text: 'Open the call', href: `https://gate.example/#task=${taskId}` }]);
  assert.deepEqual([json.payload.summary, json.payload.source, json.payload.severity], ['Approval needed: night', 'up', 'warning']);
  assert.match(json.payload.custom_details.call, /Workflow: night-shift/);
  assert.ok(!('arguments' in json.payload.custom_details) && !json.payload.custom_details.call.includes('Arguments'));
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  await pager.seen(2);
  assert.deepEqual(pager.requests[1].json, { routing_key: ENV.PAGER_KEY, event_action: 'resolve', dedup_key: taskId });
  const second = (await client.createTask('night', { n: 2 })).taskId;
  await pager.seen(3);
  await client.result('tasks/cancel', { taskId: second });
  await pager.seen(4);
  assert.deepEqual(pager.requests.slice(2).map((request) => [request.json.event_action, request.json.dedup_key]), [['trigger', second], ['resolve', second]], 'none for the other workflow, and one end each');
  assert.ok(!gateway.child.stderr.includes(ENV.PAGER_KEY));
});

test('Teams: a card for each change, whose texts are no Markdown; the address is never in the log', async (t) => {
  const teams = await startEndpoint(t, () => [202, '']);
  const { gateway, admin, connect } = await stage(t, [{ type: 'teams', url: `${teams.url}/workflows/x?sig=secret-of-teams`, events: ['created', 'decided'] }]);
  const { taskId } = await (await connect()).createTask('write', { a: '[click](http://evil.example)' });
  await admin.reject(taskId, '**no**');
  await teams.seen(2);
  const cards = teams.requests.map(({ path, json }) => {
    assert.equal(path, '/workflows/x?sig=secret-of-teams');
    assert.deepEqual([json.type, json.attachments.length, json.attachments[0].contentType], ['message', 1, 'application/vnd.microsoft.card.adaptive']);
    return json.attachments[0].content;
  });
  for (const card of cards) {
    assert.deepEqual([card.type, card.version, card.actions], ['AdaptiveCard', '1.4', [{ type: 'Action.OpenUrl', title: 'Open the call', url: `https://gate.example/#task=${taskId}` }]]);
    assert.ok(card.body.every((block) => block.type === 'RichTextBlock' && block.inlines.every((run) => run.type === 'TextRun')));
  }
  const texts = cards.map((card) => card.body.map((block) => block.inlines[0].text));
  assert.deepEqual(texts.map(([title]) => title), ['Approval needed: write', 'Rejected: write']);
  assert.match(texts[1][1], /Decided by: admin\nReason: \*\*no\*\*\n/);
  assert.ok(!texts[0][1].includes('click'), 'no arguments unless they are asked for');
  assert.ok(!gateway.child.stderr.includes('secret-of-teams'));
});

test('a call that needs no person is told to webhooks alone', async (t) => {
  const slack = await startSlack(t);
  const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
  const { admin, connect } = await stage(t, [slackTo(slack)], { upstream: { tools: [tool('read'), tool('write')], capabilities: { tools: {}, tasks } } });
  const client = await connect();
  const accelerated = await client.createTask('read');
  await admin.inState(accelerated.taskId, 'completed');
  const { taskId } = await client.createTask('write');
  await admin.reject(taskId);
  await until(() => slack.requests.at(-1)?.json.text === 'Rejected: write', 'the decision');
  assert.deepEqual(slack.requests.map(({ json }) => json.text), ['Approval needed: write', 'Rejected: write']);
});

test('check refuses what a type lacks, and what belongs to another', async (t) => {
  const { gateway } = await stage(t, []);
  const check = () => run(BINARY, ['check', '--config', gateway.configPath], { cwd: gateway.folder, env: { ...process.env, ...ENV } });
  const findings = [
    [{ type: 'fax', url: 'http://h/' }, /notify\[0\]\.type: "fax" is not a type of notifier that is supported/],
    [{ type: 'slack', token_env: 'SLACK_TOKEN' }, /notify\[0\]\.channel: the key is missing/],
    [{ type: 'slack', channel: 'C1' }, /notify\[0\]\.token_env: the key is missing/],
    [{ type: 'slack', channel: 'C1', token_env: 'NOT_SET' }, /notify\[0\]\.token_env: V-014 the environment variable NOT_SET is not set/],
    [{ type: 'slack', channel: 'C1', token_env: 'SLACK_TOKEN', mention: ['<!here>'] }, /notify\[0\]\.mention\[0\]: "<!here>": this is no id of Slack's/],
    [{ type: 'pagerduty' }, /notify\[0\]\.routing_key_env: the key is missing/],
    [{ type: 'teams' }, /notify\[0\]\.url: V-008 the key is missing/],
    [{ type: 'teams', url: 'https://h/', channel: 'C1' }, /notify\[0\]\.channel: this key is for the type slack alone/],
    [{ type: 'teams', url: 'https://h/', workflows: ['['] }, /notify\[0\]\.workflows\[0\]/],
  ];
  for (const [entry, finding] of findings) {
    gateway.writeConfig({ config: { notify: [entry], admin: { public_url: 'https://gate.example' } } });
    const { code, stderr } = await check();
    assert.equal(code, 2, JSON.stringify(entry));
    assert.match(stderr, finding);
  }
  gateway.writeConfig({ config: { notify: [{ type: 'pagerduty', routing_key_env: 'PAGER_KEY' }], admin: {} } });
  assert.match((await check()).stderr, /notify\[0\]\.type: the messages link to the page, whose address is not known; set admin\.public_url/);
  const chat = { type: 'slack', channel: 'C1', token_env: 'SLACK_TOKEN' };
  gateway.writeConfig({ config: { notify: [{ ...chat, id: 'a' }, { ...chat, id: 'a', channel: 'C2' }, chat], admin: { public_url: 'https://gate.example' } } });
  const { stderr } = await check();
  assert.match(stderr, /notify\[1\]\.id: another endpoint has this id as well/);
  assert.match(stderr, /notify\[2\]\.type: this is notify\[0\] as well; join their events in one/);
});
