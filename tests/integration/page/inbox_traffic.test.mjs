// The operators' inbox while many calls come and go: what the page asks the gateway for, and that its counts are true. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noBrowser as skip, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const TOOLS = Array.from({ length: 8 }, (_, n) => `deploy_${n}`);
const MANY = Array.from({ length: 53 }, (_, n) => `many_${n}`); // more than the page asks for first

async function stage(t, fill) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m'), upstream: { tools: [...TOOLS, ...MANY, 'last'].map((name) => tool(name)) } });
  const client = await all.connect();
  let made = 0; // they run out in the order in which they were made, two in one millisecond too
  const call = async (name, args = {}) => (await client.createTask(name, args, { ttl: 1_200_000 + made++ * 1000 })).taskId;
  const ids = await fill(call);
  const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${all.gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await page.locator('.link[data-state="live"]').waitFor();
  return { ...all, page, call, ids, counts: async () => Object.fromEntries((await all.admin.get('/api/v1/inbox')).json.rows.map(({ tool: name, count }) => [name, count])) };
}

test('a burst of events makes one question to the inbox at a time, and few in all; the counts are those of the gateway', { skip }, async (t) => {
  const { admin, page, call, ids, counts } = await stage(t, async (make) => {
    const made = [];
    for (const name of TOOLS) for (let n = 0; n < 3; n += 1) made.push(await make(name, { n }));
    return made;
  });
  await page.locator('.stack').nth(TOOLS.length - 1).waitFor();
  await page.locator('.stack .more').first().click(); // one is open, and has a table
  await page.locator('.stack tbody tr').nth(2).waitFor();
  await page.locator('h1').hover();
  await page.locator('#search').focus();
  let open;
  const gate = new Promise((resolve) => (open = resolve));
  const asked = { total: 0, now: 0, most: 0 };
  await page.route('**/api/v1/inbox?*', async (route) => {
    asked.total += 1;
    asked.now += 1;
    asked.most = Math.max(asked.most, asked.now);
    await gate;
    await route.fallback();
  });
  page.on('requestfinished', (request) => request.url().includes('/api/v1/inbox') && (asked.now -= 1));
  const first = page.waitForRequest('**/api/v1/inbox?*');
  for (const [at, name] of TOOLS.entries()) {
    await Promise.all(Array.from({ length: 5 }, (_, n) => call(name, { more: n })));
    await admin.reject(ids[3 * at + 1]);
  }
  await first;
  const last = await call('last');
  await page.locator(`[data-task-id="${last}"]`).waitFor(); // all events before it are on the page
  assert.deepEqual(asked, { total: 1, now: 1, most: 1 });
  open();
  const expected = Object.fromEntries([...TOOLS.map((name) => [name, 7]), ['last', 1]]);
  assert.deepEqual(await counts(), expected);
  for (const name of TOOLS) await page.locator('.stack').getByText(`${name} × 7`).waitFor();
  await until(async () => (await page.locator('#pending-count').textContent()) === String(7 * TOOLS.length + 1), 'the count of all');
  await until(async () => (await page.locator('.stack tbody tr').count()) === 7, 'the table of the open stack');
  assert.equal(asked.most, 1);
  assert.ok(asked.total <= 6, `${asked.total} requests`);
  assert.equal(await page.locator('#pending-more').isVisible(), false);
});

test('an arrangement of the list reads no call again', { skip }, async (t) => {
  const { page, ids, call } = await stage(t, async (make) => {
    const made = [];
    for (const name of TOOLS) made.push(await make(name, { name }));
    return made;
  });
  const row = (id) => page.locator(`[data-task-id="${id}"]`);
  await row(ids[2]).locator('.line').click();
  await row(ids[2]).locator('.arguments').waitFor();
  await page.evaluate(() => {
    const { fetch } = globalThis;
    globalThis.read = [];
    globalThis.fetch = (path, ...rest) => (path.startsWith('api/v1/tasks/') && globalThis.read.push(path), fetch(path, ...rest));
  });
  await page.locator('h1').hover();
  for (let n = 0; n < 3; n += 1) await page.keyboard.press('.');
  const late = await call('last');
  await row(late).waitFor();
  await page.keyboard.press('.');
  assert.deepEqual(await page.evaluate(() => globalThis.read), []);
  assert.equal(await row(ids[2]).locator('.arguments').isVisible(), true);
});

test('a whole task is read when its card opens, and for the keys of the first lines; an event reads none', { skip }, async (t) => {
  const LARGE = 'x'.repeat(70_000);
  const { page, ids, call } = await stage(t, async (make) => {
    const made = [];
    for (const name of MANY.slice(0, 12)) made.push(await make(name, { pad: LARGE, name }));
    for (const name of TOOLS) made.push(await make(name, { name }));
    return made;
  });
  const read = [];
  page.on('request', (request) => /\/api\/v1\/tasks\/[^/?]+$/.test(request.url()) && read.push(request.url().split('/').at(-1)));
  await page.reload();
  await page.locator('.link[data-state="live"]').waitFor();
  const row = (id) => page.locator(`[data-task-id="${id}"]`);
  await page.locator('#pending > li').nth(19).waitFor();
  const late = await call('last', { pad: LARGE });
  await row(late).waitFor();
  assert.deepEqual(read, [], 'large ones are not read for a key alone');
  await row(ids[5]).locator('.line').click();
  await row(ids[5]).locator('.arguments').waitFor();
  await row(ids[15]).locator('.line').click();
  await row(ids[15]).locator('.arguments').waitFor();
  const before = [...read];
  assert.deepEqual([before[0], before.filter((id) => id === ids[15]).length, before.filter((id) => ![ids[5], ...ids.slice(15, 18)].includes(id))], [ids[5], 1, []]);
  await row(ids[5]).locator('.line').click();
  await row(ids[5]).locator('.line').click();
  await row(ids[5]).locator('.arguments').waitFor();
  assert.deepEqual(read, before, 'nor twice');
});

test('with several search words the count is that of the calls that have each of them', { skip }, async (t) => {
  const { page } = await stage(t, async (make) => {
    await make('deploy_0', { to: 'staging', ticket: 'alpha' });
    await make('deploy_1', { to: 'production', ticket: 'alpha' });
    await make('deploy_2', { to: 'production', ticket: 'beta' });
    await make('deploy_3', { to: 'canary', ticket: 'alpha' });
    await make('deploy_3', { to: 'staging', ticket: 'alpha' });
  });
  const count = (text) => until(async () => (await page.locator('#pending-count').textContent()) === text, text);
  const shown = () => page.locator('#pending > li').count();
  await page.locator('#search').fill('alpha production');
  await count('1 of 5');
  await until(async () => (await shown()) === 1, 'one call');
  await page.locator('#search').fill('"production"');
  await count('2 of 5');
  await until(async () => (await shown()) === 2, 'what the gateway has found is shown');
  await page.locator('#search').fill('alpha beta');
  await count('0 of 5');
  assert.equal(await shown(), 0);
  await page.locator('#search').fill('staging DEPLOY alpha');
  await count('2 of 5');
  await until(async () => (await shown()) === 2, 'two calls');
  assert.equal(await page.locator('#pending-more').isVisible(), false);
});

test('a call that only the gateway finds comes at the end of the list while somebody is at it', { skip }, async (t) => {
  const { page, ids, call } = await stage(t, async (make) => [await make('deploy_0', { to: 'production' }), await make('deploy_1', { to: 'staging' })]);
  const row = (id) => page.locator(`#pending [data-task-id="${id}"]`);
  const count = (text) => until(async () => (await page.locator('#pending-count').textContent()) === text, text);
  await page.locator('#search').fill('"production"'); // a row has the quotation marks, a task has none
  await count('1 of 2');
  await row(ids[0]).locator('.tool').hover();
  const late = await call('deploy_2', { to: 'production' });
  await row(late).waitFor();
  assert.deepEqual(await page.locator('#pending > li').evaluateAll((all) => all.map(({ dataset }) => dataset.taskId)), [ids[0], late]);
  assert.equal(await page.locator('#arrange').textContent(), 'Arrange: 1 new');
  await count('2 of 3');
  await page.locator('h1').hover();
  await page.locator('#arrange').waitFor({ state: 'hidden' });
});

test('an answer to the search moves nothing under a pointer that has come to the list meanwhile', { skip }, async (t) => {
  const { page, ids } = await stage(t, async (make) => [await make('deploy_0', { to: 'production' }), await make('deploy_1', { to: 'the "production" of today' }), await make('deploy_2', { to: 'staging' })]);
  const shown = () => page.locator('#pending > li').evaluateAll((all) => all.map(({ dataset }) => dataset.taskId));
  let open;
  const gate = new Promise((resolve) => (open = resolve));
  await page.route('**/api/v1/inbox?*', async (route) => {
    await gate;
    await route.fallback();
  });
  const asked = page.waitForRequest('**/api/v1/inbox?*');
  await page.locator('#search').fill('"production'); // the first one has the quotation mark only in what the gateway searches
  await asked;
  assert.deepEqual(await shown(), [ids[1]]);
  await page.locator('#pending .tool').hover();
  open();
  await page.locator('#arrange').getByText('Arrange: 1 new').waitFor();
  assert.deepEqual(await shown(), [ids[1], ids[0]]);
  await page.locator('h1').hover();
  await page.locator('#arrange').waitFor({ state: 'hidden' });
  assert.deepEqual(await shown(), ids.slice(0, 2));
});

test('a call that comes while the search asks the gateway stays, and is counted', { skip }, async (t) => {
  const { page, call } = await stage(t, (make) => make('last', { n: 0 }));
  const late = [];
  let left = 3;
  const deliver = async (route) => {
    if (left === 0) return route.fallback();
    left -= 1;
    const answer = await route.fetch();
    const name = `deploy_${late.length}`;
    late.push(await call(name, { late: true }));
    await page.locator(`[data-task-id="${late.at(-1)}"]`).waitFor(); // its event is here before the answer
    await route.fulfill({ response: answer });
  };
  await page.route(({ pathname, searchParams }) => pathname.endsWith('/api/v1/inbox') && searchParams.has('q'), deliver);
  await page.locator('#search').fill('t');
  await until(async () => late.length === 3 && (await page.locator('#pending-count').textContent()) === '4 of 4', 'the count');
  for (const id of late) await page.locator(`[data-task-id="${id}"]`).waitFor();
  assert.equal(await page.locator('#pending-more').isVisible(), false);
  await page.unrouteAll({ behavior: 'wait' });
});

test('a count that the gateway does not answer is asked for again', { skip }, async (t) => {
  const { page, admin, ids, call } = await stage(t, async (make) => {
    const made = [];
    for (let n = 0; n < 3; n += 1) made.push(await make('last', { n }));
    return made;
  });
  await page.locator('.stack').getByText('last × 3').waitFor();
  let refused = 0;
  await page.route('**/api/v1/inbox?*', async (route) => {
    refused += 1;
    if (refused === 1) await route.fulfill({ status: 503, json: { error: { code: 'unavailable', message: 'the store is busy' } } });
    else await route.fallback();
  });
  await admin.reject(ids[2]);
  await page.locator('.stack').getByText('last × 2').waitFor();
  assert.equal(refused, 2);
  const late = await call('deploy_0');
  await page.locator(`[data-task-id="${late}"]`).waitFor();
  assert.equal(await page.locator('#pending-count').textContent(), '3');
});

test('a search for words beyond ASCII finds them as they are written', { skip }, async (t) => {
  const { page, ids } = await stage(t, async (make) => [await make('deploy_0', { title: 'Ärger in Žilina' }), await make('deploy_1', { title: 'none' })]);
  await page.locator('#search').fill('Ärger\u00a0 Žilina');
  await until(async () => (await page.locator('#pending-count').textContent()) === '1 of 2', 'the count');
  assert.equal(await page.locator(`[data-task-id="${ids[0]}"]`).isVisible(), true);
  assert.equal(await page.locator(`[data-task-id="${ids[1]}"]`).count(), 0);
});

test('an answer that comes after somebody has signed out is not shown', { skip }, async (t) => {
  const { page } = await stage(t, (make) => make('last', { secret: 'of the one who has gone' }));
  let open;
  const gate = new Promise((resolve) => (open = resolve));
  await page.route('**/api/v1/inbox?*', async (route) => {
    const answer = await route.fetch();
    await gate;
    await route.fulfill({ response: answer });
  });
  const asked = page.waitForRequest('**/api/v1/inbox?*');
  const answered = page.waitForEvent('requestfinished', (request) => request.url().includes('/api/v1/inbox'));
  await page.locator('#search').fill('last');
  await asked;
  await page.locator('#sign-out').click();
  await page.locator('#sign-in').waitFor();
  open();
  await answered;
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
  assert.equal(await page.locator('#pending > li').count(), 0);
});

test('a call that ends while the rows behind the first ones are on their way is not put back', { skip }, async (t) => {
  const { page, admin } = await stage(t, async (make) => {
    for (const name of MANY) await make(name);
  });
  await page.locator('#pending > li').nth(MANY.length - 1).waitFor();
  const last = await page.locator('#pending > li').last().getAttribute('data-task-id');
  await page.route(({ pathname, searchParams }) => pathname.endsWith('/api/v1/inbox') && searchParams.has('cursor'), async (route) => {
    const answer = await route.fetch();
    await admin.reject(last);
    await page.locator(`#decided [data-task-id="${last}"]`).waitFor();
    await route.fulfill({ response: answer });
  });
  await page.reload();
  await until(async () => (await page.locator('#pending > li').count()) === MANY.length - 1, 'the others');
  await until(async () => (await page.locator('#pending-count').textContent()) === String(MANY.length - 1), 'the count');
  assert.equal(await page.locator(`#pending [data-task-id="${last}"]`).count(), 0);
  assert.equal(await page.locator('#pending-more').isVisible(), false);
});
