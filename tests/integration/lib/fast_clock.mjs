// A clock that runs faster than ours, for one gateway alone: libfaketime speeds up its clocks, its timers among them.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { BINARY } from './gateway.mjs';

const output = (command, ...args) => {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return '';
  }
};

/** libfaketime for programs with threads, or undefined. */
const library = output('dpkg', '-L', 'libfaketime').split('\n').find((name) => name.endsWith('libfaketimeMT.so.1'));

/** Why there is no fast clock here, or false. */
export const fastClockMissing = library ? false : 'libfaketime is not installed';

/** The preloaded libraries: a sanitizer's must come first. Its search for leaks at the end does not bear another's clock. */
const preload = () => ({
  LD_PRELOAD: [output('ldd', BINARY).match(/=> (\S*lib[at]san\S*)/)?.[1], library].filter(Boolean).join(' '),
  ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'detect_leaks=0'].filter(Boolean).join(':'),
});

/** The environment of a gateway whose time passes `times` as fast as ours. */
export const fastClock = (times) => ({ ...preload(), FAKETIME: `+0 x${times}` });

/** A clock that leaps on demand, timers among it: they are looked at when the gateway has something to do. */
export class LeapingClock {
  constructor(folder) {
    this.file = path.join(folder, 'clock');
    this.seconds = 0;
    this.leap(0);
  }

  get environment() {
    return { ...preload(), FAKETIME_TIMESTAMP_FILE: this.file, FAKETIME_NO_CACHE: '1' };
  }

  leap(seconds) {
    this.seconds += seconds;
    fs.writeFileSync(`${this.file}.new`, `+${this.seconds}s\n`);
    fs.renameSync(`${this.file}.new`, this.file);
  }
}
