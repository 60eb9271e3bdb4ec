// Approving with other arguments on the operators' page. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picture, violations } from '../lib/axe.mjs';
import { answered, noBrowser, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';

const APPROVAL = workflow('10m', { allow_edit: ['count', 'to.zone'] });
const skip = noBrowser;
const SCHEMA = { type: 'object', properties: { count: { type: 'integer', maximum: 9007199254740993 }, to: { type: 'object' }, name: { type: 'string' } } };

/** A call that waits, with the editor open. */
async function stage(t) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: APPROVAL, upstream: { tools: [tool('move', { inputSchema: SCHEMA })] } });
  const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${all.gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const client = await all.connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('move', { name: 'db-1', count: 5, to: { zone: 'a' } });
  const box = page.locator(`[data-task-id="${taskId}"]`);
  await box.locator('.edit-begin').click();
  return { ...all, page, box, taskId };
}

test('changed and approved: what differs is shown before and after, and runs', { skip }, async (t) => {
  const staged = await stage(t);
  const { admin, page, box, taskId } = staged;
  await box.getByText('You may change count, to.zone.').waitFor();
  const area = box.locator('.edited');
  await area.fill('{"name": "db-1", "count": 7');
  await box.locator('button.approve').click();
  await box.getByText('The new arguments are not a JSON object.').waitFor();
  await area.fill('{"name": "db-1", "count": 7, "to": {"zone": "b"}}');
  assert.deepEqual(await box.locator('.edit-changes .path').allTextContents(), ['count', 'to.zone']);
  await picture(page, 'edit');
  assert.deepEqual(await violations(page), []);
  await box.locator('button.approve').click();
  const task = await admin.inState(taskId, 'completed');
  assert.deepEqual(task.arguments, { name: 'db-1', count: 7, to: { zone: 'b' } });
  await answered(page);
  await page.locator('h1').hover();
  await page.keyboard.press('.');
  await page.locator(`#decided [data-task-id="${taskId}"]`).waitFor();
  await box.locator('.more').click();
  await box.getByText('Changed by admin; the client asked for the values on top').waitFor();
  assert.deepEqual(await box.locator('.since-original .changes .json-value').allTextContents(), ['5', '7', '"a"', '"b"']);
  assert.equal(JSON.parse(await box.locator('.arguments').textContent()).count, 7);
});

test('an edit that the workflow does not allow is refused with its reason; dropped, the call runs as it came', { skip }, async (t) => {
  const staged = await stage(t);
  const { admin, box, taskId } = staged;
  await box.locator('.edited').fill('{"name": "db-2", "count": 5, "to": {"zone": "a"}}');
  await box.locator('button.approve').click();
  await box.locator('.problem').getByText('Not done:').waitFor();
  assert.equal((await admin.task(taskId)).state, 'pending');
  await box.locator('.edit-drop').click();
  await box.locator('button.approve').click();
  const task = await admin.inState(taskId, 'completed');
  assert.deepEqual([task.arguments.name, task.originalArguments], ['db-1', null]);
});
