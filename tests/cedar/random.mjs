// Numbers that look random and are the same for the same seed, on every machine.

/** One step of mulberry32. */
export class Random {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  /** An integer from 0 to `limit - 1`. */
  below(limit) {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  /** True once in `times`. */
  once(times) {
    return this.below(times) === 0;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** `count` results of `make`. */
  list(count, make) {
    return Array.from({ length: count }, make);
  }
}
