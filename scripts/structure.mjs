#!/usr/bin/env node
// Draws the rooms of src/ and the arrows between them, from the #include lines.
//
//   scripts/structure.mjs            the picture, as a Mermaid diagram on stdout
//   scripts/structure.mjs --write    puts it into docs/architecture.md, between its markers
//   scripts/structure.mjs --json     rooms, lines, arrows and circles, for other programs
//   … --root FOLDER                  of another checkout
//
// A room is a folder with C files. A header in include/taskgate/ belongs to the room of src/ that has
// its .c file, else to the room of the same name. An arrow that follows from two others is left out of the picture.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const BEGIN = '<!-- structure: made by scripts/structure.mjs --write -->';
const END = '<!-- structure: end -->';

function filesBelow(folder) {
  if (!fs.existsSync(folder)) return [];
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(name);
    return /\.[ch]$/.test(entry.name) ? [name] : [];
  });
}

/** policy/cedar.h is the door of policy/cedar, where there is such a folder. */
function roomOf(file, folders, files) {
  const parts = file.split('/');
  if (parts[0] === 'src') return parts.slice(1, -1).join('/');
  const house = parts.slice(2, -1).join('/');
  const own = [...folders].filter((folder) => `${folder}/`.startsWith(`${house}/`) && files.has(`src/${folder}/${path.basename(file, '.h')}.c`));
  if (own.length === 1) return own[0];
  const words = path.basename(file, '.h').split('_');
  const doors = words.map((_, i) => `${house}/${words.slice(0, i + 1).join('_')}`);
  return doors.findLast((door) => folders.has(door)) ?? house;
}

/** {rooms: Map(name → {lines, files}), units: Map(file → {room, uses}), arrows: Map(room → Set(room))} */
export function structureOf(root = HERE) {
  const names = ['src', 'include/taskgate'].flatMap((top) => filesBelow(path.join(root, top)));
  const files = new Set(names.map((name) => path.relative(root, name)));
  const folders = new Set([...files].filter((file) => file.startsWith('src/')).map((file) => path.dirname(file).slice(4)));
  const rooms = new Map();
  const units = new Map();
  for (const file of files) {
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    const room = roomOf(file, folders, files);
    const known = rooms.get(room) ?? { lines: 0, files: 0 };
    rooms.set(room, { lines: known.lines + text.split('\n').length - 1, files: known.files + 1 });
    const uses = [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, target]) => {
      const places = [];
      for (let folder = path.dirname(file); folder !== '.'; folder = path.dirname(folder)) places.push(folder);
      return [...places, 'include'].map((place) => path.join(place, target)).find((name) => files.has(name));
    });
    units.set(file, { room, uses: new Set(uses.filter(Boolean)) });
  }
  const arrows = new Map([...rooms.keys()].map((room) => [room, new Set()]));
  for (const { room, uses } of units.values()) {
    for (const target of uses) if (units.get(target).room !== room) arrows.get(room).add(units.get(target).room);
  }
  return { rooms, units, arrows };
}

function reaches(arrows, from, to, seen = new Set()) {
  for (const next of arrows.get(from)) {
    if (next === to) return true;
    if (!seen.has(next) && seen.add(next) && reaches(arrows, next, to, seen)) return true;
  }
  return false;
}

/** Each pair of rooms that lead to each other. */
export function circles({ arrows }) {
  const names = [...arrows.keys()].sort();
  return names.flatMap((a, i) =>
    names.slice(i + 1).filter((b) => reaches(arrows, a, b) && reaches(arrows, b, a)).map((b) => [a, b]),
  );
}

/** Sets of files that include each other in a circle; x.c, x.h and x_internal.h count as one. */
export function fileCircles({ units }) {
  const unit = (file) => file.replace(/(?:_internal|_private)?\.[ch]$/, '').replace(/^include\/taskgate\//, 'src/');
  const arrows = new Map();
  for (const [file, { uses }] of units) {
    const targets = arrows.get(unit(file)) ?? arrows.set(unit(file), new Set()).get(unit(file));
    for (const target of uses) if (unit(target) !== unit(file)) targets.add(unit(target));
  }
  return circlesAmong(arrows);
}

const DEFINED = /^(?!static|typedef|return|extern|else)[a-z][\w *]*?(\w+)\([^;{}]*\)\n\{|^(?:const )?(?:struct|enum) \w+ \**(\w+)(?:\[[^\]]*\])? =/gm;
const OF_ITS_OWN = /^static [^;{}=]*?(\w+)(?:\(|\[| =)/gm;

/** Sets of files of one folder of src/ that call each other, or read each other's tables, in a circle. */
export function callCircles(room, root = HERE) {
  const folder = path.join(root, 'src', room);
  const texts = new Map(
    fs
      .readdirSync(folder)
      .filter((name) => name.endsWith('.c'))
      .map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8').replace(/\/\*[^]*?\*\/|"(?:\\.|[^"\\\n])*"/g, '')]),
  );
  const names = (text, pattern) => new Set([...text.matchAll(pattern)].map((match) => match[1] ?? match[2]));
  const home = new Map([...texts].flatMap(([file, text]) => [...names(text, DEFINED)].map((name) => [name, file])));
  const arrows = new Map(
    [...texts].map(([file, text]) => {
      const own = names(text, OF_ITS_OWN);
      const used = [...new Set(text.replace(/\b(?:struct|enum|union) \w+|(?:->|\.)\w+/g, '').match(/\w+/g))].filter((word) => home.has(word) && !own.has(word));
      return [file, new Set(used.map((word) => home.get(word)).filter((other) => other !== file))];
    }),
  );
  return circlesAmong(arrows);
}

const COMMENT = /\/\*[^]*?\*\//g;
const STRUCT = /^struct (\w+) \{([^]*?)^\}/gm;
const OUTLIVES = /struct (?:loop_timer|loop_round_end|list) |pthread_t /;
const CAST = /^ +(?:const )?struct (\w+) \*\w+ =\s+context;/gm;

/**
 * Casts of a callback's context that check no magic number, though the object outlives the callback's errand: a
 * header defines it, or it has a timer, a thread, or a place in a list. Values of src/core have no life of their own.
 */
export function uncheckedCasts(room, root = HERE) {
  const folder = path.join(root, 'src', room);
  const textOf = (file) => fs.readFileSync(file, 'utf8').replace(COMMENT, '');
  const here = filesBelow(folder);
  const inHeaders = new Set(
    [...here, ...filesBelow(path.join(root, 'src')), ...filesBelow(path.join(root, 'include'))]
      .filter((file) => file.endsWith('.h') && !file.includes('/core/'))
      .flatMap((file) => [...textOf(file).matchAll(STRUCT)].map(([, name]) => name)),
  );
  return here.filter((file) => file.endsWith('.c')).flatMap((file) => {
    const text = textOf(file);
    const own = new Map([...text.matchAll(STRUCT)].map(([, name, body]) => [name, body]));
    const outlives = (name) => (own.has(name) ? OUTLIVES.test(own.get(name)) : inHeaders.has(name));
    const casts = [...text.matchAll(CAST)].map(([, name]) => name).filter(outlives);
    return casts.map((name) => `${path.relative(root, file)}: struct ${name}`);
  });
}

function circlesAmong(arrows) {
  const reachable = new Map([...arrows.keys()].map((name) => [name, below(arrows, name)]));
  const found = new Map();
  for (const [name, seen] of reachable) {
    const circle = [...seen].filter((other) => reachable.get(other).has(name)).sort();
    if (circle.length > 1) found.set(circle[0], circle);
  }
  return [...found.values()];
}

function below(arrows, start) {
  const seen = new Set();
  const todo = [...arrows.get(start)];
  while (todo.length > 0) {
    const name = todo.pop();
    if (seen.has(name)) continue;
    seen.add(name);
    todo.push(...arrows.get(name));
  }
  return seen;
}

/** The arrows that do not follow from two others. */
function drawn({ arrows }) {
  const inCircle = (a, b) => reaches(arrows, b, a);
  return [...arrows].flatMap(([from, targets]) =>
    [...targets]
      .filter((to) => inCircle(from, to) || ![...targets].some((by) => by !== to && !inCircle(from, by) && reaches(arrows, by, to)))
      .map((to) => [from, to]),
  );
}

export function diagram(structure) {
  // Mermaid takes "call" before a blank for a word of its own, also at the end of an id.
  const id = (room) => room.replaceAll('/', '_').replace(/call$/, 'calls');
  const box = (room) => `${id(room)}["${room}"]`;
  const names = [...structure.rooms.keys()].sort();
  const houses = names.filter((name) => names.some((other) => other.startsWith(`${name}/`)));
  const lines = ['```mermaid', 'flowchart TD'];
  for (const house of houses) {
    lines.push(`  subgraph ${id(house)}_rooms["src/${house}"]`);
    for (const room of names) if (room === house || room.startsWith(`${house}/`)) lines.push(`    ${box(room)}`);
    lines.push('  end');
  }
  for (const room of names) if (!houses.some((house) => room === house || room.startsWith(`${house}/`))) lines.push(`  ${box(room)}`);
  for (const [from, to] of drawn(structure).sort()) lines.push(`  ${id(from)} --> ${id(to)}`);
  lines.push('```');
  return lines.join('\n');
}

/** The document's text with the picture of today between the markers. */
export function withPicture(text, structure) {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the document lacks "${BEGIN}" or "${END}"`);
  return `${text.slice(0, begin + BEGIN.length)}\n\n${diagram(structure)}\n\n${text.slice(end)}`;
}

function main(words) {
  const at = words.indexOf('--root');
  const root = at < 0 ? HERE : path.resolve(words.splice(at, 2)[1] ?? '');
  const structure = structureOf(root);
  if (words.length === 0) return console.log(diagram(structure));
  if (words.length === 1 && words[0] === '--json') {
    const rooms = Object.fromEntries([...structure.rooms].map(([name, room]) => [name, { ...room, uses: [...structure.arrows.get(name)].sort() }]));
    return console.log(JSON.stringify({ rooms, circles: circles(structure), fileCircles: fileCircles(structure) }, null, 2));
  }
  if (words.length === 1 && words[0] === '--write') {
    const document = path.join(root, 'docs/architecture.md');
    return fs.writeFileSync(document, withPicture(fs.readFileSync(document, 'utf8'), structure));
  }
  console.error('usage: scripts/structure.mjs [--write | --json] [--root FOLDER]');
  process.exitCode = 2;
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
