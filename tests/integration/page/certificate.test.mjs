// The page of operators who come by client certificate, in a real browser. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { outliveNetworkChanges } from '../lib/browser.mjs';
import { Authority, gatewayCertificates, tlsBlock } from '../lib/certificates.mjs';
import { ADMIN_TOKEN, temporaryFolder, workflow } from '../lib/gateway.mjs';
import { defer } from '../lib/lifetime.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';

const CHROMIUM = process.env.TASKGATE_CHROMIUM ?? '/usr/bin/chromium';
const skip = fs.existsSync(CHROMIUM) ? false : `the browser ${CHROMIUM} is missing: apt-get install chromium, or set TASKGATE_CHROMIUM`;
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

let launching;
const browser = () => (launching ??= chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS }));
after(async () => (await launching)?.close());

async function stage(t, hash = '') {
  const folder = temporaryFolder(t, 'taskgate-certificates-');
  const { server } = gatewayCertificates(folder);
  const clients = new Authority(folder, 'Clients');
  const { cert, key } = clients.issue('alice', { usage: 'clientAuth' });
  const file = path.join(folder, 'clients.pem');
  const admin = { tls: tlsBlock(server, { client_ca: file }) };
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, config: { admin }, awaitUpstream: false });
  const { gateway } = all;
  const reload = async (people) => {
    const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
    const before = count();
    gateway.writeConfig({ config: { admin: { ...admin, public_url: gateway.adminUrl, people } } });
    gateway.hangUp();
    await gateway.logged(() => count() > before);
  };
  await reload([{ name: 'alice', certificate: 'CN=alice', roles: ['approver'] }]);
  const context = await (await browser()).newContext({ ignoreHTTPSErrors: true, clientCertificates: [{ origin: gateway.adminUrl, cert: Buffer.from(cert), key: Buffer.from(key) }] });
  defer(t, () => context.close());
  const page = await context.newPage();
  outliveNetworkChanges(page);
  await page.goto(`${gateway.adminUrl}/${hash}`);
  const { taskId } = await (await all.connect()).createTask('delete_user');
  return { ...all, page, reload, taskId };
}

const by = (gateway, taskId) => gateway.logged((entry) => entry.msg === 'Task approved' && entry.task === taskId);

test('a certificate is enough: who one is, deciding, no signing out; a reload takes it away', { skip }, async (t) => {
  const { gateway, page, reload, taskId } = await stage(t);
  await page.locator('.link[data-state="live"]').waitFor();
  assert.equal(await page.locator('.who').textContent(), 'alice (CN=alice)');
  assert.equal(await page.locator('button.logout').isVisible(), false, 'the browser would go on showing it');
  await page.locator(`[data-task-id="${taskId}"] button.approve`).click();
  assert.equal((await by(gateway, taskId)).by, 'alice');
  await reload([]);
  await page.locator('#sign-in').waitFor();
  assert.equal(await page.locator('.who').isVisible(), false);
});

test('with a certificate and a token the token counts', { skip }, async (t) => {
  const { gateway, page, taskId } = await stage(t, `#token=${ADMIN_TOKEN}`);
  await page.locator('.link[data-state="live"]').waitFor();
  assert.equal(await page.locator('.who').textContent(), 'admin');
  assert.equal(await page.locator('button.logout').isVisible(), true);
  await page.locator(`[data-task-id="${taskId}"] button.approve`).click();
  assert.equal((await by(gateway, taskId)).by, 'admin');
});
