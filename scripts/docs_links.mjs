// Walks a static site: each link and anchor leads somewhere on it, and no page loads anything from another host.
// scripts/docs_links.mjs FOLDER
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const unescaped = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

/** {findings, pages, links}: the findings are sentences. */
export function walk(folder) {
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
  const texts = new Map(pages.map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]));
  const ids = new Map([...texts].map(([name, text]) => [name, new Set([...text.matchAll(/<[a-z][^>]*? id="([^"]+)"/g)].map(([, id]) => unescaped(id)))]));
  const findings = [];
  let links = 0;
  for (const [name, text] of texts) {
    for (const [tag, element, , target] of text.matchAll(/<([a-z]+)\b[^>]*? (href|src|srcset|action)="?([^"\s>]*)"?[^>]*>/g)) {
      links++;
      const url = unescaped(target);
      const isLoaded = element !== 'a' && !/rel="?(canonical|next|prev)/.test(tag);
      if (/^(https?:)?\/\//.test(url)) {
        if (isLoaded) findings.push(`${name} loads ${url}`);
        continue;
      }
      if (/^(mailto|data|javascript):/.test(url)) continue;
      const [file, anchor] = url.split('#');
      // The page for a path that is not there begins with the root.
      const at = file === '' || file === '.' ? name : file.startsWith('/') ? file.slice(1) || 'index.html' : path.normalize(path.join(path.dirname(name), decodeURI(file.split('?')[0])));
      if (!existsSync(path.join(folder, at)) || !statSync(path.join(folder, at)).isFile()) findings.push(`${name}: ${url} leads nowhere`);
      else if (anchor && !ids.get(at)?.has(decodeURIComponent(anchor))) findings.push(`${name}: ${at} has no anchor ${anchor}`);
    }
  }
  return { findings, pages, links };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { findings, pages, links } = walk(process.argv[2]);
  for (const finding of findings) console.error(finding);
  console.log(`${pages.length} pages, ${links} links`);
  process.exitCode = findings.length > 0 ? 1 : 0;
}
