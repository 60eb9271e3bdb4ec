// Answers of the gateway that come late, or not at all, and what the page shows by then. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noBrowser as skip, openPage } from '../lib/browser.mjs';
import { workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { signal, until } from '../lib/wait.mjs';

const NAMES = ['alice', 'bob', 'carol'];
const PEOPLE = { people: NAMES.map((name) => ({ name })), tokens: NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })) };
const ENV = Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`]));
const TOOLS = [...Array.from({ length: 100 }, (_, n) => `deploy_${n}`), 'restart'];

/** A gateway with the calls [tool, arguments], and a page of alice. */
async function stage(t, calls, keys = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m', keys), upstream: { tools: TOOLS.map((name) => tool(name)) }, env: ENV, config: { admin: PEOPLE } });
  const client = await all.connect();
  let made = 0; // they run out in the order in which they were made, two in one millisecond too
  const call = async (name, args = {}) => (await client.createTask(name, args, { ttl: 1_200_000 + made++ * 1000 })).taskId;
  const ids = [];
  for (const [name, args] of calls) ids.push(await call(name, args));
  const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${all.gateway.adminUrl}/#token=token-of-alice`);
  await page.locator('.link[data-state="live"]').waitFor();
  return { ...all, call, ids, page, as: (name) => all.admin.as(`token-of-${name}`), row: (id) => page.locator(`[data-task-id="${id}"]`), stack: page.locator('#pending > li[data-stack]'), count: (text) => until(async () => (await page.locator('#pending-count').textContent()) === text, text) };
}

/** Holds back the answers to what `matches`: `asked` is fulfilled with the first of them, and all come once `go()` is called. */
async function hold(page, matches) {
  const [asked, gate] = [signal(), signal()];
  await page.route(matches, async (route) => {
    const response = await route.fetch();
    asked.fire();
    await gate.promise;
    await route.fulfill({ response }).catch(() => {}); // the page may have been left
  });
  return { asked: asked.promise, go: gate.fire };
}

const isInbox = (has) => (url) => url.pathname.endsWith('/api/v1/inbox') && has(url.searchParams);

/** What an element says from now on, at each of its changes. */
const record = (locator) => locator.evaluate((element) => {
  const said = (globalThis.said = [element.textContent]);
  new MutationObserver(() => said.push(element.textContent)).observe(element, { childList: true, characterData: true, subtree: true });
});

test('a call that ends while it is read for its dialog: the dialog says so, and decides nothing', { skip }, async (t) => {
  const { admin, page, ids, row } = await stage(t, Array.from({ length: 6 }, (_, n) => [`deploy_${n}`, { n }]));
  const posted = [];
  page.on('request', (request) => request.method() === 'POST' && posted.push(request.postDataJSON()));
  const confirm = page.locator('#dialog-confirm');
  const reading = await hold(page, (url) => ids.some((id) => url.pathname.endsWith(`/tasks/${id}`)));
  await page.reload();
  await page.locator('.link[data-state="live"]').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  await reading.asked;
  await admin.reject(ids[0], 'quicker');
  await page.locator(`#pending [data-task-id="${ids[0]}"][data-state="rejected"]`).waitFor();
  reading.go();
  await page.locator('#decide[open]').waitFor();
  assert.match(await page.locator('#dialog-ended').textContent(), /^Too late\. Rejected by admin, .* · “quicker”$/);
  assert.equal(await confirm.isDisabled(), true);
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('#decide').isVisible(), true);
  await page.keyboard.press('Escape');

  const second = await hold(page, (url) => url.pathname.endsWith(`/tasks/${ids[4]}`));
  for (const id of [ids[3], ids[4]]) await row(id).locator('.pick').check();
  await page.locator('#selection-approve').click();
  await second.asked;
  await admin.reject(ids[3]);
  await page.locator(`[data-task-id="${ids[3]}"][data-state="rejected"]`).waitFor();
  second.go();
  await page.locator('#decide[open]').waitFor();
  assert.match(await page.locator('#dialog-ended').textContent(), /^deploy_3 does not wait any more\. Rejected by admin/);
  assert.deepEqual(posted, []);
  await confirm.click();
  await admin.inState(ids[4], 'completed');
  assert.deepEqual([(await admin.task(ids[3])).state, (await admin.task(ids[1])).state], ['rejected', 'pending']);
});

test('the calls of a stack that come after a vote do not undo it', { skip }, async (t) => {
  const { gateway, page, ids, row, stack, as } = await stage(t, [0, 1, 2].map((n) => ['restart', { n }]), { quorum: 3 });
  await page.goto(`${gateway.adminUrl}/#task=${ids[1]}`);
  const votes = row(ids[1]).locator('.line .votes');
  await votes.getByText('0 of 3').waitFor();
  const rest = await hold(page, isInbox((asked) => asked.has('stack')));
  await stack.locator('.line > .more').click();
  await rest.asked;
  await as('bob').decide('approve', ids[1]);
  await votes.getByText('1 of 3: bob').waitFor();
  await record(votes);
  rest.go();
  await stack.locator('tbody tr').nth(2).waitFor();
  await as('carol').decide('approve', ids[1]);
  await votes.getByText('2 of 3: bob, carol').waitFor();
  assert.deepEqual([...new Set(await page.evaluate(() => globalThis.said))], ['1 of 3: bob; needs 2 more', '2 of 3: bob, carol; needs 1 more']);
});

test('the answer to a vote that comes after the votes of others does not undo these', { skip }, async (t) => {
  const { page, ids, row, as } = await stage(t, [['restart', {}]], { quorum: 3 });
  const votes = row(ids[0]).locator('.line .votes');
  const own = await hold(page, (url) => url.pathname.endsWith('/approve'));
  await row(ids[0]).locator('button.approve').click();
  await own.asked;
  await as('bob').decide('approve', ids[0]);
  await votes.getByText('2 of 3: alice, bob').waitFor();
  await record(votes);
  own.go();
  await page.waitForFunction(() => document.querySelector('[aria-busy="true"]') === null);
  assert.equal(await votes.textContent(), '2 of 3: alice, bob; needs 1 more');
  await as('carol').decide('approve', ids[0]);
  await votes.getByText('3 of 3: alice, bob, carol').waitFor();
  assert.deepEqual([...new Set(await page.evaluate(() => globalThis.said))], ['2 of 3: alice, bob; needs 1 more', '3 of 3: alice, bob, carol']);
});

test('a search that is not answered is said, keeps what fits, and an event brings back nothing else', { skip }, async (t) => {
  const { admin, page, ids, stack, count } = await stage(t, ['alpha', 'alpha', 'beta', 'beta'].map((to, n) => ['restart', { to, n }]));
  await stack.locator('.line > .more').click();
  await stack.locator('tbody tr').nth(3).waitFor();
  await stack.hover(); // somebody is at the list
  const problem = page.locator('#pending-problem');
  const fail = (route) => route.fulfill({ status: 503, json: { error: { code: 'unavailable', message: 'the store is busy' } } });
  await page.route(isInbox((asked) => asked.has('q')), fail);
  await page.locator('#search').fill('alpha');
  await problem.getByText('the store is busy').waitFor();
  const calls = () => stack.locator('tbody tr').evaluateAll((lines) => lines.map(({ dataset }) => dataset.call));
  assert.deepEqual(await calls(), ids.slice(0, 2));
  await record(stack.locator('tbody'));
  await admin.reject(ids[2]);
  await page.locator(`#decided [data-task-id="${ids[2]}"]`).waitFor({ state: 'attached' });
  await page.unrouteAll({ behavior: 'wait' });
  await page.locator('#search').fill('alpha ');
  await count('2 of 3');
  assert.deepEqual((await page.evaluate(() => globalThis.said)).filter((text) => /beta|2|3/.test(text)), []);
  assert.equal(await problem.textContent(), '');

  await page.route(isInbox((asked) => asked.has('q')), (route) => route.abort());
  await page.locator('#search').fill('beta');
  await problem.getByText('The gateway does not answer.').waitFor();
  await page.unrouteAll({ behavior: 'wait' });
  await page.locator('#search').fill('');
  await count('3');
  assert.equal(await problem.textContent(), '');
});

test('the page says so when more calls cannot be shown, or a call cannot be read before it is decided', { skip }, async (t) => {
  const { page, ids, row } = await stage(t, Array.from({ length: 6 }, (_, n) => [`deploy_${n}`, { pad: 'x'.repeat(70_000), n }]));
  await page.route((url) => url.pathname.endsWith(`/tasks/${ids[0]}`), (route) => route.fulfill({ status: 503, json: { error: { code: 'unavailable', message: 'the store is busy' } } }));
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  await row(ids[0]).locator('.problem').getByText('Not done: the store is busy').waitFor();
  assert.equal(await page.locator('#decide').isVisible(), false);
  await page.route(isInbox((asked) => asked.has('cursor')), (route) => route.abort());
  await page.route(isInbox((asked) => asked.get('limit') === '25'), async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    await route.fulfill({ response, json: { ...body, rows: body.rows.slice(0, 3), nextCursor: 'e0.none' } });
  });
  await page.reload();
  await page.locator('#pending-problem').getByText('The gateway does not answer.').waitFor();
  assert.equal(await page.locator('#pending > li').count(), 3);
  await page.locator('#pending-more').getByText('Show more (3 are not shown)').waitFor();
});

test('a list that was asked for before somebody typed is asked for again', { skip }, async (t) => {
  const { gateway, page, row, ids, count } = await stage(t, [['deploy_0', { to: 'alpha' }], ['deploy_1', { to: 'beta' }]]);
  await row(ids[1]).waitFor();
  await gateway.stop();
  await page.getByText('The connection is lost').waitFor();
  const list = await hold(page, isInbox((asked) => !asked.has('q')));
  await gateway.launch();
  await list.asked;
  await page.locator('#search').fill('alpha');
  await count('1 of 2');
  const again = page.waitForResponse((response) => new URL(response.url()).searchParams.get('q') === 'alpha' && response.url().includes('/inbox'));
  list.go();
  await again;
  await page.locator('.link[data-state="live"]').waitFor();
  assert.equal(await page.locator('#pending-count').textContent(), '1 of 2');
  assert.deepEqual(await page.locator('#pending > li:visible').evaluateAll((all) => all.map(({ dataset }) => dataset.taskId)), [ids[0]]);
});

for (const place of ['in it', 'elsewhere']) {
  test(`an open card of a stack, and what somebody has typed there, outlive a lost connection (focus ${place})`, { skip }, async (t) => {
    const { gateway, page, ids, row, stack } = await stage(t, [0, 1, 2].map((n) => ['restart', { n }]));
    await stack.locator('.line > .more').click();
    await stack.locator(`[data-call="${ids[1]}"] button`).click();
    await row(ids[1]).locator('.reason').fill('half a rea');
    if (place === 'elsewhere') {
      await page.locator('#search').focus();
      await page.locator('h1').hover();
    }
    await gateway.stop();
    await page.getByText('The connection is lost').waitFor();
    await gateway.launch();
    await page.locator('.link[data-state="live"]').waitFor({ timeout: 30_000 });
    await row(ids[1]).locator('.reason').waitFor();
    assert.equal(await row(ids[1]).locator('.reason').inputValue(), 'half a rea');
    assert.equal(await row(ids[1]).locator('.reason').evaluate((input) => input === document.activeElement), place === 'in it');
    await stack.locator('tbody tr').nth(2).waitFor();
    await gateway.admin.as('token-of-bob').reject(ids[1], 'meanwhile');
    await row(ids[1]).getByText('Rejected by bob').waitFor();
  });
}

test('a key right after a dialog is closed counts', { skip }, async (t) => {
  const { page, ids } = await stage(t, Array.from({ length: 6 }, (_, n) => [`deploy_${n}`, { n }]));
  await page.keyboard.press('j');
  await page.keyboard.press('a');
  await page.locator('#decide[open]').waitFor();
  /* In the task of the press, before the event of the closed dialog. */
  const after = await page.evaluate(async () => {
    document.querySelector('#dialog-cancel').click();
    for (let n = 0; n < 20; n += 1) await null;
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true }));
    return document.activeElement.dataset.taskId;
  });
  assert.equal(after, ids[1]);
  await page.keyboard.press('r');
  await page.locator('#decide[open]').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.taskId), ids[1]);
  await page.keyboard.press('r');
  await page.locator('#decide').getByText('Reject: deploy_1').waitFor();
});

test('a dialog that is asked for twice, while the calls are read, opens once, and keys count after it', { skip }, async (t) => {
  const { admin, page, ids, row } = await stage(t, Array.from({ length: 6 }, (_, n) => [`deploy_${n}`, { n, pad: 'x'.repeat(70_000) }]));
  for (const id of ids.slice(0, 2)) await row(id).locator('.pick').check();
  const reading = await hold(page, (url) => url.pathname.includes('/tasks/'));
  for (let n = 0; n < 2; n += 1) await page.locator('#selection-approve').click();
  await reading.asked;
  reading.go();
  const dialog = page.locator('#decide[open]');
  await dialog.waitFor();
  assert.equal(await page.locator('#dialog-list > li').count(), 2);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await page.locator('#selection-clear').click();
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await dialog.getByText('Reject: deploy_').waitFor();
  await page.keyboard.press('Enter');
  await until(async () => (await admin.list({ state: 'rejected' })).tasks.length === 1, 'one rejection');
});

test('an open dialog does not become that of other calls, which were asked for before it', { skip }, async (t) => {
  const { admin, page, ids, row } = await stage(t, Array.from({ length: 6 }, (_, n) => [`deploy_${n}`, { n, pad: 'x'.repeat(70_000) }]));
  const reading = await hold(page, (url) => url.pathname.endsWith(`/tasks/${ids[0]}`));
  for (const id of ids.slice(0, 2)) await row(id).locator('.pick').check();
  await page.locator('#selection-approve').click();
  await reading.asked;
  await page.locator('#selection-clear').click();
  await row(ids[5]).locator('.pick').check();
  await page.locator('#selection-reject').click();
  const title = page.locator('#decide[open] #dialog-title');
  await title.getByText('Reject: deploy_5').waitFor();
  await record(title);
  const read = page.waitForResponse((response) => response.url().endsWith(`/tasks/${ids[0]}`));
  reading.go();
  await (await read).finished();
  await page.evaluate(() => new Promise(requestAnimationFrame));
  await page.locator('#dialog-confirm').click();
  await admin.inState(ids[5], 'rejected');
  assert.deepEqual(await page.evaluate(() => globalThis.said), ['Reject: deploy_5']);
  assert.deepEqual((await admin.list({ state: 'pending' })).tasks.map(({ id }) => id).toSorted(), ids.slice(0, 5).toSorted());
});

test('a dialog does not outlive the session of the person that it asks', { skip }, async (t) => {
  const { page, gateway, ids, row } = await stage(t, [['deploy_0', { secret: 'of alice' }]]);
  await row(ids[0]).focus();
  await page.keyboard.press('a');
  await page.locator('#decide[open]').waitFor();
  await page.route('**/api/v1/**', (route) => route.fulfill({ status: 401, json: { error: { code: 'unauthorized', message: 'no' } } }));
  await gateway.stop();
  await page.getByText('This token is not valid here').waitFor();
  assert.equal(await page.locator('#decide').isVisible(), false);
  await page.unrouteAll({ behavior: 'wait' });
  await gateway.launch();
  await page.getByLabel('Token').fill('token-of-bob');
  await page.keyboard.press('Enter');
  await row(ids[0]).waitFor();
  await page.locator('#waiting').focus();
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await page.locator('#decide[open]').getByText('Reject: deploy_0').waitFor();
});
