// Lays out the documents as mkdocs reads them: scripts/docs_source.mjs FOLDER VERSION
//
// The documents link to each other as the repository has them. Files outside docs/ get a page of their own, and links
// follow. Python's Markdown wants four blanks where GitHub takes two.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const [folder, version] = process.argv.slice(2);

/** Pages outside docs/, by their files. */
const moved = { 'README.md': 'index.md', 'CHANGELOG.md': 'changes.md', 'SECURITY.md': 'reporting.md', 'examples/README.md': 'example-server.md', 'tests/integration/README.md': 'integration-tests.md', 'deploy/helm/taskgate/README.md': 'chart.md' };

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' }).split('\n');
/** The place of a file on the site. */
const place = (file) => moved[file] ?? (file.startsWith('docs/') ? file.slice('docs/'.length) : `files/${file}`);

const written = new Set();
function add(file) {
  const target = path.join(folder, 'docs', place(file));
  if (written.has(target)) return;
  written.add(target);
  mkdirSync(path.dirname(target), { recursive: true });
  if (file.endsWith('.md')) writeFileSync(target, page(file));
  else cpSync(path.join(root, file), target, { dereference: true });
}

function page(file) {
  let isCode = false;
  const follow = (whole, before, link, anchor = '') => {
    if (/^[a-z]+:/.test(link) || link === '') return whole;
    const named = path.normalize(path.join(path.dirname(file), link));
    if (!files.includes(named)) throw new Error(`${file}: the link ${link} leads to no file of the repository`);
    add(named);
    return `${before}(${path.relative(path.dirname(place(file)), place(named))}${anchor})`;
  };
  const lines = readFileSync(path.join(root, file), 'utf8').split('\n').map((line) => {
    if (line.startsWith('```')) isCode = !isCode;
    if (isCode) return line;
    return line.replace(/^ +/, (blanks) => blanks + blanks);
  });
  // A link may be cut by the end of a line; code has none.
  return lines.join('\n').split(/^(```[^]*?^```$)/m).map((part) => (part.startsWith('```') ? part : part.replace(/(\])\(([^)#\s]*)(#[^)\s]*)?\)/g, follow))).join('');
}

for (const file of files.filter((name) => /^docs\/.*\.(md|png|webp|svg|yaml|json)$/.test(name))) add(file);
for (const file of Object.keys(moved)) if (files.includes(file)) add(file);

const settings = readFileSync(path.join(root, 'docs/site.yml'), 'utf8');
const named = new Set([...settings.matchAll(/^ +- (?:\w+: )?([\w/-]+\.md)$/gm)].map(([, name]) => name));
const missing = [...written].map((target) => path.relative(path.join(folder, 'docs'), target)).filter((name) => name.endsWith('.md') && !name.startsWith('files/') && !named.has(name));
if (missing.length > 0) throw new Error(`docs/site.yml: the navigation lacks ${missing.join(', ')}`);
writeFileSync(path.join(folder, 'mkdocs.yml'), settings.replace(/^site_name: .*$/m, (line) => `${line} ${version}\ncopyright: taskgate ${version}`));
