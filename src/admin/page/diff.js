// The differences between the arguments of two calls, place by place.
import { JsonNumber, JsonObject, jsonPieces } from './json.js';

// More differences than that help nobody who must decide.
const MOST_CHANGES = 100;

const isLeaf = (value) => !(value instanceof JsonObject) && !Array.isArray(value);
const pieceText = (value) => jsonPieces(value, [], [], true).map((piece) => piece.text).join('');

function same(a, b) {
  if (a instanceof JsonNumber || b instanceof JsonNumber) return a?.text === b?.text && a instanceof JsonNumber && b instanceof JsonNumber;
  return isLeaf(a) && isLeaf(b) ? a === b : false;
}

/**
 * Differences of `after` against `before`: {path, kind, before, after}, kind 'added', 'removed' or
 * 'changed'. `hidden`: dot paths whose values the gateway keeps back; what cannot be seen is not
 * compared. `isCut` when there are more than are listed.
 */
export function differences(before, after, hidden = []) {
  const paths = hidden.map((path) => path.split('.'));
  const found = { changes: [], isCut: false, hasHidden: false };
  compare(found, before, after, '', paths);
  return found;
}

function add(found, change) {
  if (found.changes.length < MOST_CHANGES) found.changes.push(change);
  else found.isCut = true;
}

function compare(found, before, after, path, hidden) {
  if (found.isCut) return;
  if (hidden.some((rest) => rest.length === 0)) {
    found.hasHidden = true;
  } else if (before instanceof JsonObject && after instanceof JsonObject) {
    compareMembers(found, before, after, path, hidden);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    compareItems(found, before, after, path, hidden);
  } else if (!same(before, after)) {
    add(found, { path: path || 'all', kind: 'changed', before, after });
  }
}

const below = (hidden, key) => hidden.filter((path) => path[0] === key).map((path) => path.slice(1));
const step = (path, key) => `${path}${/^[A-Za-z_][\w-]*$/.test(key) ? `${path ? '.' : ''}${key}` : `[${JSON.stringify(key)}]`}`;

function compareMembers(found, before, after, path, hidden) {
  const [old, now] = [new Map(before.members), new Map(after.members)];
  for (const [key, value] of now) {
    const [place, rest] = [step(path, key), below(hidden, key)];
    if (old.has(key)) compare(found, old.get(key), value, place, rest);
    else add(found, { path: place, kind: 'added', after: value, hidden: rest });
    if (found.isCut) return;
  }
  for (const [key, value] of old) {
    if (!now.has(key)) add(found, { path: step(path, key), kind: 'removed', before: value, hidden: below(hidden, key) });
    if (found.isCut) return;
  }
}

/* An item that was put in must not make all behind it look changed: equal beginnings and ends go first. */
function compareItems(found, before, after, path, hidden) {
  const equal = (a, b) => same(a, b) || (!isLeaf(a) && !isLeaf(b) && pieceText(a) === pieceText(b));
  let start = 0;
  while (start < before.length && start < after.length && equal(before[start], after[start])) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && equal(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  for (let at = 0; at < Math.max(old.length, now.length) && !found.isCut; at += 1) {
    const place = `${path}[${start + at}]`;
    if (at >= old.length) add(found, { path: place, kind: 'added', after: now[at], hidden });
    else if (at >= now.length) add(found, { path: place, kind: 'removed', before: old[at], hidden });
    else compare(found, old[at], now[at], place, hidden);
  }
}
