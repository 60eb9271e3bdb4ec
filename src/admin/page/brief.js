// A call in one line, and all of it that a search looks through.
import { JsonNumber, JsonObject } from './json.js';
import { addRequestMarks } from './marks.js';
import { shortened, visibleText } from './text.js';

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
export function searchedText(task) {
  let text = [task.id, task.tool, task.source, task.principal, task.workflow, task.rule, task.summary, task.decidedBy, task.reason].filter(Boolean).join('\n');
  for (const part of leaves(task.arguments)) {
    text += `\n${part.slice(0, SEARCHED_CHARACTERS)}`;
    if (text.length > SEARCHED_CHARACTERS) break;
  }
  return text.toLowerCase();
}
