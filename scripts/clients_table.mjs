#!/usr/bin/env node
// The table of libraries in docs/clients.md, made from the file that their tests read. --write puts it there.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const page = path.join(root, 'docs/clients.md');
const marks = (name) => new RegExp(`(<!-- ${name}: made by scripts/clients_table\\.mjs --write -->\n).*?(\n<!-- ${name}: end -->)`, 's');
const rowsOf = (name) => JSON.parse(fs.readFileSync(path.join(root, `tests/clients/${name}.json`), 'utf8'));
const line = (cells) => `| ${cells.join(' | ')} |`;

export const tables = { libraries, servers };

function libraries() {
  const rows = rowsOf('libraries');
  return [
    line(['Library', 'Package', 'Version', 'Era', 'Tried', 'Own limit of a call', 'Sends when it gives up', 'Its model sees of a refusal', 'Configuration']),
    line(Array(9).fill('---')),
    ...rows.map((row) => line([row.name, code(row.package), row.version, row.era, row.tried, row.limit, sent(row), code(row.refusal), configured(row)])),
  ].join('\n');
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
  return [
    line(['Package', 'Version', 'From', 'Tried', 'Serves HTTP']),
    line(Array(5).fill('---')),
    ...rowsOf('servers').map((row) => line([code(row.package), row.version, row.from, row.tried, row.wrapper ? `by ${code(row.wrapper)}` : 'itself'])),
  ].join('\n');
}

/** The page with each table put between its marks. */
export const written = () =>
  Object.entries(tables).reduce((text, [name, table]) => text.replace(marks(name), (_, begin, end) => `${begin}\n${table()}\n${end}`), fs.readFileSync(page, 'utf8'));

if (process.argv.includes('--write')) fs.writeFileSync(page, written());
