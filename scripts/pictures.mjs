#!/usr/bin/env node
// The pictures of the documents, made from the running product: the page, the terminal, the message in Slack.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const USAGE = `Usage: scripts/pictures.mjs [FOLDER]

Makes the pictures in docs/pictures, or in FOLDER, from the running product:
the page at 1,440, 1,024 and 390 pixels, light and dark, what a terminal shows,
and the message in Slack. Ids and times, which differ from run to run, are the
same in all of them. Needs a built gateway (TASKGATE_BIN), Chromium and the
packages of tests/integration.
`;

const CHROMIUM = process.env.TASKGATE_CHROMIUM ?? '/usr/bin/chromium';
const WIDTHS = [[1440, 1100], [1024, 900], [390, 844]];
const SCHEMES = ['light', 'dark'];
export const PICTURES = [...WIDTHS.flatMap(([width]) => SCHEMES.map((scheme) => `page-${width}-${scheme}.png`)), 'terminal-show.png', 'terminal-next.png', 'slack.png'];

/** Why there can be no pictures here; false where there can. */
export const missing = !fs.existsSync(CHROMIUM)
  ? `the browser ${CHROMIUM} is missing: apt-get install chromium, or set TASKGATE_CHROMIUM`
  : !fs.existsSync(path.join(root, 'tests/integration/node_modules/playwright-core'))
    ? 'npm ci --prefix tests/integration comes first'
    : spawnSync('sh', ['-c', 'command -v script']).status !== 0 && 'script is not here: apt-get install bsdutils';

// ---- the same in every run ----

const ID = 'tg_6b3b5ab1-8675-425a-bc83-7dc96d01aff5';
const SAME = [
  [/tg_[0-9a-f]{8}-[0-9a-f-]{27}/g, ID],
  [/\(session [0-9a-f]{12}\)/g, '(session bca3b95f66d9)'],
  [/\b\d+m \d+s\b/g, '29m 41s'],
  [/\b\d+ min \d+ s\b/g, '29 min 41 s'],
  [/\b\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d:\d\d\b/g, '1 Mar 2026, 08:35:54'],
];
const DIGESTS = ['80b42db3c1ef6e64d99b93e627ffa841e4530b4229bfe987eadc05ac4aac6955', '1f5a9f0c5a1f3a2b8f1b6c1e2d4a9b7c3e5f60718293a4b5c6d7e8f901234567'];
const BEGIN = Date.parse('2026-03-01T08:35:54Z');

/** The first digest and time of the text are given ones, and the others differ from them as before. */
function same(text) {
  const digests = [...new Set(text.match(/\b[0-9a-f]{64}\b/g))];
  const time = /\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
  const at = (word) => Math.floor(Date.parse(word.replace(' ', 'T')) / 1000) * 1000;
  const first = Math.min(...(text.match(time) ?? []).map(at));
  const moved = text.replace(/\b[0-9a-f]{64}\b/g, (word) => DIGESTS[digests.indexOf(word) % 2]).replace(time, (word) => new Date(BEGIN + at(word) - first).toISOString().replace('.000', '').replace('T', word[10]));
  return SAME.reduce((all, [pattern, words]) => all.replace(pattern, words), moved);
}

/** In the page: the same in all of its texts, once and for all. */
function holdStill(rules) {
  for (let timer = setTimeout(() => {}); timer > 0; timer--) clearTimeout(timer); // also those of setInterval()
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = all.nextNode(); node; node = all.nextNode()) for (const [source, flags, words] of rules) node.data = node.data.replace(new RegExp(source, flags), words);
}

// ---- the product ----

const RULES = [
  { match: 'delete_database', action: 'approve', approval: 'production', reason: 'required', description: 'Databases hold what customers wrote.', show: { summary: 'Deletes the database {name}', highlight: ['name'], risk: 'high' } },
  { match: 'refund', action: 'approve', approval: 'default', show: { summary: 'Pays {amount} back to {customer}', highlight: ['amount', 'customer'] } },
  { match: '*', action: 'approve', approval: 'default' },
];
const PEOPLE = { people: [{ name: 'alice', groups: ['dba'], slack: 'U0ALICE' }, { name: 'bob', groups: ['security'] }], tokens: [{ name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver', 'auditor'] }, { name: 'bob-cli', person: 'bob', token_env: 'BOB', roles: ['approver'] }] };
const APPROVAL = { default: { timeout: '30m' }, production: { timeout: '30m', approvers: { groups: ['dba', 'security'] }, quorum: { dba: 1, security: 1 } } };

/** A gateway with calls that wait, and one that is done; `t` ends it. */
async function stage(t) {
  const lib = (name) => import(pathToFileURL(path.join(root, 'tests/integration/lib', name)));
  const [{ scene }, { startSlack, SIGNING_SECRET, TOKEN }, { tool }] = [await lib('scene.mjs'), await lib('slack.mjs'), await lib('upstream.mjs')];
  const slack = await startSlack(t);
  const schema = (...names) => ({ inputSchema: { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])) } });
  const all = await scene(t, {
    rules: RULES,
    approval: APPROVAL,
    upstream: { tools: [tool('delete_database', { description: 'Deletes a database, with all that is in it.', annotations: { destructiveHint: true }, ...schema('name', 'backup') }), tool('refund', schema('amount', 'customer')), tool('restart', schema('host')), tool('send_mail', schema('to', 'text'))] },
    env: { ALICE: 'token-of-alice-0123456789', BOB: 'token-of-bob-012345678901', SLACK_TOKEN: TOKEN, SLACK_SIGNING: SIGNING_SECRET },
    config: { admin: { ...PEOPLE, public_url: 'https://gate.example' }, notify: [{ id: 'chat', type: 'slack', url: slack.url, channel: '#approvals', token_env: 'SLACK_TOKEN', signing_secret_env: 'SLACK_SIGNING', include_arguments: true }] },
  });
  const client = await all.connect({ name: 'release-agent' });
  await client.result('tools/list');
  const call = async (name, args) => (await client.createTask(name, args, { ttl: 1_800_000 })).taskId;
  const [done, refused] = [await call('send_mail', { to: 'team@example.com', text: 'The release is out.' }), await call('restart', { host: 'db-0' })];
  await all.admin.approve(done);
  await all.admin.inState(done, 'completed');
  await all.admin.reject(refused, 'not before the backup');
  const id = await call('delete_database', { name: 'staging', backup: false, taskgate_reason: 'Nobody has used it since the release of May.' });
  await call('refund', { amount: 129.5, customer: 'Weber & Sons' });
  for (let i = 1; i <= 12; i++) await call('restart', { host: `web-${i}` });
  await call('send_mail', { to: 'c\u0435o@example.com', text: `Please look at this.${'\n'.repeat(60)}And pay it today.` });
  return { ...all, id, slack };
}

// ---- the page ----

/** On a desk with a call that is open, elsewhere the list. */
async function openPage(browser, { gateway, id }, [width, height], colorScheme) {
  const [isPhone, isDesk] = [width < 500, width > 1200];
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC', ...(isPhone ? { hasTouch: true, isMobile: true } : {}) });
  const page = await context.newPage();
  await page.goto(`${gateway.adminUrl}/#token=token-of-alice-0123456789`);
  const row = page.locator(`#pending [data-task-id="${id}"]`);
  await row.waitFor();
  if (isDesk) await row.locator('.line').click();
  if (isDesk) await row.locator('.past:not([hidden])').waitFor();
  await page.locator('#decided [data-task-id]').nth(1).waitFor();
  await page.evaluate(holdStill, SAME.map(([pattern, words]) => [pattern.source, pattern.flags, words]));
  return { context, page };
}

async function takePage(browser, all, folder) {
  for (const size of WIDTHS) {
    for (const scheme of SCHEMES) {
      const { context, page } = await openPage(browser, all, size, scheme);
      await page.screenshot({ path: path.join(folder, `page-${size[0]}-${scheme}.png`), animations: 'disabled', caret: 'hide' });
      await context.close();
    }
  }
}

// ---- texts ----

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const SHADES = { 1: 'font-weight: bold', 2: 'opacity: .6', 31: 'color: #f47067', 32: 'color: #57ab5a', 33: 'color: #c69026', 36: 'color: #39c5cf' };

/** A terminal, with the colours that the command line uses. */
function terminalHtml(text) {
  const spans = escaped(text).split(/\u001b\[(\d+)m/);
  let html = spans[0];
  for (let i = 1; i < spans.length; i += 2) html += `</span><span style="${SHADES[spans[i]] ?? ''}">${spans[i + 1]}`;
  return `<pre style="margin: 0; padding: 16px 20px; background: #22272e; color: #cdd9e5; font: 14px/1.4 'DejaVu Sans Mono', monospace; white-space: pre-wrap"><span>${html}</span></pre>`;
}

/** The command in a terminal of 100 columns; each of `keys` is [what it waits for, what is pressed then]. */
function inTerminal({ gateway }, words, keys = []) {
  const { BINARY } = gateway;
  const child = spawn('script', ['-qec', `stty cols 100 rows 60; ${BINARY} ${words.join(' ')}`, '/dev/null'], {
    env: { ...process.env, NO_COLOR: '', TERM: 'xterm', THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: 'token-of-alice-0123456789' },
  });
  let output = '';
  const rest = [...keys];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    if (rest.length > 0 && output.includes(rest[0][0])) child.stdin.write(rest.shift()[1]);
  });
  return new Promise((resolve, reject) => child.on('close', (code) => (code === 0 ? resolve(output.replaceAll('\r', '')) : reject(new Error(`taskgate ${words.join(' ')}: ${code}\n${output}`)))));
}

/** The parts of a message as Slack lays them out; *bold* and <address|words> are Slack's own. */
function slackHtml(message) {
  const marked = (text) => text.replaceAll('&amp;', '&').split(/(\*[^*]+\*|<[^|>]+\|[^>]+>)/).map((part) => (part.startsWith('*') ? `<b>${escaped(part.slice(1, -1))}</b>` : part.startsWith('<') ? `<a style="color: #1264a3">${escaped(part.replace(/^[^|]*\||>$/g, ''))}</a>` : escaped(part))).join('');
  const button = ({ text, style }) => `<span style="display: inline-block; padding: 5px 12px; margin-right: 8px; border-radius: 4px; font-weight: bold; color: #fff; background: ${style === 'danger' ? '#e01e5a' : '#007a5a'}">${escaped(text.text)}</span>`;
  const block = (one) => (one.type === 'actions' ? one.elements.map(button).join('') : one.text.type === 'mrkdwn' ? marked(one.text.text) : escaped(one.text.text));
  const parts = message.blocks.map((one) => `<div style="margin: 6px 0; white-space: pre-wrap">${block(one)}</div>`).join('');
  return `<div style="padding: 14px 20px; background: #fff; color: #1d1c1d; font: 15px/1.46 Lato, 'DejaVu Sans', sans-serif"><b>taskgate</b> <span style="background: #e8e8e8; font-size: 10px; padding: 1px 3px">APP</span>${parts}</div>`;
}

async function takeText(browser, html, file, width) {
  const page = await browser.newPage({ viewport: { width, height: 100 } });
  await page.setContent(`<body style="margin: 0">${same(html)}`);
  await page.locator('body > *').screenshot({ path: file });
  await page.close();
}

async function takeTexts(browser, all, folder) {
  const at = (name) => path.join(folder, name);
  await takeText(browser, terminalHtml(`$ taskgate tasks show ${ID}\n${await inTerminal(all, ['tasks', 'show', all.id])}`), at('terminal-show.png'), 900);
  await takeText(browser, terminalHtml(`$ taskgate tasks next\n${await inTerminal(all, ['tasks', 'next'], [['[q]uit', 'q']])}`), at('terminal-next.png'), 900);
  await takeText(browser, slackHtml(await all.slack.messageOf(all.id)), at('slack.png'), 720);
}

// ---- the run ----

/** Makes them all in the folder. */
export async function take(folder) {
  const { chromium } = createRequire(path.join(root, 'tests/integration/package.json'))('playwright-core');
  const { BINARY } = await import(pathToFileURL(path.join(root, 'tests/integration/lib/gateway.mjs')));
  const cleanups = [];
  const t = { after: (cleanup) => cleanups.unshift(cleanup) };
  fs.mkdirSync(folder, { recursive: true });
  try {
    const all = await stage(t);
    all.gateway.BINARY = BINARY;
    const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none', '--num-raster-threads=1'] });
    t.after(() => browser.close());
    await takePage(browser, all, folder);
    await takeTexts(browser, all, folder);
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

async function main(args) {
  if (args.includes('--help') || args.includes('-h')) return void process.stdout.write(USAGE);
  if (args.length > 1 || args[0]?.startsWith('-')) {
    process.stderr.write(USAGE);
    process.exit(2);
  }
  if (missing) throw new Error(missing);
  await take(path.resolve(args[0] ?? path.join(root, 'docs/pictures')));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(`pictures: ${error.message}`);
    process.exit(1);
  });
}
