// Clients and operators whose patience is bounded: a replica that is stopped answers nothing.
import { AdminClient } from '../../integration/lib/admin.mjs';
import { RawClient } from '../../integration/lib/client.mjs';
import { within } from '../../integration/lib/wait.mjs';
import { ModernClient } from '../../integration/lib/modern_client.mjs';

const PATIENCE_MS = 5_000;

const bounded = (Base) =>
  class extends Base {
    send(method, params, options = {}) {
      const deadline = method === 'tasks/result' ? 3 * PATIENCE_MS : PATIENCE_MS;
      return super.send(method, params, { deadline, ...options });
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
