// Waiting for a fact instead of for a time.
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Calls `fact` again and again until it returns a truthy value, and returns that value.
 * Rejects with `what` (a string or a function) after `deadline` ms.
 */
export async function until(fact, what, { deadline = 10_000, every = 20 } = {}) {
  const end = performance.now() + deadline;
  let lastError;
  for (;;) {
    try {
      const value = await fact();
      if (value) return value;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > end) {
      const text = typeof what === 'function' ? what() : what;
      throw new Error(`not within ${deadline} ms: ${text}${lastError ? ` (last: ${lastError.message})` : ''}`);
    }
    await pause(every);
  }
}

/** `promise`, or a rejection that names `what` after `deadline` ms. */
export function within(promise, what, deadline = 10_000) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${deadline} ms: ${what}`)), deadline);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

/** A promise with its handles outside. */
export function signal() {
  let fire, fail;
  const promise = new Promise((resolve, reject) => ((fire = resolve), (fail = reject)));
  return { promise, fire, fail };
}
