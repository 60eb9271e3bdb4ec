// button.block on the operators' page. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violations } from '../lib/axe.mjs';
import { noBrowser, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { startIssuer } from '../lib/token_issuer.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

test('a caller that is not verified is blocked by the name of its client; the call says so', { skip: noBrowser }, async (t) => {
  const { admin, gateway, connect } = await scene(t, { rules: [['drop', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('drop'), tool('read')] } });
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const client = await connect({ name: 'bot <b>' });
  const { taskId } = await client.createTask('drop');
  const row = page.locator(`[data-task-id="${taskId}"]`);
  await row.locator('button.block').click();
  assert.equal(await page.locator('#block-scope').inputValue(), 'client');
  assert.match(await page.locator('#block-asker').textContent(), /^unverified "bot <b> \(session \w+\)" at up$/);
  assert.deepEqual(await violations(page), []);
  await page.locator('#block-confirm').click();
  assert.equal(await page.locator('#block-dialog').isVisible(), true, 'a reason is required');
  await page.locator('#block-reason').fill('it runs wild');
  const answer = page.waitForResponse((response) => response.url().endsWith('/api/v1/blocks'));
  await page.keyboard.press('Enter');
  const made = await (await answer).json();
  assert.deepEqual([made.scope, made.reason, made.task], ['client', 'it runs wild', taskId]);
  await until(async () => /Rejected by admin/.test(await row.textContent()), 'the row says that its call is rejected');
  assert.equal((await admin.task(taskId)).reason, 'it runs wild');
  assert.equal((await client.error('tools/call', { name: 'read' })).data.error_type, 'caller_blocked');
});

test('a verified caller is shown as such, and blocked as the owner', { skip: noBrowser }, async (t) => {
  const issuer = await startIssuer(t), audience = 'https://gate.example/mcp';
  const { gateway, connect } = await scene(t, { rules: [['drop', 'approve']], approval: workflow('10m'), source: { auth: { issuer: issuer.url, audience, upstream: 'drop' } }, upstream: { tools: [tool('drop')] } });
  const { taskId } = await (await connect({ token: issuer.token(audience, { sub: 'svc-<b>' }) })).createTask('drop');
  assert.match((await gateway.cli(['tasks', 'show', taskId])).stdout, /^Asked by +verified "[^"]*svc-<b>[^"]*"/m);
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const row = page.locator(`[data-task-id="${taskId}"]`);
  await row.locator('button.block').click();
  const asker = row.locator('.asker');
  assert.equal(await asker.getAttribute('data-by'), 'issuer');
  assert.match(await asker.textContent(), /^verified "[^"]*svc-<b>[^"]*"$/);
  assert.equal(await page.locator('#block-scope').inputValue(), 'owner');
});
