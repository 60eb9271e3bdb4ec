// Grants on the operators' page: given with an approval, listed, revoked. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picture, violations } from '../lib/axe.mjs';
import { noBrowser, openPage } from '../lib/browser.mjs';
import { workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const PEOPLE = [{ name: 'alice', groups: ['dba'] }, { name: 'bob', groups: ['dba'] }, { name: 'eve' }];
const TOKENS = PEOPLE.map(({ name }) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: [name === 'eve' ? 'viewer' : 'approver'] }));
const env = Object.fromEntries(PEOPLE.map(({ name }) => [name.toUpperCase(), `token-of-${name}`]));

const skip = noBrowser;
// Before the page asks for the grants by itself.
const SOON_MS = 15_000;

async function stage(t, keys, options = { viewport: { width: 1280, height: 800 } }) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m', keys), upstream: { tools: [tool('restart')] }, env, config: { admin: { people: PEOPLE, tokens: TOKENS } } });
  const pageOf = async (name) => {
    const page = await openPage(t, all.gateway.adminUrl, options);
    await page.goto(`${all.gateway.adminUrl}/#token=token-of-${name}`);
    await page.locator('.link[data-state="live"]').waitFor();
    return page;
  };
  const client = await all.connect();
  await client.result('tools/list');
  return { ...all, pageOf, client, call: async (args) => (await client.createTask('restart', args)).taskId };
}

const rowOf = (page, id) => page.locator(`[data-task-id="${id}"]`);

test('given with an approval, used without being asked, listed live, revoked with a reason', { skip }, async (t) => {
  const { admin, pageOf, call } = await stage(t, { grants: { max: '2h', max_calls: 20, vary: ['note'] } });
  const page = await pageOf('alice');
  const viewer = await pageOf('eve');
  const first = await call({ host: 'db-1', note: 'a' });
  const box = rowOf(page, first);
  await box.locator('.grant-wanted').check();
  await box.getByText('Only these arguments may differ: note.').waitFor();
  assert.deepEqual(await box.locator('.grant-for option').allTextContents(), ['10m', '30m', '1h', '2h']);
  await box.locator('.grant-calls').fill('21');
  await box.locator('button.approve').click();
  await box.getByText('The grant needs a number of calls that the workflow allows.').waitFor();
  assert.equal((await admin.task(first)).state, 'pending');
  await box.locator('.grant-calls').fill('3');
  await box.locator('.grant-for').selectOption('30m');
  await picture(page, 'grant-wish');
  assert.deepEqual(await violations(page), []);
  await box.locator('button.approve').click();
  const { grant } = await admin.inState(first, 'completed');
  assert.equal(grant.calls, 3);
  await page.locator('#grants').getByText('3 calls left of 3').waitFor();
  const second = await call({ host: 'db-1', note: 'b' });
  await admin.inState(second, 'completed');
  await page.locator('#grants').getByText('2 calls left of 3').waitFor();
  await rowOf(page, second).locator('.more').click();
  await rowOf(page, second).getByText(`call 1 of 3 of ${grant.id}`).waitFor();
  await viewer.locator('#grants').getByText('2 calls left of 3').waitFor();
  assert.equal(await viewer.locator('#grants button').isVisible(), false);
  await picture(page, 'grants');
  assert.deepEqual(await violations(page), []);
  await page.locator('#grants button').click();
  await page.keyboard.type('enough');
  await page.keyboard.press('Enter');
  await page.locator('#grants-part').waitFor({ state: 'hidden' });
  const listed = (await admin.get('/api/v1/grants')).json.grants[0];
  assert.deepEqual([listed.endCause, listed.endedBy, listed.endReason], ['revoked', 'alice', 'enough']);
  const third = await call({ host: 'db-1', note: 'c' });
  await rowOf(page, third).locator('button.approve').waitFor();
});

test('a grant that another operator gives and revokes comes and goes at once', { skip }, async (t) => {
  const { admin, pageOf, call } = await stage(t, { grants: { max: '2h', max_calls: 20 } });
  const page = await pageOf('eve');
  const bob = admin.as('token-of-bob');
  const answer = await bob.post(`/api/v1/tasks/${await call({ host: 'db-1' })}/approve`, { grant: { for: '1h', calls: 2 } });
  await page.locator('#grants').getByText('2 calls left of 2').waitFor({ timeout: SOON_MS });
  assert.equal((await bob.post(`/api/v1/grants/${answer.json.grant.id}/revoke`)).status, 200);
  await page.locator('#grants-part').waitFor({ state: 'hidden', timeout: SOON_MS });
});

test('the second voter is offered what the first has asked for', { skip }, async (t) => {
  const { admin, pageOf, call } = await stage(t, { quorum: 2, grants: { max: '1h', max_calls: 20 } });
  const id = await call({ host: 'db-1' });
  const voted = await admin.as('token-of-bob').post(`/api/v1/tasks/${id}/approve`, { grant: { for: '45m', calls: 7 } });
  assert.equal(voted.status, 202, voted.text);
  const page = await pageOf('alice');
  await rowOf(page, id).locator('.grant-wanted').check();
  await rowOf(page, id).getByText('Every argument must be the same.').waitFor();
  await rowOf(page, id).locator('button.approve').click();
  const { grant } = await admin.inState(id, 'completed');
  assert.equal(grant.calls, 7);
});

test('nothing is offered where the workflow has no grants, or to whom it does not allow them', { skip }, async (t) => {
  const { pageOf, call } = await stage(t, { grants: { max: '1h', max_calls: 20, by: ['nobody', 'dba'] } });
  const page = await pageOf('alice');
  const id = await call({ host: 'db-1' });
  await until(() => rowOf(page, id).locator('.grant-wanted').isVisible(), 'the wish for alice of dba');
  const plain = await stage(t, {});
  const other = await plain.pageOf('alice');
  const call2 = await plain.call({ host: 'db-1' });
  await rowOf(other, call2).locator('button.approve').waitFor();
  assert.equal(await rowOf(other, call2).locator('.grant-wanted').isVisible(), false);
});
