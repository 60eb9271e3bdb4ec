// The same vote, by whichever channel it comes, gets the same refusal; each row breaks all rules that come later, too.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import { test } from 'node:test';
import { BINARY } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { report } from './lib/slack.mjs';
import { ENV, slackScene, withButtons } from './lib/slack_scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PERSONS = [
  { name: 'alice', slack: 'U0ALICE', groups: ['dba'] },
  { name: 'bob', slack: 'U0BOB', groups: ['security'] },
  { name: 'carol', slack: 'U0CAROL', groups: ['dba'] },
  { name: 'eve', slack: 'U0EVE', roles: ['viewer'] },
];
const token = (name) => `token-of-${name}-0123456789`;
const ROLES = { alice: ['approver', 'caller'], bob: ['approver', 'caller'], carol: ['approver'], eve: ['viewer'] };
const TOKENS = PERSONS.map(({ name }) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ROLES[name] }));
const OTHER = '0'.repeat(64);
const TOOLS = ['strict', 'lax', 'risky'];

/** What Slack shows to the person, as the code that the API gives. */
const LINES = {
  'You are not known here as somebody who votes.': 'forbidden',
  'This call is your own. Somebody else must decide it.': 'own_call',
  'You may not vote in this workflow.': 'not_an_approver',
  'This call does not wait for a decision any more.': 'conflict',
  'This message is not, or no longer, that of a call.': 'conflict', // once the message, too, is about the decision
  'This call has changed since this message. Open the call to decide.': 'changed',
  'The server has changed this tool since. The agent must call again.': 'definition_changed',
  'This vote needs a reason.': 'reason_required',
  'You have voted already. Take that vote back first.': 'already_voted',
  'This approval needs a typed value.': 'typed_required',
  'This is not the value that is asked for.': 'typed_wrong',
};

/** A way to the gateway for commands: it keeps the refusals, and may show a digest of another request. */
async function wayOfCommands(t, gateway) {
  const way = { codes: [], shows: null, url: '' };
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const bytes of request) body += bytes;
    const { authorization, 'content-type': type = 'application/json' } = request.headers;
    const answer = await fetch(gateway.adminUrl + request.url, { method: request.method, headers: { authorization, 'content-type': type }, body: body || undefined });
    let text = await answer.text();
    if (request.method === 'POST') way.codes.push(JSON.parse(text).error?.code ?? 'accepted');
    else if (way.shows) text = text.replaceAll(/"requestDigest":"[0-9a-f]{64}"/g, `"requestDigest":"${way.shows}"`);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), server.close()));
  way.url = `http://127.0.0.1:${server.address().port}`;
  return way;
}

async function stage(t) {
  const quorum = { timeout: '10m', approvers: { groups: ['dba'] }, quorum: 2 };
  const all = await slackScene(t, {
    notify: (slack) => [withButtons(slack)],
    rules: [
      { match: 'strict', action: 'approve', approval: 'strict', show: { risk: 'high', confirm: 'db' } },
      { match: 'risky', action: 'approve', approval: 'lax', show: { risk: 'high', confirm: 'db' } },
      { match: 'lax', action: 'approve', approval: 'lax' },
    ],
    approval: () => ({ strict: { ...quorum, reasons: { approve: 'required' } }, lax: quorum }),
    upstream: { tools: TOOLS.map((name) => tool(name)) },
    env: { ...ENV, ...Object.fromEntries(PERSONS.map(({ name }) => [name.toUpperCase(), token(name)])) },
    people: PERSONS,
    tokens: TOKENS,
  });
  await all.gateway.logged(/^Slack knows the token$/);
  await until(() => all.slack.requests.some(({ method }) => method === 'bots.info'), 'the app is asked for');
  await all.client.result('tools/list');
  return { ...all, way: await wayOfCommands(t, all.gateway), as: (name) => all.admin.as(token(name)) };
}

const digestOf = async ({ admin }, id, { digest }) => (digest === OTHER ? OTHER : (await admin.task(id)).requestDigest);

const GRANT = 'API, with a grant that nobody gets', EDIT = 'API, with arguments that nobody may change';

/** Each channel: a vote for the call by that person, with what it has of reason, typed value and digest; its refusal. */
const CHANNELS = {
  API: async (s, id, vote) => {
    const { json } = await s.as(vote.by).post(`/api/v1/tasks/${id}/approve`, { requestDigest: await digestOf(s, id, vote), reason: vote.reason, typed: vote.typed });
    return json.error?.code;
  },
  [GRANT]: async (s, id, vote) => {
    const { json } = await s.as(vote.by).post(`/api/v1/tasks/${id}/approve`, { requestDigest: await digestOf(s, id, vote), reason: vote.reason, typed: vote.typed, grant: { for: '90d', calls: 1e6 } });
    return json.error?.code;
  },
  [EDIT]: async (s, id, vote) => {
    const { json } = await s.as(vote.by).post(`/api/v1/tasks/${id}/approve`, { requestDigest: await digestOf(s, id, vote), reason: vote.reason, typed: vote.typed, arguments: { db: 'STAGE', more: 1 } });
    return json.error?.code;
  },
  decisions: async (s, id, vote) => {
    const item = { id, requestDigest: await digestOf(s, id, vote), typed: vote.typed };
    const { json } = await s.as(vote.by).post('/api/v1/decisions', { items: [item], verb: 'approve', reason: vote.reason });
    return json.error?.code ?? json.results[0].code;
  },
  'tasks approve': async (s, id, vote) => {
    const more = Object.entries({ reason: vote.reason, typed: vote.typed, digest: await digestOf(s, id, vote) }).flatMap(([key, value]) => (value ? [`--${key}`, value] : []));
    await s.gateway.cli(['tasks', 'approve', id, ...more], { env: { THOUGHTGATE_ADMIN_URL: s.way.url, TASKGATE_TOKEN: token(vote.by), THOUGHTGATE_ADMIN_TOKEN: undefined } });
    return s.way.codes.pop();
  },
  'tasks next': async (s, id, vote, { meanwhile }) => {
    s.way.shows = vote.digest ?? null;
    const child = spawn(BINARY, ['tasks', 'next'], { env: { ...process.env, THOUGHTGATE_ADMIN_URL: s.way.url, TASKGATE_TOKEN: token(vote.by), THOUGHTGATE_ADMIN_TOKEN: undefined } });
    defer(t_, () => child.kill('SIGKILL'));
    child.stdin.on('error', () => {}); // it may have ended
    let output = '';
    child.stdout.on('data', (bytes) => (output += bytes));
    const type = async (prompt, keys) => (await until(() => output.includes(prompt), () => `${prompt} in ${output}`), child.stdin.write(keys));
    await until(() => output.includes('[q]uit') || child.exitCode !== null, () => `the keys in ${output}`);
    if (output === 'Nothing waits.\n') return 'not asked';
    assert.ok(output.includes(id), 'the one call that waits');
    await meanwhile();
    await type('[q]uit', vote.reason ? 'A' : 'a');
    if (vote.reason) await type('reason: ', `${vote.reason}\n`);
    if (vote.highRisk) await type('Type the value of db to approve: ', `${vote.typed ?? ''}\n`);
    const isAsked = vote.highRisk && !vote.typed;
    await until(() => isAsked || s.way.codes.length > 0, 'the answer');
    child.stdin.end('q');
    await until(() => child.exitCode !== null, 'the end of the command');
    s.way.shows = null;
    // A command that asks for the value sends no vote without it.
    return isAsked ? 'typed_required' : s.way.codes.pop();
  },
  'Slack button': async (s, id, vote, { message }) => {
    const person = PERSONS.find(({ name }) => name === vote.by).slack;
    const press = s.slack.pressOf(message, 'approve', person);
    const before = [s.slack.whispers.length, s.slack.views.length];
    press.actions[0].value = `${id} ${await digestOf(s, id, vote)}`;
    assert.equal((await report(s.gateway.adminUrl, press)).status, 200);
    await until(() => s.slack.whispers.length > before[0] || s.slack.views.length > before[1], 'what Slack is asked for');
    if (s.slack.views.length === before[1]) return LINES[s.slack.whispers.at(-1).text];
    const { text } = await report(s.gateway.adminUrl, s.slack.submissionOf(s.slack.views.at(-1), vote.reason ?? '', person, vote.typed ?? ''));
    return LINES[Object.values(JSON.parse(text).errors)[0]];
  },
  'Slack reaction': async (s, id, vote, { message }) => {
    const lines = () => s.gateway.logs.filter(({ msg, task }) => msg === 'A reaction in Slack is no vote' && task === id);
    s.slack.react(message.ts, '+1', PERSONS.find(({ name }) => name === vote.by).slack);
    await until(() => lines().length > 0, 'the word on the reaction', { deadline: 20_000 });
    return lines()[0].reason;
  },
};

const all = Object.keys(CHANNELS);
const NOT_SO = all.filter((name) => name !== 'Slack reaction'); // it bears neither a reason nor a digest, and is not looked at once a call is decided
const strict = { tool: 'strict', highRisk: true };

/** `tasks next` asks nobody who may not vote, which ballot_judge() says (`mine=true`). Other rows become true while it asks. */
const NOT_ASKED = ['forbidden', 'own_call', 'not_an_approver'];

/** `by` votes; `made` by the API rather than by the agent; `lax`: the tool that a reaction is tried on. */
const ROWS = {
  forbidden: { ...strict, by: 'eve', digest: OTHER, typed: 'x', channels: NOT_SO },
  own_call: { ...strict, by: 'bob', made: 'bob', digest: OTHER, typed: 'x', lax: 'lax' },
  not_an_approver: { ...strict, by: 'bob', digest: OTHER, typed: 'x', decided: true, lax: 'lax' },
  conflict: { ...strict, by: 'alice', digest: OTHER, typed: 'x', decided: true, channels: NOT_SO },
  changed: { ...strict, by: 'alice', digest: OTHER, typed: 'x', redefined: true, channels: NOT_SO },
  definition_changed: { ...strict, by: 'alice', typed: 'x', redefined: true, voted: 'alice', lax: 'risky' },
  reason_required: { ...strict, by: 'alice', typed: 'x', voted: 'alice', channels: NOT_SO },
  already_voted: { ...strict, by: 'alice', reason: 'agreed', typed: 'x', voted: 'alice', lax: 'risky' },
  typed_required: { ...strict, by: 'alice', reason: 'agreed', voted: 'carol', lax: 'risky' },
  typed_wrong: { ...strict, by: 'alice', reason: 'agreed', typed: 'STAGING', voted: 'carol', channels: NOT_SO },
  grant_not_allowed: { ...strict, by: 'alice', reason: 'agreed', typed: 'PRODUCTION', voted: 'carol', channels: [GRANT] },
  edit_not_allowed: { ...strict, by: 'alice', reason: 'agreed', typed: 'STAGE', voted: 'carol', channels: [EDIT] },
};
let t_;

test('a vote gets the same refusal by each channel, in the same order', async (t) => {
  t_ = t;
  const s = await stage(t);
  const { admin, client, upstream } = s;
  const found = [], wanted = [];
  for (const [code, row] of Object.entries(ROWS)) {
    for (const channel of row.channels ?? all) {
      const name = channel === 'Slack reaction' ? row.lax : row.tool;
      const args = { db: 'PRODUCTION', n: found.length };
      const id = row.made ? (await s.as(row.made).post('/api/v1/calls', { tool: name, arguments: args })).json.id : (await client.createTask(name, args)).taskId;
      const message = await s.messageOf(id);
      const happens = async () => {
        if (row.voted) assert.equal((await s.as(row.voted).post(`/api/v1/tasks/${id}/approve`, { reason: 'first', typed: 'PRODUCTION' })).status, 202);
        if (row.decided && (code === 'conflict' || !channel.startsWith('Slack'))) assert.equal((await s.as('carol').post(`/api/v1/tasks/${id}/reject`, {})).status, 200);
        if (!row.redefined) return;
        upstream.tools = TOOLS.map((one) => tool(one, { description: 'Another one' }));
        await client.result('tools/list');
      };
      const asks = channel === 'tasks next' && NOT_ASKED.includes(code);
      if (channel !== 'tasks next' || asks) await happens();
      found.push(`${code}, ${channel}: ${await CHANNELS[channel](s, id, row, { message, meanwhile: happens })}`);
      wanted.push(`${code}, ${channel}: ${asks ? 'not asked' : code}`);
      const task = await admin.task(id);
      assert.equal(task.votes.filter(({ person, verb }) => verb === 'approve' && person !== row.voted).length, 0, found.at(-1));
      if (task.state === 'pending') assert.equal((await s.as('carol').post(`/api/v1/tasks/${id}/withdraw`, {}), await s.as('carol').post(`/api/v1/tasks/${id}/reject`, {})).status, 200);
      if (row.redefined) {
        upstream.tools = TOOLS.map((one) => tool(one));
        await client.result('tools/list');
      }
    }
  }
  assert.deepEqual(found, wanted);
  assert.equal(upstream.calls.length, 0);
});
