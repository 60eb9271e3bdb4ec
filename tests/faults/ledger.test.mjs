// The ledger itself: each broken promise is found, under its name, and a promise that was kept is not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gapsOfTrail } from '../chaos/lib/trail.mjs';
import { Ledger } from './lib/ledger.mjs';

const NOTHING = { lost: [], twice: [], unapproved: [] };

/** A ledger with one task that somebody has approved, and that has run; and the store's view of it. */
function kept() {
  const ledger = new Ledger();
  const marker = ledger.mark();
  ledger.created('tg_1', marker, 'client');
  ledger.deciding(marker, 'approve');
  ledger.toldState('tg_1', marker, 'approved');
  ledger.called(marker);
  ledger.toldResult('tg_1', `did ${marker}`);
  const task = { id: 'tg_1', state: 'completed', arguments: { marker } };
  return { ledger, marker, task, tasks: new Map([['tg_1', task]]) };
}

const broken = (change) => {
  const all = kept();
  change(all);
  return all.ledger.breaches(all.tasks);
};

test('kept promises are no breach', () => {
  assert.deepEqual(broken(() => {}), NOTHING);
});

const BREACHES = [
  ['a task that is gone', 'lost', ({ tasks }) => tasks.clear(), /was shown to somebody and is not there any more/],
  ['an end that somebody was told otherwise', 'lost', ({ task }) => (task.state = 'failed'), /tg_1/],
  ['a task that went back', 'lost', ({ task }) => (task.state = 'pending'), /further than that/],
  ['an answer of nobody', 'lost', ({ ledger }) => ledger.calls.clear(), /upstream was called 0 times/],
  ['a call that ran and would run again', 'twice', ({ ledger, task }) => ((ledger.tasks.get('tg_1').progress = 1), (ledger.tasks.get('tg_1').state = undefined), (task.state = 'approved')), /is approved, and upstream was called/],
  ['a call that nobody approved', 'unapproved', ({ ledger, marker }) => ledger.sent.get(marker).verbs.clear(), /nobody has (approved|sent approve)/],
];

for (const [what, kind, change, says] of BREACHES) {
  test(`${what} is ${kind}`, () => {
    const found = broken(change);
    assert.ok(found[kind].length > 0, JSON.stringify(found));
    for (const sentence of found[kind]) assert.match(sentence, says);
  });
}

test('a second call is found when it comes, and at the end', () => {
  const { ledger, marker, tasks } = kept();
  assert.throws(() => ledger.called(marker), /called 2 times/);
  assert.match(ledger.breaches(tasks).twice.join(), /called 2 times/);
});

test('a result that differs from the first is found at once', () => {
  const { ledger } = kept();
  assert.throws(() => ledger.toldResult('tg_1', 'another'), /the result of tg_1 was did 1 and is another/);
});

test('the audit trail lacks no row, and has none too many', () => {
  const { ledger, tasks } = kept();
  const gaps = (...rows) => gapsOfTrail(new Map([['tg_1', rows]]), tasks, ledger);
  assert.deepEqual(gaps('create', 'approve', 'execute', 'complete'), []);
  assert.match(gaps('approve', 'execute', 'complete').join(), /0 rows "create"/);
  assert.match(gaps('create', 'approve', 'complete').join(), /no row "execute"/);
  assert.match(gaps('create', 'execute', 'approve', 'complete').join(), /no "approve" before an "execute"/);
  assert.match(gaps('create', 'approve', 'execute', 'execute', 'complete').join(), /more than one row "execute"/);
});
