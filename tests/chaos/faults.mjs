// What happens to replicas and their database, one thing at a time: it begins, lasts a moment, and is taken back.
import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../integration/lib/random.mjs';

const one = ({ random, replicas }) => pick(random, replicas);

/** An hour forwards or back. */
const leap = (random) => (random() < 0.5 ? -3600 : 3600);

export const FAULTS = {
  async 'kill -9'(place, moment) {
    const replica = one(place);
    await replica.kill9();
    await pause(moment);
    await replica.launch();
  },
  async SIGSTOP(place, moment) {
    const { child } = one(place);
    child.signal('SIGSTOP');
    await pause(moment * 3);
    child.signal('SIGCONT');
  },
  async 'one replica is cut off'(place, moment) {
    const { wire } = one(place);
    wire.break();
    await pause(moment);
    wire.mend();
  },
  async 'one replica hears nothing'(place, moment) {
    const { wire } = one(place);
    wire.silence();
    await pause(moment);
    wire.mend();
  },
  async 'the database restarts'({ database }) {
    database.stop('fast');
    database.start();
  },
  async 'the database crashes'({ database }, moment) {
    database.stop('immediate');
    await pause(moment);
    database.start();
  },
  async 'a clock leaps'(place, moment) {
    const { clock } = one(place);
    if (!clock) return;
    clock.jumpTo(leap(place.random));
    await pause(moment);
    clock.jumpTo(0);
  },
  async 'one after the other restarts'({ replicas }) {
    for (const replica of replicas) await replica.restart();
  },
};

/** A replica that is stopped for longer than the others wait for it. Once a leg, when there is time. */
export async function outlast(place) {
  const { child } = one(place);
  child.signal('SIGSTOP');
  await pause(25_000);
  child.signal('SIGCONT');
}
