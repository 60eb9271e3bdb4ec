// Deciding: a press of a button or a key, the dialog where one is needed, and what the gateway says.
import { ApiError, decide, decideMany, taskById } from './api.js';
import { agentSays, endOf, PART_NAMES, putKeepingRoom, Seen } from './detail.js';
import { briefOf, isPending, may, needsReason, outcomeOf, whyNot } from './task.js';
import { addMark, askerText, JsonNumber, JsonObject, jsonPieces, make, notesOf, plural, putPieces, putText, shortened, timeText, visibleText } from './text.js';

const byId = (id) => document.getElementById(id);

// The dialog before a decision: what is decided, the reason, and a check where much is at stake.

const WORDS = {
  approve: { title: 'Approve', button: 'Approve' },
  reject: { title: 'Reject', button: 'Reject' },
  emergency: { title: 'Approve alone, in an emergency', button: 'Approve alone' },
};

// A rejection of thousands lists the first ones; an approval lists all of them.
const MOST_REJECTED = 200;

const isNothing = (value) => value === undefined || (value instanceof JsonObject && value.members.length === 0);

/* The parts of the request beside the arguments; most calls have none. */
function moreOf(task) {
  return [['_meta', task.meta, '_meta'], ['Further parameters', task.otherParams, 'params'], ['Headers', task.headers, 'headers']]
    .filter(([, value]) => !isNothing(value))
    .flatMap(([name, value, top]) => [make('p', 'hint', name), partOf(value, task, [], top, PART_NAMES[top])]);
}

function askerOf(task) {
  const asker = make('p', 'hint', `Asked by ${askerText(task)}`);
  addMark(asker, task, 'principal');
  return [asker, ...agentSays(task)];
}

function partOf(value, task, marked, top, name) {
  const part = make('pre', 'json dialog-part');
  part.tabIndex = 0;
  putPieces(part, jsonPieces(value, task.redactFields, marked, false, notesOf(task, top)));
  part.append(endOf(name));
  return part;
}

/* The agent's reason is not in the digest of its request. */
const keyOf = (task) => [task.digest ?? (task.stack && task.requestDigest ? `${task.stack} ${task.requestDigest}` : task.id), task.reasonOfAgent].join(' ');

/* Each call whole; those that are alike once. */
function listed(tasks, verb) {
  const most = verb === 'reject' ? MOST_REJECTED : tasks.length;
  const counts = new Map();
  for (const task of tasks) counts.set(keyOf(task), [task, (counts.get(keyOf(task))?.[1] ?? 0) + 1]);
  const shown = [...counts.values()].slice(0, most).map(([task, count]) => {
    const item = make('li');
    item.append(make('strong', 'tool', task.tool), make('span', 'times', count > 1 ? ` × ${count}` : ''));
    addMark(item, task, 'tool');
    if (task.summary) item.append(make('p', 'brief', task.summary));
    item.append(...askerOf(task));
    if (task.hasWhole) item.append(partOf(task.arguments, task, task.highlight, '', `the arguments of ${shortened(visibleText(task.tool), 64)}`), ...moreOf(task));
    else item.append(make('p', 'hint', briefOf(task)));
    return item;
  });
  const rest = tasks.length - [...counts.values()].slice(0, most).reduce((sum, [, count]) => sum + count, 0);
  return rest > 0 ? [...shown, make('li', 'hint', `and ${plural(rest, 'more call')}`)] : shown;
}

/* The values at a dot path, through the elements of arrays. */
function valuesAt(value, [key, ...rest]) {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, [key, ...rest]));
  if (key === undefined) return [value];
  const member = value instanceof JsonObject ? value.get(key) : undefined;
  return member === undefined ? [] : valuesAt(member, rest);
}

/* The value that an approval needs typed, with the words for it; {text: ''} where nothing is typed. The gateway says
 * which one that is of the client's arguments, and of any others when it has refused what was typed for them. */
function askedOf(task, verb) {
  const path = verb === 'reject' ? undefined : taskPath(task.typed);
  if (path === undefined) return { text: '' };
  if (path === '$tool') return { text: task.tool, label: 'the name of the tool' };
  if (path === '$digest') return { text: task.requestDigest.slice(0, 8), label: 'the beginning of the digest' };
  const [value] = valuesAt(task.arguments, path.split('.'));
  return { text: String(value instanceof JsonNumber ? value.text : value ?? ''), label: path };
}

const taskPath = (typed) => typed?.get('path');

/* An approval is about requests that are shown whole, each with its end. */
function isShownWhole(tasks) {
  const ends = byId('decide').querySelectorAll('.end-of-request').length;
  return tasks.every((task) => task.hasWhole) && ends >= new Set(tasks.map(keyOf)).size;
}

function begin(tasks) {
  waiting = tasks && new Set(tasks.map((task) => task.id));
  byId('dialog-ended').hidden = byId('dialog-unseen').hidden = true;
  byId('dialog-unseen').style.minHeight = '';
}

function fill(tasks, verb, { reason = '', leftOut = 0 }) {
  const { title, button } = WORDS[verb];
  const [first] = tasks;
  byId('dialog-title').textContent = tasks.length === 1 ? `${title}: ${shortened(visibleText(first.tool), 64)}` : `${title}: ${plural(tasks.length, 'call')}`;
  byId('dialog-list').replaceChildren(...(tasks.length === 1 ? [] : listed(tasks, verb)));
  byId('dialog-asker').textContent = tasks.length === 1 ? [visibleText(first.summary ?? ''), `Asked by ${askerText(first)}`].filter(Boolean).join(' · ') : '';
  if (tasks.length === 1) for (const where of ['tool', 'principal']) addMark(byId('dialog-asker'), first, where);
  byId('dialog-agent').replaceChildren(...(tasks.length === 1 ? agentSays(first) : []));
  byId('dialog-arguments').hidden = tasks.length > 1;
  if (tasks.length === 1) {
    putPieces(byId('dialog-arguments'), jsonPieces(first.arguments, first.redactFields, first.highlight, false, notesOf(first)));
    byId('dialog-arguments').append(endOf('the arguments'));
  } else {
    byId('dialog-arguments').replaceChildren();
  }
  byId('dialog-more').replaceChildren(...(tasks.length === 1 ? moreOf(first) : []));
  byId('dialog-left-out').hidden = leftOut === 0;
  byId('dialog-left-out').textContent = leftOut > 0 ? `${plural(leftOut, 'call')} of high risk ${leftOut === 1 ? 'is' : 'are'} left out: approve each by itself.` : '';
  byId('dialog-emergency').hidden = verb !== 'emergency';
  byId('dialog-confirm').textContent = tasks.length > 1 ? `${button} ${tasks.length}` : button;
  byId('dialog-confirm').className = verb === 'approve' ? 'primary' : 'danger';
  const isRequired = tasks.some((task) => needsReason(task, verb));
  byId('dialog-reason').required = isRequired;
  byId('dialog-reason').value = reason;
  byId('dialog-reason-hint').textContent = isRequired ? '(required, kept with the decision)' : '(optional, kept with the decision)';
}

let end; // closes the open dialog, with a decision or without
let isRefused = false; // the open dialog does not show what it is about
let waiting = null; // ids of the calls of the open dialog that still wait; null without one

/** A call waits no more: its dialog says so, and decides nothing that is decided. */
export function dialogEnds(task) {
  if (!byId('decide').open || !waiting?.delete(task.id)) return;
  byId('dialog-ended').hidden = false;
  putText(byId('dialog-ended'), waiting.size === 0 ? `Too late. ${outcomeOf(task, timeText)}` : `${task.tool} does not wait any more. ${outcomeOf(task, timeText)}`);
  seen.look();
}

/* An approval, and only that, waits for the end of each part. */
const seen = new Seen(() => {
  const text = isRefused ? 'The request was not read whole: cancel, and try again.' : seen.text;
  byId('dialog-confirm').disabled = text !== '' || waiting?.size === 0;
  if (text !== '') byId('dialog-unseen').hidden = false;
  putKeepingRoom(byId('dialog-unseen'), text);
});

function open(first, check, mustSee) {
  const dialog = byId('decide');
  const from = document.activeElement;
  dialog.showModal();
  first.focus();
  seen.watch(...(mustSee ? [dialog] : []));
  return new Promise((resolve) => {
    byId('dialog-typed').oninput = check;
    end = (isYes) => {
      end = undefined;
      dialog.close();
      if (from?.isConnected) from.focus({ preventScroll: true });
      resolve(isYes ? { reason: byId('dialog-reason').value.trim(), typed: byId('dialog-typed').value.trim() } : null);
    };
  });
}

/**
 * Asks for a decision on `tasks`. Resolves to {reason}, or to null when it is called off, or while another one is open:
 * that must not become another one under the hand.
 */
async function askDecision(tasks, verb, options = {}) {
  if (byId('decide').open) return null;
  begin(tasks);
  fill(tasks, verb, options);
  isRefused = verb !== 'reject' && !isShownWhole(tasks);
  const { text, label } = tasks.length === 1 ? askedOf(tasks[0], verb) : { text: '' };
  const name = text.trim();
  askName(name, label);
  const check = () => byId('dialog-typed').setCustomValidity(byId('dialog-typed').value.trim() === name ? '' : `Type ${visibleText(name)}`);
  if (name) check();
  const answer = open(byId(name ? 'dialog-typed' : 'dialog-reason'), check, verb !== 'reject');
  for (const task of tasks) if (!isPending(task)) dialogEnds(task); // while it was read
  return answer;
}

function askName(name, label = '') {
  byId('dialog-type').hidden = name === '';
  byId('dialog-name').textContent = visibleText(name);
  byId('dialog-typed-of').textContent = label ? `(${visibleText(label)})` : '';
  byId('dialog-typed').value = '';
  byId('dialog-typed').required = name !== '';
  byId('dialog-typed').setCustomValidity('');
}

/** Asks whether to do something that takes a reason. Resolves like askDecision(). */
export async function askReason(title, text, button) {
  if (byId('decide').open) return null;
  begin(null);
  isRefused = false;
  putText(byId('dialog-title'), title);
  byId('dialog-asker').textContent = text;
  for (const id of ['dialog-list', 'dialog-agent', 'dialog-more', 'dialog-arguments']) byId(id).replaceChildren();
  for (const id of ['dialog-arguments', 'dialog-left-out', 'dialog-emergency']) byId(id).hidden = true;
  byId('dialog-confirm').textContent = button;
  byId('dialog-confirm').className = 'danger';
  byId('dialog-reason').required = false;
  byId('dialog-reason').value = '';
  byId('dialog-reason-hint').textContent = '(optional, kept with the decision)';
  askName('');
  return open(byId('dialog-reason'), null, false);
}

byId('decide-form').addEventListener('submit', (event) => {
  event.preventDefault(); // form-action 'none' would stop method=dialog in some browsers
  end?.(true);
});
// Not the event "close" alone: it comes later, and keys before it are already about what is shown then.
byId('dialog-cancel').addEventListener('click', () => end?.(false));
byId('decide').addEventListener('cancel', () => end?.(false));
byId('decide').addEventListener('close', () => byId('decide').open || end?.(false));

// Calls that are selected, and one decision over all of them.

export class Selection {
  /** `rows()`: rows that wait and are known, in the order of the list; `matching()`: how many calls there are;
   * `every()` reads them; `decide(selection, verb)` for a press of a button. */
  constructor({ rows, stacks, matching, every, decide }) {
    this.rows = rows;
    this.stacks = stacks;
    this.matching = matching;
    this.every = every;
    this.isAll = false; // also the calls that are not known here
    this.last = null;
    for (const verb of ['approve', 'reject']) byId(`selection-${verb}`).addEventListener('click', () => decide(this, verb));
    byId('selection-clear').addEventListener('click', () => this.clear());
    byId('select-all').addEventListener('click', () => this.all(byId('select-all').checked));
  }

  /** Selected rows, and of these only the ones that this person may decide with `verb`. */
  picked(verb) {
    return this.rows().filter((row) => row.isPicked && (!verb || may(row.task, verb)));
  }

  /** The calls of a decision: all that match only to reject them, because nobody has seen those that were not loaded. */
  async chosen(verb) {
    return this.isAll && verb === 'reject' ? this.every() : this.picked(verb);
  }

  pick(row, isPicked, isRange = false) {
    this.isAll = false;
    const rows = this.rows().filter((other) => !other.element.hidden || !other.element.isConnected);
    const [from, to] = [rows.indexOf(this.last), rows.indexOf(row)];
    if (isRange && from >= 0 && to >= 0) for (const other of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) other.pick(isPicked);
    else row.pick(isPicked);
    this.last = row;
    this.show();
  }

  all(isPicked) {
    this.isAll = isPicked && this.matching() > this.rows().length;
    for (const row of this.rows()) row.pick(isPicked);
    this.show();
  }

  clear() {
    this.all(false);
  }

  show() {
    const rows = this.rows();
    const picked = rows.filter((row) => row.isPicked);
    byId('selection').hidden = picked.length === 0;
    if (picked.length === 0) this.isAll = false;
    const count = this.isAll ? Math.max(this.matching(), picked.length) : picked.length;
    byId('selection-count').textContent = `${plural(count, 'call')} selected${count > picked.length ? `; ${picked.length.toLocaleString()} of them, which are loaded, can be approved` : ''}`;
    for (const verb of ['approve', 'reject']) byId(`selection-${verb}`).hidden = !picked.some((row) => may(row.task, verb));
    byId('select-all').checked = picked.length > 0 && picked.length === rows.length;
    byId('select-all').indeterminate = picked.length > 0 && picked.length < rows.length;
    for (const stack of this.stacks()) stack.showPicked();
    for (const row of rows) row.element.classList.toggle('picked', row.isPicked);
  }
}

const NOUNS = { reject: 'rejection', withdraw: 'withdrawal' };
const AT_ONCE = 8; // tasks that are read together
const MOST_ITEMS = 10_000; // of one request
const DONE = { approve: 'approved', reject: 'rejected' };

/* The API's code for one of many, in words for a person. */
const CODES = {
  conflict: 'Too late: it does not wait any more.',
  changed: 'The call has changed since it was shown: look at it again.',
  definition_changed: 'The server has changed the tool since the call was made: the agent has to call again.',
  already_voted: 'You have voted already.',
  own_call: 'This is your own call: somebody else must approve it.',
  not_an_approver: 'You are not among those who decide this workflow.',
  reason_required: 'This vote needs a reason.',
  typed_required: 'This approval needs a typed value: approve it by itself.',
  not_found: 'This task is not known any more.',
};

/* The call that an approval would let run: with the arguments that somebody has typed in place of the client's. */
const shownOf = (row, verb) => (verb === 'approve' ? row.detail?.edit.edited : undefined) ?? row.task;

export class Decisions {
  /** `changed(task)` shows a task; `refused(error)` ends the session; `announce(text)`; `setProblem(text)` for the list as a whole; `done()` after a selection. */
  constructor(host) {
    this.host = host;
    this.asking = 0; // from a press to the answer of the gateway
  }

  get isAsking() {
    return this.asking > 0;
  }

  async counted(work) {
    this.asking += 1;
    try {
      return await work();
    } finally {
      this.asking -= 1;
    }
  }

  /** A button of a row, which has the arguments in view. */
  press(row, verb, reason) {
    return this.counted(() => this.pressed(row, verb, reason));
  }

  async pressed(row, verb, reason) {
    if (verb === 'emergency' || (verb === 'approve' && row.task.typed)) {
      const { task } = row; // as the dialog shows it
      const answer = await askDecision([shownOf(row, verb)], verb, { reason });
      if (answer) await this.one(row, task, verb, answer.reason, answer.typed);
      return;
    }
    await this.one(row, row.task, verb, reason);
  }

  /** A key, or a button over several rows: always with the dialog. `rows` may be on their way. */
  ask(rows, verb) {
    return this.counted(async () => {
      let known = [];
      try {
        known = await rows;
        await this.asked(known, verb);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) this.host.refused(error);
        else (known[0] ?? this.host).setProblem(`Not done: ${error.message}`);
      }
    });
  }

  /* An approval is about whole requests. For a rejection it is enough to know whether it needs a reason. */
  async readWhole(rows, verb) {
    const firsts = new Map();
    for (const row of rows) if (row.whole && !firsts.has(row.task.workflow)) firsts.set(row.task.workflow, row);
    const wanted = verb === 'approve' || rows.length === 1 ? rows.filter((row) => row.whole) : [...firsts.values()];
    for (let at = 0; at < wanted.length; at += AT_ONCE) await Promise.all(wanted.slice(at, at + AT_ONCE).map((row) => row.whole()));
  }

  async asked(rows, verb) {
    const own = rows.filter((row) => row.isPending && may(row.task, verb));
    if (own.length === 0) return rows[0]?.setProblem?.(whyNot(rows[0].task) || 'You cannot do that with this call.');
    const allowed = rows.length > 1 && verb === 'approve' ? own.filter((row) => !row.task.typed) : own;
    if (allowed.length === 0) return rows[0].setProblem('Calls of high risk are approved one by one.');
    await this.readWhole(allowed, verb);
    const changed = allowed.length > 1 && verb === 'approve' && allowed.find((row) => row.detail?.edit.text !== undefined);
    if (changed) return changed.setProblem('You are changing the arguments of this call: approve it by itself.');
    if (allowed.length === 1 && allowed[0].detail?.hasTerms(verb) === false) return;
    const reason = allowed.length === 1 ? allowed[0].detail?.reason : '';
    const tasks = allowed.map((row) => row.task); // as the dialog shows it
    const answer = await askDecision(allowed.map((row) => shownOf(row, verb)), verb, { reason, leftOut: own.length - allowed.length });
    if (!answer) return;
    if (allowed.length === 1) await this.one(allowed[0], tasks[0], verb, answer.reason, answer.typed);
    else await this.many(allowed, tasks, verb, answer.reason);
  }

  async one(row, shown, verb, reason, typed) {
    const isEmergency = verb === 'emergency';
    if ((isEmergency || verb === 'approve') && !shown.hasWhole) return row.setProblem('Not done: the request was not read whole.');
    row.element?.focus({ preventScroll: true }); // the button is about to be disabled, and to leave
    row.setBusy(true);
    const { given } = row;
    try {
      const grant = verb === 'approve' ? row.detail?.grant : undefined;
      const task = await decide(shown, isEmergency ? 'approve' : verb, reason, { ...(isEmergency ? { emergency: true } : {}), ...(typed ? { typed } : {}), ...(grant ? { grant } : {}) }, verb === 'approve' ? row.detail?.edit.text : undefined);
      row.setBusy(false);
      // The stream brings the same, and may already have brought a later state than the answer.
      if (row.given === given) this.host.changed(task);
    } catch (error) {
      row.setBusy(false);
      this.explain(row, verb, error);
      if (error.code === 'definition_changed') await this.look(row);
    }
  }

  /* The gateway sends nothing when a tool has changed. */
  async look(row) {
    try {
      this.host.changed(await taskById(row.task.id));
    } catch {
      // The connection, which the page speaks of elsewhere.
    }
  }

  explain(row, verb, error) {
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 401) return this.host.refused(error);
    if (error.path && row.detail?.edit.ask(error.path)) return row.setProblem('Not done: with these arguments another value is typed. Approve again.');
    if (status === 409) return row.setProblem(`${error.state ? 'Too late' : 'Not done'}: ${error.message}.`);
    if (status === 0) return row.setProblem(`It is not known whether this ${NOUNS[verb] ?? 'approval'} arrived: the gateway does not answer.`);
    if (status === 503) return row.setProblem(`The gateway answers: ${error.message}.`); // the message says whether anything was done
    return row.setProblem(`Not done: ${error.message}`);
  }

  async many(rows, tasks, verb, reason) {
    for (const row of rows) row.setBusy(true);
    const counts = { done: 0, failed: 0 };
    try {
      for (let at = 0; at < rows.length; at += MOST_ITEMS) {
        const results = await decideMany(tasks.slice(at, at + MOST_ITEMS), verb, reason);
        for (const [place, result] of results.entries()) this.take(rows[at + place], result, counts);
      }
      this.host.done();
    } catch (error) {
      for (const row of rows) row.setBusy(false);
      this.explain(rows[counts.done + counts.failed], verb, error);
    }
    const { done, failed } = counts;
    if (done + failed > 0) this.host.announce(`${plural(done, 'call')} ${DONE[verb]}${failed > 0 ? `, ${failed} not` : ''}`);
  }

  /* The gateway's word on one call of many. */
  take(row, { status, code }, counts) {
    row.setBusy(false);
    counts[status < 300 ? 'done' : 'failed'] += 1;
    if (status >= 300) row.setProblem(`Not done: ${CODES[code] ?? `the gateway answered ${status}.`}`);
  }
}
