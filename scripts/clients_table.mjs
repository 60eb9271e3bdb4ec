#!/usr/bin/env node
// The table of libraries in docs/clients.md, made from the file that their tests read. --write puts it there.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const page = path.join(root, 'docs/clients.md');
const MARKS = /(<!-- libraries: made by scripts\/clients_table\.mjs --write -->\n).*?(\n<!-- libraries: end -->)/s;

export function table() {
  const rows = JSON.parse(fs.readFileSync(path.join(root, 'tests/clients/libraries.json'), 'utf8'));
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [
    line(['Library', 'Package', 'Version', 'Era', 'Tried', 'Own limit of a call', 'In its entry of `clients`']),
    '|---|---|---|---|---|---|---|',
    ...rows.map((row) => line([row.name, `\`${row.package}\``, row.version, row.era, row.tried, row.limit, row.set ? `\`${row.set}\`` : 'nothing'])),
  ].join('\n');
}

export const written = () => fs.readFileSync(page, 'utf8').replace(MARKS, (_, begin, end) => `${begin}\n${table()}\n${end}`);

if (process.argv.includes('--write')) fs.writeFileSync(page, written());
