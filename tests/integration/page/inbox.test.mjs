// The operators' page as an inbox, in a real browser: lines, groups, search, keys, selection, links. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picture, violations } from '../lib/axe.mjs';
import { answered, noBrowser as skip, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const DESK = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

const TOOLS = ['delete_user', 'pay', 'send_mail', 'drop_table', 'restart', 'deploy'];

const workflows = (more) => ({ ...workflow('30m', more), urgent: workflow('5m').default });

/** A gateway with two workflows, and its page. `fill(client)` makes the calls before it is opened. */
async function stage(t, { options = { viewport: DESK }, hash = '', fill = async () => {}, ...more } = {}) {
  const all = await scene(t, {
    rules: [{ match: 'pay', action: 'approve', approval: 'urgent' }, { match: '*', action: 'approve', approval: 'default' }],
    approval: workflows(),
    upstream: { tools: TOOLS.map((name) => tool(name)) },
    ...more,
  });
  const client = await all.connect();
  const filled = await fill(client);
  const page = await openPage(t, all.gateway.adminUrl, options);
  await page.goto(`${all.gateway.adminUrl}/#token=${ADMIN_TOKEN}${hash}`);
  await page.locator('.link[data-state="live"]').waitFor();
  return { ...all, client, page, filled, row: (id) => page.locator(`[data-task-id="${id}"]`), order: () => page.locator('#pending > li').evaluateAll((rows) => rows.map((row) => row.dataset.taskId ?? row.querySelector('.tool').textContent)) };
}

/** The events of the browser's trace while `work` goes on. Their `tdur` is time of the thread: other programs do not count. */
async function traced(page, categories, work) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await session.send('Tracing.start', { categories, transferMode: 'ReportEvents' });
  await work();
  const ended = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
  await session.send('Tracing.end');
  await ended;
  await session.detach();
  return events;
}

/** From the lists to the frame that shows them, in ms that the page's thread has worked. */
async function workOfLists(page) {
  const events = await traced(page, 'toplevel,blink.user_timing', async () => {
    await page.reload();
    await page.waitForFunction(() => performance.getEntriesByName('render').length > 0);
  });
  const mark = events.find(({ name }) => name === 'lists');
  const shown = events.find(({ name, ph }) => name === 'render' && ph === 'e');
  const tasks = events.filter(({ name, pid, tid, ts, dur }) => name.endsWith('RunTask') && pid === mark.pid && tid === mark.tid && ts + dur > mark.ts && ts < shown.ts);
  assert.ok(tasks.length > 1, 'the trace has the work of the page');
  return tasks.reduce((sum, { tdur, dur }) => sum + (tdur ?? dur), 0) / 1000;
}

/** Calls of several tools and sizes; returns their ids in the order in which they were made, and run out. */
async function sevenCalls(client) {
  const calls = [
    ['delete_user', { user: 'ada@example.org', reason: 'asked to be forgotten' }],
    ['send_mail', { to: ['board@example.org', 'all@example.org'], subject: 'Quarterly numbers', body: 'See the attachment.\nRegards' }],
    ['drop_table', { database: 'analytics', table: 'events_2024', cascade: true }],
    ['restart', { host: 'db-1' }],
    ['restart', { host: 'db-1' }],
    ['restart', { host: 'db-1' }],
    ['pay', { to: 'DE89 3704 0044 0532 0130 00', amount: 1249.5, currency: 'EUR' }],
  ];
  const ids = [];
  for (const [name, args] of calls) ids.push((await client.createTask(name, args, { ttl: 1_200_000 + ids.length * 1000 })).taskId);
  return ids;
}

const focusedTask = (page) => page.evaluate(() => document.activeElement.dataset.taskId ?? document.activeElement.dataset.digest ?? document.activeElement.id);

test('one line a call, what runs out first on top, alike calls as one line', { skip }, async (t) => {
  const { page, filled, row, order } = await stage(t, { fill: sevenCalls });
  const [first, , , once, twice, thrice, pay] = filled;
  assert.deepEqual(await order(), [pay, ...filled.slice(0, 3), 'restart × 3'], 'the five minutes of pay end before the others\' thirty');
  for (const id of [first, pay]) assert.ok((await row(id).boundingBox()).height < 75, 'two lines of text');
  assert.equal(await row(pay).locator('.brief').textContent(), 'to: DE89 3704 0044 0532 0130 00 · amount: 1249.5 · currency: EUR');
  const stack = page.locator('#pending > [data-stack]');
  await stack.locator('.more').click();
  await stack.locator('tbody tr').nth(2).waitFor();
  assert.deepEqual(await stack.locator('tbody tr').evaluateAll((lines) => lines.map((line) => line.dataset.call)), [once, twice, thrice]);
  await stack.getByText('The arguments of these calls are the same.').waitFor();
  await stack.locator(`[data-call="${twice}"] button`).click();
  await row(twice).locator('.arguments').waitFor();
  assert.match(await page.title(), /^\(7\)/);
  assert.equal(await page.locator('link[rel="icon"]').getAttribute('href'), 'icon-7.svg');
  assert.equal((await page.request.get(`${new URL(page.url()).origin}/icon-7.svg`)).headers()['content-type'], 'image/svg+xml');
});

test('200 rows are there in under 200 ms, and scroll without a stutter', { skip }, async (t) => {
  const { page } = await stage(t, {
    config: { limits: { pending_per_principal: 400 } },
    upstream: { tools: Array.from({ length: 210 }, (_, i) => tool(`job_${i}`)) },
    fill: async (client) => {
      for (let i = 0; i < 210; i += 1) await client.createTask(`job_${i}`, { number: i, text: `call number ${i} `.repeat(20), list: [1, 2, { deep: i }] }, { ttl: 3_600_000 });
    },
  });
  await page.locator('#pending [data-task-id]').nth(199).waitFor();
  const asked = await page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/v1/inbox?')).map(({ name, transferSize }) => [new URL(name).searchParams.get('limit'), transferSize]));
  assert.deepEqual(asked.map(([limit]) => limit), ['25', '175'], 'the first rows do not wait for the others');
  assert.ok(asked[0][1] > 10_000 && asked[0][1] < 90_000, `${asked}`);
  assert.equal(await page.locator('#pending [data-task-id]').count(), 200);
  // Other tests beside this one leave the caches cold, so the best of a few counts.
  const times = [];
  for (let i = 0; i < 6 && !(Math.min(...times) < 200); i += 1) {
    times.push(await workOfLists(page));
    await page.locator('#pending [data-task-id]').nth(199).waitFor();
    assert.equal(await page.locator('#pending [data-task-id]').count(), 200);
  }
  assert.ok(Math.min(...times) < 200, `${times} ms`);
  const events = await traced(page, 'devtools.timeline,toplevel', async () => {
    await page.mouse.move(640, 500);
    for (let step = 0; step < 40; step += 1) {
      await page.mouse.wheel(0, 300);
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
  });
  assert.ok(await page.evaluate(() => scrollY) > 3000);
  const main = events.filter(({ name }) => ['FunctionCall', 'Layout', 'UpdateLayoutTree', 'Paint', 'PrePaint', 'Layerize', 'RunTask'].includes(name));
  assert.ok(main.length > 100, 'the trace has the work of the page');
  // Time of the thread, not of the clock: other tests run beside this one.
  const slow = main.filter(({ name, tdur }) => name !== 'RunTask' && tdur > 50_000);
  assert.deepEqual(slow.map(({ name, tdur }) => `${name} ${tdur / 1000} ms`), [], 'no step that a person sees');
  assert.ok(main.some(({ tdur }) => tdur > 0), 'the trace has times');
});

test('few calls are shown whole', { skip }, async (t) => {
  const { row, filled } = await stage(t, { fill: async (client) => [(await client.createTask('pay', { n: 1 })).taskId, (await client.createTask('deploy', { n: 2 })).taskId] });
  for (const id of filled) await row(id).locator('button.approve').waitFor();
});

test('search and filters: what does not fit goes, also of the decided; nothing found is said', { skip }, async (t) => {
  const { admin, page, filled, row, order } = await stage(t, { fill: sevenCalls });
  await admin.reject(filled[0], 'no');
  await page.locator(`#decided [data-task-id="${filled[0]}"]`).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('db-1 RESTART');
  await until(async () => (await order()).join() === 'restart × 3', 'three calls');
  await page.getByText('3 of 6').waitFor();
  await page.locator(`#decided [data-task-id="${filled[0]}"]`).waitFor({ state: 'hidden' });
  await page.keyboard.press('Control+A');
  await page.keyboard.type('forgotten');
  await page.getByText('No waiting call is like that.').waitFor();
  await row(filled[0]).waitFor();
  await page.keyboard.press('Escape');
  await until(async () => (await order()).length === 4, 'all six calls again');
  await page.locator('#filter-workflow').selectOption('urgent');
  assert.deepEqual(await order(), [filled[6]]);
  await page.getByText('1 of 6').waitFor();
  await page.locator('#filter-clear').click();
  await until(async () => (await order()).length === 4, 'all six calls');
});

test('by keys alone: down, up, open, approve with a reason, reject, help', { skip }, async (t) => {
  const { admin, page, filled, row } = await stage(t, { fill: sevenCalls });
  const [first, second, , , , , pay] = filled;
  await page.keyboard.press('j');
  assert.equal(await focusedTask(page), pay);
  await page.keyboard.press('j');
  assert.equal(await focusedTask(page), first);
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  assert.match(await row(pay).locator('.arguments').textContent(), /1249\.5/);
  assert.match(page.url(), new RegExp(`#task=${pay}$`));
  await page.keyboard.press('a');
  const dialog = page.locator('#decide');
  await dialog.waitFor();
  assert.match(await dialog.locator('#dialog-arguments').textContent(), /1249\.5/);
  await page.keyboard.type('the invoice is there');
  await page.keyboard.press('Enter');
  const task = await admin.inState(pay, 'completed');
  assert.equal(task.reason, 'the invoice is there');
  await row(pay).getByText('Approved by').waitFor();
  await answered(page);
  assert.equal(await focusedTask(page), pay, 'the focus stays');
  await page.keyboard.press('j');
  assert.equal(await focusedTask(page), first);
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  assert.equal((await admin.task(second)).state, 'pending');
  assert.equal(await focusedTask(page), second);
  await page.keyboard.press('r');
  await dialog.waitFor();
  await page.keyboard.press('Enter');
  await admin.inState(second, 'rejected');
  await answered(page);
  await page.keyboard.press('?');
  await page.locator('#help').waitFor();
  await page.locator('#keys-on').uncheck();
  await page.keyboard.press('Escape');
  await page.locator('#waiting').focus();
  await page.keyboard.press('j');
  assert.equal(await focusedTask(page), 'waiting', 'the letters are off');
});

test('one decision over a selection and over a stack; what fails says why', { skip }, async (t) => {
  const { admin, page, filled, row } = await stage(t, { fill: sevenCalls });
  const [first, second, third, ...equal] = filled;
  const restarts = equal.slice(0, 3);
  await page.locator('.stack > .line .pick').check();
  await page.getByText('3 calls selected').waitFor();
  await row(first).locator('.pick').click();
  await row(third).locator('.pick').click({ modifiers: ['Shift'] });
  await page.getByText('6 calls selected').waitFor();
  await row(second).locator('.pick').uncheck();
  // The news of the first decision is held back from this page, as if it were on its way.
  await page.route('**/api/v1/decisions', async (route) => {
    await admin.reject(third, 'quicker');
    await route.continue();
  });
  await page.locator('#selection-approve').click();
  await page.locator('#decide').getByText('Approve: 5 calls').waitFor();
  await picture(page, 'selection');
  await page.locator('#dialog-reason').fill('maintenance');
  for (const end of await page.locator('#dialog-list .end-of-request').all()) await end.scrollIntoViewIfNeeded();
  await page.locator('#dialog-confirm').click();
  for (const id of [first, ...restarts]) assert.equal((await admin.inState(id, 'completed')).reason, 'maintenance');
  assert.equal((await admin.task(third)).reason, 'quicker');
  assert.equal((await admin.task(second)).state, 'pending');
  await row(third).getByText('Too late').waitFor();
  await page.locator('#selection').waitFor({ state: 'hidden' });
});

test('a link to a task: waiting, decided, with a token beside it, and to nothing', { skip }, async (t) => {
  const { gateway, page, filled, row, client } = await stage(t, { fill: sevenCalls });
  const [first, , , equal] = filled;
  for (const id of [equal, first]) {
    await page.goto(`${gateway.adminUrl}/#task=${id}`);
    await row(id).locator('.arguments').waitFor();
    assert.equal(await focusedTask(page), id);
  }
  await gateway.admin.reject(first, 'no');
  for (let i = 0; i < 25; i += 1) await gateway.admin.reject((await client.createTask('deploy', { i })).taskId);
  const fresh = await openPage(t, gateway.adminUrl);
  await fresh.goto(`${gateway.adminUrl}/#task=${first}&token=${ADMIN_TOKEN}`);
  await fresh.locator(`#decided [data-task-id="${first}"] .arguments`).waitFor();
  assert.equal(fresh.url(), `${gateway.adminUrl}/#task=${first}`);
  await fresh.goto(`${gateway.adminUrl}/#task=tg_none`);
  await fresh.getByText('There is no task tg_none').waitFor();
  await fresh.locator('#older').click();
  await until(async () => (await fresh.locator('#decided [data-task-id]').count()) === 26, 'all 26 decided ones');
  await fresh.getByText('These are all that the gateway keeps.').waitFor();
});

test('the link of a call is copied, and leads to it', { skip }, async (t) => {
  const { gateway, page, filled, row } = await stage(t, { fill: sevenCalls, options: { viewport: DESK, permissions: ['clipboard-read', 'clipboard-write'] } });
  const [, second] = filled;
  await page.goto(`${gateway.adminUrl}/#task=${second}`);
  await row(second).locator('.copy-link').click();
  await row(second).getByText('Copied').waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, `${gateway.adminUrl}/#task=${second}`);
  const fresh = await openPage(t, gateway.adminUrl);
  await fresh.goto(`${link}&token=${ADMIN_TOKEN}`);
  await fresh.locator(`[data-task-id="${second}"] .arguments`).waitFor();
});

test('the differences from the last approved call stand before the arguments', { skip }, async (t) => {
  const { page, row, filled } = await stage(t, {
    approval: workflows({ redact_fields: ['card'] }),
    fill: async (client) => client,
  });
  const approved = (await filled.createTask('deploy', { to: 'staging', tags: ['a', 'b', 'c'], size: 1.0, card: '1', old: true })).taskId;
  await row(approved).locator('button.approve').click();
  await answered(page);
  await page.locator('h1').hover(); // nothing moves under the pointer
  await page.keyboard.press('.');
  await page.locator(`#decided [data-task-id="${approved}"]`).waitFor({ state: 'attached' });
  const { taskId } = await filled.createTask('deploy', { to: 'production<b>\u202e', tags: ['a', 'x', 'b', 'c'], size: 1.0, card: '2', new: { at: [1] } });
  const box = row(taskId).locator('.since-last');
  await box.getByText(/^Compared with the call that admin approved, .*: 4 differences$/).waitFor();
  const changes = await box.locator('.changes li').evaluateAll((items) => items.map((item) => [item.className, item.querySelector('.path').textContent, ...[...item.querySelectorAll('.json-value')].map((value) => value.textContent)]));
  assert.deepEqual(changes, [
    ['changed', 'to', '"staging"', '"production<b>\\u202e"'],
    ['added', 'tags[1]', '"x"'],
    ['added', 'new', '{\n  "at": [\n    1\n  ]\n}'],
    ['removed', 'old', 'true'],
  ]);
  await box.getByText('Hidden values are not compared.').waitFor();
  await picture(page, 'difference');
});

for (const [name, options] of [['desk', { viewport: DESK }], ['phone', { viewport: PHONE, hasTouch: true, isMobile: true }], ['dark', { viewport: DESK, colorScheme: 'dark', reducedMotion: 'reduce' }]]) {
  test(`axe-core finds nothing, and nothing sticks out: ${name}`, { skip }, async (t) => {
    const { admin, page, filled, row } = await stage(t, { options, fill: sevenCalls });
    await admin.reject(filled[1], 'wrong recipients');
    await until(async () => (await page.locator('#decided [data-task-id]').count()) === 1, 'the decided one', { deadline: 10_000 });
    await row(filled[2]).locator('.tool').click();
    await row(filled[2]).locator('.arguments').waitFor();
    await row(filled[0]).locator('.pick').check();
    await picture(page, `inbox-${name}`);
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    await page.locator('#selection-reject').click();
    await picture(page, `dialog-${name}`);
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press('Escape');
    await page.locator('#help-open').click();
    await picture(page, `help-${name}`);
    assert.deepEqual(await violations(page), []);
  });
}
