// The operators' API: requests with the token, or else with the cookie of a session, and the live
// stream of changes.
import { readJson } from './json.js';

const KEY = 'taskgate-token';

/** A failure, described for a person. `status` is 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message, state) {
    super(message);
    this.status = status;
    this.state = state;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  clear: () => sessionStorage.removeItem(KEY),

  /** Takes #token=… out of the address bar, so that it is neither bookmarked nor shown. */
  takeFromAddress() {
    const value = new URLSearchParams(location.hash.slice(1)).get('token');
    if (!value) return false;
    history.replaceState(null, '', location.pathname + location.search);
    token.set(value);
    return true;
  },
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
  return new ApiError(response.status, detail?.message ?? `The gateway answered with HTTP ${response.status}.`, detail?.state);
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

/** A task of the API as an object; its arguments stay a JSON value of json.js. */
function taskOf(json) {
  return Object.fromEntries(json.members);
}

async function page(parameters) {
  const response = await request(`api/v1/tasks?${new URLSearchParams(parameters)}`);
  const json = readJson(await response.text());
  return { tasks: json.get('tasks').map(taskOf), nextCursor: json.get('nextCursor') };
}

/** Every task that waits for a decision. */
export async function pendingTasks() {
  const tasks = [];
  let parameters = { state: 'pending', limit: 100 };
  for (;;) {
    const { tasks: some, nextCursor } = await page(parameters);
    tasks.push(...some);
    if (!nextCursor) return tasks;
    parameters = { ...parameters, cursor: nextCursor };
  }
}

/** The latest tasks that do not wait for a decision any more. */
export async function decidedTasks(limit) {
  return page({ state: 'approved,executing,completed,failed,cancelled,rejected,expired', limit });
}

/** `verb` is approve, reject or withdraw. Returns the task as it is then. */
export async function decide(id, verb, reason, emergency = false) {
  const response = await request(`api/v1/tasks/${encodeURIComponent(id)}/${verb}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...(reason ? { reason } : {}), ...(emergency ? { emergency } : {}) }),
  });
  return taskOf(readJson(await response.text()));
}

// The gateway sends a comment at least every 15 s.
const SILENCE_MS = 40_000;

/**
 * Follows the changes of tasks until `signal` aborts or the connection ends: `opened` once it
 * is open, `changed` with each task. EventSource cannot send the token, so this reads the
 * stream itself.
 */
export async function follow(signal, opened, changed) {
  const own = new AbortController();
  signal.addEventListener('abort', () => own.abort());
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => own.abort(), SILENCE_MS);
  };
  try {
    alive();
    const response = await request('api/v1/events', { headers: { accept: 'text/event-stream' }, signal: own.signal });
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      const blocks = (text + value).split('\n\n');
      text = blocks.pop();
      for (const block of blocks) readBlock(block, changed);
    }
  } finally {
    clearTimeout(watchdog);
  }
}

function readBlock(block, changed) {
  const fields = block.split('\n');
  const of = (name) => fields.filter((field) => field.startsWith(`${name}: `)).map((field) => field.slice(name.length + 2));
  if (of('event')[0] === 'task') changed(taskOf(readJson(of('data').join('\n'))));
}
