// scripts/docs: the documents as a site, which is whole by itself: each link leads somewhere, and nothing comes from another host.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { walk } from '../../scripts/docs_links.mjs';
import { files, read, root } from '../docs/lib/documents.mjs';
import { browser, noBrowser } from './lib/browser.mjs';
import { defer } from './lib/lifetime.mjs';
import { until } from './lib/wait.mjs';

const has = (program) => !spawnSync(program, ['--version']).error;
const mermaid = `subprojects/packagecache/${/^mermaid='(.*)'$/m.exec(read('scripts/docs'))[1]}.tgz`;
const skip = has('mkdocs') ? false : 'mkdocs is missing: apt-get install mkdocs-material';

const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-site-'));
const site = path.join(folder, 'site');
let server, origin;
before(async () => {
  if (skip) return;
  const { status, stdout, stderr } = spawnSync(path.join(root, 'scripts/docs'), ['--out', site], { encoding: 'utf8', env: { ...process.env, TASKGATE_SKIP_INSTALL: '1' }, timeout: 120_000 });
  assert.equal(status, 0, `${stdout}${stderr}${existsSync(path.join(root, mermaid)) ? '' : `\n${mermaid} is not there; the test fetches it by npm`}`);
  const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.svg': 'image/svg+xml' };
  server = http.createServer((request, response) => {
    const file = path.join(site, decodeURI(new URL(request.url, 'http://site').pathname).replace(/\/$/, '/index.html'));
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[path.extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server?.close();
  rmSync(folder, { recursive: true });
});

/** The ids of a page of the site. */
const ids = (page) => new Set([...readFileSync(path.join(site, page), 'utf8').matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));

test('each document is a page, and each link, anchor and loaded file of the site is there', { skip }, () => {
  const { findings, pages, links } = walk(site);
  assert.deepEqual(findings, []);
  for (const name of files('.md').filter((file) => /^docs\/[^/]+\.md$/.test(file))) assert.ok(pages.includes(name.slice(5).replace(/\.md$/, '.html')), name);
  assert.ok(links > 2000, `${links} links`);
});

test('a dead link, a dead anchor and a file of another host are found', { skip }, () => {
  const broken = path.join(folder, 'broken');
  cpSync(site, broken, { recursive: true });
  const page = path.join(broken, 'errors.html');
  writeFileSync(page, readFileSync(page, 'utf8').replace('</article>', '<a href="nothing.html">a</a><a href="agents.html#nothing">b</a><script src="https://unpkg.com/a.js"></script></article>'));
  assert.deepEqual(walk(broken).findings, ['errors.html: nothing.html leads nowhere', 'errors.html: agents.html has no anchor nothing', 'errors.html loads https://unpkg.com/a.js']);
});

test('a folder that is no site is not replaced', () => {
  const other = mkdtempSync(path.join(folder, 'other-'));
  writeFileSync(path.join(other, 'a'), 'mine');
  const { status, stderr } = spawnSync(path.join(root, 'scripts/docs'), ['--out', other], { encoding: 'utf8' });
  assert.deepEqual([status, stderr], [1, `docs: ${other} is neither empty nor a site; name another folder\n`]);
  assert.equal(readFileSync(path.join(other, 'a'), 'utf8'), 'mine');
});

test('runbook_url of each alarm leads to its place on the site', { skip }, () => {
  const base = /^site_url: (.*)$/m.exec(read('docs/site.yml'))[1];
  const alarms = [...read('deploy/monitoring/alerts.yaml').matchAll(/- alert: (\w+)\n(?:(?!- alert:)[^])*?runbook_url: (\S+)\n/g)];
  assert.ok(alarms.length >= 15, `${alarms.length} alarms`);
  for (const [, name, url] of alarms) {
    assert.ok(url.startsWith(base), url);
    const [page, anchor] = url.slice(base.length).split('#');
    assert.equal(anchor, name.toLowerCase());
    assert.ok(ids(page).has(anchor), url);
  }
});

test('each error has an anchor of its own', { skip }, () => {
  const types = [...read('docs/errors.md').matchAll(/^- (?:<a id="([^"]+)"><\/a>)?\*\*-\d+\*\* `(\w+)`/gm)];
  assert.ok(types.length >= 36, `${types.length} errors`);
  const seen = new Map();
  for (const [, id, type] of types) {
    const count = (seen.get(type) ?? 0) + 1;
    seen.set(type, count);
    assert.equal(id, count === 1 ? type : `${type}-${count}`);
    assert.ok(ids('errors.html').has(id), id);
  }
});

test('in a browser that reaches no other host it has diagrams, search, dark and light, copy buttons and its version', { skip: skip || noBrowser }, async (t) => {
  const context = await (await browser()).newContext({ colorScheme: 'light' });
  defer(t, () => context.close());
  const faults = [];
  await context.route((url) => url.origin !== origin, (route) => {
    faults.push(route.request().url());
    return route.abort();
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('response', (response) => response.status() >= 400 && faults.push(`${response.status()} ${response.url()}`));

  await page.goto(`${origin}/architecture.html`);
  const diagrams = page.locator('div.mermaid');
  await diagrams.nth(2).waitFor();
  // The theme draws them in a closed shadow tree, which has a size alone.
  for (let i = 0; i < 3; i++) await page.waitForFunction((index) => document.querySelectorAll('div.mermaid')[index].getBoundingClientRect().height > 100, i);

  await page.goto(`${origin}/operating.html`);
  const version = /^ {2}version: '(.*)',/m.exec(read('meson.build'))[1];
  assert.match(await page.locator('footer').innerText(), new RegExp(`taskgate ${version.replaceAll('.', '\\.')}`));
  // A block gets its button when it comes into view.
  const block = page.locator('pre', { has: page.locator('code') }).first();
  await block.scrollIntoViewIfNeeded();
  await block.locator('button.md-clipboard').waitFor({ state: 'attached' });
  const scheme = () => page.locator('body').getAttribute('data-md-color-scheme');
  assert.equal(await scheme(), 'default');
  await page.locator('label[title="Dark"]').click();
  assert.equal(await scheme(), 'slate');
  for (const role of ['Use', 'Operate', 'Develop']) assert.equal(await page.locator('.md-tabs__link', { hasText: role }).count(), 1, role);

  // A key that comes before the theme has read its index of the words finds nothing.
  const words = page.locator('.md-search__input').first();
  const first = page.locator('.md-search-result__item a').first();
  await until(async () => {
    await words.fill('pending_per_principa');
    await words.press('l');
    await first.waitFor({ timeout: 2_000 });
    return true;
  }, 'a page that the search finds', { deadline: 60_000 });
  assert.match(await first.getAttribute('href'), /configuration\.html|operating\.html|security\.html/);
  assert.deepEqual(faults, []);
});
