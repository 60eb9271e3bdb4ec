// Text of agents, servers and people on the page. Nothing of it is ever markup: text nodes only.
import { visiblePieces } from './json.js';

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

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString()} ${count === 1 ? one : many}`;

const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export const timeText = (text) => timeFormat.format(new Date(text));

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
