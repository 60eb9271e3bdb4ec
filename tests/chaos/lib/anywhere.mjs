// Clients and operators whose patience is bounded: a replica that is stopped answers nothing.
import { AdminClient } from '../../integration/lib/admin.mjs';
import { RawClient } from '../../integration/lib/client.mjs';
import { within } from '../../integration/lib/wait.mjs';
import { ModernClient } from '../../integration/lib/modern_client.mjs';

const PATIENCE_MS = 5_000;

const waiting = new Set();
/** How often clients gave up waiting, by method. */
export const gaveUp = {};

/** The requests without an answer, and for how long. */
export const unanswered = () => [...waiting].map(({ what, since }) => `${what} for ${Math.round(performance.now() - since)} ms`).join(', ');

async function noted(method, params, request) {
  const entry = { what: `${method} ${params?.taskId ?? params?.name ?? ''}`, since: performance.now() };
  waiting.add(entry);
  try {
    return await request;
  } catch (error) {
    if (/not within/.test(error.message)) gaveUp[method] = (gaveUp[method] ?? 0) + 1;
    throw error;
  } finally {
    waiting.delete(entry);
  }
}

const bounded = (Base) =>
  class extends Base {
    send(method, params, options = {}) {
      const deadline = method === 'tasks/result' ? 3 * PATIENCE_MS : PATIENCE_MS;
      return noted(method, params, super.send(method, params, { deadline, ...options }));
    }

    notify(method, params, options = {}) {
      return super.notify(method, params, { deadline: PATIENCE_MS, ...options });
    }
  };

export const LegacyAgent = bounded(RawClient);
export const ModernAgent = bounded(ModernClient);

export class Operator extends AdminClient {
  request(...words) {
    return within(super.request(...words), `the answer to an operator's ${words[0]} ${words[1]}`, PATIENCE_MS);
  }
}
