// A test ends all that it starts: clean-ups run last in, first out, so that clients leave before
// the gateway is stopped and the gateway before its upstream.
import { after as afterFile } from 'node:test';

const stacks = new WeakMap();

/** Runs `cleanup` when the test `t` (or the file, see `wholeFile`) is over. A clean-up that throws fails the test. */
export function defer(t, cleanup) {
  let stack = stacks.get(t);
  if (!stack) {
    stack = [];
    stacks.set(t, stack);
    t.after(async () => {
      const failures = [];
      while (stack.length > 0) {
        try {
          await stack.pop()();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length === 1) throw failures[0];
      if (failures.length > 1) throw new AggregateError(failures, failures.map((f) => f.message).join('\n'));
    });
  }
  stack.push(cleanup);
}

/**
 * Stands in for `t` where a fixture is shared by all tests of a file. To be called at the top of the file:
 * inside a `before` hook the runner would take the clean-up for the hook's own.
 */
export function wholeFile() {
  const file = { after: (cleanup) => void (file.cleanup = cleanup) };
  afterFile(() => file.cleanup?.());
  return file;
}
