// The marks of a call, in words beside the value that each is about. src/core/marks.c has the same words.
import { make, plural } from './text.js';

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
export function marksOf(task) {
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
