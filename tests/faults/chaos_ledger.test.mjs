// The ledger of the chaos: each broken promise about votes, grants and questions is found, under its name, and none that was
// kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChaosLedger, GRANT_CALLS } from '../chaos/lib/ledger.mjs';
import { explained } from '../chaos/lib/unready.mjs';

const NOTHING = { lost: [], twice: [], unapproved: [], votes: [], grants: [], answers: [], questions: [] };

const vote = (person, verb = 'approve') => ({ person, verb });

/** A call that alice and bob have approved, and that has run. */
function voted() {
  const ledger = new ChaosLedger();
  const marker = ledger.markVoted();
  ledger.created('tg_1', marker, 'client');
  for (const person of ['alice', 'bob']) {
    ledger.voting(marker, person);
    ledger.toldVote(marker, person);
  }
  ledger.called(marker);
  const task = { id: 'tg_1', state: 'completed', arguments: { marker }, votes: [vote('alice'), vote('bob')] };
  return { ledger, marker, task, tasks: new Map([['tg_1', task]]), grants: new Map() };
}

/** A grant for a series whose calls are all used. */
function granted() {
  const ledger = new ChaosLedger();
  const series = ledger.startSeries();
  const tasks = new Map();
  const add = (marker, more) => {
    const id = `tg_${marker}`;
    ledger.created(id, marker, 'client');
    ledger.called(marker);
    tasks.set(id, { id, state: 'completed', arguments: { marker, series }, ...more });
  };
  const first = ledger.markOfSeries(series);
  ledger.deciding(first, 'approve');
  ledger.granting(series);
  ledger.toldGrant('gr_1', series);
  add(first, { decidedBy: 'alice' });
  for (let use = 1; use <= GRANT_CALLS; use++) add(ledger.markOfSeries(series), { decidedBy: 'grant:gr_1', grant: { use } });
  const grant = { id: 'gr_1', state: 'ended', used: GRANT_CALLS, arguments: { series } };
  return { ledger, series, tasks, task: tasks.get('tg_2'), grant, grants: new Map([['gr_1', grant]]) };
}

/** A call whose server has asked twice and was answered twice. */
function asked() {
  const ledger = new ChaosLedger();
  const marker = ledger.mark();
  ledger.created('tg_1', marker, 'client');
  ledger.deciding(marker, 'approve');
  ledger.called(marker);
  for (const round of [0, 1]) {
    ledger.asked(marker, round);
    ledger.acted(marker, round, ledger.answering(marker, round));
  }
  const task = { id: 'tg_1', state: 'completed', arguments: { marker } };
  return { ledger, marker, task, tasks: new Map([['tg_1', task]]), grants: new Map() };
}

const BREACHES = [
  [voted, 'a call that ran with one vote', 'unapproved', ({ task }) => task.votes.pop(), /is completed with the votes of alice$/],
  [voted, 'a person whose vote counted twice', 'unapproved', ({ task, ledger, marker }) => ((task.votes[1] = vote('alice')), ledger.withdrawing(marker, 'bob')), /is completed with the votes of alice$/],
  [voted, 'a vote that was told and is not there', 'votes', ({ task }) => task.votes.pop(), /lacks the vote of bob/],
  [voted, 'a vote that nobody has sent', 'votes', ({ task }) => task.votes.push(vote('carol')), /has a vote of carol, who has not sent one/],
  [voted, 'a vote that was taken back and counts', 'votes', ({ ledger, marker }) => (ledger.withdrawing(marker, 'bob'), ledger.toldWithdrawn(marker, 'bob')), /has a vote of bob, who .* has it back/],
  [voted, 'a call with one vote that the server got', 'unapproved', ({ ledger, marker }) => ledger.sent.get(marker).votes.delete('bob'), /nobody has (approved|sent approve)/],
  [granted, 'a grant that was used too often', 'grants', ({ ledger, series, tasks, grant }) => (tasks.set('tg_9', { id: 'tg_9', state: 'approved', decidedBy: 'grant:gr_1', grant: { use: 5 }, arguments: { marker: ledger.markOfSeries(series), series } }), (grant.used = 5)), /is for 4 calls and has decided 5/],
  [granted, 'a use that was not counted', 'grants', ({ grant }) => (grant.used = 2), /was used 2 times, and has decided 4 calls/],
  [granted, 'one use for two calls', 'grants', ({ task }) => (task.grant.use = 2), /has numbered its calls 2, 2, 3, 4/],
  [granted, 'a grant that is gone', 'grants', ({ grants }) => grants.clear(), /is not there/],
  [granted, 'a call of another series', 'grants', ({ task }) => (task.arguments.series = 'another'), /of another was decided by gr_1 of series 1/],
  [granted, 'more calls upstream than were allowed', 'grants', ({ ledger, series }) => (ledger.series.get(series).allowed = 2), /upstream was called 4 times by grants of series 1, which allow 2/],
  [granted, 'a grant in force whose end was told', 'grants', ({ ledger, series, grant }) => (ledger.toldEnd(series, true), (grant.state = 'active')), /is active, and somebody was told of its end/],
  [granted, 'a call that was made after the end of the grant', 'unapproved', ({ ledger }) => (ledger.sent.get(2).hasGrant = false), /nobody has (approved|sent approve)/],
  [asked, 'an answer too many', 'answers', ({ ledger, marker }) => assert.throws(() => ledger.acted(marker, 1, ledger.answering(marker, 1)), /2 answers to question 1/), /2 answers to question 1 of 1: answer 2, answer 3/],
  [asked, 'an answer of nobody', 'answers', ({ ledger, marker }) => assert.throws(() => ledger.acted(marker, 0, 'another')), /got another to question 0 of 1, which its client has not given/],
  [asked, 'an end without an answer', 'questions', ({ ledger, marker }) => (ledger.questions.get(marker)[1].acted = []), /is completed, and the server has no answer to question 1/],
  [asked, 'a question without an end', 'questions', ({ ledger, marker, task }) => ((ledger.questions.get(marker)[0].acted = []), (task.state = 'executing')), /waits for the answer to question 0/],
  [asked, 'a held call that ended in another way', 'lost', ({ ledger, marker }) => ledger.toldHeld(marker, undefined, 'failed'), /was told to be failed, and is completed/],
];

for (const stage of [voted, granted, asked]) {
  test(`${stage.name}: a promise that was kept is no breach`, () => {
    const { ledger, tasks, grants } = stage();
    assert.deepEqual(ledger.breaches(tasks, grants), NOTHING);
  });
}

for (const [stage, what, kind, change, says] of BREACHES) {
  test(`${what} is found under ${kind}`, () => {
    const all = stage();
    change(all);
    const found = all.ledger.breaches(all.tasks, all.grants);
    assert.ok(found[kind].length > 0, JSON.stringify(found));
    for (const sentence of found[kind]) assert.match(sentence, says);
  });
}

test('a request that the server must not get is found when it comes', () => {
  const one = voted();
  const marker = one.ledger.markVoted();
  one.ledger.voting(marker, 'alice');
  one.ledger.voting(marker, 'alice');
  assert.throws(() => one.ledger.called(marker), /nobody has approved/);
  const { ledger, series } = granted();
  assert.throws(() => ledger.called(ledger.markOfSeries(series)), /called 5 times by grants of series 1, which allow 4/);
  assert.throws(() => ledger.called(ledger.markOfSeries(series, { isAstray: true })), /nobody has approved/);
  ledger.toldEnd(series, true);
  assert.throws(() => ledger.called(ledger.markOfSeries(series)), /nobody has approved/);
  const two = asked();
  assert.throws(() => two.ledger.acted(two.marker, 0, 'another'), /which its client has not given/);
  assert.throws(() => two.ledger.answering(two.marker, 2), /which its server has not asked/);
  assert.throws(() => two.ledger.asked(two.marker, 3), /asks question 3 of 1 after 2 of them/);
  assert.throws(() => two.ledger.toldHeld(two.marker, 'did 7', 'completed'), /the result of the held call 1/);
});

test('each kind of traffic is counted, and only what came to its end', () => {
  const none = { 'calls run by several votes': 0, 'grants told': 0, 'calls run by a grant': 0, 'calls after the revocation of a grant': 0, 'calls outside of a grant': 0, 'answers by tasks/update': 0, 'answers by the call itself': 0 };
  const kinds = ({ ledger, tasks }) => ledger.kinds(tasks);
  assert.deepEqual(kinds(voted()), { ...none, 'calls run by several votes': 1 });
  const two = granted();
  assert.deepEqual(kinds(two), { ...none, 'grants told': 1, 'calls run by a grant': GRANT_CALLS });
  two.ledger.markOfSeries(two.series, { isAstray: true });
  two.ledger.toldEnd(two.series, true);
  two.ledger.markOfSeries(two.series);
  assert.deepEqual(kinds(two), { ...none, 'grants told': 1, 'calls run by a grant': GRANT_CALLS, 'calls outside of a grant': 1, 'calls after the revocation of a grant': 1 });
  const three = asked();
  assert.deepEqual(kinds(three), { ...none, 'answers by tasks/update': 2 });
  const marker = three.ledger.markHeld();
  three.ledger.asked(marker, 0);
  assert.deepEqual(kinds(three), { ...none, 'answers by tasks/update': 2 });
  three.ledger.acted(marker, 0, three.ledger.answering(marker, 0));
  assert.deepEqual(kinds(three), { ...none, 'answers by tasks/update': 2, 'answers by the call itself': 1 });
});

test('a replica that does not come back tells its readiness and its last lines', async () => {
  const child = { stderr: Array.from({ length: 100 }, (_, i) => `line ${i}\n`).join('') };
  const replica = (get) => ({ number: 2, child, admin: { get } });
  const late = () => Promise.reject(new Error('not within 20000 ms: being ready'));
  const unready = replica(async () => ({ status: 503, text: '{"checks":{"store":false}}\n' }));
  await assert.rejects(explained(unready, late()), ({ message }) => {
    assert.match(message, /^not within 20000 ms: being ready\nreplica 2, \/ready: HTTP 503 {"checks":{"store":false}}\nits last lines:\nline 60\n/);
    assert.match(message, /\nline 99$/);
    return true;
  });
  await assert.rejects(explained(replica(() => Promise.reject(new Error('refused'))), late()), /\/ready: refused\n/);
  await assert.rejects(explained(replica(() => new Promise(() => {})), late()), /\/ready: no answer within 2000 ms\n/);
  assert.equal(await explained(unready, Promise.resolve('started')), 'started');
});
