// The gateway: who is signed in, the operators' API, and the live stream of changes.
import { readJson } from './text.js';

// The operators' API: requests with the token, or else with the cookie of a session, and the live
// stream of changes.

const TOKEN_KEY = 'taskgate-token';

/** A failure, described for a person. `status` is 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message, { state, code, path } = {}) {
    super(message);
    Object.assign(this, { status, state, code, path });
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (value) => sessionStorage.setItem(TOKEN_KEY, value),
  clear: () => sessionStorage.removeItem(TOKEN_KEY),
};

async function request(path, options = {}) {
  let response;
  const shown = token.get();
  try {
    response = await fetch(path, {
      cache: 'no-store',
      credentials: 'same-origin', // without them the browser would not show its certificate, either
      ...options,
      headers: { ...options.headers, ...(shown ? { authorization: `Bearer ${shown}` } : { 'x-taskgate': '1' }) },
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The gateway does not answer.');
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  let detail;
  try {
    detail = (await response.json()).error;
  } catch {
    // Not from the gateway: a proxy before it, perhaps.
  }
  return new ApiError(response.status, detail?.message ?? `The gateway answered with HTTP ${response.status}.`, detail ?? {});
}

/** The operator as the gateway knows them: {name, person, groups, roles, via}. */
export async function whoami() {
  return (await request('api/v1/whoami')).json();
}

/** Whether people sign in at an identity provider here. */
export async function hasSignIn() {
  return (await (await request('api/v1/sign-in')).json()).issuer !== undefined;
}

/** Ends the session; the address where the browser goes next. */
export async function signOut() {
  return (await (await request('logout', { method: 'POST' })).json()).location;
}

/** A task or grant of the API as an object; its arguments stay a JSON value of json.js. */
function taskOf(json) {
  return Object.fromEntries(json.members);
}

async function page(parameters) {
  const response = await request(`api/v1/tasks?${new URLSearchParams(parameters)}`);
  const json = readJson(await response.text());
  return { tasks: json.get('tasks').map(taskOf), nextCursor: json.get('nextCursor') };
}

/* A row of the inbox as a task of which only this is known. `count`: of the calls in it. */
const rowOf = (json) => ({ state: 'pending', ...taskOf(json), isRow: true, count: Number(json.get('count').text) });

/** A page of the calls that wait, alike ones as one: {rows, waiting, matching, nextCursor}. */
export async function inboxPage(parameters) {
  const json = readJson(await (await request(`api/v1/inbox?${new URLSearchParams(parameters)}`)).text());
  return { rows: json.get('rows').map(rowOf), waiting: Number(json.get('waiting').text), matching: Number(json.get('matching').text), nextCursor: json.get('nextCursor') };
}

/** Each call that waits and is asked for by `parameters`, stack by stack. */
export async function everyCall(parameters) {
  const each = async (more) => {
    const rows = [];
    for (let cursor; cursor !== null;) {
      const some = await inboxPage({ ...parameters, ...more, limit: 200, ...(cursor ? { cursor } : {}) });
      rows.push(...some.rows);
      cursor = some.nextCursor;
    }
    return rows;
  };
  if (parameters.stack) return each({});
  const calls = [];
  for (const row of await each({})) {
    const { stack, source, tool, workflow } = row;
    calls.push(...(row.count > 1 ? await each({ stack, source, tool, workflow }) : [row]));
  }
  return calls;
}

/** Tasks that do not wait for a decision any more, newest first: {tasks, nextCursor}. `filter` has parameters of the API. */
export async function decidedTasks(limit, filter = {}, cursor = undefined) {
  return page({ state: 'approved,executing,completed,failed,cancelled,rejected,expired', limit, ...filter, ...(cursor ? { cursor } : {}) });
}

export async function taskById(id) {
  return taskOf(readJson(await (await request(`api/v1/tasks/${encodeURIComponent(id)}`)).text()));
}

/** The newest other call of the same tool that a person approved, or undefined. */
export async function lastApproved({ id, source, tool }) {
  const { tasks } = await page({ state: 'approved,executing,completed,failed', source, tool, limit: 20 });
  return tasks.find((task) => task.id !== id && task.decidedBy && task.executeBy);
}

const post = (path, body) => request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

/**
 * `verb` is approve, reject or withdraw of the task as it was shown; `more` goes with an approval: emergency, grant. `newArguments`: JSON text in
 * place of the client's, which goes as it stands, with every digit. Returns the task as it is then.
 */
export async function decide({ id, requestDigest }, verb, reason, more = {}, newArguments = undefined) {
  const members = Object.entries({ ...(reason ? { reason } : {}), ...(requestDigest ? { requestDigest } : {}), ...more }).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  const body = `{${[...members, ...(newArguments ? [`"arguments":${newArguments}`] : [])].join(',')}}`;
  return taskOf(readJson(await (await post(`api/v1/tasks/${encodeURIComponent(id)}/${verb}`, body)).text()));
}

/** The outcome of an ended call: {result} or {error}. */
export async function outcomeOfCall(id) {
  return (await request(`api/v1/tasks/${encodeURIComponent(id)}/result`)).json();
}

/** Ends an approved call; a new state comes as an event. */
export async function cancelCall(id) {
  await post(`api/v1/tasks/${encodeURIComponent(id)}/cancel`, '{}');
}

/** The same decision on many tasks as they were shown: [{id, status, code?}] in their order. */
export async function decideMany(tasks, verb, reason) {
  const items = tasks.map(({ id, requestDigest }) => ({ id, ...(requestDigest ? { requestDigest } : {}) }));
  return (await (await post('api/v1/decisions', JSON.stringify({ items, verb, ...(reason ? { reason } : {}) }))).json()).results;
}

/** Rows of the audit trail behind the number `after`, oldest first. */
export async function auditRows(after, limit) {
  return (await (await request(`api/v1/audit?${new URLSearchParams({ after, limit })}`)).json()).entries;
}

/** Every grant that is in force, newest first. */
export async function activeGrants() {
  const grants = [];
  let parameters = { state: 'active', limit: 100 };
  for (;;) {
    const json = readJson(await (await request(`api/v1/grants?${new URLSearchParams(parameters)}`)).text());
    grants.push(...json.get('grants').map(taskOf));
    if (!json.get('nextCursor')) return grants;
    parameters = { ...parameters, cursor: json.get('nextCursor') };
  }
}

export async function revokeGrant(id, reason) {
  await post(`api/v1/grants/${encodeURIComponent(id)}/revoke`, JSON.stringify(reason ? { reason } : {}));
}

/** Stops the caller of a task: {task, scope, for, reason}. */
export async function blockCaller(wish) {
  return (await post('api/v1/blocks', JSON.stringify(wish))).json();
}

/** Definitions that have changed, then others that are flagged: {definitions, hasMore}. */
export async function watchedDefinitions() {
  const of = async (state) => (await request(`api/v1/definitions?${new URLSearchParams({ state, limit: 100 })}`)).json();
  const [changed, flagged] = await Promise.all([of('changed'), of('flagged')]);
  const others = flagged.definitions.filter(({ state }) => state !== 'changed');
  return { definitions: [...changed.definitions, ...others], hasMore: Boolean(changed.nextCursor ?? flagged.nextCursor) };
}

export async function acceptDefinition({ source, kind, name, digest }) {
  await post('api/v1/definitions/accept', JSON.stringify({ source, kind, name, digest }));
}

// The gateway sends a comment at least every 15 s.
const SILENCE_MS = 40_000;

/**
 * Follows the changes until `signal` aborts or the connection ends: `opened` once it is open,
 * `task` with the row of each task, `grant` when a grant has changed. EventSource cannot send the token, so
 * this reads the stream itself.
 */
async function follow(signal, { opened, task, grant }) {
  const own = new AbortController();
  signal.addEventListener('abort', () => own.abort());
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => own.abort(), SILENCE_MS);
  };
  try {
    alive();
    const response = await request('api/v1/events?rows=true', { headers: { accept: 'text/event-stream' }, signal: own.signal });
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      const blocks = (text + value).split('\n\n');
      text = blocks.pop();
      for (const block of blocks) readBlock(block, { task, grant });
    }
  } finally {
    clearTimeout(watchdog);
  }
}

function readBlock(block, { task, grant }) {
  const fields = block.split('\n');
  const of = (name) => fields.filter((field) => field.startsWith(`${name}: `)).map((field) => field.slice(name.length + 2));
  const [event] = of('event');
  if (event === 'row') task(rowOf(readJson(of('data').join('\n'))));
  else if (event === 'grant') grant();
}

// The part of the address behind #: token=… signs in, task=… leads to a task.

const TASK_KEY = 'taskgate-task';

const parts = () => new URLSearchParams(location.hash.slice(1));

function put(hash) {
  const text = hash.toString();
  history.replaceState(null, '', location.pathname + location.search + (text ? `#${text}` : ''));
}

/**
 * Takes #token=… out of the address bar, so that it is neither bookmarked nor shown. A link must not make somebody who
 * is signed in another person unseen.
 */
export function takeToken(isSignedIn) {
  const hash = parts();
  const value = hash.get('token');
  if (!value) return false;
  hash.delete('token');
  put(hash);
  if (value === token.get()) return false;
  if ((isSignedIn || token.get()) && !confirm('This link signs in with another token. Go on with that one?')) return false;
  token.set(value);
  return true;
}

/** The task that the address leads to, or null. */
export const linkedTask = () => parts().get('task');

export const linkOf = (id) => `${location.origin}${location.pathname}#${new URLSearchParams({ task: id })}`;

/** Shows in the address which task is open; null: none. */
export function showTask(id) {
  const hash = parts();
  if (id) hash.set('task', id);
  else hash.delete('task');
  put(hash);
}

/* Neither the provider nor the gateway sees what follows #, so the tab keeps it during
 * the sign-in. */
export function keepTask() {
  const id = linkedTask();
  if (id) sessionStorage.setItem(TASK_KEY, id);
}

export function restoreTask() {
  const id = sessionStorage.getItem(TASK_KEY);
  sessionStorage.removeItem(TASK_KEY);
  if (id && !linkedTask()) showTask(id);
}

// Staying connected: the lists once, then every change, and the lists again after a gap.

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 15_000;

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()));
  });

/* The stream is opened first and its events held back until the lists are here: so nothing
 * that happens in between is missed, and nothing old overwrites something new. */
async function followOnce(signal, { question, inboxQuestion, loaded, changed, grantChanged }) {
  let early = [];
  let failure = null;
  const own = new AbortController();
  signal.addEventListener('abort', () => own.abort());
  const load = async () => {
    const asked = inboxQuestion();
    const [who, pending, decided] = await Promise.all([whoami(), inboxPage(asked), decidedTasks(20, question())]);
    if (own.signal.aborted) return undefined;
    if (JSON.stringify(inboxQuestion()) !== JSON.stringify(asked)) return load(); // somebody has typed meanwhile
    loaded(who, pending, decided);
    for (const task of early) changed(task, false);
    early = null;
  };
  const opened = () =>
    load().catch((error) => {
      failure = error;
      own.abort();
    });
  try {
    await follow(own.signal, { opened, task: (task) => (early ? early.push(task) : changed(task, true)), grant: grantChanged });
  } catch (error) {
    throw failure ?? error;
  }
}

/**
 * Runs until `signal` aborts or the gateway refuses: `loaded(who, pending, decided)` with each
 * connection, `changed(task, isNews)`, `grantChanged()`, `link(state, text)` with connecting, live
 * or lost, and `refused(error)` at the end. `question()` gives the filter of the decided ones, and
 * `inboxQuestion()` that of those that wait.
 */
export async function stayConnected(signal, host) {
  let delay = RETRY_MIN_MS;
  host.link('connecting', 'Connecting…');
  const loaded = (...lists) => {
    host.loaded(...lists);
    delay = RETRY_MIN_MS;
  };
  const changed = (task, isNews) => host.changed(task, isNews);
  while (!signal.aborted) {
    try {
      await followOnce(signal, { question: host.question, inboxQuestion: host.inboxQuestion, loaded, changed, grantChanged: host.grantChanged });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
        host.refused(error);
        return;
      }
    }
    if (signal.aborted) return;
    host.link('lost', 'Connection lost');
    await pause(delay * (0.75 + Math.random() / 2), signal);
    delay = Math.min(delay * 2, RETRY_MAX_MS);
  }
}
