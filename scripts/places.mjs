#!/usr/bin/env node
// Lists the file of each MCP method and of each request of the operators' API, from the tables in the source.
//
//   scripts/places.mjs            the lists, as Markdown on stdout
//   scripts/places.mjs --write    puts them into docs/architecture.md, between their markers
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const BEGIN = '<!-- places: made by scripts/places.mjs --write -->';
const END = '<!-- places: end -->';
const CONSTANTS = Object.fromEntries(
  ['jsonrpc.h', 'method.h'].flatMap((name) => {
    const text = fs.readFileSync(path.join(HERE, 'include/taskgate/mcp', name), 'utf8');
    return [...text.matchAll(/^#define (MCP_\w+) "([^"]+)"$/gm)].map(([, constant, method]) => [constant, method]);
  }),
);

/** Map(function → file) of the functions that the C files of a folder of src/ define; `before` comes before its name. */
function definitions(root, folder, before = '') {
  const files = fs.readdirSync(path.join(root, 'src', folder)).filter((name) => name.endsWith('.c'));
  return new Map(
    files.flatMap((name) => {
      const text = fs.readFileSync(path.join(root, 'src', folder, name), 'utf8');
      return [...text.matchAll(/^void (\w+)\(/gm)].map(([, defined]) => [defined, before + name]);
    }),
  );
}

function homeOf(homes, handler) {
  const home = homes.get(handler);
  if (!home) throw new Error(`no file defines ${handler}()`);
  return `\`${home}\``;
}

/** [{name, legacy, modern}]: the file that handles a method in each era; '–' where the era does not have it. */
export function methods(table, homes) {
  const treatments = new Map([...table.matchAll(/^MCP_TREATMENT_ROW\((\w+), (\w+), (\w+)\)/gm)].map(([, symbol, legacy, modern]) => [symbol, { legacy, modern }]));
  const rows = [...table.matchAll(/^MCP_METHOD_ROW\(("[^"]+"|\w+), (\w+), (\w+), \w+\)/gm)];
  rows.push(...[...table.matchAll(/^MCP_EXTENSION_METHOD_ROW\(\w+, ("[^"]+"), (\w+),/gm)].map(([row, name, eras]) => [row, name, 'EXTENSION', eras]));
  if (rows.length === 0) throw new Error('the table of methods cannot be read');
  return rows.map(([, name, symbol, eras]) => {
    const treatment = treatments.get(symbol);
    if (!treatment) throw new Error(`${name} has the unknown treatment ${symbol}`);
    const of = (era, other) => (eras === other ? '–' : homeOf(homes, treatment[era]));
    return { name: CONSTANTS[name] ?? name.replaceAll('"', ''), legacy: of('legacy', 'MODERN'), modern: of('modern', 'LEGACY') };
  });
}

/** [{request, file}] of the operators' API. */
export function routes(source, homes) {
  const rows = [...source.matchAll(/^(?:OPEN_)?ROUTE\("(\w+)", +"([^"]+)",.* (\w+)\)$/gm)];
  if (rows.length === 0) throw new Error('the table of routes cannot be read');
  return rows.map(([, method, at, handler]) => ({ request: `${method} ${at}`, file: homeOf(homes, handler) }));
}

const table = (head, rows) => [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

export function lists(root = HERE) {
  const text = (name) => fs.readFileSync(path.join(root, name), 'utf8');
  const homes = new Map(['methods/', 'client/'].flatMap((room) => [...definitions(root, `gateway/${room}`, room)]));
  const ofMethods = methods(['method', 'extension'].map((name) => text(`include/taskgate/mcp/${name}_table.h`)).join(''), homes);
  const ofRoutes = routes(text('src/admin/routes_table.h'), definitions(root, 'admin'));
  return [
    'Methods, in `src/gateway/`:',
    table(['Method', '2025-11-25', '2026-07-28'], ofMethods.map(({ name, legacy, modern }) => [`\`${name}\``, legacy, modern])),
    "Requests of the operators' API, in `src/admin/`:",
    table(['Request', 'File'], ofRoutes.map(({ request, file }) => [`\`${request}\``, file])),
  ].join('\n\n');
}

/** The document's text with the lists of today between the markers. */
export function withLists(text, made) {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the document lacks "${BEGIN}" or "${END}"`);
  return `${text.slice(0, begin + BEGIN.length)}\n\n${made}\n\n${text.slice(end)}`;
}

function main(words) {
  const document = path.join(HERE, 'docs/architecture.md');
  if (words.length === 0) return console.log(lists());
  if (words.length === 1 && words[0] === '--write') return fs.writeFileSync(document, withLists(fs.readFileSync(document, 'utf8'), lists()));
  console.error('usage: scripts/places.mjs [--write]');
  process.exitCode = 2;
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
