// The operators' page: who is signed in, which calls wait, what became of the others.
import { ApiError, decide, decidedTasks, follow, hasSignIn, pendingTasks, signOut, token, whoami } from './api.js';
import { Card, putText } from './card.js';

const SHOWN_DECIDED = 20;
const RETRY_MAX_MS = 15_000;

const byId = (id) => document.getElementById(id);
const cards = new Map(); // task id -> Card
let connection = null; // AbortController of what runs while signed in
let mayDecide = false;

/* ---- signing in and out ---- */

function showSignIn(problem = '') {
  connection?.abort();
  connection = null;
  clearBoard();
  byId('board').hidden = byId('link').hidden = byId('who').hidden = byId('sign-out').hidden = true;
  byId('sign-in').hidden = false;
  byId('sign-in-error').textContent = problem;
  byId('token').value = '';
  byId('token').focus();
  document.title = 'taskgate';
}

function signIn() {
  connection?.abort();
  connection = new AbortController();
  byId('sign-in').hidden = true;
  byId('board').hidden = byId('link').hidden = byId('sign-out').hidden = false;
  stayConnected(connection.signal);
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  token.set(byId('token').value.trim());
  signIn();
});

byId('sign-out').addEventListener('click', async () => {
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

/* ---- staying connected ---- */

function showLink(state, text) {
  byId('link').dataset.state = state;
  byId('link-text').textContent = text;
  const stale = byId('stale');
  stale.hidden = state !== 'lost';
  if (state === 'lost') stale.textContent = 'The connection is lost. What you see here may be out of date; it is being tried again.';
}

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()));
  });

async function stayConnected(signal) {
  let delay = 500;
  showLink('connecting', 'Connecting…');
  while (!signal.aborted) {
    try {
      await followOnce(signal, () => (delay = 500));
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return refuse(error);
    }
    if (signal.aborted) return;
    showLink('lost', 'Connection lost');
    await pause(delay * (0.75 + Math.random() / 2), signal);
    delay = Math.min(delay * 2, RETRY_MAX_MS);
  }
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
  byId('sign-out').hidden = who.via === 'certificate'; // which the browser goes on to show
  byId('may-not-decide').hidden = who.roles.includes('approver');
  mayDecide = who.roles.includes('approver');
  for (const card of cards.values()) card.allow(mayDecide);
}

/* The stream is opened first and its events held back until the lists are here: so nothing
 * that happens in between is missed, and nothing old overwrites something new. */
async function followOnce(signal, connected) {
  let early = [];
  let failure = null;
  const own = new AbortController();
  signal.addEventListener('abort', () => own.abort());
  const load = async () => {
    const [who, pending, decided] = await Promise.all([whoami(), pendingTasks(), decidedTasks(SHOWN_DECIDED)]);
    if (own.signal.aborted) return;
    showWho(who);
    replaceAll(pending, decided);
    for (const task of early) put(task);
    early = null;
    connected();
    showLink('live', 'Live');
  };
  const opened = () =>
    load().catch((error) => {
      failure = error;
      own.abort();
    });
  try {
    await follow(own.signal, opened, (task) => (early ? early.push(task) : put(task, true)));
  } catch (error) {
    throw failure ?? error;
  }
}

/* ---- the board ---- */

function clearBoard() {
  cards.clear();
  byId('pending').replaceChildren();
  byId('decided').replaceChildren();
  byId('decided-older').hidden = true;
}

/* Cards that are still there stay as they are: a reason half-typed outlives a reconnection. */
function replaceAll(pending, { tasks: decided, nextCursor }) {
  const present = new Set([...pending, ...decided].map((task) => task.id));
  for (const [id, card] of cards) {
    if (present.has(id)) continue;
    card.element.remove();
    cards.delete(id);
  }
  for (const task of [...pending, ...decided].sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt))) put(task);
  byId('decided-older').hidden = !nextCursor;
  showCounts(); // of a gateway without tasks, put() has shown none
}

/** Shows a task that is new or has changed. */
function put(task, isNews = false) {
  let card = cards.get(task.id);
  const wasPending = card?.isPending;
  if (card) {
    card.update(task);
  } else {
    card = new Card(byId('card'), task, pressed);
    card.allow(mayDecide);
    cards.set(task.id, card);
  }
  if (!card.element.isConnected) place(card);
  if (isNews && wasPending === undefined && card.isPending) announce(`A new call waits: ${task.tool}`);
  if (wasPending && !card.isPending) {
    announce(`${task.tool}: ${task.state}${task.decidedBy ? ` by ${task.decidedBy}` : ''}`);
    tidySoon();
  }
  showCounts();
}

/* Waiting calls stand oldest first, so that a new one never moves what someone is about to
 * press. */
function place(card) {
  if (card.isPending) byId('pending').append(card.element);
  else byId('decided').prepend(card.element);
}

/* A card that has been decided stays where it is while the pointer is in the list, for the same
 * reason, and then goes down to the decided ones. The focus keeps no card: a key presses what has
 * the focus, wherever that stands. */
const hasHover = matchMedia('(hover: hover)');
let tidyTimer;

function tidySoon() {
  clearTimeout(tidyTimer);
  tidyTimer = setTimeout(tidy, hasHover.matches ? 0 : 4000);
}

function tidy() {
  const list = byId('pending');
  if (hasHover.matches && list.matches(':hover')) return;
  for (const card of cards.values()) {
    if (!card.isPending && list.contains(card.element)) settleDown(card);
  }
  dropOldest();
  showCounts();
}

/* The focus does not go down with the card, but on to the next call that waits. */
function settleDown(card) {
  const { element } = card;
  const next = element.contains(document.activeElement) ? nextPending(element) : null;
  place(card);
  next?.focus({ preventScroll: true });
}

function nextPending(element) {
  const isPending = (other) => other.dataset.state === 'pending';
  const all = [...byId('pending').children];
  const at = all.indexOf(element);
  return all.slice(at + 1).find(isPending) ?? all.slice(0, at).findLast(isPending) ?? byId('waiting');
}

function dropOldest() {
  const extra = [...byId('decided').children].slice(SHOWN_DECIDED);
  for (const element of extra) {
    cards.delete(element.dataset.taskId);
    element.remove();
  }
  if (extra.length > 0) byId('decided-older').hidden = false;
}

byId('pending').addEventListener('pointerleave', tidySoon);

function showCounts() {
  const waiting = [...cards.values()].filter((card) => card.isPending).length;
  byId('pending-count').textContent = waiting > 0 ? String(waiting) : '';
  byId('pending-empty').hidden = byId('pending').children.length > 0;
  byId('decided-empty').hidden = byId('decided').children.length > 0;
  document.title = waiting > 0 ? `(${waiting}) taskgate` : 'taskgate';
}

function announce(text) {
  byId('announcer').textContent = text;
}

setInterval(() => {
  for (const card of cards.values()) card.tick();
}, 1000);

/* ---- deciding ---- */

async function pressed(card, verb, reason) {
  const isEmergency = verb === 'emergency';
  card.element.focus({ preventScroll: true }); // the button is about to be disabled, and to leave
  card.setBusy(verb);
  try {
    const task = await decide(card.id, isEmergency ? 'approve' : verb, reason, isEmergency);
    card.setBusy(null);
    settle(card, task);
  } catch (error) {
    card.setBusy(null);
    explain(card, verb, error);
  }
}

/* The stream may already have brought a later state than the answer. */
function settle(card, task) {
  if (card.isPending) put(task);
}

function explain(card, verb, error) {
  const status = error instanceof ApiError ? error.status : 0;
  if (status === 401) return refuse(error);
  if (status === 409) return card.setProblem(`${error.state ? 'Too late' : 'Not done'}: ${error.message}.`);
  if (status === 0) return card.setProblem(`It is not known whether this ${{ reject: 'rejection', withdraw: 'withdrawal' }[verb] ?? 'approval'} arrived: the gateway does not answer.`);
  return card.setProblem(`Not done: ${error.message}`);
}

/* ---- the start ---- */

addEventListener('hashchange', () => token.takeFromAddress() && signIn());

/* Without a token there may be a session: its cookie is none of the page's to see, so it asks. */
async function start() {
  token.takeFromAddress();
  if (token.get()) return signIn();
  showSignIn();
  try {
    byId('provider').hidden = !(await hasSignIn());
    if (token.get()) return;
    await whoami(); // by a session, or by the browser's certificate
    signIn();
  } catch (error) {
    // Nobody is signed in.
  }
}

start();
