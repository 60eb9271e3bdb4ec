// The operators' API: requests with the token, or else with the cookie of a session, and the live
// stream of changes.
import { readJson } from './json.js';

const KEY = 'taskgate-token';

/** A failure, described for a person. `status` is 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message, state, code) {
    super(message);
    this.status = status;
    this.state = state;
    this.code = code;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  clear: () => sessionStorage.removeItem(KEY),
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
  return new ApiError(response.status, detail?.message ?? `The gateway answered with HTTP ${response.status}.`, detail?.state, detail?.code);
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
export async function follow(signal, { opened, task, grant }) {
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
