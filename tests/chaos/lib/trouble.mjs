// Causes the faults: each kind at least once, then by chance, and counts them.
import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../integration/lib/random.mjs';
import { faultsOf } from '../faults.mjs';

/** A run of this length has time for each kind. */
export const ENOUGH_S = 120;
/** A slow machine gets so much more, until each kind has occurred. */
export const GRACE_MS = 15_000;

/** Counts what happens under its name, and says so when it is told to. */
async function cause(place, kinds, name, counts) {
  counts[name] = (counts[name] ?? 0) + 1;
  if (process.env.TASKGATE_CHAOS_VERBOSE) console.log(`  ${((performance.now() - place.began) / 1000).toFixed(1)} s: ${name}`);
  await kinds[name](place, 100 + place.random() * 1000);
}

const shuffled = (random, names) => names.map((name) => [random(), name]).sort(([a], [b]) => a - b).map(([, name]) => name);

async function shortTrouble(place, kinds, end, grace, counts) {
  // Each in a random order, before chance alone decides.
  const names = Object.keys(kinds);
  const first = shuffled(place.random, names);
  while (performance.now() < end || (first.length > 0 && performance.now() < end + grace)) {
    await cause(place, kinds, first.pop() ?? pick(place.random, names), counts);
    await pause(300 + place.random() * 1200);
  }
}

async function longTrouble(place, kinds, counts) {
  for (const name of shuffled(place.random, Object.keys(kinds))) {
    await pause(place.random() * 4000);
    await cause(place, kinds, name, counts);
  }
}

/** Faults until `end`; long ones beside the short ones, if there is time for them. The clean state is back after it. */
export async function causeTrouble(place, seconds, end, counts) {
  const { short, long } = faultsOf(place);
  const hasTime = seconds >= ENOUGH_S;
  await Promise.all([shortTrouble(place, short, end, hasTime ? GRACE_MS : 0, counts), hasTime && longTrouble(place, long, counts)]);
  for (const replica of place.replicas) await replica.coming;
}

/** The kinds of fault that can be caused here, each with how often that was done. */
export function census(place, counts) {
  const { short, long } = faultsOf(place);
  return Object.fromEntries([...Object.keys(short), ...Object.keys(long)].map((name) => [name, counts[name] ?? 0]));
}
