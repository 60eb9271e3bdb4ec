// Grants in force: what is allowed without being asked, and how to end it.
import { activeGrants, ApiError, revokeGrant } from './api.js';
import { briefOf } from './brief.js';
import { askReason } from './dialog.js';
import { askerText, duration, make, plural, putText } from './text.js';

const REFRESH_MS = 30_000;
const byId = (id) => document.getElementById(id);

export class Grants {
  /** `mayRevoke()`: whether the buttons are shown; `refused(error)` ends the session. */
  constructor(list, { mayRevoke, refused, announce }) {
    this.list = list;
    this.host = { mayRevoke, refused, announce };
    this.grants = [];
    setInterval(() => this.grants.length > 0 && this.refresh(), REFRESH_MS);
  }

  clear() {
    this.grants = [];
    this.show();
  }

  /** Asks for them anew. Calls that come meanwhile are one more question afterwards. */
  async refresh() {
    if (this.isAsking) {
      this.isStale = true;
      return;
    }
    this.isAsking = true;
    try {
      this.grants = await activeGrants();
      this.show();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.host.refused(error);
    } finally {
      this.isAsking = false;
    }
    if (this.isStale) {
      this.isStale = false;
      await this.refresh();
    }
  }

  show() {
    byId('grants-part').hidden = this.grants.length === 0;
    byId('grants-count').textContent = this.grants.length > 0 ? String(this.grants.length) : '';
    const focused = this.list.contains(document.activeElement) ? document.activeElement.closest('li').dataset.grantId : null;
    this.list.replaceChildren(...this.grants.map((grant) => this.element(grant)));
    if (focused) (this.list.querySelector(`[data-grant-id="${CSS.escape(focused)}"] button`) ?? byId('waiting')).focus();
  }

  element(grant) {
    const item = document.getElementById('grant').content.firstElementChild.cloneNode(true);
    const part = (name) => item.querySelector(name);
    item.dataset.grantId = grant.id;
    putText(part('.tool'), grant.tool);
    part('.brief').textContent = briefOf(grant);
    const vary = grant.vary.length > 0 ? `; may differ: ${grant.vary.join(', ')}` : '';
    putText(part('.terms'), `${plural(Number(grant.left.text), 'call')} left of ${grant.calls.text}, ${duration(Date.parse(grant.until) - Date.now())} left · given by ${grant.givers.join(', ')} to ${askerText(grant)}${vary}`);
    const button = part('button');
    button.hidden = !this.host.mayRevoke();
    button.append(make('span', 'sr-only', ` the grant for ${grant.tool}`));
    button.addEventListener('click', () => this.revoke(grant, item));
    return item;
  }

  async revoke(grant, item) {
    const answer = await askReason(`Revoke the grant for ${grant.tool}`, 'Calls that it would have covered wait for a decision again.', 'Revoke');
    if (!answer) return;
    try {
      await revokeGrant(grant.id, answer.reason);
      this.host.announce(`The grant for ${grant.tool} is revoked.`);
      await this.refresh();
    } catch (error) {
      if (error.status === 401) return this.host.refused(error);
      putText(item.querySelector('.problem'), `Not done: ${error.message}`);
    }
  }
}
