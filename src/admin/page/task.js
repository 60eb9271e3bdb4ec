// A task: what it says of votes in words, its line, and whether the search and the filters ask for it.
import { addRequestMarks, JsonNumber, JsonObject, shortened, visibleText } from './text.js';

const byId = (id) => document.getElementById(id);

// The members of a task about deciding, in words.

/* Why somebody with the role to decide may not decide this call, by the code of the API. */
const WHY_NOT = {
  own_call: 'This is your own call: somebody else must approve it.',
  not_an_approver: 'You are not among those who decide this workflow.',
  definition_changed: 'The server has changed the tool since this call was made: the agent has to call again.',
};

export const VERBS = ['approve', 'reject', 'withdraw', 'emergency'];

export const isPending = (task) => task.state === 'pending';

export const may = (task, verb) => task.you.get(verb) === true;

export const whyNot = (task) => (may(task, 'approve') ? '' : WHY_NOT[task.you.get('code')] ?? '');

/** Whether this vote must have a reason. */
export const needsReason = (task, verb) => verb === 'emergency' || task.reasons?.get(verb) === 'required';

/** How many persons must approve. */
export function neededOf(task) {
  const sum = (object) => object.members.reduce((all, [, number]) => all + Number(number.text), 0);
  return task.quorum ? sum(task.quorum) : sum(task.missing) + approvalsOf(task).length;
}

const approvalsOf = (task) => task.votes.filter((vote) => vote.get('verb') === 'approve');

/** {count: n} or {GROUP: n} in words: "1 more", "1 of dba, 2 of security". */
function missingOf(task) {
  const count = task.missing.get('count');
  if (count !== undefined && (!task.quorum || task.quorum.get('count') !== undefined)) return `${count.text} more`;
  return task.missing.members.map(([group, number]) => `${number.text} of ${group}`).join(', ');
}

/** Votes as a sentence: "1 of 2: alice; needs 1 of security". '' where one person decides. */
export function votesOf(task) {
  const needed = neededOf(task);
  const approvals = approvalsOf(task);
  if (needed < 2 && approvals.length < 2 && !task.emergency) return '';
  const names = approvals.map((vote) => `${vote.get('person')}${vote.get('reason') ? ` (“${vote.get('reason')}”)` : ''}`);
  const said = `${task.emergency ? 'In an emergency, alone' : `${approvals.length} of ${needed}`}${names.length > 0 ? `: ${names.join(', ')}` : ''}`;
  return task.missing.members.length > 0 ? `${said}; needs ${missingOf(task)}` : said;
}

/** Milliseconds until it is too late to decide; NaN when nothing runs out. */
export const timeLeft = (task, now = Date.now()) => (isPending(task) && task.decideBy ? Date.parse(task.decideBy) - now : NaN);

/** The order of the inbox: what runs out first stands first. */
export function bySoonest(a, b) {
  const [first, second] = [a, b].map((task) => (task.decideBy ? Date.parse(task.decideBy) : Infinity));
  if (first !== second) return first - second;
  return Date.parse(a.createdAt) - Date.parse(b.createdAt) || (a.id < b.id ? -1 : 1);
}

/** The outcome of a task, as a sentence. '' while it waits. */
export function outcomeOf(task, timeText) {
  if (isPending(task)) return '';
  // Another person may have stopped the call later: only the message names that one.
  const wasApproved = task.decidedBy && (task.executeBy || task.wasApproved);
  // A row does not say whether the call was approved before it was ended.
  if (task.isRow && task.state === 'cancelled' && !wasApproved) return task.statusMessage;
  const verb = wasApproved ? 'Approved' : { rejected: 'Rejected', cancelled: 'Cancelled' }[task.state] ?? 'Approved';
  const said = [];
  if (task.decidedBy) said.push(`${verb} by ${task.decidedBy}${task.decidedAt ? `, ${timeText(task.decidedAt)}` : ''}`);
  if (task.reason) said.push(`“${task.reason}”`);
  const repeats = !wasApproved && (task.state === 'rejected' || task.state === 'cancelled');
  if (task.statusMessage && !(said.length > 0 && repeats)) said.push(task.statusMessage);
  return said.join(' · ');
}

// A call in one line, and all of it that a search looks through.

const LINE_CHARACTERS = 160;
const SEEN_CHARACTERS = 4096; // of a value, for the line
// An agent decides how long its arguments are; what follows is found by the search among the decided alone.
const SEARCHED_CHARACTERS = 65_536;

/* A long run of white space is one mark, so that it does not push out of the line what comes after it. */
function leafText(value) {
  if (typeof value === 'string') return beginning(value);
  if (value instanceof JsonNumber) return value.text.slice(0, LINE_CHARACTERS);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${value.length} items]`;
  if (value instanceof JsonObject) return value.members.length === 0 ? '{}' : `{${value.members.length} members}`;
  return String(value);
}

function beginning(text) {
  const seen = visibleText(text.slice(0, SEEN_CHARACTERS));
  return text.length > SEEN_CHARACTERS ? `${seen}…` : seen;
}

/** The summary that the rule gives, or else the arguments as far as they fit. */
export function briefOf(task) {
  if (task.summary) return shortened(visibleText(task.summary.slice(0, 2 * LINE_CHARACTERS)), 2 * LINE_CHARACTERS);
  if (task.arguments === null && task.argumentsBytes) return `${Number(task.argumentsBytes.text).toLocaleString()} bytes of arguments`;
  let text = '';
  for (const [key, value] of task.arguments?.members ?? []) {
    text += `${text ? ' · ' : ''}${beginning(key)}: ${leafText(value)}`;
    if (text.length > LINE_CHARACTERS) break;
  }
  return shortened(text, LINE_CHARACTERS);
}

/** The same in an element, with what in it may be read as something else. */
export function putBrief(element, task) {
  element.textContent = briefOf(task);
  addRequestMarks(element, task);
}

function* leaves(value) {
  if (Array.isArray(value)) {
    for (const item of value) yield* leaves(item);
  } else if (value instanceof JsonObject) {
    for (const [key, member] of value.members) {
      yield key;
      yield* leaves(member);
    }
  } else {
    yield value instanceof JsonNumber ? value.text : String(value);
  }
}

/** The text that a search compares: lower case, of what operators see. */
function searchedText(task) {
  let text = [task.id, task.tool, task.source, task.principal, task.workflow, task.rule, task.summary, task.decidedBy, task.reason].filter(Boolean).join('\n');
  for (const part of leaves(task.arguments)) {
    text += `\n${part.slice(0, SEARCHED_CHARACTERS)}`;
    if (text.length > SEARCHED_CHARACTERS) break;
  }
  return text.toLowerCase();
}

// The search and the filters above the lists.

const texts = new WeakMap(); // task -> what a search compares

function textOf(task) {
  if (!texts.has(task)) texts.set(task, searchedText(task));
  return texts.get(task);
}

const CHOICES = ['source', 'workflow', 'risk'];

/** The filter, read from the controls. */
export const filter = {
  /** Calls `changed` after every change; letters of the search one by one. */
  listen(changed) {
    byId('search').addEventListener('input', changed);
    for (const name of CHOICES) byId(`filter-${name}`).addEventListener('change', changed);
    byId('filter-mine').addEventListener('change', changed);
    byId('filter-clear').addEventListener('click', () => (filter.clear(), changed()));
  },

  clear() {
    byId('search').value = '';
    for (const name of CHOICES) byId(`filter-${name}`).value = '';
    byId('filter-mine').checked = false;
  },

  get text() {
    return byId('search').value.trim().replace(/\s+/g, ' ');
  },

  get words() {
    return filter.text.toLowerCase().split(' ').filter(Boolean);
  },

  get isOn() {
    return filter.words.length > 0 || byId('filter-mine').checked || CHOICES.some((name) => byId(`filter-${name}`).value !== '');
  },

  /** Whether a task is asked for. Every word of the search must be somewhere in it, unless the gateway has found it there. */
  accepts(task, isFound = false) {
    if (CHOICES.some((name) => byId(`filter-${name}`).value !== '' && task[name] !== byId(`filter-${name}`).value)) return false;
    if (byId('filter-mine').checked && !may(task, 'approve')) return false;
    return isFound || filter.words.every((word) => textOf(task).includes(word));
  },

  /** The same question to the API, for the decided ones; what it cannot ask, accepts() asks. */
  parameters() {
    const asked = {};
    if (filter.text) asked.q = filter.text;
    for (const name of ['source', 'workflow']) if (byId(`filter-${name}`).value) asked[name] = byId(`filter-${name}`).value;
    return asked;
  },

  /** The same question to the inbox. */
  inboxParameters() {
    const asked = {};
    if (filter.text) asked.q = filter.text;
    for (const name of CHOICES) if (byId(`filter-${name}`).value) asked[name] = byId(`filter-${name}`).value;
    if (byId('filter-mine').checked) asked.mine = 'true';
    return asked;
  },

  /** Offers the values that there are; a filter with nothing to choose is not shown. */
  offer(tasks) {
    for (const name of CHOICES) {
      const select = byId(`filter-${name}`);
      const values = [...new Set(tasks.map((task) => task[name]).filter(Boolean))].sort();
      if (select.value && !values.includes(select.value)) values.push(select.value);
      select.closest('label').hidden = values.length < 2 && !select.value;
      if (values.join('\n') === [...select.options].slice(1).map((option) => option.value).join('\n')) continue;
      const chosen = select.value;
      select.replaceChildren(select.options[0], ...values.map((value) => new Option(value, value)));
      select.value = chosen;
    }
  },
};
