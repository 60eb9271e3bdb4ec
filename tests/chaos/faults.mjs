// What happens to replicas and their database, one thing at a time: it begins, lasts a moment, and is taken back.
import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../integration/lib/random.mjs';

/** A replica, when it is not just coming back. */
async function one({ random, replicas }) {
  const replica = pick(random, replicas);
  await replica.coming;
  return replica;
}

/** An hour forwards or back. */
const leap = (random) => (random() < 0.5 ? -3600 : 3600);

export const FAULTS = {
  async 'kill -9'(place, moment) {
    const replica = await one(place);
    await replica.kill9();
    await pause(moment);
    // It watches for some seconds whether another with its name lives. Other things go on happening.
    replica.coming = replica.launch();
    replica.coming.catch(() => {}); // who waits for it hears of it
  },
  async SIGSTOP(place, moment) {
    const { child } = await one(place);
    child.signal('SIGSTOP');
    await pause(moment * 3);
    child.signal('SIGCONT');
  },
  async 'one replica is cut off'(place, moment) {
    const { wire } = await one(place);
    wire.break();
    await pause(moment);
    wire.mend();
  },
  async 'one replica hears nothing'(place, moment) {
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
  async 'a clock leaps'(place, moment) {
    const { clock } = await one(place);
    if (!clock) return;
    clock.jumpTo(leap(place.random));
    await pause(moment);
    clock.jumpTo(0);
  },
  async 'one after the other restarts'({ replicas }) {
    for (const replica of replicas) {
      await replica.coming;
      await replica.restart();
    }
  },
};

/** A replica that is stopped for longer than the others wait for it. Once a leg, when there is time. */
export async function outlast(place) {
  const { child } = await one(place);
  child.signal('SIGSTOP');
  await pause(25_000);
  child.signal('SIGCONT');
}
