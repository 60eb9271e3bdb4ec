// The page's sign-in at a real OpenID provider, in a real browser, on a desk and on a phone. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { outliveNetworkChanges } from '../lib/browser.mjs';
import { workflow } from '../lib/gateway.mjs';
import { startIssuer } from '../lib/issuer.mjs';
import { defer } from '../lib/lifetime.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const CHROMIUM = process.env.TASKGATE_CHROMIUM ?? '/usr/bin/chromium';
const skip = fs.existsSync(CHROMIUM) ? false : `the browser ${CHROMIUM} is missing: apt-get install chromium, or set TASKGATE_CHROMIUM`;
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

let launching;
const browser = () => (launching ??= chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS }));
after(async () => (await launching)?.close());

async function stage(t, viewport) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] } });
  const { gateway } = all;
  const issuer = await startIssuer(t, {
    clients: [{ client_id: 'gateway', token_endpoint_auth_method: 'none', redirect_uris: [`${gateway.adminUrl}/login/callback`], post_logout_redirect_uris: [`${gateway.adminUrl}/`] }],
  });
  gateway.writeConfig({
    config: { admin: { public_url: gateway.adminUrl, people: [{ name: 'Alice A.', email: 'alice@example.org' }], oidc: { issuer: issuer.url, client_id: 'gateway', roles: { approver: ['dba'], viewer: ['watchers'] } } } },
  });
  gateway.hangUp();
  await gateway.logged((entry) => entry.msg === 'Configuration reloaded');
  const context = await (await browser()).newContext({ viewport });
  defer(t, () => context.close());
  const page = await context.newPage();
  outliveNetworkChanges(page);
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => /Content Security Policy|Uncaught/.test(message.text()) && faults.push(message.text()));
  defer(t, () => assert.deepEqual(faults, []));
  await page.goto(`${gateway.adminUrl}/`);
  const signIn = async (login) => {
    await page.locator('a[href$="/login"]').click();
    await page.locator('input[name="login"]').fill(login);
    await page.locator('input[name="password"]').fill('any');
    await page.locator('button[type="submit"]').click();
    await page.locator('input[name="login"]').waitFor({ state: 'detached' }); // the next page has such a button, too
    await page.locator('button[type="submit"]').click();
  };
  return { ...all, issuer, page, signIn, row: (id) => page.locator(`[data-task-id="${id}"]`) };
}

for (const [name, viewport] of [['a desk', { width: 1280, height: 800 }], ['a phone', { width: 360, height: 740 }]]) {
  test(`signing in, deciding and signing out on ${name}`, { skip }, async (t) => {
    const { gateway, admin, page, signIn, row, connect } = await stage(t, viewport);
    const { taskId } = await (await connect()).createTask('delete_user');
    const link = page.locator('a[href$="/login"]');
    await link.waitFor();
    const { x, width } = await link.boundingBox();
    assert.ok(x >= 0 && x + width <= viewport.width, 'the link is on the screen');
    await signIn('alice');
    await page.locator('.link[data-state="live"]').waitFor();
    assert.equal(page.url(), `${gateway.adminUrl}/`);
    assert.equal(await page.locator('.who').textContent(), 'Alice A. (alice@example.org)');
    assert.equal(await page.evaluate(() => document.cookie), '', 'no script sees the cookie');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out');
    await row(taskId).locator('.end-of-request').last().scrollIntoViewIfNeeded(); // a phone does not show all at once
    await row(taskId).locator('button.approve').click();
    assert.equal((await admin.inState(taskId, 'completed')).decidedBy, 'Alice A.');
    await page.reload();
    await page.locator('.link[data-state="live"]').waitFor();
    await page.locator('button.logout').click();
    await page.locator('button[type="submit"][value="yes"]').click();
    await link.waitFor();
    assert.equal(page.url(), `${gateway.adminUrl}/`);
    assert.equal(await row(taskId).count(), 0);
  });
}

test('a link to a task leads there through the sign-in, once', { skip }, async (t) => {
  const { gateway, page, signIn, row, connect } = await stage(t);
  const client = await connect();
  const ids = [];
  for (let i = 0; i < 4; i += 1) ids.push((await client.createTask('delete_user', { i })).taskId);
  await page.goto(`${gateway.adminUrl}/#task=${ids[2]}`);
  await page.reload(); // another part behind # alone loads no page
  await signIn('alice');
  await row(ids[2]).locator('.arguments').waitFor();
  assert.equal(page.url(), `${gateway.adminUrl}/#task=${ids[2]}`);
  await until(() => page.evaluate((id) => document.activeElement.dataset.taskId === id, ids[2]), 'the focus');
  await page.goto('about:blank');
  await page.goto(`${gateway.adminUrl}/`);
  await page.locator('.link[data-state="live"]').waitFor();
  assert.equal(page.url(), `${gateway.adminUrl}/`, 'the tab has forgotten the task');
});

test('a page that gets no answer about the sign-in asks again', { skip }, async (t) => {
  const { page } = await stage(t);
  const link = page.locator('a[href$="/login"]');
  await link.waitFor();
  let asked = 0;
  await page.route('**/api/v1/sign-in', (route) => (++asked === 1 ? route.abort('connectionreset') : route.continue()));
  await page.reload();
  await link.waitFor();
  assert.equal(asked, 2);
});

test('a person without a role is told so, and finds back', { skip }, async (t) => {
  const { gateway, page, signIn } = await stage(t);
  await signIn('mallory');
  await page.getByText('You are in no group that has a role here.').waitFor();
  await page.getByText('Back to the page').click();
  await page.locator('a[href$="/login"]').waitFor();
  assert.equal(page.url(), `${gateway.adminUrl}/`);
});
