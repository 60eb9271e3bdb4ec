// Reads a text/event-stream body event by event, as it arrives.
import { within } from './wait.mjs';

export class SseReader {
  constructor(stream, abort) {
    this.abort = abort;
    this.raw = '';
    this.events = []; // every event and comment so far, each with `at`, the moment of its arrival
    this.taken = 0;
    this.over = null; // 'end' | 'cut'
    this.waiters = new Set();
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      this.raw += text;
      rest += text;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parseBlock(block);
        event.at = performance.now();
        this.events.push(event);
      }
      this.wake();
    });
    const finish = (how) => {
      this.over ??= how;
      this.wake();
    };
    stream.on('end', () => finish('end'));
    stream.on('aborted', () => finish('cut'));
    stream.on('error', () => finish('cut'));
    stream.on('close', () => finish('cut'));
  }

  wake() {
    for (const waiter of this.waiters) waiter();
  }

  /** The next block (event or comment) that `fits` and was not taken yet; earlier ones are passed over. */
  async next(fits = () => true, what = 'an event', deadline = 10_000) {
    const find = () => {
      while (this.taken < this.events.length) {
        const event = this.events[this.taken++];
        if (fits(event)) return event;
      }
      return this.over ? { over: this.over } : null;
    };
    const event = await within(this.watch(find), `${what} on the stream; so far:\n${this.raw.slice(-2000)}`, deadline);
    if (event.over) throw new Error(`the stream is over (${event.over}) without ${what}; so far:\n${this.raw.slice(-2000)}`);
    return event;
  }

  /** The next event with JSON-RPC data that `fits`. */
  async message(fits = () => true, what = 'a message', deadline = 10_000) {
    const event = await this.next((e) => e.json !== undefined && fits(e.json), what, deadline);
    return event.json;
  }

  /** Waits for the end of the stream and says how it came: 'end' or 'cut'. */
  async end(deadline = 10_000) {
    return within(this.watch(() => this.over), `the end of the stream; so far:\n${this.raw.slice(-2000)}`, deadline);
  }

  watch(find) {
    return new Promise((resolve) => {
      const attempt = () => {
        const value = find();
        if (value === null || value === undefined) return;
        this.waiters.delete(attempt);
        resolve(value);
      };
      this.waiters.add(attempt);
      attempt();
    });
  }
}

function parseBlock(block) {
  const event = { raw: block };
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith(':')) {
      event.comment = line.slice(1);
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') event.data = event.data === undefined ? value : `${event.data}\n${value}`;
    else if (field === 'event' || field === 'id' || field === 'retry') event[field] = value;
  }
  if (event.data !== undefined) {
    try {
      event.json = JSON.parse(event.data);
    } catch {
      // Not JSON: see `data`.
    }
  }
  return event;
}
