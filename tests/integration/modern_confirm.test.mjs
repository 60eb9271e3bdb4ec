// approval.NAME.confirm: the user of a modern client is asked before a call is held. Never an approval.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Child, run } from './lib/child.mjs';
import { fastClock, fastClockMissing } from './lib/fast_clock.mjs';
import { BINARY, temporaryFolder } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { answerOf } from './lib/modern_upstream.mjs';
import { modernSdkClient } from './lib/modern_sdk.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { assertSchema } from './lib/schema.mjs';
import { tool } from './lib/upstream.mjs';

const sqliteMissing = spawnSync('sqlite3', ['--version']).status === 0 ? false : 'sqlite3 is not here: apt-get install sqlite3';
const REFUSAL = 'requestState is not valid for this call';
const FORMS = { capabilities: { elicitation: {} }, token: 'owner' };
const LINKS = { capabilities: { elicitation: { url: {} } }, token: 'owner' };
const PUBLIC = 'https://gate.example/ops';

/** `times`: how fast the gateway's clock is. A fast one, so that a person takes little time of ours; a slow one, so that no answer of a test takes 200 ms of it. */
async function stage(t, confirm, { wait = '3s', times = 10, ...config } = {}) {
  const scene = await modernScene(t, {
    env: fastClockMissing ? {} : fastClock(times),
    rules: [['delete_*', 'approve']],
    approval: { default: { timeout: '10m', confirm } },
    source: { era: 'modern' },
    config: { pseudo_tools: { wait }, admin: { public_url: PUBLIC }, ...config },
    upstream: { tools: [tool('delete_user'), tool('read')] },
  });
  const think = () => new Promise((resolve) => setTimeout(resolve, times < 1 ? 0 : fastClockMissing ? 250 : 250 / times));
  return { ...scene, modern: (options) => Object.assign(scene.modern(options), { think }) };
}
/** The audit trail's rows of one task. */
async function trail(gateway, id) {
  const { stdout } = await run(BINARY, ['audit', 'export', '--format', 'jsonl', '--config', gateway.configPath]);
  return stdout.trim().split('\n').map((line) => JSON.parse(line)).filter(({ taskId }) => taskId === id);
}
const call = (client, args, more = {}, options) => client.send('tools/call', { name: 'delete_user', arguments: args, ...more }, options);
const answered = (state, action, content) => ({ requestState: state, inputResponses: { confirm: { action, ...(content === undefined ? {} : { content }) } } });

/** An answer that asks the user, who then takes a moment. */
async function asked(t, client, args, more) {
  const { status, message } = await call(client, args, more);
  assert.equal(status, 200);
  assertSchema(t, 'InputRequiredResult', message.result, 'modern');
  assert.deepEqual(Object.keys(message.result.inputRequests), ['confirm']);
  assert.equal(message.result.inputRequests.confirm.method, 'elicitation/create');
  await client.think();
  return { state: message.result.requestState, params: message.result.inputRequests.confirm.params };
}
/** The answer to a call that is held now. */
async function held(t, client, args, more) {
  const { message } = await call(client, args, more);
  assert.deepEqual([message.result?.resultType, message.result?.inputRequests], ['input_required', {}], JSON.stringify(message));
  return message.result.requestState;
}

test('53. a form asks the user first; accepted it is audited as confirmed, and the call still waits for its approval', async (t) => {
  const { modern, admin, upstream, gateway } = await stage(t, 'form');
  const client = modern(FORMS);
  const { state, params } = await asked(t, client, { id: 7 });
  assert.equal(params.mode, 'form');
  assert.match(params.message, /delete_user/);
  assert.ok(params.message.includes('{"id":7}'), params.message);
  assert.equal(params.requestedSchema.properties.confirm.type, 'boolean');
  const [{ id }] = (await admin.list()).tasks;
  for (const answer of [answered(state, 'accept', { confirm: true }), answered(state, 'accept', { confirm: true })]) {
    const next = await held(t, client, { id: 7 }, answer);
    assert.equal((await admin.task(id)).state, 'pending', 'a confirmation is no vote');
    assert.equal(upstream.calls.length, 0);
    await held(t, client, { id: 7 }, { requestState: next });
  }
  const rows = await trail(gateway, id);
  const confirmed = rows.filter(({ event }) => event === 'confirmed');
  assert.equal(confirmed.length, 1, JSON.stringify(rows));
  assert.deepEqual(rows.map(({ event }) => event), ['create', 'confirmation_asked', 'confirmed']);
  assert.deepEqual([confirmed[0].actorKind, confirmed[0].from, confirmed[0].to, confirmed[0].votes, confirmed[0].person], ['client', 'pending', 'pending', undefined, undefined]);
  assert.equal((await run(BINARY, ['audit', 'verify', '--config', gateway.configPath])).code, 0);
  await admin.approve(id);
  const { message } = await call(client, { id: 7 }, answered(state, 'accept', { confirm: true }));
  assert.deepEqual(message.result, answerOf({ name: 'delete_user', arguments: { id: 7 } }));
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.calls[0].rpc.params.inputResponses, undefined);
});

test('53. declined, cancelled or answered with no: the approval is cancelled, and nothing goes up', async (t) => {
  for (const [action, content] of [['decline'], ['cancel'], ['accept', { confirm: false }]]) {
    for (const approvedBefore of [false, true]) {
      const { modern, admin, upstream } = await stage(t, 'form');
      const client = modern(FORMS);
      const { state } = await asked(t, client, {});
      const [{ id }] = (await admin.list()).tasks;
      if (approvedBefore) await admin.approve(id);
      const { status, message } = await call(client, {}, answered(state, action, content));
      assert.deepEqual([status, message.error?.code], [200, -32006], JSON.stringify(message));
      assert.equal((await admin.task(id)).state, 'cancelled');
      assert.equal(upstream.calls.length, 0);
    }
  }
});

test('53. an answer within 200 ms, or none at all, decides nothing and is recorded as not answered by a person', { skip: fastClockMissing }, async (t) => {
  const { modern, admin, upstream, gateway } = await stage(t, 'form', { times: 0.02 });
  const client = modern(FORMS);
  const first = await asked(t, client, { id: 1 });
  const { state } = await asked(t, client, { id: 1 }, answered(first.state, 'accept', { confirm: true }));
  await asked(t, client, { id: 1 }, answered(state, 'decline'));
  await asked(t, client, { id: 2 });
  for (const { id, arguments: { id: number } } of (await admin.list()).tasks) {
    assert.equal((await admin.task(id)).state, 'pending');
    await admin.reject(id);
    const rows = await trail(gateway, id);
    assert.deepEqual(rows.map(({ event }) => event), number === 1 ? ['create', 'confirmation_asked', 'unconfirmed', 'reject'] : ['create', 'confirmation_asked', 'reject', 'unconfirmed']);
    const { actorKind, reason, person, votes } = rows.find(({ event }) => event === 'unconfirmed');
    assert.deepEqual([actorKind, reason, person], ['gateway', 'not answered by a person', undefined], JSON.stringify(votes));
  }
  assert.equal(upstream.calls.length, 0);
  assert.equal((await run(BINARY, ['audit', 'verify', '--config', gateway.configPath])).code, 0);
});

test('53. an answer that is missing or unclear is asked for again', async (t) => {
  const { modern, admin } = await stage(t, 'form');
  const client = modern(FORMS);
  let { state } = await asked(t, client, {});
  for (const inputResponses of [undefined, {}, { other: { action: 'accept' } }, { confirm: 5 }, { confirm: {} }, { confirm: { action: 'yes' } }, { confirm: { action: 'accept' } }, { confirm: { action: 'accept', content: { confirm: 'true' } } }]) {
    ({ state } = await asked(t, client, {}, { requestState: state, ...(inputResponses ? { inputResponses } : {}) }));
  }
  assert.equal((await admin.list()).tasks.length, 1);
  await held(t, client, {}, answered(state, 'accept', { confirm: true }));
});

test('53. an approval before the answer does not run the call; the answer does', async (t) => {
  const { modern, admin, upstream } = await stage(t, 'form');
  const client = modern(FORMS);
  const { state } = await asked(t, client, {});
  await admin.approve((await admin.list()).tasks[0].id);
  const { params } = await asked(t, client, {});
  assert.equal(params.mode, 'form', 'the same call made again is asked as well');
  assert.equal(upstream.calls.length, 0);
  const { message } = await call(client, {}, answered(state, 'accept', { confirm: true }));
  assert.equal(message.result.resultType, 'complete');
  assert.equal(upstream.calls.length, 1);
});

test('53. the process stops while the task, or that its user was asked, is stored: the user is asked all the same', { skip: sqliteMissing }, async (t) => {
  const { modern, gateway, upstream } = await stage(t, 'form', { times: 1 });
  const client = modern({ capabilities: FORMS.capabilities }); // for whom nothing is read before
  await asked(t, client, { id: 1 });
  const lock = new Child('sqlite3', [gateway.storePath], { name: 'sqlite3', stdin: 'pipe' });
  defer(t, () => lock.stop('SIGKILL'));
  lock.process.stdin.write("BEGIN IMMEDIATE;\nSELECT 'locked';\n");
  await lock.ready(() => lock.stdout.includes('locked'), 'holding the lock');
  const waiting = call(client, { id: 7 });
  await client.result('tools/call', { name: 'read', arguments: {} }); // it comes behind on the same loop
  gateway.child.signal('SIGTERM');
  const first = (await waiting).message, state = first.result?.requestState;
  assert.ok(state, JSON.stringify(first));
  lock.process.stdin.write('COMMIT;\n');
  await gateway.restart();
  const { params, state: second } = await asked(t, client, { id: 7 }, { requestState: state });
  assert.equal(params.mode, 'form');
  const { id } = await gateway.admin.pending((task) => task.arguments.id === 7);
  await gateway.admin.approve(id);
  assert.equal(upstream.calls.filter(({ rpc }) => rpc.params.name === 'delete_user').length, 0);
  const { message } = await call(client, { id: 7 }, answered(second, 'accept', { confirm: true }));
  assert.deepEqual(message.result, answerOf({ name: 'delete_user', arguments: { id: 7 } }));
});

test('53. the state of a question is bound as any other: other arguments, another token', async (t) => {
  const { modern, admin } = await stage(t, 'form');
  const { state } = await asked(t, modern(FORMS), { id: 1 });
  for (const [client, args] of [[modern(FORMS), { id: 2 }], [modern({ ...FORMS, token: 'other' }), { id: 1 }]]) {
    for (const action of ['accept', 'decline']) {
      const { message } = await call(client, args, answered(state, action, { confirm: true }));
      assert.deepEqual([message.error?.code, message.error?.message], [-32602, REFUSAL]);
    }
  }
  assert.equal((await admin.list()).tasks[0].state, 'pending');
});

test('53. a link leads to the task on the operators\' page; accepted means opened, and no more', async (t) => {
  const { modern, admin, upstream } = await stage(t, 'url');
  const client = modern(LINKS);
  const { state, params } = await asked(t, client, {});
  const [{ id }] = (await admin.list()).tasks;
  assert.deepEqual([params.mode, params.url], ['url', `${PUBLIC}/#task=${id}`]);
  assert.deepEqual(Object.keys(params).sort(), ['message', 'mode', 'url']);
  const next = await held(t, client, {}, answered(state, 'accept'));
  assert.equal((await admin.task(id)).state, 'pending');
  await admin.approve(id);
  assert.equal(upstream.calls.length, 0);
  // On a busy machine the execution may outlast one wait.
  let { message } = await call(client, {}, { requestState: next });
  while (message.result.resultType === 'input_required') ({ message } = await call(client, {}, { requestState: message.result.requestState }));
  assert.equal(message.result.resultType, 'complete');
  assert.equal(upstream.calls.length, 1);
});

test('53. a link that is declined cancels the approval', async (t) => {
  const { modern, admin } = await stage(t, 'url');
  const client = modern(LINKS);
  const { state } = await asked(t, client, {});
  assert.equal((await call(client, {}, answered(state, 'decline'))).message.error.code, -32006);
  assert.equal((await admin.list({ state: 'cancelled' })).tasks.length, 1);
});

test('53. a request that does not declare this kind of elicitation, or declares tasks, is not asked', async (t) => {
  for (const [confirm, others] of [['form', [{}, { elicitation: { url: {} } }, { elicitation: true }, { sampling: {} }]], ['url', [{}, { elicitation: {} }, { elicitation: { form: {} } }]], ['off', [{ elicitation: {} }]]]) {
    const { modern } = await stage(t, confirm);
    for (const capabilities of others) await held(t, modern({ capabilities, token: 'owner' }), { of: JSON.stringify(capabilities) });
    assert.match((await modern({ token: 'owner' }).create('delete_user', {})).taskId, /^tg_/);
  }
});

test('53. SDK 2.4: the user is asked by callTool, and the approval ends it', async (t) => {
  const { gateway, admin } = await stage(t, 'form', { wait: '50s' });
  const questions = [];
  const client = await modernSdkClient(t, gateway.url, {
    capabilities: { elicitation: { form: {} } },
    headers: { authorization: 'Bearer owner' },
    prepare: (sdk) =>
      sdk.setRequestHandler('elicitation/create', async ({ params }) => {
        questions.push(params.message);
        await new Promise((resolve) => setTimeout(resolve, fastClockMissing ? 250 : 25)); // 250 ms of the gateway's clock
        return { action: 'accept', content: { confirm: true } };
      }),
  });
  const result = client.callTool({ name: 'delete_user', arguments: {} });
  await admin.approve((await admin.pending()).id);
  assert.equal((await result).structuredContent.tool, 'delete_user');
  assert.equal(questions.length, 1);
});

test('53. check wants admin.public_url for links, and knows three words', async (t) => {
  const folder = temporaryFolder(t);
  const check = async (confirm, more = '') => {
    const file = path.join(folder, 'c.yaml');
    fs.writeFileSync(file, `schema: 1\nsources:\n  - {id: up, kind: mcp, url: "http://127.0.0.1:9/mcp"}\ngovernance:\n  defaults: {action: approve}\napproval:\n  default:\n    confirm: ${confirm}\n${more}`);
    return run(BINARY, ['check', '--config', file], { cwd: folder, env: { THOUGHTGATE_CONFIG: undefined } });
  };
  const missing = await check('url');
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /c\.yaml:8:\d+: approval\.default\.confirm: the link begins with admin\.public_url, which is missing/);
  assert.equal((await check('url', 'admin: {public_url: "https://gate.example"}\n')).code, 0);
  assert.equal((await check('form')).code, 0);
  assert.equal((await check('link')).code, 2);
});
