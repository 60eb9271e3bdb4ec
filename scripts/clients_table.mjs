#!/usr/bin/env node
// The tables of libraries and servers in docs/clients.md, made from the files that their tests read. --write puts them
// there.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const page = path.join(root, 'docs/clients.md');
const marks = (name) => new RegExp(`(<!-- ${name}: made by scripts/clients_table\\.mjs --write -->\n).*?(\n<!-- ${name}: end -->)`, 's');
const rowsOf = (name) => JSON.parse(fs.readFileSync(path.join(root, `tests/clients/${name}.json`), 'utf8'));
const line = (cells) => `| ${cells.join(' | ')} |`;

export const tables = { libraries, servers };

const table = (heads, rows) => [line(heads), line(Array(heads.length).fill('---')), ...rows.map(line)].join('\n');

/* Two tables and a list, because a row of a table cannot be wrapped. */
function libraries() {
  const rows = rowsOf('libraries');
  return [
    table(['Library', 'Package', 'Version', 'Era', 'Tried', 'Own limit of a call'], rows.map((row) => [row.name, code(row.package), row.version, row.era, row.tried, row.limit])),
    table(['Library', 'Sends when it gives up', 'Configuration'], rows.map((row) => [row.name, sent(row), configured(row)])),
    'Its model sees of a refusal:',
    seen(rows).join('\n'),
  ].join('\n\n');
}

/** The words that models see, with the libraries that show it so: an item each, in lines of 120 columns. */
function seen(rows) {
  const names = new Map();
  for (const { refusal, name } of rows) names.set(refusal, [...(names.get(refusal) ?? []), name]);
  return [...names].map(([refusal, by]) => wrapped(`- ${code(refusal)}: ${by.join(', ')}`));
}

function wrapped(text) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const longer = lines.at(-1) === '' ? word : `${lines.at(-1)} ${word}`;
    if (longer.length <= 120) lines[lines.length - 1] = longer;
    else lines.push(`  ${word}`);
  }
  return lines.join('\n');
}

const code = (text) => `\`${text.replaceAll('|', '\\|')}\``;

const sent = ({ gives_up: what }) => (what.startsWith('notifications/') ? code(what) : what || 'never gives up');

/** The lines that a library needs: of its entry of `clients`, and of the source. */
function configured({ set, source, slow }) {
  const keys = (of) => Object.entries(of ?? {}).map(([key, value]) => code(`${key}: ${value}`));
  const lines = [...(set ? [`${code(set)} in \`clients\``] : []), ...[...keys(source), ...keys(slow)].map((one) => `${one} in \`sources\``)];
  return lines.join(', ') || 'nothing';
}

function servers() {
  const rows = rowsOf('servers');
  return table(['Package', 'Version', 'From', 'Tried', 'Serves HTTP'], rows.map((row) => [code(row.package), row.version, row.from, row.tried, row.wrapper ? `by ${code(row.wrapper)}` : 'itself']));
}

/** The page with each table put between its marks. */
export const written = () =>
  Object.entries(tables).reduce((text, [name, table]) => text.replace(marks(name), (_, begin, end) => `${begin}\n${table()}\n${end}`), fs.readFileSync(page, 'utf8'));

if (process.argv.includes('--write')) fs.writeFileSync(page, written());
