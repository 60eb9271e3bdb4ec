// The English of the project: its comments, the titles of its tests, and the prose of its documents, by sentences.

/** A sentence that begins with one of these words is a question, or it is turned round. "Where: …" is a column's head. */
const FIRST_WORD = /^(?:what|whatever|where|wherever|which|whichever|who|whoever|whom|whose)\b(?!:)/i;

/** The sentences of `text`, whose first line is `line`: {line, text}. A paragraph or list item begins one, too. */
export function sentences({ line, text }) {
  const found = [];
  const add = (begin, end) => {
    const piece = text.slice(begin, end);
    const words = piece.replace(/^(?:\s|[*|-] |\d+\. |[*_"'“(])+/, '');
    const at = begin + piece.length - words.length;
    found.push({ line: line + text.slice(0, at).split('\n').length - 1, text: words.replace(/\s+/g, ' ').trim() });
  };
  let begin = 0;
  for (const { 0: end, index } of text.matchAll(/[.!?]["'”)*_]*\s+(?=["'“(*_]*[A-Z])|\n\s*(?=\n|[*|-] |\d+\. )/g)) {
    add(begin, index + end.length);
    begin = index + end.length;
  }
  add(begin, text.length);
  return found;
}

/** The sentences that begin with a word of the list and are no question. */
export const riddles = (piece) => sentences(piece).filter(({ text }) => FIRST_WORD.test(text) && !/\?["'”)]*$/.test(text));

/** The comments of a file: {line, text}, where lines of `//` or `#` below each other are one comment. */
export function comments(file, source) {
  const slashes = /\.(?:c|h|mjs|js|go|rs|css)$/.test(file);
  const one = slashes ? /^(.*?)(?:^|(?<=\s))\/\/+(?= |$)(.*)$/ : /^(.*?)(?:^|(?<=\s))#+(?= |$)(.*)$/;
  const found = [];
  let open = false;
  let above = false;
  for (const [index, line] of source.split('\n').entries()) {
    const begin = slashes && !open ? /(?:^|\s)\/\*+(?=\s|$)(.*)$/.exec(line) : null;
    const alone = open || begin ? null : one.exec(line);
    const joined = alone !== null && above && alone[1].trim() === '';
    if (begin || (alone && !joined)) found.push({ line: index + 1, text: '' });
    const words = begin?.[1] ?? alone?.[2] ?? (open ? line.replace(/^\s*\*(?= |$)/, '') : null);
    if (words !== null) found.at(-1).text += `${begin || (alone && !joined) ? '' : '\n'}${words.replace(/\*\/.*$/, '')}`;
    if (begin || open) open = !/\*\//.test(line);
    above = alone !== null;
  }
  return found;
}

/** The titles of a file's node tests, and the names of its C tests as words. */
export const titles = (source) =>
  [...source.matchAll(/\b(?:test|it|describe|suite)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1|\bSTART_TEST\((\w+)\)/g)].map(
    ({ 2: title, 3: name, index }) => ({
      line: source.slice(0, index).split('\n').length,
      text: title?.replace(/\\(.)/g, '$1') ?? name.replaceAll('_', ' '),
    }),
  );

/** The prose of a document: no block of code, no comment, no heading, no head of a table; lines keep their numbers. */
export const prose = (markdown) => ({
  line: 1,
  text: markdown
    .replace(/^```[^]*?^```$|<!--[^]*?-->/gm, (block) => block.replace(/[^\n]/g, ''))
    .replace(/^#+ .*$|^\|.*\n(?=\|[ :|-]+$)/gm, (line) => line.replace(/[^\n]/g, '')),
});
