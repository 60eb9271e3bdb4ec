// The faults of replicas, their network and their database, one thing at a time: each begins, lasts a moment, and is taken back.
import { setTimeout as pause } from 'node:timers/promises';
import { clocksMissing } from '../faults/lib/clock.mjs';
import { pick } from '../integration/lib/random.mjs';
import { until } from '../integration/lib/wait.mjs';

/** A replica, when it is not just coming back. */
async function one({ random, replicas }) {
  const replica = pick(random, replicas);
  await replica.coming;
  return replica;
}

/** The same, while a call that somebody has approved is under way from it; for that it waits a little. */
async function oneThatExecutes(place) {
  const replica = await one(place);
  const host = place.network.host(replica.number);
  const executes = () => [...place.executing].some(({ from }) => from.endsWith(host));
  await until(executes, 'an execution', { deadline: 3000, every: 2 }).then(() => place.hits++, () => {});
  return replica;
}

/** An hour forwards or back. */
const leap = (random) => (random() < 0.5 ? -3600 : 3600);

const EVERYWHERE = {
  async 'kill -9'(place, moment) {
    const replica = await oneThatExecutes(place);
    await replica.kill9();
    await pause(moment);
    // It watches for some seconds whether another with its name lives. Other things go on happening.
    replica.coming = replica.launch();
    replica.coming.catch(() => {}); // its waiters hear of a failure
  },
  async SIGSTOP(place, moment) {
    const { child } = await oneThatExecutes(place);
    child.signal('SIGSTOP');
    await pause(moment * 3);
    child.signal('SIGCONT');
  },
  async 'one replica is cut off from the database'(place, moment) {
    const { wire } = await one(place);
    wire.break();
    await pause(moment);
    wire.mend();
  },
  async 'one replica hears nothing of the database'(place, moment) {
    const { wire } = await one(place);
    wire.silence();
    await pause(moment);
    wire.mend();
  },
  async 'the database restarts'({ database }) {
    await database.stop();
    await database.start();
  },
  async 'the database crashes'({ database }, moment) {
    await database.stop('SIGQUIT');
    await pause(moment);
    await database.start();
  },
  async 'one after the other restarts'({ replicas }) {
    for (const replica of replicas) {
      await replica.coming;
      await replica.restart();
    }
  },
};

const WITH_CLOCKS = {
  async 'a clock leaps'(place, moment) {
    const { clock } = await one(place);
    clock.jumpTo(leap(place.random));
    await pause(moment);
    clock.jumpTo(0);
  },
};

const WITH_LINKS = {
  async 'a network cable is pulled'(place, moment) {
    const { number } = await oneThatExecutes(place);
    place.network.pull(number);
    await pause(moment * 2);
    place.network.plug(number);
  },
  async 'two replicas do not reach each other'(place, moment) {
    const { number: from } = await one(place);
    const to = pick(place.random, place.replicas.map(({ number }) => number).filter((number) => number !== from));
    // One direction, or both.
    const ways = place.random() < 0.5 ? [[from, to]] : [[from, to], [to, from]];
    for (const way of ways) place.network.lose(...way);
    await pause(moment * 3);
    for (const way of ways) place.network.find(...way);
  },
};

/** The faults that can be caused here, by their names. */
export const faultsOf = ({ network }) => ({ ...EVERYWHERE, ...(clocksMissing ? {} : WITH_CLOCKS), ...(network.hasLinks ? WITH_LINKS : {}) });

const OUTLAST_MS = 25_000;

/** Longer than the others wait for a replica. One of these begins each leg, when there is time. */
export const longFaultsOf = ({ network }) => ({
  async 'SIGSTOP for 25 s'(place) {
    const { child } = await oneThatExecutes(place);
    child.signal('SIGSTOP');
    await pause(OUTLAST_MS);
    child.signal('SIGCONT');
  },
  async 'one replica hears nothing of the database for 25 s'(place) {
    const { wire } = await one(place);
    wire.silence();
    await pause(OUTLAST_MS);
    wire.mend();
  },
  ...(network.hasLinks && {
    async 'a network cable is pulled for 25 s'(place) {
      const { number } = await oneThatExecutes(place);
      place.network.pull(number);
      await pause(OUTLAST_MS);
      place.network.plug(number);
    },
  }),
});
