// kill -9 at random moments of a busy gateway, again and again over one store: nothing told is lost, nothing is
// executed twice, nothing approves itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { RawClient } from '../integration/lib/client.mjs';
import { startGateway, workflow } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { signal, until, within } from '../integration/lib/wait.mjs';
import { allTasks, Ledger } from './lib/ledger.mjs';
import { generator, pick, seed } from '../integration/lib/random.mjs';
import { Traffic } from './lib/traffic.mjs';

const KILLS = Number(process.env.TASKGATE_KILLS ?? 200);

/** When to kill: some milliseconds after the traffic began, at or just after a step of a task's life, or during the start. */
const MOMENTS = ['any time', 'any time', 'the start', 'create sent', 'create answered', 'approve sent', 'approve answered', 'upstream called', 'upstream answered', 'reject sent', 'reject answered', 'cancel sent', 'cancel answered', 'result answered'];

async function stage(t, ledger, random) {
  const note = { step: () => {} };
  const upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('purge_user'), tool('read')] });
  const problems = [];
  upstream.handlers['tools/call'] = async ({ params, reply }) => {
    const { marker } = params.arguments;
    try {
      ledger.called(marker);
    } catch (error) {
      problems.push(error);
    }
    note.step('upstream called');
    if (random() < 0.5) await pause(random() * 15);
    reply.result({ content: [{ type: 'text', text: `did ${marker}, call ${ledger.calls.get(marker)}` }] });
    note.step('upstream answered');
  };
  const gateway = await startGateway(t, {
    upstream: upstream.url,
    rules: [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }],
    approval: workflow('20m'),
    config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 } },
  });
  const clients = [];
  for (const token of ['A', 'B', 'C', undefined]) {
    const client = new RawClient(gateway.url, { token });
    defer(t, () => client.close());
    await client.connect();
    clients.push(client);
  }
  return { gateway, clients, note, problems, upstream };
}

/** Resolves at the moment to kill, and counts the kind of moment. */
function momentToKill(random, note, moments) {
  const moment = pick(random, MOMENTS.filter((m) => m !== 'the start'));
  const now = signal();
  const spent = setTimeout(() => now.fire('any time'), moment === 'any time' ? random() * 120 : 250);
  let countdown = 1 + Math.floor(random() * 6);
  const delay = random() < 0.5 ? 0 : random() * 3;
  note.step = (step) => {
    if (step !== moment || --countdown !== 0) return;
    if (delay === 0) now.fire(moment);
    else setTimeout(() => now.fire(moment), delay);
  };
  return now.promise.then((which) => {
    clearTimeout(spent);
    note.step = () => {};
    moments[which] = (moments[which] ?? 0) + 1;
  });
}

/** Kills a gateway that is still reading its store. */
async function killAtStart(gateway, random, moments) {
  const starting = gateway.launch();
  starting.catch(() => {});
  await pause(random() * 50);
  await gateway.kill9();
  await starting.catch(() => {});
  moments['the start'] = (moments['the start'] ?? 0) + 1;
}

async function round({ gateway, clients, note, problems }, ledger, random, moments) {
  const traffic = new Traffic({ ledger, random, note: (step) => note.step(step) });
  const time = momentToKill(random, note, moments);
  const running = [...clients.flatMap((client) => [traffic.client(client), traffic.waiter(client)]), traffic.operator(gateway.admin), traffic.operator(gateway.admin)];
  await time;
  traffic.over = true;
  await gateway.kill9();
  await within(Promise.all(running), 'all who talked to the gateway to notice', 10_000);
  for (const client of clients) client.close();
  while (pick(random, MOMENTS) === 'the start') await killAtStart(gateway, random, moments);
  await gateway.launch();
  const tasks = await allTasks(gateway.admin);
  assert.deepEqual([...traffic.problems, ...problems], []);
  assert.deepEqual([...tasks.values()].filter((task) => task.state === 'executing'), [], 'what the dead process executed has ended');
  ledger.check(tasks);
}

/** Every client gets its outcome: no approved task is left, and each task gives the same outcome twice. */
async function settle({ gateway, clients, problems }, ledger) {
  let tasks = await allTasks(gateway.admin);
  const mine = [...tasks.values()].filter((task) => ledger.tasks.get(task.id)?.client);
  const traffic = new Traffic({ ledger, random: generator() });
  const endings = mine.filter((task) => task.state !== 'pending');
  await Promise.all(
    clients.map(async (client) => {
      for (const task of endings.filter(({ id }) => ledger.tasks.get(id).client === client)) {
        await traffic.result(client, task.id);
        await traffic.look(client, task.id);
      }
    }),
  );
  await until(async () => ![...(tasks = await allTasks(gateway.admin)).values()].some((task) => task.state === 'executing'), 'every execution to end');
  ledger.check(tasks);
  assert.deepEqual(problems, []);
  for (const { id } of endings) assert.notEqual(tasks.get(id).state, 'approved', id);
  return tasks;
}

test(`kill -9, ${KILLS} times over one store under load (TASKGATE_SEED=${seed})`, { timeout: 300_000 }, async (t) => {
  const random = generator();
  const ledger = new Ledger();
  const moments = {};
  const place = await stage(t, ledger, random);
  const kills = () => Object.values(moments).reduce((sum, count) => sum + count, 0);
  while (kills() < KILLS) await round(place, ledger, random, moments);
  const tasks = await settle(place, ledger);
  const shown = [...ledger.tasks.values()].filter((task) => task.client).length;
  const unknown = [...tasks.values()].filter((task) => /outcome unknown/.test(task.statusMessage ?? '')).length;
  t.diagnostic(`kills: ${kills()} ${JSON.stringify(moments)}`);
  t.diagnostic(`tasks: ${tasks.size}, of which clients had ${shown}; ${JSON.stringify(ledger.counts(tasks))}, outcome unknown ${unknown}; upstream was called ${ledger.calls.size} times`);
  assert.ok(shown > KILLS && ledger.calls.size > KILLS / 2, 'there was load');
});
