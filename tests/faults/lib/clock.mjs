// A wall clock that jumps, for one gateway alone: libfaketime reads how far it is off from a file.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** libfaketime for programs with threads, or undefined. */
const library = (() => {
  try {
    return execFileSync('dpkg', ['-L', 'libfaketime'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split('\n').find((name) => name.endsWith('libfaketimeMT.so.1'));
  } catch {
    return undefined;
  }
})();

/** Why there are no clocks of our own here, or false. */
export const clocksMissing = library ? false : 'libfaketime is not installed';

export class Clock {
  constructor(folder) {
    this.file = path.join(folder, 'clock');
    this.jumpTo(0);
  }

  /** The environment of the gateway. Timers must not jump: a real clock that is set does not move them either. */
  get environment() {
    return { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: this.file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  }

  /** From now on the gateway's clock is `seconds` ahead of ours; negative: behind. */
  jumpTo(seconds) {
    fs.writeFileSync(`${this.file}.new`, `${seconds < 0 ? '' : '+'}${seconds}s\n`);
    fs.renameSync(`${this.file}.new`, this.file);
  }
}
