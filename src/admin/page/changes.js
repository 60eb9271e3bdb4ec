// One difference between two calls, as a line of a list.
import { jsonPieces } from './json.js';
import { make, putPieces } from './text.js';

const SIGNS = { added: '+', removed: '−', changed: '±' };
// The whole value stands among the arguments.
const MOST_PIECES = 80;
const MOST_CHARACTERS = 600;

function beginning(pieces) {
  const taken = [];
  let left = MOST_CHARACTERS;
  for (const piece of pieces.slice(0, MOST_PIECES)) {
    if (left <= 0) break;
    taken.push({ ...piece, text: piece.text.slice(0, left) });
    left -= piece.text.length;
  }
  return left < 0 || pieces.length > MOST_PIECES ? [...taken, { text: ' …', kind: 'mark' }] : taken;
}

/* `hidden` has the rests of paths below this value; one without a step hides the value itself. */
function valueElement(name, value, hidden) {
  const element = make(name, 'json-value');
  if (hidden.some((rest) => rest.length === 0)) element.append(make('span', 'json-redacted', '[REDACTED]'));
  else putPieces(element, beginning(jsonPieces(value, hidden.map((rest) => rest.join('.')))));
  return element;
}

/** An element for a change of diff.js. */
export function changeElement({ path, kind, before, after, hidden = [] }) {
  const item = make('li', kind);
  const sign = make('span', 'sign', SIGNS[kind]);
  sign.setAttribute('aria-hidden', 'true');
  const values = make('span', 'values');
  if (kind !== 'added') values.append(valueElement('del', before, hidden));
  if (kind !== 'removed') values.append(valueElement('ins', after, hidden));
  item.append(sign, make('span', 'sr-only', `${kind}: `), make('code', 'path', path), values);
  return item;
}
