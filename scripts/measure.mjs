#!/usr/bin/env node
// Prints measures of the design of src/ and include/, each with its goal.
//
//   scripts/measure.mjs                  the table
//   scripts/measure.mjs --list FIGURE    what is counted: the files, names or circles of one figure
//   … --root FOLDER                      of another checkout
//
// tests/docs/measure.test.mjs holds each figure to a limit.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { callCircles, fileCircles, structureOf } from './structure.mjs';

const HERE = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const COMMENT = /\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm;
const QUOTED = /"(?:\\.|[^"\\\n])*"/g;
const within = (...folders) => (file) => folders.some((folder) => file.startsWith(`src/gateway/${folder}`));
const gateway = within('');
const isCode = (file) => file.endsWith('.c');
const outside = (...folders) => (file) => isCode(file) && gateway(file) && !within(...folders)(file);

/* The folders and files that may know one era's protocol: they write and read it. */
const ofMcp = (file) => /^(?:src|include\/taskgate)\/mcp\//.test(file);
const edge = (file) => ofMcp(file) || within('client/', 'server/', 'gates/era', 'state/source_eras')(file);
const PROTOCOL = [
  'inputRequests', 'inputResponses', 'requestState', 'resultType', 'elicitation/create', 'sampling/createMessage',
  'roots/list', 'mcp-session-id', 'last-event-id', 'protocolVersion', 'progressToken', 'io.modelcontextprotocol',
  'notifications/[a-z]+', 'tasks/[a-z]+',
];
const ONE_WORD = new RegExp(`(?:${PROTOCOL.join('|')})`, 'gi');

/* Names with linkage that a file defines: functions and tables at the first column that are not static. */
const DEFINED =
  /^(?!static|typedef|return|extern|else)[a-z][\w *]*?\b(\w+)\([^;{}]*\)\n\{|^(?:const )?(?:struct|enum|char|bool|int) [\w *]*?\b(\w+)(?:\[[^\]]*\])* =/gm;
const STATIC = /^static (?!inline)[\w *]*?\b(\w+)\([^;{}]*\)\n\{/gm;

/** Map(file → {lines, text: without comments, code: without texts in quotes, too}). */
function treeOf(root, units) {
  return new Map(
    [...units.keys()].map((file) => {
      const whole = fs.readFileSync(path.join(root, file), 'utf8');
      const text = whole.replace(COMMENT, '');
      const code = text.replace(QUOTED, '""');
      return [file, { lines: whole.split('\n').length - 1, text, code }];
    }),
  );
}

const REACHES = /\b(?:upstream_(?!client_create|client_destroy)|exchange_)\w+\(/;
const RESPONDS = /\bhttp_(?:respond|stream_start|stream_write|stream_end|prepare)\w*\(/;

const matches = (text, pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[0]);

/** The matches of `pattern` in the texts of the files that `wanted` names: "file: match". */
function found(tree, wanted, kind, pattern) {
  const units = [...tree].filter(([file]) => wanted(file));
  return units.flatMap(([file, unit]) => matches(unit[kind], pattern).map((word) => `${file}: ${word}`));
}

/** The files that `wanted` names, whose code has a match of `pattern`. */
function filesWith(tree, wanted, pattern) {
  return [...tree].filter(([file, { code }]) => wanted(file) && code.search(pattern) >= 0).map(([file]) => file);
}

/** Files of which exactly one other file uses a name, and that is one of the folder. Tests do not count. */
function ofOneUser(tree) {
  const code = [...tree].filter(([file]) => isCode(file));
  const home = new Map(code.flatMap(([file, unit]) => matches(unit.code, DEFINED).map((name) => [name, file])));
  const users = new Map(code.map(([file]) => [file, new Set()]));
  for (const [file, unit] of tree) {
    if (!isCode(file)) continue;
    const own = new Set(matches(unit.code, STATIC));
    for (const word of new Set(unit.code.match(/\w+/g))) {
      if (home.has(word) && home.get(word) !== file && !own.has(word)) users.get(home.get(word)).add(file);
    }
  }
  const alone = [...users].filter(([file, by]) => by.size === 1 && path.dirname([...by][0]) === path.dirname(file));
  return alone.map(([file, by]) => `${file}: ${[...by][0]}`);
}

/** Names of static functions that more than one file defines. */
function repeatedStatics(tree) {
  const homes = new Map();
  for (const [file, { code }] of tree) {
    for (const name of new Set(matches(code, STATIC))) homes.set(name, [...(homes.get(name) ?? []), file]);
  }
  return [...homes].filter(([, files]) => files.length > 1).map(([name, files]) => `${name}: ${files.length}`);
}

/** Statements that both databases have in the same words, but for placeholders, casts, space and a prefix. */
function statementsTwice(tree) {
  const ROW = /^STATEMENT_ROW\((\w+),([^]*?)\)$/gm;
  const plain = (sql) => sql.replace(/[?$]\d+|taskgate_|::\w+|\s|"/g, '').replace(/CAST\(AS\w+\)/g, '');
  const texts = [...tree].filter(([file]) => /^src\/store\/.*statements\.h$/.test(file)).map(([, { text }]) => text);
  const rows = texts.flatMap((text) => [
    ...new Set([...text.matchAll(ROW)].map(([, name, sql]) => `${name}: ${plain(sql)}`)),
  ]);
  return [...new Set(rows.filter((row, i) => rows.indexOf(row) !== i))];
}

/**
 * Each figure: what it counts, its goal, and whether it is to be at most or at least that. Lines and files have goals
 * of 89 % of the lines, 82 % of those of src/gateway and 60 % of the files that the commit dc859185 had.
 */
export const FIGURES = {
  bridged: {
    goal: 0,
    says: 'uses of is_bridged*: tests of "is the other side of the other era?"',
    list: (tree) => found(tree, () => true, 'code', /\bis_bridged\w*/g),
  },
  /* Each occurrence of a word with one of these in it. */
  eras: {
    goal: 100,
    says: 'identifiers of an era outside the edges',
    list: (tree) => found(tree, (file) => !edge(file), 'code', /\b\w*(?:legacy|modern|bridge)\w*\b/gi),
  },
  words: {
    goal: 30,
    says: "the protocol's words (PROTOCOL) in src/gateway outside the edges",
    list: (tree) => found(tree, (file) => gateway(file) && !edge(file), 'text', ONE_WORD),
  },
  /* Files that call the HTTP client, or functions that send requests through it. */
  reach: {
    goal: 6,
    says: 'files of src/gateway outside server/ that reach a server',
    list: (tree) => filesWith(tree, outside('server/'), REACHES),
  },
  /* Files that call the functions of the HTTP server that write a response. */
  write: {
    goal: 4,
    says: 'files of src/gateway outside client/ call/ gates/ replicas/ that write a response',
    list: (tree) => filesWith(tree, outside('client/', 'call/', 'gates/', 'replicas/'), RESPONDS),
  },
  /* Sets of files; x.c, x.h and x_internal.h count as one. */
  includes: {
    goal: 0,
    says: 'circles by includes',
    list: (tree, structure) => fileCircles(structure).map((circle) => circle.join(' ')),
  },
  calls: {
    goal: 0,
    says: 'circles by calls between files of one folder',
    list: (tree, structure, root) => {
      const rooms = new Set([...tree.keys()].filter(isCode).map((file) => path.dirname(file).slice(4)));
      return [...rooms].flatMap((room) => callCircles(room, root).map((circle) => `${room}: ${circle.join(' ')}`));
    },
  },
  statements: { goal: 8, says: 'statements of the store written twice', list: statementsTwice },
  /* Members of structs, in the headers of src/store. */
  pointers: {
    goal: 40,
    says: 'function pointers of the store',
    list: (tree) => found(tree, (file) => /^src\/store\/.*\.h$/.test(file), 'code', /^ .*\(\*(\w+)\)\(/gm),
  },
  /* Of src/ and include/, with comments and empty lines. */
  lines: { goal: 126468, says: 'lines of C', count: (tree) => sum(tree, () => true) },
  gateway: { goal: 36654, says: 'lines of C in src/gateway', count: (tree) => sum(tree, gateway) },
  files: { goal: 746, says: 'files of C', count: (tree) => tree.size },
  users: { goal: 40, says: 'files whose only user is one other file of the folder', list: ofOneUser },
  statics: { goal: 60, says: 'names of static functions that several files define', list: repeatedStatics },
  /* Uses of the macros, not their definitions. */
  assertions: {
    goal: 500,
    least: true,
    says: 'assertions',
    list: (tree) => found(tree, () => true, 'code', /^(?!#).*?\b(?:assert|ASSERT\w*)\(/gm),
  },
};

const sum = (tree, wanted) => [...tree].reduce((all, [file, { lines }]) => all + (wanted(file) ? lines : 0), 0);

/** {name: {value, items}} of a checkout. */
export function measure(root = HERE) {
  const structure = structureOf(root);
  const tree = treeOf(root, structure.units);
  const value = ({ count, list }) => {
    const items = list?.(tree, structure, root) ?? [];
    return { value: count?.(tree) ?? items.length, items };
  };
  return Object.fromEntries(Object.entries(FIGURES).map(([name, figure]) => [name, value(figure)]));
}

function main(words) {
  const at = words.indexOf('--root');
  const root = at < 0 ? HERE : path.resolve(words.splice(at, 2)[1] ?? '');
  const list = words[0] === '--list' && words.length === 2 ? FIGURES[words[1]] : undefined;
  if (words.length > 0 && !list) {
    console.error('usage: scripts/measure.mjs [--list FIGURE] [--root FOLDER]');
    process.exitCode = 2;
    return;
  }
  const measured = measure(root);
  if (list) return console.log(measured[words[1]].items.join('\n'));
  for (const [name, { goal, least, says }] of Object.entries(FIGURES)) {
    const value = String(measured[name].value).padStart(7);
    console.log(`${name.padEnd(10)} ${value}  ${least ? '>=' : '<='} ${String(goal).padEnd(7)} ${says}`);
  }
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
