// The part of the address behind #: token=… signs in, task=… leads to a task.
import { token } from './api.js';

const KEY = 'taskgate-task';

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

/* Neither the provider nor the gateway gets to see what stands behind #, so the tab keeps it during
 * the sign-in. */
export function keepTask() {
  const id = linkedTask();
  if (id) sessionStorage.setItem(KEY, id);
}

export function restoreTask() {
  const id = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  if (id && !linkedTask()) showTask(id);
}
