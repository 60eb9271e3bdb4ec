// Clients and operators behind a balancer that chooses a replica at random for each request.
import { AdminClient } from '../../integration/lib/admin.mjs';
import { RawClient } from '../../integration/lib/client.mjs';
import { pick } from '../../integration/lib/random.mjs';

/** A client whose patience is bounded: a replica that is stopped answers nothing. */
export class AnywhereClient extends RawClient {
  constructor(urls, random, options) {
    super(urls[0], options);
    Object.assign(this, { urls, random });
  }

  send(method, params, options = {}) {
    const deadline = method === 'tasks/result' ? 15_000 : 5_000;
    return super.send(method, params, { deadline, url: pick(this.random, this.urls), ...options });
  }

  notify(method, params, options = {}) {
    return super.notify(method, params, { deadline: 5_000, url: pick(this.random, this.urls), ...options });
  }
}

export class AnywhereAdmin extends AdminClient {
  constructor(urls, random, token) {
    super(urls[0], token);
    Object.assign(this, { urls, random });
  }

  request(...words) {
    return new AdminClient(pick(this.random, this.urls), this.token).request(...words);
  }
}
