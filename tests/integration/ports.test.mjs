// The ports of the tests themselves: two test files that run at once never get the same one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

const PORTS = new URL('lib/ports.mjs', import.meta.url).href;

/** A process that draws the same ports as the others of this test, and holds the one that it gets until it is ended. */
async function holder(t) {
  const draws = `let n = ${process.pid % 17_000}; Math.random = () => (n += 1) / 18_000; console.log(await (await import('${PORTS}')).freePort()); process.stdin.resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', draws], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  return { child, port: Number((await once(child.stdout, 'data')).toString()) };
}

test('a port belongs to the process that got it until that ends, whether or not anything listens there', async (t) => {
  const one = await holder(t);
  const two = await holder(t);
  assert.ok(two.port > one.port, `${one.port} and ${two.port}`);
  one.child.kill('SIGKILL');
  await once(one.child, 'exit');
  assert.equal((await holder(t)).port, one.port);
});
