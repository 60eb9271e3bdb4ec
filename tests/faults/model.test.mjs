// The model of a task's life: what it promises holds, and each mistake planted in it is found.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { temporaryFolder } from '../integration/lib/gateway.mjs';

const MODEL = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../../docs/model/task.pml');
const isThere = (command) => !spawnSync(command, ['--version']).error;
const missing = ['spin', 'gcc'].filter((command) => !isThere(command));
const options = { skip: missing.length > 0 && `${missing.join(' and ')} not installed` };

/** Runs a command that must succeed; its output. */
function run(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
  assert.ok(!error && status === 0, `${command} ${args.join(' ')}: ${error?.message ?? status}\n${stdout}\n${stderr}`);
  return stdout;
}

/** How the search over all states ends. `ends`: of the runs that are fair, for a task or client that waits for ever; else for a broken assertion. */
/* A search that finds something is short. */
function search(t, { ends = false, mistake, ...numbers }) {
  const folder = temporaryFolder(t);
  fs.copyFileSync(MODEL, path.join(folder, 'task.pml'));
  const defines = Object.entries({ LOSSES: 0, FAILS: 0, STOPS: 0, PERSONS: 1, ...numbers }).map(([name, value]) => `-D${name}=${value}`);
  run('spin', ['-a', ...defines, ...(mistake ? [`-D${mistake}`] : []), 'task.pml'], folder);
  run('gcc', ['-w', mistake ? '-O0' : '-O2', '-DCOLLAPSE', '-DMEMLIM=2000', ...(ends ? ['-DNFAIR=3'] : ['-DSAFETY', '-DNOCLAIM']), '-o', 'pan', 'pan.c'], folder);
  const text = run('./pan', ['-m100000', ...(ends ? ['-a', '-f'] : [])], folder);
  assert.doesNotMatch(text, /max search depth too small|out of memory|not completed, resource/, text);
  t.diagnostic(/(\d+) states, stored/.exec(text)[0]);
  return { errors: Number(/errors: (\d+)/.exec(text)[1]), what: /^pan:1: (.*?)(?: \(at depth \d+\))?$/m.exec(text)?.[1] };
}

for (const [name, settings] of [
  ['the call runs at most once when commits fail and answers are lost', { LOSSES: 1, FAILS: 1 }],
  ['the call runs at most once when a replica stops or crashes', { STOPS: 1 }],
  ['a quorum of one group stands behind the arguments that run', { PERSONS: 3 }],
  ['a quorum of two persons stands behind the arguments that run', { PERSONS: 3, QUORUM: 2 }],
  ['each task ends and each client is answered when answers are lost', { ends: true, LOSSES: 1 }],
  ['each task ends and each client is answered when a replica stops or crashes', { ends: true, STOPS: 1 }],
])
  test(name, options, (t) => assert.deepEqual(search(t, settings), { errors: 0, what: undefined }));

const TWICE = /executions<=1/, UNJUDGED = /was_allowed/, VOTES = /voted_digest/, NEVER = /acceptance cycle/;
const MISTAKES = {
  CLAIM_UNCOMPARED: [TWICE, {}],
  OUTCOME_UNCOMPARED: [/assertion violated .*state==/, {}],
  CLAIM_UNNAMED: [TWICE, { LOSSES: 1 }],
  LOST_IS_APPROVED: [TWICE, { STOPS: 1 }],
  PLAIN_UNJUDGED: [UNJUDGED, {}],
  BEHIND_UNJUDGED: [UNJUDGED, {}],
  EDIT_BY_ANY_VOTE: [VOTES, { PERSONS: 3 }],
  EDIT_KEEPS_VOTES: [VOTES, { PERSONS: 3 }],
  VOTE_OF_ANYBODY: [VOTES, { PERSONS: 3 }],
  OWN_FEED_SKIPPED: [NEVER, { ends: true, LOSSES: 1 }],
  EPOCH_STAYS: [NEVER, { ends: true, LOSSES: 1 }],
  FENCE_ENDS_NOTHING: [NEVER, { ends: true, STOPS: 1 }],
  OUTCOME_ONCE: [NEVER, { ends: true, FAILS: 1 }],
};

for (const [mistake, [expected, settings]] of Object.entries(MISTAKES))
  test(`a planted mistake is found: ${mistake}`, options, (t) => {
    const { errors, what } = search(t, { ...settings, mistake });
    assert.equal(errors, 1);
    assert.match(what, expected);
  });

test('the model lists the planted mistakes, and has each of them', () => {
  const text = fs.readFileSync(MODEL, 'utf8');
  const listed = [...text.matchAll(/^ \* - (\w+):/gm)].map(([, name]) => name);
  assert.deepEqual(listed, Object.keys(MISTAKES));
  for (const name of listed) assert.match(text, new RegExp(`^#ifn?def ${name}$`, 'm'));
});
