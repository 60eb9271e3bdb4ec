// A child process under test: its output kept line by line, its end awaited, never orphaned.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { until, within } from './wait.mjs';

const SANITIZER = /AddressSanitizer|UndefinedBehaviorSanitizer|ThreadSanitizer|LeakSanitizer|MemorySanitizer|runtime error:/;

const living = new Set();
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export class Child {
  constructor(command, args, { env = {}, cwd, name = command, stdin = 'ignore' } = {}) {
    this.name = name;
    this.stdout = '';
    this.stderr = '';
    this.exit = null; // {code, signal} once it is over
    this.process = spawn(command, args, { cwd, env: cleanEnvironment({ ...process.env, ...env }), stdio: [stdin, 'pipe', 'pipe'] });
    living.add(this.process);
    this.process.stdout.setEncoding('utf8').on('data', (text) => (this.stdout += text));
    this.process.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text));
    this.exited = new Promise((resolve) => {
      this.process.once('error', (error) => resolve((this.exit = { code: null, signal: null, error })));
      // 'close' and not 'exit': only then both outputs have been read to their ends.
      this.process.once('close', (code, signal) => resolve((this.exit = { code, signal })));
    }).then((exit) => {
      living.delete(this.process);
      return exit;
    });
  }

  get pid() {
    return this.process.pid;
  }

  /** The processor's time that it has had so far, in ms: what else the machine does is not in it. */
  get worked() {
    const fields = fs.readFileSync(`/proc/${this.pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10; // user and system, in ticks of 10 ms
  }

  signal(name) {
    if (!this.exit) this.process.kill(name);
  }

  /** Waits until `ready` returns something truthy; a child that ends before that is an error with its output. */
  async ready(ready, what, deadline = 20_000) {
    return until(
      async () => {
        if (this.exit) return { died: true };
        return ready();
      },
      () => `${this.name}: ${what}\n${this.output()}`,
      { deadline },
    ).then((value) => {
      if (value.died) throw new Error(`${this.name} ended before ${what}: ${this.ending()}\n${this.output()}`);
      return value;
    });
  }

  /** Sends `name` and waits for the end; kills and throws when it does not come. */
  async stop(name = 'SIGTERM', deadline = 30_000) {
    this.signal(name);
    try {
      return await within(this.exited, `${this.name} to end after ${name}`, deadline);
    } catch (error) {
      this.signal('SIGKILL');
      await this.exited;
      throw new Error(`${error.message}\n${this.output()}`);
    }
  }

  ending() {
    const { code, signal, error } = this.exit ?? {};
    return error ? error.message : signal ? `signal ${signal}` : `exit code ${code}`;
  }

  output(limit = 4000) {
    return `--- stdout of ${this.name}\n${this.stdout.slice(-limit)}\n--- stderr of ${this.name}\n${this.stderr.slice(-limit)}`;
  }

  /** Throws when a sanitizer has reported something. */
  assertNoSanitizerReport() {
    const at = this.stderr.search(SANITIZER);
    if (at >= 0) throw new Error(`${this.name}: sanitizer report\n${this.stderr.slice(Math.max(0, at - 200), at + 6000)}`);
  }
}

/** Runs a command to its end and returns {code, stdout, stderr}. */
export async function run(command, args, { deadline = 30_000, ...options } = {}) {
  const child = new Child(command, args, options);
  try {
    await within(child.exited, `${command} ${args.join(' ')} to end`, deadline);
  } catch (error) {
    child.signal('SIGKILL');
    await child.exited;
    throw new Error(`${error.message}\n${child.output()}`);
  }
  if (child.exit.error) throw child.exit.error;
  child.assertNoSanitizerReport();
  return { code: child.exit.code, signal: child.exit.signal, stdout: child.stdout, stderr: child.stderr };
}

/** `undefined` takes a variable away instead of becoming the word. */
function cleanEnvironment(variables) {
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
}
