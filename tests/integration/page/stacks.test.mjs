// Many calls of one agent on the operators' page: one line, a table of what differs, decisions on all or some. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picture, violations } from '../lib/axe.mjs';
import { noBrowser as skip, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { PLAIN } from '../lib/promotion.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const COUNT = 230;

test('an agent with hundreds of calls is one line; some are approved, all are rejected, and the counts are true', { skip }, async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m'), upstream: { tools: [tool('restart'), tool('pay')] }, config: { limits: { pending_per_principal: 400 } } });
  const client = await connect();
  const create = (name, args) => client.createTask(name, args, { ttl: 3_600_000 }).then(({ taskId }) => taskId);
  const ids = [await create('restart', { host: 'db-0', region: 'eu', at: { rack: [0, 1] } })];
  for (let i = 1; i < COUNT; i += 50) ids.push(...(await Promise.all(Array.from({ length: Math.min(50, COUNT - i) }, (_, j) => create('restart', { host: `db-${i + j}`, region: 'eu', at: { rack: [i + j, 1] } })))));
  await create('pay', { sum: 1 });
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  session.on('Network.dataReceived', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await session.send('Network.enable');
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const stack = page.locator('#pending > li[data-stack]');
  await stack.getByText(`restart × ${COUNT}`).waitFor();
  assert.ok(bytes > 10_000 && bytes < 150 * 1024, `${bytes} bytes`);
  assert.equal(await page.locator('#pending-count').textContent(), String(COUNT + 1));
  assert.deepEqual(await page.locator('#pending > li').evaluateAll((all) => all.map(({ dataset }) => Boolean(dataset.stack))), [true, false]);

  await stack.locator('.line > .more').click();
  const lines = stack.locator('tbody tr');
  await lines.nth(199).waitFor();
  assert.deepEqual(await stack.locator('th').allTextContents(), ['Selected', 'host', 'at.rack[0]', 'Call'], 'the paths that differ');
  assert.deepEqual(await lines.first().locator('td.value').allTextContents(), ['"db-0"', '0']);
  await stack.getByText(`Show more (${COUNT - 200} are not shown)`).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, 'stack');

  const some = await lines.evaluateAll((all) => all.slice(0, 2).map(({ dataset }) => dataset.call));
  for (const id of some) await stack.locator(`[data-call="${id}"] input`).check();
  await stack.getByRole('button', { name: /^Approve 2 selected…/ }).click();
  await page.locator('#decide').getByText('Approve: 2 calls').waitFor();
  for (const end of await page.locator('#dialog-list .end-of-request').all()) await end.scrollIntoViewIfNeeded();
  await page.locator('#dialog-confirm').click();
  for (const id of some) await admin.inState(id, 'completed');
  await stack.getByText(`restart × ${COUNT - 2}`).waitFor();

  await page.locator('#select-all').check();
  await page.getByText(`${COUNT - 1} calls selected; 199 of them, which are loaded, can be approved`).waitFor();
  await page.locator('#selection-reject').click();
  await page.locator('#decide').getByText(`Reject: ${COUNT - 1} calls`).waitFor();
  assert.equal(await page.locator('#dialog-list > li').count(), 201);
  await page.locator('#dialog-confirm').click();
  await until(async () => (await admin.get('/api/v1/inbox')).json.waiting === 0, 'the end of all calls');
  await until(async () => (await page.locator('#pending-count').textContent()) === '', 'no call on the page');
  await page.locator('h1').hover();
  await page.locator('#search').focus();
  await stack.waitFor({ state: 'detached' });
  assert.match(await page.title(), /^taskgate/);
});

// With 100 in the place of 10,000, since so many calls take minutes; many_decisions.test.mjs has 10,000 in one request.
test('more calls than one request may decide are rejected in parts, and the count afterwards is true', { skip }, async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m'), upstream: { tools: [tool('restart'), tool('pay')] }, config: { limits: { pending_per_principal: 400, pending_total: 400 } } });
  const client = await connect();
  const create = (name, args) => client.createTask(name, args, { ttl: 3_600_000 });
  await Promise.all(Array.from({ length: 302 }, (_, n) => create('restart', { n })));
  const { taskId: other } = await create('pay', { sum: 1 });
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  let bounds = 0;
  await page.route('**/*.js', async (route) => {
    const text = await (await route.fetch()).text();
    bounds += text.split('MOST_ITEMS = 10_000;').length - 1;
    await route.fulfill({ contentType: 'text/javascript', body: text.replace('MOST_ITEMS = 10_000;', 'MOST_ITEMS = 100;') });
  });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const stack = page.locator('#pending > li[data-stack]');
  await stack.getByText('restart × 302').waitFor();
  assert.equal(bounds, 1);
  const sent = [];
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.postDataJSON().items.length));
  await stack.locator('.line > .more').click();
  await stack.getByRole('button', { name: /^Reject all 302…/ }).click();
  await page.locator('#decide[open]').getByText('Reject: 302 calls').waitFor();
  await page.locator('#dialog-list').getByText('and 102 more calls').waitFor();
  await page.locator('#dialog-reason').fill('too many');
  await page.locator('#dialog-confirm').click();
  await page.waitForFunction(() => document.querySelector('#announcer').textContent === '302 calls rejected');
  assert.deepEqual(sent, [100, 100, 100, 2]);
  const { waiting, rows } = (await admin.get('/api/v1/inbox')).json;
  assert.deepEqual([waiting, rows.map(({ id }) => id)], [1, [other]]);
  await until(async () => (await page.locator('#pending-count').textContent()) === '1', 'the count', { deadline: 60_000 });
  assert.equal((await admin.list({ state: 'rejected', limit: 1 })).tasks[0].reason, 'too many');
});

test('a marked value has its words in the line of a call and of a stack, and in the table of the stack', { skip }, async (t) => {
  const rules = [{ match: 'drop', action: 'approve', show: { summary: 'Drops {db}' } }, ['*', 'approve']];
  const { gateway, connect } = await scene(t, { rules, approval: workflow('30m'), upstream: { tools: ['drop', 'read', 'copy', 'p\u0430y', ...'abcdef'].map((name) => tool(name)) } });
  const client = await connect();
  const create = (name, args) => client.createTask(name, args, { ttl: 3_600_000 }).then(({ taskId }) => taskId);
  const drop = await create('drop', { db: 'us\u200bers' });
  const read = await create('read', { list: [{ b: '\u202e' }], 'd\u0430b': 1, plain: 'x' });
  const copy = await create('copy', { a: '\u200b', b: '\u200b', c: '\u200b', d: '\u200b' });
  for (const name of 'abcdef') await create(name, { plain: 'x' });
  const first = await create('p\u0430y', { to: [{ who: 'b\u043eb' }], sum: 1 });
  const second = await create('p\u0430y', { to: [{ who: 'alice' }], sum: 2 });
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const stack = page.locator('#pending > li[data-stack]');
  await stack.waitFor();
  const notes = (box) => box.locator('.brief .json-note:visible').evaluateAll((all) => all.map((note) => note.innerText));
  const line = (id) => page.locator(`#pending > [data-task-id="${id}"] > .line`);
  assert.equal(await line(drop).locator('.brief').innerText(), 'Drops "us\\u200bers" db: characters that cannot be seen');
  assert.deepEqual(await notes(line(read)), ['list.b: characters that change the order of letters', 'd\u0430b: letters of alphabets that look alike']);
  assert.deepEqual(await notes(line(copy)), ['a: characters that cannot be seen', 'b: characters that cannot be seen', '2 places more']);
  assert.deepEqual(await notes(stack.locator('.line')), ['to.who: letters of alphabets that look alike']);
  assert.deepEqual(await stack.locator('.tool .json-note').allInnerTexts(), ['letters of alphabets that look alike']);
  assert.equal(await page.locator('#pending .brief .json-note').count(), 7);
  await stack.locator('.line > .more').click();
  await stack.locator('tbody tr').nth(1).waitFor();
  const cells = (id) => stack.locator(`[data-call="${id}"] td.value`).allInnerTexts();
  assert.deepEqual(await cells(first), ['"b\u043eb" letters of alphabets that look alike', '1']);
  assert.deepEqual(await cells(second), ['"alice"', '2']);
  assert.deepEqual(await violations(page), []);
  await picture(page, 'marked');
});

test('a run of white space is one mark in the line of a call and in the table of a stack, so that nothing is pushed out of sight', { skip }, async (t) => {
  const { gateway, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m'), upstream: { tools: ['run', 'query', ...'abcdef'].map((name) => tool(name)) } });
  const client = await connect();
  const create = (name, args) => client.createTask(name, args, { ttl: 3_600_000 }).then(({ taskId }) => taskId);
  const single = await create('run', { sql: `SELECT 1;${'\n'.repeat(150)}DROP TABLE a${' '.repeat(100)}CASCADE` });
  const long = await create('a', { ['k\n'.repeat(20)]: `x${'\n'.repeat(150)}y${'z'.repeat(60)}` });
  for (const name of 'bcdef') await create(name, {});
  const ids = [await create('query', { sql: `SELECT 1;${'\n'.repeat(60)}DROP TABLE a` }), await create('query', { sql: 'SELECT 1;' })];
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const stack = page.locator('#pending > li[data-stack]');
  await stack.waitFor();
  const brief = (id) => page.locator(`#pending > [data-task-id="${id}"] > .line .brief`).textContent();
  assert.equal(await brief(single), 'sql: SELECT 1;[150 line breaks]DROP TABLE a[100 blanks]CASCADE');
  assert.match(await brief(long), /^(k\\u000a){20}: x\[150 line.*…$/);
  assert.equal(await stack.locator('.line .brief').textContent(), 'sql: SELECT 1;[60 line breaks]DROP TABLE a');
  await stack.locator('.line > .more').click();
  const cell = (id) => stack.locator(`[data-call="${id}"] td.value`).textContent();
  await stack.locator('tbody tr').nth(1).waitFor();
  assert.deepEqual([await cell(ids[0]), await cell(ids[1])], ['"SELECT 1;[60 line breaks]DROP TABLE a"', '"SELECT 1;"']);
});

test('a stack whose calls have another owner by now opens as that owner\'s', { skip }, async (t) => {
  const { gateway, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m'), upstream: { tools: ['restart', ...'abcdef'].map((name) => tool(name)) }, config: { pseudo_tools: { wait: '300ms', wait_max: '300ms' } } });
  const client = await connect(PLAIN);
  for (const host of ['db-0', 'db-1']) await client.result('tools/call', { name: 'restart', arguments: { host } });
  const other = await connect();
  for (const name of 'abcdef') await other.createTask(name, {}, { ttl: 3_600_000 });
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const stack = page.locator('#pending > li[data-stack]');
  const before = await stack.getAttribute('data-stack');
  await client.delete();
  const rows = async () => (await (await page.request.get(`${gateway.adminUrl}/api/v1/inbox`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).json()).rows;
  await until(async () => (await rows()).every((row) => row.stack !== before), 'another owner of the calls');
  await stack.locator('.line > .more').click();
  await page.locator(`[data-stack="${before}"]`).waitFor({ state: 'detached' });
  await stack.locator('.line > .more').click();
  await stack.locator('tbody tr').nth(1).waitFor();
  assert.deepEqual(await stack.locator('tbody td.value').allTextContents(), ['"db-0"', '"db-1"']);
});
