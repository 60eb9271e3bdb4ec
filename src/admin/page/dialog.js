// The dialog before a decision: what is decided, the reason, and a check where much is at stake.
import { briefOf } from './brief.js';
import { agentSays } from './context.js';
import { JsonNumber, JsonObject, jsonPieces } from './json.js';
import { addMark, notesOf } from './marks.js';
import { askerText, make, plural, putPieces, putText, shortened, timeText, visibleText } from './text.js';
import { PART_NAMES, Seen, endOf, putKeepingRoom } from './seen.js';
import { isPending, needsReason, outcomeOf } from './votes.js';

const byId = (id) => document.getElementById(id);

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
 * which one that is of the client's arguments, and judges what was typed for any others. */
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
export async function askDecision(tasks, verb, options = {}) {
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
