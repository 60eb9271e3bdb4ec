// The documents as data: their blocks of code, links and headings.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

export const exists = (name) => existsSync(path.join(root, name));
export const read = (name) => readFileSync(path.join(root, name), 'utf8');

/** The names of the clone's own files that end so: those in git, and new ones that it does not ignore. */
export function files(ending) {
  const options = ['ls-files', '--cached', '--others', '--exclude-standard'];
  const names = execFileSync('git', options, { cwd: root, encoding: 'utf8' }).split('\n');
  return [...new Set(names)].filter((name) => name.endsWith(ending) && exists(name));
}

/**
 * The blocks of code: {language, text, line, runnable, example}. `runnable` is the text in the comment
 * <!-- runnable: … --> right before the block, "" for a comment without text, null without a comment; `example` likewise.
 */
export function blocks(markdown) {
  const found = [];
  const nothing = { runnable: null, example: null };
  let marks = nothing;
  let open = null;
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open && line === '```') {
      found.push({ ...open, text: open.lines.join('\n') + '\n' });
      open = null;
    } else if (open) {
      open.lines.push(line);
    } else if (line.startsWith('```')) {
      open = { language: line.slice(3), ...marks, line: index + 1, lines: [] };
      marks = nothing;
    } else {
      const mark = /^<!-- (runnable|example)(?:: (.*))? -->$/.exec(line);
      marks = mark ? { ...nothing, [mark[1]]: mark[2] ?? '' } : nothing;
    }
  }
  return found;
}

/** Everything but the blocks of code. */
export const prose = (markdown) => markdown.replace(/^```[^]*?^```$/gm, '');

/** The anchors that GitHub makes of the headings, for links with "#", and those that a document sets itself. */
export function anchors(markdown) {
  const headings = prose(markdown).matchAll(/^#{1,6} +(.*)$/gm);
  const own = prose(markdown).matchAll(/<a id="([^"]+)"><\/a>/g);
  return new Set([...[...headings].map(([, text]) => slug(text)), ...[...own].map(([, id]) => id)]);
}

function slug(heading) {
  return heading.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
}
