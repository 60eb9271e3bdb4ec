// Text of agents, servers and people on the page. Nothing of it is ever markup: text nodes only.

// JSON for people who must judge it: no digit is lost, and no character is hidden.
//
// JSON.parse() would show 9007199254740993 as …992 and would reorder keys such as "1"; an
// operator must see the call that will be executed. So numbers stay text, and objects are lists of pairs.

/** A number as it stands in the text. */
export class JsonNumber {
  constructor(text) {
    this.text = text;
  }
}

/** An object: its members in their order. */
export class JsonObject {
  constructor() {
    this.members = []; // [key, value]
  }

  get(key) {
    return this.members.find(([name]) => name === key)?.[1];
  }
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+)/gy;
const LITERALS = new Map([['true', true], ['false', false], ['null', null]]);

/** Reads JSON text. Throws a SyntaxError for anything else. */
export function readJson(text) {
  TOKEN.lastIndex = 0;
  const next = () => TOKEN.exec(text)?.[1] ?? fail();
  const value = readValue(next(), next);
  if (text.slice(TOKEN.lastIndex).trim() !== '') fail();
  return value;
}

function fail() {
  throw new SyntaxError('not JSON');
}

function readValue(token, next) {
  if (token === '{') return readObject(next);
  if (token === '[') return readArray(next);
  if (token.startsWith('"')) return JSON.parse(token);
  if (LITERALS.has(token)) return LITERALS.get(token);
  if (/^-?\d/.test(token)) return new JsonNumber(token);
  return fail();
}

function readObject(next) {
  const object = new JsonObject();
  for (let token = next(); token !== '}'; token = next()) {
    if (object.members.length > 0) {
      if (token !== ',') fail();
      token = next();
    }
    const key = JSON.parse(token);
    if (next() !== ':') fail();
    object.members.push([key, readValue(next(), next)]);
  }
  return object;
}

function readArray(next) {
  const array = [];
  for (let token = next(); token !== ']'; token = next()) {
    if (array.length > 0) {
      if (token !== ',') fail();
      token = next();
    }
    array.push(readValue(token, next));
  }
  return array;
}

// Characters that cannot be seen, or that change how others are seen: controls, format and
// bidirectional controls, unassigned and private ones, odd spaces. include/taskgate/core/visible.h is the same rule for
// every other channel.
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;
const PIECES = new RegExp(`(${HIDDEN.source})`, 'u');

const escapeUnit = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
const escapeCharacter = (character) => character.split('').map(escapeUnit).join('');

// A browser takes seconds for as many elements, and an agent decides their number. A value with more
// pieces becomes one piece, so that no call keeps operators from the others.
const MOST_PIECES = 20_000;

// A run of white space in which what follows would be out of sight, or '' for a shorter one.
const RUNS = /([\s\u0085]{4,})/u;
function markOf(run) {
  if (!/^[\s\u0085]{4,}$/u.test(run)) return '';
  const breaks = (run.match(/\r\n|[\n-\r\u0085\u2028\u2029]/g) ?? []).length;
  if (breaks >= 4) return `[${breaks.toLocaleString('en')} line breaks]`;
  return run.length >= 16 ? `[${run.length.toLocaleString('en')} blanks]` : '';
}

/** Text as pieces {text, kind}: 'text', or 'escape' for a character made visible, or a mark for a long run of white space. */
function visiblePieces(text) {
  const parts = text.split(RUNS);
  if (parts.length === 1) return characterPieces(text);
  return parts.flatMap((part) => (markOf(part) ? [{ text: markOf(part), kind: 'escape' }] : characterPieces(part)));
}

// Most texts are such ones: the classes of Unicode need not be compiled for them, which takes milliseconds.
const NOT_PLAIN = /[^ -~]/;

function characterPieces(text) {
  if (!NOT_PLAIN.test(text)) return text === '' ? [] : [{ text, kind: 'text' }];
  const pieces = text
    .split(PIECES)
    .filter((piece) => piece !== '')
    .map((piece) => (HIDDEN.test(piece) ? { text: escapeCharacter(piece), kind: 'escape' } : { text: piece, kind: 'text' }));
  return pieces.length <= MOST_PIECES ? pieces : [{ text: pieces.map((piece) => piece.text).join(''), kind: 'text' }];
}

/**
 * A value as pieces {text, kind} whose texts, joined, are the same JSON, indented. Kinds: key,
 * string, number, literal, escape, redacted, mark, and break (an empty text where a line may end). Beyond
 * MOST_PIECES it is a single text on one line, in which only ASCII stands unescaped.
 *
 * `hidden`: dot paths of the values that the gateway keeps back. Such a value is REDACTED without
 * quotes, of the kind redacted. No text of an agent can look like that. `marked`: dot paths of values
 * that matter; their pieces have `isMarked`. Unless `isExact`, a long run of white space in a text is a mark. `noteAt`
 * gives the words for a dot path, or nothing; they are a piece without a text, of the kind note, between the key and its value.
 */
export function jsonPieces(value, hidden = [], marked = [], isExact = false, noteAt = undefined) {
  const paths = hidden.map((path) => path.split('.'));
  const pieces = Object.assign([], { isExact, noteAt });
  return addValue(pieces, value, '', '', paths, marked.map((path) => path.split('.'))) ? pieces : [{ text: asciiJson(value, paths, isExact), kind: 'text' }];
}

const REDACTED = '[REDACTED]';

// The paths that go on below `key`. One that ends there is empty.
const below = (paths, key) => paths.filter((path) => path[0] === key).map((path) => path.slice(1));
// Whether a path ends here: for hidden paths that the value is hidden, for marked ones that it is marked.
const isHidden = (paths) => paths.some((path) => path.length === 0);

// Each adds to `pieces`, and returns false, having stopped somewhere, when they are too many.
function addValue(pieces, value, indent, place, paths, marked = []) {
  const start = pieces.length;
  const isWhole = addBare(pieces, value, indent, place, paths, marked);
  if (isHidden(marked)) for (const piece of pieces.slice(start)) piece.isMarked = piece.kind !== 'note';
  return isWhole;
}

function addBare(pieces, value, indent, place, paths, marked) {
  if (isHidden(paths)) return pieces.push({ text: REDACTED, kind: 'redacted' }) <= MOST_PIECES;
  if (Array.isArray(value)) return addMembers(pieces, value.map((item) => ['', item]), '[', ']', indent, place, paths, marked);
  if (value instanceof JsonObject) return addMembers(pieces, value.members, '{', '}', indent, place, paths, marked);
  if (typeof value === 'string') return addString(pieces, value, 'string');
  pieces.push(value instanceof JsonNumber ? { text: value.text, kind: 'number' } : { text: String(value), kind: 'literal' });
  return pieces.length <= MOST_PIECES;
}

// A string in its quotes. JSON.stringify() escapes the characters that JSON requires; the other
// hidden characters follow. A line break is shown as \n and as a break.
function addString(pieces, text, kind) {
  const runs = pieces.isExact ? [text] : text.split(RUNS);
  const start = pieces.push({ text: '"', kind });
  for (const run of runs) {
    const mark = runs.length > 1 ? markOf(run) : '';
    if (mark) pieces.push({ text: mark, kind: 'escape' });
    else if (!addText(pieces, run, kind)) return false;
  }
  if (pieces[start]?.kind === kind) pieces.splice(start - 1, 2, { text: `"${pieces[start].text}`, kind });
  const last = pieces.at(-1);
  if (last.kind === kind) last.text += '"';
  else pieces.push({ text: '"', kind });
  return pieces.length <= MOST_PIECES;
}

function addText(pieces, text, kind) {
  for (const part of JSON.stringify(text).slice(1, -1).split(/(\\u[0-9a-f]{4}|\\.)/)) {
    if (part.startsWith('\\')) {
      pieces.push({ text: part, kind: part === '\\"' || part === '\\\\' ? kind : 'escape' });
      if (part === '\\n') pieces.push({ text: '', kind: 'break' });
    } else {
      for (const piece of characterPieces(part)) pieces.push(piece.kind === 'text' ? { text: piece.text, kind } : piece);
    }
    if (pieces.length > MOST_PIECES) return false;
  }
  return true;
}

function addNote(pieces, place) {
  const words = pieces.noteAt?.(place);
  if (words) pieces.push({ text: '', kind: 'note', words });
}

function addMembers(pieces, members, open, close, indent, place, paths, marked) {
  const deeper = `${indent}  `;
  const isObject = open === '{';
  for (const [index, [key, value]] of members.entries()) {
    pieces.push({ text: `${index === 0 ? open : ','}\n${deeper}`, kind: 'mark' });
    const inner = !isObject || !pieces.noteAt ? place : place ? `${place}.${key}` : key;
    if (isObject) {
      if (!addString(pieces, key, 'key')) return false;
      pieces.push({ text: ': ', kind: 'mark' });
      addNote(pieces, inner);
    }
    if (!addValue(pieces, value, deeper, inner, isObject ? below(paths, key) : paths, isObject ? below(marked, key) : marked)) return false;
  }
  pieces.push({ text: members.length === 0 ? open + close : `\n${indent}${close}`, kind: 'mark' });
  return true;
}

function asciiJson(value, paths, isExact) {
  if (isHidden(paths)) return REDACTED;
  if (Array.isArray(value)) return `[${value.map((item) => asciiJson(item, paths, isExact)).join(', ')}]`;
  if (value instanceof JsonObject) return `{${value.members.map(([key, member]) => `${asciiText(key, isExact)}: ${asciiJson(member, below(paths, key), isExact)}`).join(', ')}}`;
  if (typeof value === 'string') return asciiText(value, isExact);
  return value instanceof JsonNumber ? value.text : String(value);
}

function asciiText(text, isExact) {
  const parts = isExact ? [text] : text.split(RUNS);
  return `"${parts.map((part) => (parts.length > 1 && markOf(part)) || JSON.stringify(part).slice(1, -1).replace(/[^ -~]/g, escapeUnit)).join('')}"`;
}

function nodesOf({ text, kind, words, isMarked }) {
  if (!isMarked && (kind === 'text' || kind === 'mark')) return [document.createTextNode(text)];
  const span = document.createElement(isMarked && kind !== 'break' ? 'mark' : 'span');
  span.className = `json-${kind}`;
  span.textContent = text;
  if (words) span.dataset.words = words; // shown by the style, so that the text stays JSON
  // A text goes on behind its line break, and is marked as going on: without the mark its next
  // line could pass for a member of the arguments.
  return kind === 'break' ? [document.createElement('br'), span] : [span];
}

/** Replaces the content of `element` by pieces of json.js. */
export function putPieces(element, pieces) {
  const content = document.createDocumentFragment();
  for (const piece of pieces) content.append(...nodesOf(piece));
  element.replaceChildren(content);
}

/** Replaces the content of `element` by a text in which every character can be seen. */
export const putText = (element, text) => putPieces(element, visiblePieces(text ?? ''));

/** The same as a plain string, for titles, labels and notifications. */
export const visibleText = (text) => visiblePieces(text ?? '').map((piece) => piece.text).join('');

/** At most `most` characters of a text that is visible already. */
export const shortened = (text, most) => (text.length > most ? `${[...text.slice(0, most)].join('')}…` : text);

const WITNESS = { issuer: 'verified', gateway: 'gateway' };
const MOST_NAME = 120;

/** A name that somebody has given, quoted and cut. */
export function nameText(given) {
  const letters = [...(given ?? '')];
  const name = letters.length > MOST_NAME ? `${letters.slice(0, MOST_NAME).join('')}…` : given ?? '';
  return visibleText(JSON.stringify(name));
}

/** The asker: the witness first, which no name can imitate or push away. */
export const askerText = ({ principal, principalBy }) => `${WITNESS[principalBy] ?? 'unverified'} ${nameText(principal)}`;

/** The same in an element of the class `asker`. */
export function putAsker(element, task) {
  element.dataset.by = task.principalBy in WITNESS ? task.principalBy : 'client';
  element.textContent = askerText(task);
}

/** The risk where every channel shows it: high always, another one where the rule says it. */
export function putRisk(element, { risk, riskBy }) {
  element.hidden = !(risk === 'high' || riskBy === 'rule');
  element.textContent = `${risk} risk`;
}

/** A new element with a class and a text. */
export function make(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) putText(element, text);
  return element;
}

/* The first number that is written for a place on earth takes milliseconds. */
const numberText = (count) => (count < 1000 ? String(count) : count.toLocaleString());

export const plural = (count, one, many = `${one}s`) => `${numberText(count)} ${count === 1 ? one : many}`;

let timeFormat; // takes ten milliseconds to make, so not before the first rows

export function timeText(text) {
  timeFormat ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return timeFormat.format(new Date(text));
}

export function timeElement(text) {
  const time = make('time', '', timeText(text));
  time.dateTime = text;
  return time;
}

/** Milliseconds in words, of two units at most: "9 min 30 s". */
export function duration(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ].filter(([count]) => count > 0);
  return parts.length === 0 ? '0 s' : parts.slice(0, 2).map(([count, unit]) => `${count} ${unit}`).join(' ');
}

// The marks of a call, in words beside the value that each is about. src/core/marks.c has the same words.

const WORDS = {
  bidi: 'characters that change the order of letters',
  invisible: 'characters that cannot be seen',
  control: 'control characters',
  mixed_script: 'letters of alphabets that look alike',
};

// The gateway cuts a longer path.
const MOST_PATH_CHARACTERS = 200;
// A line of the list has more to say.
const MOST_PLACES = 2;

/** The words of a task's marks by their place: "tool", "principal", or a dot path. */
function marksOf(task) {
  const marks = new Map();
  for (const mark of task.marks ?? []) {
    const [where, what] = [mark.get('where'), mark.get('what')];
    marks.set(where, [marks.get(where), WORDS[what] ?? what].filter(Boolean).join(', '));
  }
  return marks;
}

/** For jsonPieces(): the words at a path below `top`, which is "", "_meta" or "params". */
export function notesOf(task, top = '') {
  const marks = marksOf(task);
  if (marks.size === 0) return undefined;
  return (path) => {
    const whole = [top, path].filter(Boolean).join('.');
    if (whole.length <= MOST_PATH_CHARACTERS) return marks.get(whole);
    const letters = [...whole.slice(0, 2 * MOST_PATH_CHARACTERS + 2)];
    return marks.get(letters.length > MOST_PATH_CHARACTERS ? `${letters.slice(0, MOST_PATH_CHARACTERS).join('')}…` : whole);
  };
}

/** Adds the words at `where` to an element that has the text of it. */
export function addMark(element, task, where) {
  const words = marksOf(task).get(where);
  if (words) element.append(' ', make('span', 'json-note', words));
}

/** Adds the words of the request's own texts, with their places, to an element that has its summary or values. */
export function addRequestMarks(element, task) {
  const marks = [...marksOf(task)].filter(([where]) => where !== 'tool' && where !== 'principal');
  for (const [where, words] of marks.slice(0, MOST_PLACES)) element.append(' ', make('span', 'json-note', `${where}: ${words}`));
  const others = marks.length - MOST_PLACES;
  if (others > 0) element.append(' ', make('span', 'json-note', `${plural(others, 'place')} more`));
}

/** Shows them in an element of their own. */
export function putMark(element, task, where) {
  const words = marksOf(task).get(where) ?? '';
  element.hidden = words === '';
  element.textContent = words;
}
