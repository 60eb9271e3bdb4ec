#!/usr/bin/env node
// Draws the states and moves of a call that the gateway runs, from src/gateway/conversation/states.h.
//
//   scripts/states.mjs            the picture, as a Mermaid diagram on stdout
//   scripts/states.mjs --write    puts it into docs/architecture.md, between its markers
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const BEGIN = '<!-- states: made by scripts/states.mjs --write -->';
const END = '<!-- states: end -->';
/** The move of an approved call has its bare name: most are. */
const SUFFIX = { APPROVED: '', DETACHED: ' (detached)', BOTH: ' (both)' };
const FIRST = { OFFERED: 'an approved call', RUNNING: 'a detached call' };

/** {states: {NAME: name}, moves: [{from, to, name, of}]} of the table's text. */
export function readTable(text) {
  const states = Object.fromEntries([...text.matchAll(/^\s*STATE\((\w+), "(\w+)"\)/gm)].map(([, constant, name]) => [constant, name]));
  const moves = [...text.matchAll(/^\s*MOVE\((\w+), (\w+), "(\w+)", (\w+)\)/gm)].map(([, from, to, name, of]) => ({ from, to, name, of }));
  const strange = moves.find(({ from, to, of }) => !(from in states) || !(to in states) || !(of in SUFFIX));
  if (moves.length === 0 || strange) throw new Error(`the table cannot be read${strange ? ` at ${strange.from}, ${strange.to}` : ''}`);
  return { states, moves };
}

export function diagram({ states, moves }) {
  const lines = ['```mermaid', 'stateDiagram-v2'];
  for (const [state, what] of Object.entries(FIRST)) lines.push(`  [*] --> ${states[state]}: ${what}`);
  for (const { from, to, name, of } of moves) lines.push(`  ${states[from]} --> ${states[to]}: ${name}${SUFFIX[of]}`);
  lines.push(`  ${states.ENDED} --> [*]`, '```');
  return lines.join('\n');
}

/** The document's text with the picture of today between the markers. */
export function withPicture(text, table) {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the document lacks "${BEGIN}" or "${END}"`);
  return `${text.slice(0, begin + BEGIN.length)}\n\n${diagram(table)}\n\n${text.slice(end)}`;
}

export const tableOf = (root = HERE) => readTable(fs.readFileSync(path.join(root, 'src/gateway/conversation/states.h'), 'utf8'));

function main(words) {
  const document = path.join(HERE, 'docs/architecture.md');
  if (words.length === 0) return console.log(diagram(tableOf()));
  if (words.length === 1 && words[0] === '--write') return fs.writeFileSync(document, withPicture(fs.readFileSync(document, 'utf8'), tableOf()));
  console.error('usage: scripts/states.mjs [--write]');
  process.exitCode = 2;
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
