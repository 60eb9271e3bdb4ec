// Agents' libraries with what each has by default: a call that a person approves, and one that a person rejects.
// TASKGATE_LONG_APPROVALS=1 tries those that cost a test run too much, too, and slow people: 20 s and 70 s.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { workflow } from '../integration/lib/gateway.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until, within } from '../integration/lib/wait.mjs';
import { startSilence } from './silence.mjs';
import { isCheap, libraries, LONG, skipped, start } from './library.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const tried = libraries.filter((row) => LONG || isCheap(row));
/** A refusal names the person and the reason, and has an advice. */
const REFUSAL = 'delete_user was not run: admin rejected it: no. Do not repeat the call unless the user asks for it.';
const OUTLIVING = [['openai_agents', 7], ['java', 25]].map(([library, seconds]) => ({ row: libraries.find((row) => row.library === library), seconds }));
/** Beside each other, as many as leave time to the machine: the clocks of the libraries run. */
const concurrency = LONG ? 6 : 3;

test('the libraries that are installed are those of the table', { skip: skipped(libraries[0]) }, () => {
  for (const [folder, file] of [['.venv_libraries', 'requirements_libraries.txt'], ['.venv', 'requirements.txt']]) {
    const pinned = fs.readFileSync(path.join(here, file), 'utf8').split('\n');
    for (const { package: name, version } of libraries.filter((row) => row.in === folder)) assert.ok(pinned.includes(`${name}==${version}`), `${name} ${version}`);
  }
});

/** A gateway whose tool a person must approve. */
function stage(t, source = {}) {
  const inputSchema = { type: 'object', properties: { id: { type: 'integer' } } };
  return scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), source, upstream: { tools: [tool('delete_user', { inputSchema }), tool('read', { inputSchema })] } });
}

const argumentsOf = (task) => task.arguments ?? {};
const waiting = (admin, id) => admin.pending((task) => argumentsOf(task).id === id, 120_000);

async function end({ child, outcomes }, deadline = 60_000) {
  const { code } = await within(child.exited, () => `the end of the client\n${child.output()}`, deadline);
  assert.equal(code, 0, child.output());
  return outcomes();
}

/** The form of a library: TEXT is what the gateway says, … is anything. */
function assertForm(seen, form) {
  const parts = form.replace('TEXT', REFUSAL).split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  assert.match(seen, new RegExp(`^${parts.join('.*')}$`, 's'));
}

const isResult = (text) => /delete_user|"?id"?/.test(text) && !/approval|task/i.test(text);

/** One person and one client, whose arguments tell it from the others. The client acts as a model: it repeats the call. */
async function attend({ gateway, admin, upstream }, row, id, seconds) {
  const client = start(row, gateway.url, [['delete_user', { id }, seconds > 45 ? 2 : 1]]);
  const task = await waiting(admin, id);
  await pause(seconds * 1000); // the person
  await admin.approve(task.id);
  const outcomes = await end(client);
  assert.ok(isResult(outcomes.at(-1).text), `the result, and nothing about a task: ${JSON.stringify(outcomes)}`);
  const asked = (await admin.list({ limit: 100 })).tasks.filter((one) => argumentsOf(one).id === id);
  assert.equal(asked.length, 1, 'one question to a person');
  assert.equal(upstream.calls.filter(({ rpc }) => rpc.params.arguments?.id === id).length, 1, 'one call of the tool');
  return outcomes;
}

test('libraries: a call that a person approves after 2 s, and one that a person rejects', { concurrency }, async (t) => {
  const common = await stage(t);
  // The longest begin first.
  const outliving = OUTLIVING.filter(({ row }) => tried.includes(row)).map(({ row, seconds }, i) => t.test(`${row.library}: an approval that outlives its own limit of ${row.limit}`, { skip: skipped(row) }, async () => {
    const outcomes = await attend(common, row, 3000 + i, seconds);
    assert.deepEqual(outcomes.slice(0, -1).map(({ text, error }) => text ?? error), [row.gave_up], 'the first call failed, and the second one got the outcome');
  }));
  const usual = tried.map((row, i) => t.test(row.library, { skip: skipped(row) }, async (own) => {
    const { gateway, admin, upstream } = row.source ? await stage(own, row.source) : common;
    const [yes, no] = [1000 + i, 2000 + i];
    const client = start(row, gateway.url, [['delete_user', { id: yes }, false], ['delete_user', { id: no }, false]]);
    const task = await waiting(admin, yes);
    await pause(2000); // the person
    await admin.approve(task.id);
    await admin.reject((await waiting(admin, no)).id, 'no');
    const [approved, rejected] = await end(client);
    assert.ok(isResult(approved.text), `the result, and nothing about a task: ${JSON.stringify(approved)}`);
    assertForm(rejected.text ?? rejected.error, row.refusal);
    assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.arguments?.id).filter((id) => id === yes || id === no), [yes]);
  }));
  await Promise.all([...outliving, ...usual]);
});

for (const seconds of LONG ? [20, 70] : []) {
  test(`libraries: a call that a person approves after ${seconds} s, and that a model repeats until it has run`, { concurrency: 12 }, async (t) => {
    const common = await stage(t);
    const able = tried.filter(({ longest }) => !longest || longest > seconds);
    await Promise.all(able.map((row, i) => t.test(row.library, { skip: skipped(row) }, async (own) => {
      const source = row.source ?? row.slow;
      await attend(source ? await stage(own, source) : common, row, 4000 + i, seconds);
    })));
  });
}

test('libraries: a server that never answers, until each gives up', { concurrency: 30, skip: LONG ? false : 'TASKGATE_LONG_APPROVALS=1 runs it' }, async (t) => {
  await Promise.all(libraries.filter((row) => row.limit !== 'none' && !row.gives_up.endsWith('never returns')).map((row) => t.test(row.library, { skip: skipped(row) }, async () => {
    const silence = await startSilence();
    try {
      const client = start(row, silence.url, [['delete_user', { id: 1 }, false]], { LINGER_MS: '1000' });
      await until(() => client.outcomes().length > 0, () => `the library to give up\n${client.child.output()}`, { deadline: 400_000 });
      const end = Date.now();
      const [{ at: begin }] = silence.events;
      await within(client.child.exited, 'the end of the client', 60_000);
      const came = silence.events.filter(({ at }) => at < end + 800).map(({ what }) => what);
      const sent = ['notifications/cancelled', 'connection closed'].find((one) => came.includes(one)) ?? 'nothing';
      const [limit] = row.limit.match(/\d+/);
      assert.equal(sent.replace('connection closed', 'closes the connection'), row.gives_up, JSON.stringify(silence.events));
      assert.ok(Math.abs((end - begin) / 1000 - limit) < 5 || row.limit.endsWith('times'), `${(end - begin) / 1000} s`);
    } finally {
      silence.close();
    }
  })));
});
