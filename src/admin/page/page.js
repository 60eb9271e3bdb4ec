// The operators' page: who is signed in, which calls wait, what became of the others.
import { everyCall, hasSignIn, inboxPage, keepTask, linkedTask, restoreTask, showTask, signOut, stayConnected, takeToken, taskById, token, whoami } from './api.js';
import { Decisions, dialogEnds, Selection } from './decisions.js';
import { blocks } from './detail.js';
import { Inbox, WHOLE } from './inbox.js';
import { Definitions, Grants, History, Trail } from './lists.js';
import { Row } from './row.js';
import { filter, outcomeOf } from './task.js';
import { askerText, putText, shortened, timeText, visibleText } from './text.js';

const byId = (id) => document.getElementById(id);

// Single keys, for those who go through many calls. Off while something is typed or a dialog is open.

const KEYS_KEY = 'taskgate-keys';

const isTyping = (element) => element.closest('textarea, select, input:not([type="checkbox"])') !== null;
const isPressed = (element) => element.closest('button, a, summary, input') !== null;

const areKeysOn = () => localStorage.getItem(KEYS_KEY) !== 'off';

/**
 * Listens. `actions` has a function for each of: move(step), open, close, decide(verb), select,
 * search, arrange, of which every one finds out for itself what is current; isDropped() says whether no key counts now.
 */
function listenToKeys(actions) {
  const keys = {
    j: () => actions.move(1),
    k: () => actions.move(-1),
    Enter: () => actions.open(),
    Escape: () => actions.close(),
    a: () => actions.decide('approve'),
    r: () => actions.decide('reject'),
    x: () => actions.select(),
    '.': () => actions.arrange(),
    '/': () => actions.search(),
    '?': () => byId('help').showModal(),
  };
  addEventListener('keydown', (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (!(key in keys) || byId('board').hidden || document.querySelector('dialog[open]')) return;
    if (key !== 'Escape' && (isTyping(target) || !(areKeysOn() || key === 'Enter'))) return;
    if (key === 'Enter' && isPressed(target)) return;
    if (actions.isDropped()) return event.preventDefault();
    if (keys[key]() !== false) event.preventDefault();
  });
}

byId('help-open').addEventListener('click', () => byId('help').showModal());
byId('help-close').addEventListener('click', () => byId('help').close());
byId('keys-on').checked = areKeysOn();
byId('keys-on').addEventListener('change', () => (byId('keys-on').checked ? localStorage.removeItem(KEYS_KEY) : localStorage.setItem(KEYS_KEY, 'off')));

// The page's signs outside itself: the tab's title and icon, and notifications of the browser.

const NOTIFY_KEY = 'taskgate-notify';
const MOST_COUNTED = 9;

/** The number of waiting calls, in the title and on the icon. */
function showWaiting(count) {
  document.title = count > 0 ? `(${count}) taskgate` : 'taskgate';
  const name = count === 0 ? 'icon.svg' : `icon-${count > MOST_COUNTED ? 'many' : count}.svg`;
  const icon = document.querySelector('link[rel="icon"]');
  if (icon.getAttribute('href') !== name) icon.setAttribute('href', name);
}

/** Says something to a screen reader. */
function announce(text) {
  byId('announcer').textContent = visibleText(text);
}

const canNotify = () => 'Notification' in window && isSecureContext;
const isNotifying = () => canNotify() && Notification.permission === 'granted' && localStorage.getItem(NOTIFY_KEY) === 'on';

function showButton() {
  const button = byId('notify');
  button.hidden = !canNotify();
  button.setAttribute('aria-pressed', String(isNotifying()));
  button.textContent = isNotifying() ? 'Notifications on' : 'Notify me';
}

byId('notify').addEventListener('click', async () => {
  if (isNotifying()) localStorage.removeItem(NOTIFY_KEY);
  else if ((await Notification.requestPermission()) === 'granted') localStorage.setItem(NOTIFY_KEY, 'on');
  else announce('The browser does not allow notifications of this page.');
  showButton();
});
showButton();

/** Forgets the wish, as signing out does. */
function stopNotifying() {
  localStorage.removeItem(NOTIFY_KEY);
  showButton();
}

/** Tells somebody who asked for it, and who looks elsewhere, of a new call. Arguments stay on the page. */
function notify(task, open) {
  if (!isNotifying() || document.visibilityState === 'visible') return;
  const note = new Notification(`${shortened(visibleText(task.tool), 80)} waits for a decision`, { body: `Asked by ${askerText(task)}`, tag: task.id, icon: 'icon.svg' });
  note.onclick = () => {
    window.focus();
    open();
    note.close();
  };
}

const rows = new Map(); // task id -> Row
let connection = null; // AbortController of what runs while signed in
let current = null; // the row or stack that the keys mean

/* ---- the lists ---- */

let led = null; // the task that the address has led to; a new connection does not lead there again

const host = {
  decide: (row, verb, reason) => decisions.press(row, verb, reason),
  picked: (row, isPicked, isRange) => selection.pick(row, isPicked, isRange),
  opened(row, isOpen) {
    if (isOpen) led = row.id;
    showTask(isOpen ? row.id : null);
  },
};

/** The row of a task, made when it is needed first, showing the task as it is now. */
function rowOf(task) {
  const row = rows.get(task.id);
  if (!row) {
    rows.set(task.id, new Row(task, host));
    return rows.get(task.id);
  }
  if (!row.isKnown(task)) row.update(task);
  return row;
}

const trail = new Trail(byId('trail'));
let isAuditor = false;

/* An answer of the search has no place in time, so the trail is offered without one. */
function ended(isEnd) {
  const made = [...past.rows.values()].map((row) => row.task.createdAt).sort();
  trail.offer(isEnd && isAuditor && !filter.isOn, made[0] ?? new Date().toISOString());
}

const past = new History(byId('decided'), { rowOf, ended, dropped: (row) => inbox.known.rows.has(row.id) || rows.delete(row.id) });

const inbox = new Inbox(byId('pending'), {
  rowOf,
  settled: (row) => (past.put(row), past.dropOldest()),
  arranged: () => (selection.show(), showCounts()),
  picked: () => selection.show(),
  pickedRow: (row, isPicked, isRange) => selection.pick(row, isPicked, isRange),
  decide: (stack, verb) => decideStack(stack, verb),
  failed: (error, place) => (error.status === 401 ? refuse(error) : place.setProblem(error.message)),
});

/* The known ones in the order of the list, those of a stack in its place. */
const waitingRows = () =>
  [...inbox.list.children]
    .flatMap((element) => inbox.stacks.get(element.dataset.stack)?.rows ?? (element.classList.contains('member') ? [] : [rows.get(element.dataset.taskId)]))
    .filter((row) => row?.isPending);

/* A call that only a rejection of all is about has no row. */
const subjectOf = (task) => rows.get(task.id) ?? { task, id: task.id, isPending: true, setBusy() {}, ...WHOLE };

const everyOf = async (parameters) => (await everyCall({ ...parameters, ...filter.inboxParameters() })).filter((task) => filter.accepts(task, true)).map(subjectOf);

const selection = new Selection({
  rows: waitingRows,
  stacks: () => inbox.stacks.values(),
  matching: () => inbox.known.matching,
  every: () => everyOf({}),
  decide: (chosen, verb) => decisions.ask(chosen.chosen(verb), verb),
});

/* Those that are selected of a stack, or all of it. Only what was loaded can be approved. */
function decideStack(stack, verb) {
  const picked = stack.picked;
  const isAll = picked.length === 0 && verb === 'reject' && stack.count > stack.rows.length;
  decisions.ask(isAll ? everyOf(inbox.placeOf(stack)) : picked.length > 0 ? picked : inbox.load(stack).then(() => stack.rows), verb);
}

const decisions = new Decisions({ changed, refused: refuse, announce, ...WHOLE, done: () => (selection.clear(), inbox.refreshStacks()) });

let mayRevoke = false;
const definitions = new Definitions(byId('definitions'), { mayAccept: () => mayRevoke, refused: refuse, announce });
const grants = new Grants(byId('grants'), { mayRevoke: () => mayRevoke, refused: refuse, announce });

function loaded(who, pending, decided) {
  performance.mark('lists');
  requestAnimationFrame(() => setTimeout(() => performance.measure('render', 'lists')));
  showWho(who);
  const present = new Set([...pending.rows, ...decided.tasks].map((task) => task.id));
  for (const [id, row] of rows) if (!present.has(id) && !past.rows.has(id) && !inbox.isMember(row)) (row.element.remove(), rows.delete(id));
  inbox.replace(pending, decided.tasks);
  inbox.fill();
  past.replace({ ...decided, tasks: decided.tasks.filter((task) => !inbox.lingering.has(task.id)) });
  showCounts();
  showLink('live', 'Live');
  grants.refresh();
  definitions.refresh();
  const linked = linkedTask();
  if (linked && (linked !== led || rows.get(linked)?.isOpen !== true)) reveal(linked);
}

/** Shows a task that is new or has changed. */
function changed(task, isNews = false) {
  const wasPending = inbox.known.rows.has(task.id);
  const row = rows.get(task.id);
  const isShown = inbox.put(task, () => row?.update(task));
  if (!isShown && !past.rows.has(task.id)) (past.put(rowOf(task)), past.dropOldest());
  if (task.state !== 'pending') dialogEnds(task);
  if (isNews && !wasPending && task.state === 'pending') {
    if (inbox.known.rows.has(task.id)) announce(`A new call waits: ${task.tool}`);
    notify(task, () => reveal(task.id));
  }
  if (wasPending && task.state !== 'pending') announce(`${task.tool}: ${task.state}${task.decidedBy ? ` by ${task.decidedBy}` : ''}`);
  selection.show();
  showCounts();
}

function showCounts() {
  const { waiting } = inbox.known;
  byId('pending-count').textContent = waiting === 0 ? '' : filter.isOn ? `${inbox.known.matching} of ${waiting}` : String(waiting);
  byId('pending-empty').hidden = byId('pending').children.length > 0 || waiting > 0;
  byId('pending-none').hidden = waiting === 0 || inbox.known.matching > 0 || byId('pending').children.length > 0;
  byId('decided-empty').hidden = past.rows.size > 0 || filter.isOn;
  byId('decided-none').hidden = !filter.isOn || [...past.rows.values()].some((row) => !row.element.hidden);
  if (byId('tools').hidden || !inbox.presence.isThere) offerTools(waiting);
  byId('filter-clear').hidden = !filter.isOn;
  const rest = inbox.known.matching - inbox.shown;
  byId('pending-more').hidden = rest <= 0;
  byId('pending-more').textContent = `Show more (${rest.toLocaleString()} are not shown)`;
  showWaiting(waiting);
}

/* The tools are above the list: what comes or goes there moves it. */
function offerTools(waiting) {
  byId('tools').hidden = waiting === 0 && past.rows.size === 0 && !filter.isOn;
  byId('select-all').closest('label').hidden = waiting < 2;
  filter.offer([...inbox.known.rows.values(), ...past.rows.values()].map((row) => row.task));
}

byId('pending-more').addEventListener('click', () => inbox.showMore());

let searching;
filter.listen(() => {
  inbox.narrow();
  past.hide();
  trail.hide(filter.words);
  showCounts();
  clearTimeout(searching);
  searching = setTimeout(() => Promise.allSettled([past.search(), inbox.search()]).then(showCounts), 250);
});

setInterval(() => {
  const now = Date.now();
  for (const row of inbox.known.rows.values()) row.tick(now);
  inbox.tick();
}, 1000);

/* ---- a link to a task ---- */

async function reveal(id) {
  led = id;
  byId('notice').hidden = true;
  if (inbox.known.rows.has(id)) {
    inbox.reveal(inbox.known.rows.get(id).task);
  } else if (!past.rows.has(id)) {
    try {
      const task = await taskById(id);
      const { rows: found } = task.state === 'pending' ? await inboxPage({ q: id }) : { rows: [] };
      const row = found.find((one) => one.id === id); // the search also finds the id in what others say
      if (row) inbox.reveal(row);
      else past.append(task);
    } catch (error) {
      byId('notice').hidden = false;
      putText(byId('notice'), error.status === 404 ? `There is no task ${id}: it never was, or is not kept any more.` : `Task ${id}: ${error.message}`);
      return;
    }
  }
  const row = rows.get(id);
  if (!row) return;
  row.element.hidden = false;
  row.open(true);
  row.element.scrollIntoView({ block: 'start' });
  row.element.focus({ preventScroll: true });
}

addEventListener('hashchange', () => {
  if (takeToken(connection)) signIn();
  else if (linkedTask() && connection) reveal(linkedTask());
});

/* ---- keys ---- */

const items = () => [...inbox.list.children, ...past.list.children].filter((element) => !element.hidden);
const thingOf = (element) => inbox.stacks.get(element?.dataset.stack) ?? rows.get(element?.dataset.taskId);
const isStack = (thing) => thing?.key !== undefined;

/* The call that has the focus, and no other: a key means what somebody looks at. */
function currentThing() {
  const focused = document.activeElement?.closest('#pending > li, #decided > li');
  current = focused ?? (current?.isConnected && !current.hidden ? current : null);
  return thingOf(focused);
}

/* Calls that wait no more, and still stand in their place. */
const isPassedOver = (element) => inbox.list.contains(element) && thingOf(element)?.isPending !== true;

function endOfWait(thing) {
  return `${visibleText(thing.task.tool)} does not wait any more. ${isStack(thing) ? '' : outcomeOf(thing.task, timeText)}`;
}

listenToKeys({
  move(step) {
    const all = items();
    currentThing();
    let at = current ? all.indexOf(current) + step : 0;
    while (all[at] && isPassedOver(all[at])) at += step || 1;
    if (!all[at]) return;
    current = all[at];
    thingOf(current)?.focus();
  },
  open() {
    const thing = currentThing();
    if (!thing) return false;
    if (!thing.isOpen) isStack(thing) ? inbox.toggle(thing, true) : thing.toggle();
    else thing.element.querySelector('.reason')?.focus();
    return true;
  },
  close() {
    const thing = currentThing();
    if (document.activeElement === byId('search')) {
      filter.clear();
      byId('search').dispatchEvent(new Event('input'));
      byId('search').blur();
    } else if (selection.picked().length > 0) {
      selection.clear();
    } else if (thing?.isOpen) {
      thing.focus();
      isStack(thing) ? inbox.toggle(thing, false) : thing.toggle();
    }
  },
  decide(verb) {
    const picked = selection.picked(verb);
    const thing = currentThing();
    if (picked.length > 0) decisions.ask(selection.chosen(verb), verb);
    else if (isStack(thing) && thing.isPending) decideStack(thing, verb);
    else if (thing?.isPending) decisions.ask([thing], verb);
    else announce(thing ? endOfWait(thing) : 'No call has the focus: press j for the first one.');
  },
  select() {
    const thing = currentThing();
    if (isStack(thing)) inbox.stackHost.picked(thing, thing.picked.length === 0);
    else if (thing?.isPending) selection.pick(thing, !thing.isPicked);
    else if (thing) announce(endOfWait(thing));
  },
  arrange: () => inbox.tidy(),
  isDropped() {
    if (decisions.isAsking) announce('Wait: the decision is on its way.');
    return decisions.isAsking;
  },
  search() {
    byId('search').focus();
    byId('search').select();
  },
});

/* ---- signing in and out ---- */

function showSignIn(problem = '') {
  connection?.abort();
  connection = null;
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
  rows.clear();
  inbox.clear();
  past.clear();
  grants.clear();
  definitions.clear();
  trail.clear();
  filter.clear();
  selection.show();
  byId('board').hidden = byId('link').hidden = byId('who').hidden = byId('sign-out').hidden = byId('notice').hidden = true;
  byId('sign-in').hidden = false;
  byId('sign-in-error').textContent = problem;
  byId('token').value = '';
  byId('token').focus();
  showWaiting(0);
}

function signIn() {
  connection?.abort();
  connection = new AbortController();
  restoreTask();
  byId('sign-in').hidden = true;
  byId('board').hidden = byId('link').hidden = byId('sign-out').hidden = false;
  stayConnected(connection.signal, { loaded, changed, grantChanged: () => grants.refresh(), link: showLink, refused: refuse, question: () => filter.parameters(), inboxQuestion: () => inbox.parameters() });
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  token.set(byId('token').value.trim());
  signIn();
});

byId('sign-out').addEventListener('click', async () => {
  stopNotifying();
  if (token.get()) {
    token.clear();
    return start();
  }
  try {
    location.assign(await signOut());
  } catch (error) {
    byId('stale').hidden = false;
    byId('stale').textContent = `You are still signed in: ${error.message}`;
  }
});

/* Left and come back to: the browser shows what it kept in memory, of somebody who may have signed out since. */
addEventListener('pageshow', (event) => event.persisted && location.reload());

function showLink(state, text) {
  byId('link').dataset.state = state;
  byId('link-text').textContent = text;
  const stale = byId('stale');
  stale.hidden = state !== 'lost';
  if (state === 'lost') stale.textContent = 'The connection is lost. What you see here may be out of date; it is being tried again.';
}

function refuse(error) {
  const isSession = !token.get();
  token.clear();
  if (isSession && error.status === 401) showSignIn('Your session is over. Sign in again.');
  else showSignIn(error.status === 401 ? 'This token is not valid here. Is it complete, and of this gateway?' : `Refused: ${error.message}`);
}

/* Asked with each connection: what somebody may can change with a reload. */
function showWho(who) {
  const name = who.person === who.name ? who.person : `${who.person} (${who.name})`;
  const line = byId('who');
  putText(line, name);
  line.title = [`Roles: ${who.roles.join(', ')}`, who.groups.length > 0 ? `Groups: ${who.groups.join(', ')}` : ''].filter(Boolean).join('\n');
  line.hidden = false;
  byId('sign-out').hidden = who.via === 'certificate'; // the browser goes on to show it
  mayRevoke = blocks.mayBlock = who.roles.includes('approver');
  isAuditor = who.roles.includes('auditor');
  byId('may-not-decide').hidden = who.roles.includes('approver');
}

/* Without a token there may be a session: its cookie is none of the page's to see, so it asks. */
async function findSession() {
  if (token.get() || connection) return;
  try {
    byId('provider').hidden = !(await hasSignIn());
    if (token.get()) return;
    await whoami(); // by a session, or by the browser's certificate
    signIn();
  } catch (error) {
    // Nobody is signed in; or there was no answer, as when the network changes.
    if (error.status === 0) setTimeout(findSession, 1000);
  }
}

function start() {
  takeToken();
  if (token.get()) return signIn();
  showSignIn();
  findSession();
}

byId('provider').addEventListener('click', keepTask);
start();
