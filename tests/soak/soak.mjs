// A busy gateway among random faults: its promises are checked from outside, leg by leg, and it must not grow.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { allTasks, Ledger } from '../faults/lib/ledger.mjs';
import { generator, pick, seed } from '../integration/lib/random.mjs';
import { isCut, Traffic } from '../faults/lib/traffic.mjs';
import { RawClient } from '../integration/lib/client.mjs';
import { startGateway, workflow } from '../integration/lib/gateway.mjs';
import { SECRET, startReceiver } from '../integration/lib/receiver.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { until, within } from '../integration/lib/wait.mjs';
import { FAULTS, RULES } from './faults.mjs';
import { hostileSoak } from './hostile.mjs';

/** The gateway says so, and it is right: the store or upstream is in trouble, or a rule has changed. */
const EXPECTED_ERRORS = [-32000, -32001, -32002, -32003, -32013, -32014];
const EXPECTED_STATUS = [502, 503];

const GARBAGE = '{"jsonrpc":"2.0","id":'; // upstream's own answer to a forwarded call comes down as it is
const isTrouble = (error, answer) => EXPECTED_ERRORS.includes(error.code) || EXPECTED_STATUS.includes(answer.status) || answer.text === GARBAGE;

/** Text that an agent may write into its arguments: it must come out unchanged, and nowhere raw. */
const NASTY = '\u001b[31m\u202eevil\u2066\u0000\r\ndata: x\n\n</script>';
const argumentsOf = (marker) => ({ marker, nasty: `${NASTY}${marker}`, big: Number.MAX_SAFE_INTEGER - marker });

/** Most tasks are decided at once; no check waits for an undecided one. */
const ttlOf = (marker) => (Traffic.fate(marker) ? 20_000 : 1500);

async function setTheStage(t) {
  const place = { t, ledger: new Ledger(), random: generator(), mode: 'honest', problems: [] };
  place.upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('purge_user'), tool('read'), tool('drop_table')] });
  place.upstream.handlers['tools/call'] = (call) => answerCall(place, call);
  place.receiver = await startReceiver(t);
  place.gateway = await startGateway(t, {
    upstream: place.upstream.url,
    rules: RULES,
    approval: workflow('10m'),
    config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 }, notify: [{ url: place.receiver.url, secret_env: 'NOTIFY_SECRET' }] },
    env: { NOTIFY_SECRET: SECRET, THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '2', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2' },
  });
  place.clients = [];
  for (const token of ['A', 'B', 'C', 'D', undefined]) place.clients.push(await connected(t, place.gateway, token));
  place.stranger = await connected(t, place.gateway, 'stranger');
  return place;
}

async function connected(t, gateway, token) {
  const client = new RawClient(gateway.url, { token });
  t.after(() => client.close());
  await client.connect();
  return client;
}

/** Upstream: counts, compares the received call with the sent one, and answers as the present fault says. */
async function answerCall({ ledger, random, mode, problems }, { recorded, params, reply }) {
  const { marker } = params.arguments;
  try {
    assert.notEqual(params.name, 'drop_table', 'a denied tool was called');
    assert.equal(params.task, undefined, 'upstream was told of our task');
    assert.ok(recorded.text.includes(`"arguments":${JSON.stringify(argumentsOf(marker))}`), `the arguments of ${marker} have changed: ${recorded.text}`);
    ledger.called(marker);
  } catch (error) {
    problems.push(error);
  }
  const result = { content: [{ type: 'text', text: `did ${marker}` }] };
  if (mode === 'silent') return;
  if (mode === 'leaves') return reply.cut();
  if (mode === 'garbage') return reply.http(200, { 'content-type': 'application/json' }, GARBAGE);
  if (mode === 'dribbles') {
    const stream = reply.sse();
    for (const part of [`: ${marker}\n\n`, 'data: {"jsonrpc":"2.0","id":', `${JSON.stringify(recorded.rpc.id)},"result":${JSON.stringify(result)}}\n\n`]) {
      stream.raw(part);
      await pause(random() * 50);
    }
    return stream.end();
  }
  if (random() < 0.3) await pause(random() * 20);
  reply.result(result);
}

/** Asks after tasks of others: each answer is that of an unknown one. */
const prying = ({ ledger, stranger, random }, traffic) =>
  traffic.repeat(Infinity, async () => {
    await pause(20);
    const ids = [...ledger.tasks.keys()].slice(-50);
    if (ids.length === 0) return;
    const answer = await stranger.send(pick(random, ['tasks/get', 'tasks/result', 'tasks/cancel']), { taskId: pick(random, ids) });
    if (answer.message?.error?.data?.error_type !== 'task_not_found') traffic.refused('a stranger', answer);
    assert.ok(!answer.message?.result, `a stranger was answered ${answer.text}`);
  });

/** A denied tool, and the loops: a request that needs neither disk nor server waits for neither. */
const probing = ({ gateway, stranger, slowest }, traffic) =>
  traffic.repeat(Infinity, async () => {
    await pause(50);
    const began = performance.now();
    assert.equal((await gateway.admin.get('/health')).status, 200);
    const error = await stranger.error('tools/call', { name: 'drop_table', arguments: {} });
    assert.equal(error.code, -32014);
    slowest.ms = Math.max(slowest.ms, performance.now() - began);
  });

async function causeTrouble(place, until_ms, counts) {
  while (performance.now() < until_ms) {
    const name = pick(place.random, Object.keys(FAULTS));
    counts[name] = (counts[name] ?? 0) + 1;
    await FAULTS[name](place, 50 + place.random() * 500).catch((error) => {
      if (!/hang up|cut in the middle|ECONN|HTTP 50|initialize/.test(`${error.code} ${error.message}`)) throw error;
    });
    await pause(place.random() * 300);
  }
}

/** Traffic among faults for `seconds`; then all is quiet, and everything is compared with the acknowledgements. */
async function leg(place, seconds, counts, { ending }) {
  const { ledger, random, clients, gateway, problems } = place;
  const traffic = new Traffic({ ledger, random, ttl: ttlOf, argumentsOf, refusals: isTrouble, survives: (error) => isCut(error) || /: HTTP 503 /.test(error.message) });
  const operators = [traffic.operator(gateway.admin, { rounds: Infinity }), traffic.operator(gateway.admin, { rounds: Infinity })];
  const others = [prying(place, traffic), probing(place, traffic)];
  const end = performance.now() + seconds * 1000;
  const working = clients.flatMap((client) => [repeatedly(() => traffic.client(client, { creates: 6, steps: 40 }), end), repeatedly(() => traffic.waiter(client, { steps: 10 }), end)]);
  await causeTrouble(place, end, counts);
  if (ending === 'kill -9') await gateway.kill9();
  await within(Promise.all(working), 'the clients to have their answers', 40_000);
  traffic.over = true;
  await within(Promise.all([...operators, ...others]), 'the operators to be done', 40_000);
  for (const client of [...clients, place.stranger]) client.close();
  if (ending === 'kill -9') await gateway.launch();
  if (ending === 'SIGTERM') await gateway.restart();
  await until(async () => (await gateway.admin.list({ state: 'executing' })).tasks.length === 0, 'the executions to end');
  // A call that could not begin is begun some seconds later: the list may be older than the calls. A call that was made
  // for a task that is still approved, or made twice, stays wrong.
  let tasks;
  const holds = async () => (ledger.check((tasks = await allTasks(gateway.admin))), true);
  await until(holds, 'the tasks to be as everybody was told', { deadline: 15_000, every: 500 });
  assert.deepEqual([...traffic.problems, ...problems], []);
  checkLog(gateway);
  place.upstream.requests = [];
  return tasks;
}

async function repeatedly(work, end) {
  while (performance.now() < end) {
    await work();
    await pause(5);
  }
}

/** Nothing from an agent reaches the log unescaped. */
function checkLog(gateway) {
  for (const entry of gateway.logs) assert.ok(entry.msg, 'a log line without msg');
  const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.exec(gateway.child.stderr);
  assert.equal(raw, null, 'a control character in the log');
  gateway.child.stderr = gateway.child.stderr.slice(gateway.child.stderr.lastIndexOf('\n') + 1);
}

/** Memory and descriptors of the gateway at rest. */
async function measure({ gateway }) {
  const { pid } = gateway.child;
  const descriptors = () => fs.readdirSync(`/proc/${pid}/fd`).length;
  let lowest = Infinity;
  for (let i = 0; i < 10; i++) {
    lowest = Math.min(lowest, descriptors());
    await pause(50);
  }
  return { rssMb: Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024, descriptors: lowest };
}

function checkFlat(measures) {
  const middle = measures[Math.floor((measures.length - 1) / 2)];
  const last = measures[measures.length - 1];
  assert.ok(last.rssMb <= middle.rssMb * 1.15 + 2, `memory grew in the second half from ${middle.rssMb.toFixed(1)} to ${last.rssMb.toFixed(1)} MB`);
  assert.ok(last.descriptors <= middle.descriptors + 8, `descriptors grew in the second half from ${middle.descriptors} to ${last.descriptors}`);
}

async function soak(t, seconds) {
  const place = await setTheStage(t);
  const length = Math.max(3, seconds / 20);
  const legs = Math.max(3, Math.round(seconds / (length + 2))); // it takes two seconds to be quiet
  const quiet = Math.ceil((legs * 2) / 3); // legs in the life of one process; the others end it
  const counts = {};
  const measures = [];
  let tasks;
  for (let i = 0; i < legs; i++) {
    place.slowest = { ms: 0 };
    const ending = i < quiet ? 'nothing' : pick(place.random, ['kill -9', 'SIGTERM']);
    tasks = await leg(place, length, counts, { ending });
    const { rssMb, descriptors } = await measure(place);
    if (i < quiet) measures.push({ rssMb, descriptors });
    console.log(`leg ${i + 1} of ${legs}, ended by ${ending}: ${tasks.size} tasks, ${place.ledger.calls.size} calls upstream, ${rssMb.toFixed(1)} MB, ${descriptors} descriptors, longest denial ${place.slowest.ms.toFixed(0)} ms`);
  }
  console.log(`tasks: ${JSON.stringify(place.ledger.counts(tasks))}\nfaults: ${JSON.stringify(counts)}`);
  checkFlat(measures);
  assert.ok(place.ledger.calls.size > seconds, 'there was traffic');
}

export async function main(words) {
  const isHostile = words[0] === 'hostile';
  const [seconds = '600', ...more] = words.slice(isHostile ? 1 : 0);
  if (!(Number(seconds) >= 10) || more.length > 0) {
    console.error('usage: tests/soak/run [hostile] [SECONDS]    at least 10; TASKGATE_BIN names the gateway, TASKGATE_SEED repeats the choices');
    process.exit(2);
  }
  const cleanups = [];
  const t = { after: (cleanup) => cleanups.unshift(cleanup) };
  console.log(`soak: ${seconds} s, TASKGATE_SEED=${seed}`);
  try {
    await (isHostile ? hostileSoak : soak)(t, Number(seconds));
    for (const cleanup of cleanups) await cleanup();
    console.log('soak: passed');
  } catch (error) {
    console.error('soak: FAILED\n', error);
    process.exit(1);
  }
  process.exit(0);
}
