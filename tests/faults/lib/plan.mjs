// The call of the gateway's that fails next: written into the file that its faulty build has mapped (inject/inject.h).
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

/** The build with calls that can fail. */
export const FAULTY = path.resolve(process.env.TASKGATE_FAULTY ?? path.join(here, '../../../build-asan/tests/faults/taskgate-faulty'));
export const faultyMissing = fs.existsSync(FAULTY) ? false : `${FAULTY} is not built`;

/** In the order of inject.h. */
const KINDS = ['memory of our own', 'files', 'sockets', 'calls of SQLite', 'threads', 'memory inside SQLite', 'system calls inside SQLite', 'memory inside libcurl'];
const WHERE = 8 * (3 + KINDS.length);

export class Plan {
  constructor(folder) {
    this.file = path.join(folder, 'faults');
    fs.writeFileSync(this.file, Buffer.alloc(WHERE + 64));
    this.descriptor = fs.openSync(this.file, 'r+');
  }

  get environment() {
    return { TASKGATE_FAULTS: this.file };
  }

  close() {
    fs.closeSync(this.descriptor);
  }

  write(at, number) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(number));
    fs.writeSync(this.descriptor, bytes, 0, 8, 8 * at);
  }

  read(at) {
    const bytes = Buffer.alloc(8);
    fs.readSync(this.descriptor, bytes, 0, 8, 8 * at);
    return Number(bytes.readBigInt64LE());
  }

  /** The `nth` call of this kind from now on fails, once. */
  arm(kind, nth) {
    this.write(2, 0);
    this.write(1, nth);
    this.write(0, KINDS.indexOf(kind) + 1);
  }

  disarm() {
    this.write(0, 0);
  }

  get hasFired() {
    return this.read(2) > 0;
  }

  /** How often calls of this kind have been made. */
  calls(kind) {
    return this.read(3 + KINDS.indexOf(kind));
  }

  /** The function that failed. */
  get where() {
    const bytes = Buffer.alloc(64);
    fs.readSync(this.descriptor, bytes, 0, 64, WHERE);
    return bytes.toString('latin1').replace(/\0.*/s, '');
  }
}
