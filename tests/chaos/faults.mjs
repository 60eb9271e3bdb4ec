// The faults of replicas, their network and their database: each begins, lasts a moment, and is taken back. The short
// faults come one after the other. Beside them one replica at a time is away for longer than the others wait for it.
import { setTimeout as pause } from 'node:timers/promises';
import { clocksMissing } from '../faults/lib/clock.mjs';
import { pick } from '../integration/lib/random.mjs';
import { until } from '../integration/lib/wait.mjs';
import { explained } from './lib/unready.mjs';

/** `work` with one of `replicas` that no other fault has, when it is not just coming back. */
async function onOne({ random, replicas }, work, among = replicas) {
  const free = await until(() => {
    const list = among.filter(({ isHit }) => !isHit);
    return list.length > 0 && list;
  }, 'a replica that nothing happens to', { deadline: 60_000 });
  const replica = pick(random, free);
  replica.isHit = true;
  try {
    await replica.coming;
    return await work(replica);
  } finally {
    replica.isHit = false;
  }
}

/** The same, while a call that somebody has approved is under way from it; for that it waits a little. */
const onOneThatExecutes = (place, work) =>
  onOne(place, async (replica) => {
    const host = place.network.host(replica.number);
    const executes = () => [...place.executing].some(({ from }) => from.endsWith(host));
    await until(executes, 'an execution', { deadline: 3000, every: 2 }).then(() => place.hits++, () => {});
    return work(replica);
  });

/** An hour forwards or back. */
const leap = (random) => (random() < 0.5 ? -3600 : 3600);

const EVERYWHERE = {
  'kill -9': (place, moment) =>
    onOneThatExecutes(place, async (replica) => {
      await replica.kill9();
      await pause(moment);
      // It watches for some seconds whether another with its name lives. Other things go on happening.
      replica.coming = explained(replica, replica.launch());
      replica.coming.catch(() => {}); // its waiters hear of a failure
    }),
  SIGSTOP: (place, moment) => stopped(place, moment * 3),
  'one replica is cut off from the database': (place, moment) =>
    onOne(place, async ({ wire }) => {
      wire.break();
      await pause(moment);
      wire.mend();
    }),
  'one replica hears nothing of the database': (place, moment) => deaf(place, moment),
  async 'the database restarts'({ database }) {
    await database.stop();
    await database.start();
  },
  async 'the database crashes'({ database }, moment) {
    await database.stop('SIGQUIT');
    await pause(moment);
    await database.start();
  },
  async 'one after the other restarts'(place) {
    // One that is away would not end, and is away for longer than the others need.
    for (const replica of place.replicas) if (!replica.isHit) await onOne(place, (it) => explained(it, it.restart()), [replica]);
  },
};

const WITH_CLOCKS = {
  'a clock leaps': (place, moment) =>
    onOne(place, async ({ clock }) => {
      clock.jumpTo(leap(place.random));
      await pause(moment);
      clock.jumpTo(0);
    }),
};

const WITH_LINKS = {
  'a network cable is pulled': (place, moment) => unplugged(place, moment * 2),
  'two replicas do not reach each other': (place, moment) =>
    onOne(place, async ({ number: from }) => {
      const to = pick(place.random, place.replicas.map(({ number }) => number).filter((number) => number !== from));
      // One direction, or both.
      const ways = place.random() < 0.5 ? [[from, to]] : [[from, to], [to, from]];
      for (const way of ways) place.network.lose(...way);
      await pause(moment * 3);
      for (const way of ways) place.network.find(...way);
    }),
};

const stopped = (place, ms) =>
  onOneThatExecutes(place, async ({ child }) => {
    child.signal('SIGSTOP');
    await pause(ms);
    child.signal('SIGCONT');
  });

const deaf = (place, ms) =>
  onOne(place, async ({ wire }) => {
    wire.silence();
    await pause(ms);
    wire.mend();
  });

const unplugged = (place, ms) =>
  onOneThatExecutes(place, async ({ number }) => {
    place.network.pull(number);
    await pause(ms);
    place.network.plug(number);
  });

const OUTLAST_MS = 25_000;

/** Longer than the others wait for a replica. */
const LONG = {
  'SIGSTOP for 25 s': (place) => stopped(place, OUTLAST_MS),
  'one replica hears nothing of the database for 25 s': (place) => deaf(place, OUTLAST_MS),
};

const LONG_WITH_LINKS = { 'a network cable is pulled for 25 s': (place) => unplugged(place, OUTLAST_MS) };

/** The faults that can be caused here, by their names: `short` ones, and `long` ones. */
export const faultsOf = ({ network }) => ({
  short: { ...EVERYWHERE, ...(clocksMissing ? {} : WITH_CLOCKS), ...(network.hasLinks ? WITH_LINKS : {}) },
  long: { ...LONG, ...(network.hasLinks ? LONG_WITH_LINKS : {}) },
});
