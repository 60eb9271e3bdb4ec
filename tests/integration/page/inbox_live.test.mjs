// The operators' inbox while calls come and go: what stays where it is, and who is told. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picture, violations } from '../lib/axe.mjs';
import { noBrowser as skip, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

async function stage(t, token = ADMIN_TOKEN) {
  const all = await scene(t, {
    rules: [{ match: 'pay', action: 'approve', approval: 'urgent' }, { match: '*', action: 'approve', approval: 'default' }],
    approval: { ...workflow('30m'), urgent: workflow('5m').default },
    upstream: { tools: [tool('pay'), tool('deploy')] },
    config: { admin: { tokens: [{ name: 'audrey', token_env: 'AUDREY', roles: ['auditor'] }, { name: 'alice', token_env: 'ALICE', roles: ['approver'] }] } },
    env: { AUDREY: 'token-of-audrey', ALICE: 'token-of-alice' },
  });
  const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${all.gateway.adminUrl}/#token=${token}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const client = await all.connect();
  return {
    ...all,
    page,
    call: async (name, args = {}) => (await client.createTask(name, args, { ttl: 3_600_000 })).taskId,
    row: (id) => page.locator(`[data-task-id="${id}"]`),
    order: () => page.locator('#pending [data-task-id]').evaluateAll((rows) => rows.map((row) => row.dataset.taskId)),
  };
}

test('nothing moves under the pointer; when it leaves, the most urgent call goes to the top', { skip }, async (t) => {
  const { page, call, row, order } = await stage(t);
  const slow = await call('deploy');
  await row(slow).locator('button.approve').hover();
  const { y } = await row(slow).boundingBox();
  const urgent = await call('pay');
  await row(urgent).waitFor();
  assert.equal((await row(slow).boundingBox()).y, y);
  assert.deepEqual(await order(), [slow, urgent]);
  await page.locator('h1').hover();
  await until(async () => (await order())[0] === urgent, 'the urgent call on top');
});

test('a call that is decided and ends while the pointer is over the list goes down when it leaves', { skip }, async (t) => {
  const { admin, page, call, row } = await stage(t);
  const [decided, next] = [await call('deploy'), await call('pay')];
  await row(next).waitFor();
  await page.setViewportSize({ width: 1280, height: 2000 }); // nothing scrolls as the card becomes lower
  await row(decided).locator('.tool').hover();
  await row(decided).focus();
  await admin.approve(decided);
  await page.locator(`#pending [data-task-id="${decided}"][data-state="completed"]`).waitFor();
  assert.equal(await row(decided).evaluate((element) => element === document.activeElement), true, 'it keeps the focus');
  await page.locator('h1').hover();
  await page.keyboard.press('.'); // the focus is still in the list
  await page.locator(`#decided [data-task-id="${decided}"]`).waitFor();
  await until(() => row(next).evaluate((element) => element === document.activeElement), 'the focus on the next call');
});

test('the focus and a half-typed reason stay while calls come above and go', { skip }, async (t) => {
  const { admin, page, call, row, order } = await stage(t);
  const slow = await call('deploy');
  await row(slow).locator('.reason').focus();
  await page.keyboard.type('half a ');
  const urgent = await call('pay');
  await row(urgent).waitFor();
  assert.deepEqual(await order(), [slow, urgent]);
  await admin.reject(urgent);
  await page.locator(`#pending [data-task-id="${urgent}"][data-state="rejected"]`).waitFor();
  const equal = await call('deploy');
  await row(equal).waitFor();
  assert.deepEqual(await order(), [slow, urgent, equal]);
  await page.keyboard.type('reason');
  assert.equal(await row(slow).locator('.reason').inputValue(), 'half a reason');
  assert.equal(await page.locator('#arrange').textContent(), 'Arrange: 1 decided, 1 new', 'each call once');
  await page.locator('#arrange').click();
  assert.equal(await page.locator('.stack .tool').textContent(), 'deploy × 2');
  assert.equal(await page.locator(`#decided [data-task-id="${urgent}"]`).count(), 1);
  assert.equal(await page.locator('#arrange').isVisible(), false);
  assert.equal(await row(slow).locator('.reason').inputValue(), 'half a reason');
});

for (const [name, viewport] of [['desk', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
  test(`what comes and goes above the list moves nothing while somebody is at it: filters, tools, a lost connection (${name})`, { skip }, async (t) => {
    const { gateway, admin, page, call, row } = await stage(t);
    await page.setViewportSize(viewport);
    const first = await call('deploy', { n: 1 });
    await row(first).locator('button.reject').waitFor();
    await row(first).focus();
    const places = () => row(first).locator('button:visible, input:visible').evaluateAll((all) => all.map((button) => [button.className, button.getBoundingClientRect().y]));
    await row(first).locator('.past:not([hidden])').waitFor();
    const before = await places();
    const urgent = await call('pay');
    await row(urgent).waitFor();
    assert.deepEqual(await places(), before, 'another workflow could be chosen');
    assert.equal(await page.locator('#pending-more').isVisible(), false, 'both are shown');
    await gateway.stop();
    await page.getByText('The connection is lost').waitFor();
    assert.deepEqual(await places(), before);
    assert.deepEqual(await violations(page), []);
    await picture(page, `lost-${name}`);
    await gateway.launch();
    await page.locator('.link[data-state="live"]').waitFor({ timeout: 30_000 });
    assert.equal(await page.getByText('The connection is lost').isVisible(), false);
    assert.deepEqual(await places(), before);
    for (const id of [urgent, first]) await admin.reject(id);
    await page.locator(`#pending [data-task-id="${first}"][data-state="rejected"]`).waitFor();
    assert.equal(await page.locator('#search').isVisible(), true);
    await page.locator('#waiting').focus();
    await page.locator(`#decided [data-task-id="${first}"]`).waitFor();
    await page.locator('#filter-workflow').waitFor();
  });
}

test('alike calls become one line with their number, and a single one again', { skip }, async (t) => {
  const { admin, page, call, row } = await stage(t);
  const calls = [await call('deploy', { to: 'a' }), await call('deploy', { to: 'a' }), await call('deploy', { to: 'b' })];
  await page.locator('.stack').getByText('deploy × 3').waitFor();
  await admin.reject(calls[0]);
  await page.locator('.stack').getByText('deploy × 2').waitFor();
  await page.locator('.stack .more').click();
  assert.deepEqual(await page.locator('.stack tbody td.value').allTextContents(), ['"a"', '"b"']);
  await page.locator('h1').hover();
  await page.locator('#waiting').focus();
  await admin.reject(calls[2]);
  await page.locator('.stack').waitFor({ state: 'detached' });
  assert.equal(await row(calls[1]).isVisible(), true);
});

test('notifications: for who asks, and looks elsewhere; without arguments; off again', { skip }, async (t) => {
  const { gateway, page, call, row } = await stage(t);
  await page.context().grantPermissions(['notifications'], { origin: gateway.adminUrl });
  await page.evaluate(() => {
    globalThis.told = [];
    const Real = globalThis.Notification;
    globalThis.Notification = class extends Real {
      constructor(title, options) {
        super(title, options);
        globalThis.told.push([title, options.body]);
      }
    };
  });
  const hide = (state) => page.evaluate((value) => Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => value }), state);
  const told = () => page.evaluate(() => globalThis.told);
  await row(await call('deploy', { n: 1 })).waitFor();
  await page.locator('#notify').click();
  await page.getByRole('button', { name: 'Notifications on', pressed: true }).waitFor();
  await row(await call('pay', { n: 2 })).waitFor();
  assert.deepEqual(await told(), [], 'who looks at the page sees it there');
  await hide('hidden');
  await row(await call('deploy\u202e', { secret: 'x' })).waitFor();
  const [[title, body], ...more] = await told();
  assert.equal(title, 'deploy\\u202e waits for a decision');
  assert.match(body, /^Asked by unverified "raw-client \(session \w+\)"$/);
  assert.equal(more.length, 0);
  await page.locator('#notify').click();
  await call('deploy', { n: 4 });
  await page.locator('.stack').getByText('deploy × 2').waitFor();
  assert.equal((await told()).length, 1);
  await page.locator('#notify').click();
  await hide('visible');
  await page.getByRole('button', { name: 'Sign out' }).click();
  assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
});

test('auditors go on in the audit trail where the tasks end', { skip }, async (t) => {
  const { gateway, admin, page, call, row } = await stage(t, 'token-of-alice');
  const before = await call('deploy', { n: 1 });
  await row(before).waitFor();
  await admin.reject(before, '<b>not</b> now\u202e');
  await page.locator(`#decided [data-task-id="${before}"]`).waitFor();
  // As if the task were not kept any more: the lists have later ones alone.
  const after = await call('deploy', { n: 2 });
  await admin.reject(after);
  await page.route('**/api/v1/tasks?state=approved*', async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    await route.fulfill({ response, json: { ...body, tasks: body.tasks.filter(({ id }) => id !== before) } });
  });
  assert.equal(await page.locator('#trail-part').isVisible(), false, 'alice is no auditor');
  page.once('dialog', (dialog) => dialog.accept()); // another person is to be signed in
  await page.goto(`${gateway.adminUrl}/#token=token-of-audrey`);
  await page.getByText('audrey').waitFor();
  await page.locator('#trail-older').click();
  await page.getByText('This is all that the audit trail keeps.').waitFor();
  const events = await page.locator('#trail .event').allTextContents();
  assert.deepEqual(events, ['reject', 'create'], 'newest first, and nothing of the later task');
  assert.match(await page.locator('#trail').textContent(), /deploy · admin · “<b>not<\/b> now\\u202e” · asked under the name "[^"]+"/);
});
