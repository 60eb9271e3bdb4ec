// A home that stands still for a minute, as a machine that swaps or a suspended VM: nobody waits for ever, and nothing runs twice.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { defer, wholeFile } from './lib/lifetime.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { answerOf, complete, form, modernUpstream } from './lib/modern_upstream.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { relayed, relaying, STATE_KEY, through } from './lib/relaying.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing, concurrency: true };
const file = wholeFile();
const PATIENT = { deadline: 60_000 };
const MINUTE = 60_000;
let postgres;

before(async () => {
  if (!postgresMissing) postgres = await startPostgres(file);
});

/** Stops the process now; it goes on after a minute of its own, or with the test. */
function suspend(t, gateway) {
  const since = performance.now();
  gateway.child.signal('SIGSTOP');
  defer(t, () => gateway.child.signal('SIGCONT'));
  return async () => {
    await until(() => performance.now() - since >= MINUTE, 'a minute to be over', { deadline: MINUTE, every: 250 });
    gateway.child.signal('SIGCONT');
  };
}

/** The time of the answer by a fact: the others take a silent replica for gone after 20 s. */
const isGone = async (gateway, id) => (await gateway.admin.get('/ready')).json.replica.peers.find((peer) => peer.id === id)?.state === 'gone';

const newEpoch = (gateway) => until(async () => (await gateway.admin.get('/ready')).json.replica?.epoch > 1, 'the epoch after', { deadline: 20_000, every: 100 });

test('the home of a session stands still: its calls end at once, the session goes on at another of three, and stays there', options, async (t) => {
  const held = [];
  const toolsCall = (call) => (call.params.name === 'slow' ? void held.push(call) : call.reply.result({ content: [{ type: 'text', text: `did ${call.params.arguments.i}` }] }));
  const upstream = await startUpstream(t, { tools: ['read', 'slow'].map((name) => tool(name)), handlers: { 'tools/call': toolsCall } });
  const { p, q, r } = await relaying(t, upstream, postgres.createDatabase('sessions'), ['p', 'q', 'r'], { source: { era: 'legacy' } });
  defer(t, () => held.forEach(({ reply }) => reply.response.writableEnded || reply.cut()));
  const atP = await connectedRaw(t, p.url, { token: 'the-owner', capabilities: { tasks: {} } });
  const [atQ, atR] = [through(t, atP, q), through(t, atP, r)];
  const read = (client, i) => client.call('tools/call', { name: 'read', arguments: { i } }, PATIENT);
  assert.match(JSON.stringify(await read(atQ, 1)), /did 1/);
  const running = atQ.call('tools/call', { name: 'slow', arguments: {} }, PATIENT);
  await until(() => held.length === 1, 'the call at upstream');
  const goOn = suspend(t, p);
  const sent = read(atR, 2);
  for (const answer of await Promise.all([running, sent])) {
    assert.equal(answer.error.code, -32000, JSON.stringify(answer));
    assert.match(JSON.stringify(answer), /the outcome of the call is unknown/);
  }
  assert.equal(await isGone(r, 'p'), false, 'answered before anybody adopts the session');
  await until(async () => /did 3/.test(JSON.stringify(await read(atR, 3))), 'r to adopt the session', { deadline: MINUTE });
  const count = await relayed(q);
  assert.match(JSON.stringify(await read(atQ, 4)), /did 4/);
  assert.equal((await relayed(q)) - count, 1, 'r has adopted the session');
  await goOn();
  await newEpoch(p);
  const before = await relayed(p);
  assert.match(JSON.stringify(await read(atP, 5)), /did 5/);
  assert.equal((await relayed(p)) - before, 1, 'it does not return');
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.arguments.i).filter((i) => i > 1), [3, 4, 5], 'what was sent to p meanwhile does not run');
});

test('the home of a session is killed: a poll of a task that has ended is relayed once in vain, and handled where it is', options, async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('delete_user')] });
  const { p, q } = await relaying(t, upstream, postgres.createDatabase('ended'), ['p', 'q'], { rules: [['delete_user', 'approve']], source: { era: 'legacy' } });
  const atP = await connectedRaw(t, p.url, { token: 'the-owner', capabilities: { tasks: {} } });
  const atQ = through(t, atP, q);
  const { taskId } = await atP.createTask('delete_user', {});
  await p.admin.approve(taskId);
  await until(async () => (await atQ.result('tasks/get', { taskId })).status === 'completed', 'the end');
  await p.kill9();
  const { status } = await atQ.result('tasks/get', { taskId }, PATIENT);
  const vain = Object.entries(await q.admin.metrics()).filter(([name]) => /relayed_requests_total\{outcome="(unreachable|lost|repeated)"/.test(name));
  assert.equal(status, 'completed');
  assert.ok(vain.reduce((sum, [, count]) => sum + count, 0) <= 2, JSON.stringify(vain));
});

test('the home of a task stands still: polls are answered, answers refused; then the outcome is unknown, and it is not run again', options, async (t) => {
  const rounds = [];
  const toolsCall = ({ reply, params }) => {
    rounds.push(params);
    if (!params.inputResponses) reply.result(complete({ resultType: 'input_required', inputRequests: { q: form('How many?') }, requestState: 'up-0' }));
    else reply.result(answerOf(params));
  };
  const upstream = await startUpstream(t, modernUpstream({ tools: [tool('ask_user')], handlers: { 'tools/call': toolsCall } }));
  const { m, n } = await relaying(t, upstream, postgres.createDatabase('tasks'), ['m', 'n'], { rules: [['ask_*', 'approve']], source: { era: 'modern' }, ...STATE_KEY });
  const at = (gateway) => modernClient(t, gateway.url, { token: 'the-owner' });
  const { taskId } = await at(m).create('ask_user', {});
  await m.admin.approve(taskId);
  await until(async () => (await at(n).get(taskId)).inputRequests, 'the question');
  const goOn = suspend(t, m);
  const answered = { taskId, inputResponses: { 'r1:q': { action: 'accept', content: { answer: 'late' } } } };
  const [polled, updated] = await Promise.all([at(n).get(taskId, PATIENT), at(n).call('tasks/update', answered, PATIENT)]);
  assert.equal(polled.status, 'working', JSON.stringify(polled));
  assert.equal(updated.error?.code, -32013, 'an answer is not taken where nobody waits for it');
  assert.equal(await isGone(n, 'm'), false, 'answered before anybody adopts the task');
  assert.equal(await relayed(n, 'repeated'), 1);
  const failed = await until(async () => {
    const task = await at(n).get(taskId, PATIENT);
    return task.status === 'failed' && task;
  }, 'n to adopt the task', { deadline: MINUTE, every: 250 });
  assert.match(JSON.stringify(failed), /outcome unknown/);
  await goOn();
  await newEpoch(m);
  assert.equal((await at(m).get(taskId)).status, 'failed');
  assert.equal(rounds.length, 1, 'no answer went up, and nothing ran again');
});
