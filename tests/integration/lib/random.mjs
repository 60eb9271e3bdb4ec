// Random choices that can be made again. A test prints the seed in its name; TASKGATE_SEED gives another run the same one.
export const seed = Number(process.env.TASKGATE_SEED ?? Math.floor(Math.random() * 2 ** 32));

/** mulberry32: a number from 0 to below 1. */
export function generator(start = seed) {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const pick = (random, items) => items[Math.floor(random() * items.length)];
