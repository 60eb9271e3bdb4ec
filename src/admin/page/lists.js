// The lists below those that wait: tasks that were decided, the audit trail, grants, definitions.
import { acceptDefinition, activeGrants, ApiError, auditRows, decidedTasks, revokeGrant, watchedDefinitions } from './api.js';
import { askReason } from './decisions.js';
import { briefOf, filter } from './task.js';
import { askerText, duration, make, nameText, plural, putText, timeElement } from './text.js';

const byId = (id) => document.getElementById(id);

// The calls that were decided, newest first, page by page as far as the gateway keeps them.

const HISTORY_PAGE = 20;

export class History {
  /**
   * `rowOf(task)` gives the row of a task; `dropped(row)` hears of one that is not shown any more; `ended(isEnd)` hears
   * whether there are no older ones.
   */
  constructor(list, { rowOf, dropped, ended }) {
    this.list = list;
    this.rowOf = rowOf;
    this.dropped = dropped;
    this.ended = ended;
    this.rows = new Map();
    this.shown = HISTORY_PAGE;
    byId('older').addEventListener('click', () => this.older());
  }

  clear() {
    this.rows.clear();
    this.list.replaceChildren();
    this.shown = HISTORY_PAGE;
    this.offer(null);
  }

  /** Replaces all by the newest ones. */
  replace({ tasks, nextCursor }) {
    const present = new Set(tasks.map((task) => task.id));
    for (const [id, row] of this.rows) if (!present.has(id)) this.drop(id, row);
    for (const task of [...tasks].reverse()) this.put(this.rowOf(task));
    this.shown = Math.max(HISTORY_PAGE, tasks.length);
    this.offer(nextCursor);
    this.hide();
  }

  drop(id, row) {
    this.rows.delete(id);
    row.element.remove();
    this.dropped(row);
  }

  /** Puts a row at the top. */
  put(row) {
    this.rows.set(row.id, row);
    if (row.element.parentNode !== this.list) row.open(false);
    this.list.prepend(row.element);
    row.element.hidden = !filter.accepts(row.task);
  }

  /** Drops the rows beyond the pages that somebody has asked for. */
  dropOldest() {
    const extra = [...this.list.children].slice(this.shown);
    for (const { dataset } of extra) this.drop(dataset.taskId, this.rows.get(dataset.taskId));
    if (extra.length > 0) {
      byId('older').hidden = false;
      this.ended(false);
    }
  }

  hide() {
    for (const row of this.rows.values()) row.element.hidden = !filter.accepts(row.task);
  }

  /* A cursor stays good while newer tasks come. Without one, rows have fallen off the end, and it is
   * the first page that shows where they are. */
  offer(cursor) {
    this.cursor = cursor;
    byId('older').hidden = !cursor;
    byId('decided-end').hidden = Boolean(cursor) || this.rows.size <= HISTORY_PAGE;
    this.ended(!cursor);
  }

  async older() {
    const button = byId('older');
    button.disabled = true;
    try {
      const { tasks, nextCursor } = await decidedTasks(50, filter.parameters(), this.cursor);
      for (const task of tasks) this.append(task);
      this.shown = this.rows.size;
      this.offer(nextCursor);
      this.hide();
    } catch (error) {
      byId('decided-problem').textContent = error.message;
    } finally {
      button.disabled = false;
    }
  }

  append(task) {
    if (this.rows.has(task.id)) return;
    const row = this.rowOf(task);
    this.rows.set(row.id, row);
    row.open(false);
    this.list.append(row.element);
  }

  /** Asks anew for what the search and the filters want. The answer to an older question is not used. */
  async search() {
    this.hide();
    const asked = (this.asked = Symbol());
    try {
      const answer = await decidedTasks(HISTORY_PAGE, filter.parameters());
      if (this.asked === asked) this.replace(answer);
      byId('decided-problem').textContent = '';
    } catch (error) {
      if (this.asked === asked) byId('decided-problem').textContent = error.message;
    }
  }
}

// The calls of the audit trail that are no tasks any more, newest first. For auditors.

const TRAIL_PAGE = 100;

/*
 * The trail is read forwards, by numbers that rise with the time. So the first row at or after a time is found by halving:
 * each question asks for one row.
 */
async function numberAt(time) {
  const isBefore = async (number) => {
    const [row] = await auditRows(number, 1);
    return row !== undefined && Date.parse(row.at) < time;
  };
  let [low, step] = [0, 1];
  while (await isBefore(low + step)) [low, step] = [low + step, step * 2];
  let high = low + step;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isBefore(middle)) low = middle;
    else high = middle;
  }
  return high;
}

const asked = (row) => `${row.event} ${row.tool ?? ''} ${row.person ?? row.actor ?? ''} ${row.reason ?? ''} ${row.principal ?? ''} ${row.taskId ?? ''}`.toLowerCase();

export class Trail {
  constructor(list) {
    this.list = list;
    byId('trail-older').addEventListener('click', () => this.older());
  }

  clear() {
    this.list.replaceChildren();
    this.end = null;
    this.offer(false);
  }

  /** Offers the trail to an auditor who has seen all tasks, the oldest of which was made at `before`. */
  offer(isOffered, before) {
    byId('trail-part').hidden = !isOffered;
    this.before = before;
  }

  async older() {
    const button = byId('trail-older');
    button.disabled = true;
    byId('trail-problem').textContent = '';
    try {
      this.end ??= await numberAt(Date.parse(this.before));
      const start = Math.max(0, this.end - TRAIL_PAGE);
      const rows = (await auditRows(start, TRAIL_PAGE)).filter((row) => row.sequence <= this.end);
      for (const row of rows.reverse()) this.list.append(this.element(row));
      this.end = start;
      const isEnd = start === 0 || rows.length === 0;
      button.hidden = isEnd;
      byId('trail-end').hidden = !isEnd;
    } catch (error) {
      putText(byId('trail-problem'), error.message);
    } finally {
      button.disabled = false;
    }
  }

  element(row) {
    const item = make('li', 'trail-row');
    const facts = [row.tool, row.person ?? row.actor, row.reason && `“${row.reason}”`, row.principal && `asked under the name ${nameText(row.principal)}`];
    item.append(timeElement(row.at), make('span', 'event', row.event), make('span', 'what', facts.filter(Boolean).join(' · ')));
    item.title = `Row ${row.sequence}${row.taskId ? `, task ${row.taskId}` : ''}`;
    item.dataset.text = asked(row);
    return item;
  }

  /** Shows the rows that have all of `words`. */
  hide(words) {
    for (const item of this.list.children) item.hidden = !words.every((word) => item.dataset.text.includes(word));
  }
}

// Grants in force: what is allowed without being asked, and how to end it.

const GRANTS_REFRESH_MS = 30_000;

export class Grants {
  /** `mayRevoke()`: whether the buttons are shown; `refused(error)` ends the session. */
  constructor(list, { mayRevoke, refused, announce }) {
    this.list = list;
    this.host = { mayRevoke, refused, announce };
    this.grants = [];
    setInterval(() => this.grants.length > 0 && this.refresh(), GRANTS_REFRESH_MS);
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

// Definitions of servers that have changed or look harmful, and how to accept a change.

const DEFINITIONS_REFRESH_MS = 30_000;
const KINDS = { tool: 'Tool', prompt: 'Prompt', skill: 'Skill' };

/* The flags of the API, in words. */
const FLAGS = {
  control: 'control characters',
  bidi: 'characters that change the direction of text',
  tag: 'tag characters, which are not shown',
  zero_width: 'characters without width',
  ansi: 'escape sequences of terminals',
  lookalike: 'another name of the server looks the same',
  duplicate: 'the list has the name twice',
  long: 'a very long description',
  instructions: 'words that instruct a model',
};

const keyOf = ({ source, kind, name }) => JSON.stringify([source, kind, name]);

/* Lines that went and came. */
function lineElement(line) {
  const name = { '-': 'del', '+': 'ins' }[line[0]];
  const item = make('li', 'line-of-text');
  const sign = make('span', 'sign', { '-': '−', '+': '+' }[line[0]] ?? '');
  sign.setAttribute('aria-hidden', 'true');
  const values = make('span', 'values');
  values.append(make(name ?? 'span', 'json-value', name ? line.slice(1) : line));
  item.append(sign, ...(name ? [make('span', 'sr-only', `${name === 'del' ? 'removed' : 'added'}: `)] : []), values);
  return item;
}

export class Definitions {
  /** `mayAccept()`: whether the buttons are shown; `refused(error)` ends the session. */
  constructor(list, { mayAccept, refused, announce }) {
    this.list = list;
    this.host = { mayAccept, refused, announce };
    this.clear();
    // The gateway sends nothing when a server changes what it says. The list holds still while somebody is at it.
    setInterval(() => this.isOn && !this.list.matches(':hover, :focus-within') && this.refresh(), DEFINITIONS_REFRESH_MS);
  }

  clear() {
    this.isOn = false;
    this.show([]);
  }

  async refresh() {
    this.isOn = true;
    try {
      const found = await watchedDefinitions();
      if (this.isOn) this.show(found.definitions, found.hasMore);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.host.refused(error);
    }
  }

  show(definitions, hasMore = false) {
    byId('definitions-part').hidden = definitions.length === 0;
    byId('definitions-count').textContent = definitions.length > 0 ? `${definitions.length}${hasMore ? '+' : ''}` : '';
    byId('definitions-more').hidden = !hasMore;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.closest('li.row').dataset.definition : null;
    this.list.replaceChildren(...definitions.map((definition) => this.element(definition)));
    if (focused) (this.itemOf(focused)?.querySelector('button:not([hidden])') ?? byId('waiting')).focus();
  }

  itemOf(key) {
    return this.list.querySelector(`[data-definition="${CSS.escape(key)}"]`);
  }

  element(definition) {
    const item = byId('definition').content.firstElementChild.cloneNode(true);
    const part = (name) => item.querySelector(name);
    const isChanged = definition.state === 'changed';
    item.dataset.definition = keyOf(definition);
    putText(part('.tool'), definition.name);
    part('.brief').textContent = `${KINDS[definition.kind] ?? definition.kind} of ${nameText(definition.source)}`;
    const said = [isChanged ? 'Changed' : '', ...definition.flags.map((flag) => FLAGS[flag] ?? flag)].filter(Boolean).join('; ');
    putText(part('.terms'), `${said[0].toUpperCase()}${said.slice(1)}.`);
    part('.changes').append(...(definition.difference ?? '').split('\n').filter(Boolean).map(lineElement));
    const button = part('button');
    button.hidden = !isChanged || !this.host.mayAccept();
    button.append(make('span', 'sr-only', ` the definition of ${definition.name} of ${definition.source}`));
    button.addEventListener('click', () => this.accept(definition));
    return item;
  }

  /* The digest goes along: what the server says by now, and nobody has seen, is not accepted. */
  async accept(definition) {
    if (this.isAsking) return; // the button keeps the focus
    this.isAsking = true;
    let problem = '';
    try {
      await acceptDefinition(definition);
      this.host.announce(`The definition of ${definition.name} is accepted.`);
    } catch (error) {
      if (error.status === 401) this.host.refused(error);
      problem = error.status === 409 ? 'Not done: the server says something else now. Look at it again.' : `Not done: ${error.message}`;
    }
    if (this.isOn) await this.refresh();
    this.isAsking = false;
    const item = this.itemOf(keyOf(definition));
    if (item) putText(item.querySelector('.problem'), problem);
  }
}
