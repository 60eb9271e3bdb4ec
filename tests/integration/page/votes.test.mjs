// Votes on the operators' page, in a real browser. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { outliveNetworkChanges } from '../lib/browser.mjs';
import { workflow } from '../lib/gateway.mjs';
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

const PEOPLE = [{ name: 'alice', groups: ['dba'] }, { name: 'bob', groups: ['security'] }, { name: 'olga', groups: ['oncall'] }];
const TOKENS = PEOPLE.map(({ name }) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver', 'caller'] }));
const env = Object.fromEntries(PEOPLE.map(({ name }) => [name.toUpperCase(), `token-of-${name}`]));

const resolvers = () => {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
};

/** A gateway whose workflow has these keys, and a page of alice. */
async function stage(t, keys, who = 'alice', args = {}) {
  const { gateway, admin, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m', keys), upstream: { tools: [tool('delete_user')] }, env, config: { admin: { people: PEOPLE, tokens: TOKENS } } });
  const context = await (await browser()).newContext();
  defer(t, () => context.close());
  const page = await context.newPage();
  outliveNetworkChanges(page);
  const faults = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  defer(t, () => assert.deepEqual(faults, []));
  await page.goto(`${gateway.adminUrl}/#token=token-of-${who}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', args);
  const row = page.locator(`[data-task-id="${taskId}"]`);
  /** These buttons and no others; a row has them only once the call behind it was read. */
  const buttons = async (...wanted) => {
    for (const verb of wanted) await row.locator(`button.${verb}`).waitFor();
    const shown = [];
    for (const verb of ['approve', 'reject', 'withdraw', 'emergency']) if (await row.locator(`button.${verb}`).isVisible()) shown.push(verb);
    assert.deepEqual(shown, wanted);
  };
  return { admin, client, page, row, taskId, buttons, as: (name) => admin.as(`token-of-${name}`) };
}

test('a vote: what is missing, who has voted; taken back; decided by the votes of others, live', { skip }, async (t) => {
  const { row, taskId, buttons, as, admin } = await stage(t, { quorum: { dba: 1, security: 1 } });
  await buttons('approve', 'reject');
  await row.locator('.reason').fill('looked at it');
  await row.locator('button.approve').click();
  await row.getByText('1 of 2: alice (“looked at it”); needs 1 of security').waitFor();
  await buttons('withdraw');
  await row.locator('button.withdraw').click();
  await row.getByText('0 of 2; needs 1 of dba, 1 of security').waitFor();
  assert.deepEqual((await admin.task(taskId)).votes, []);
  await row.locator('button.approve').click();
  await row.locator('button.withdraw').waitFor();
  await as('bob').approve(taskId);
  await row.getByText('Approved by bob').waitFor();
  await row.getByText('2 of 2: alice').waitFor();
});

test('"For me" leaves what waits for my vote, as mine=true does', { skip }, async (t) => {
  const { client, page, row, taskId, as } = await stage(t, { quorum: 2 });
  const other = (await client.createTask('delete_group', { n: 2 })).taskId;
  const own = (await as('alice').post('/api/v1/calls', { source: 'up', tool: 'delete_user', arguments: { n: 3 } })).json.id;
  for (const id of [taskId, other, own]) await page.locator(`[data-task-id="${id}"]`).waitFor();
  await row.locator('button.approve').click();
  await row.locator('button.withdraw').waitFor();
  await page.locator('#filter-mine').check();
  for (const id of [taskId, own]) await page.locator(`[data-task-id="${id}"]`).waitFor({ state: 'hidden' });
  assert.equal(await page.locator(`[data-task-id="${other}"]`).isVisible(), true);
  const { tasks } = (await as('alice').get('/api/v1/tasks?mine=true')).json;
  assert.deepEqual(tasks.map(({ id }) => id), [other]);
  await page.locator('#filter-mine').uncheck();
  for (const id of [taskId, other, own]) await page.locator(`[data-task-id="${id}"]`).waitFor();
});

test('the count of what waits for my vote goes down with my vote, and only then', { skip }, async (t) => {
  const { client, page, row, taskId, as } = await stage(t, { quorum: 2 });
  const other = (await client.createTask('delete_group', { n: 2 })).taskId;
  const own = (await as('alice').post('/api/v1/calls', { source: 'up', tool: 'delete_user', arguments: { n: 3 } })).json.id;
  for (const id of [other, own]) await page.locator(`[data-task-id="${id}"]`).waitFor();
  const counts = (text) => until(async () => (await page.locator('#pending-count').textContent()) === text, text);
  await page.locator('#filter-mine').check();
  await counts('2 of 3'); // the answer to the filter has put the list in order, and does not do so below
  await row.locator('button.approve').click();
  await counts('1 of 3');
  await page.locator('#arrange').getByText('Arrange: 1 decided').waitFor();
  assert.equal(await row.isVisible(), true, 'it stays while somebody is at the list');
  await page.locator('h1').click();
  await row.waitFor({ state: 'hidden' });
  assert.equal(await page.locator('#arrange').isVisible(), false);
  await as('bob').approve(taskId);
  await counts('1 of 2');
  assert.equal(await page.locator(`[data-task-id="${other}"]`).isVisible(), true);
  assert.equal(await page.locator('#pending-more').isVisible(), false);
});

test('a reason that is required is asked for before anything is sent', { skip }, async (t) => {
  const { row, taskId, admin } = await stage(t, { reasons: { reject: 'required' } });
  await row.getByText('(required to reject, kept with the decision)').waitFor();
  await row.locator('button.reject').click();
  await row.getByText('This vote needs a reason.').waitFor();
  assert.equal((await admin.task(taskId)).state, 'pending');
  await row.locator('.reason').fill('not today');
  await row.locator('button.reject').click();
  assert.equal((await admin.inState(taskId, 'rejected')).reason, 'not today');
});

test('a person who does not decide this workflow gets no buttons, and the reason', { skip }, async (t) => {
  const { row, buttons } = await stage(t, { approvers: { groups: ['security'] } });
  await row.getByText('You are not among those who decide this workflow.').waitFor();
  await buttons();
  assert.equal(await row.locator('.reason').count(), 0);
});

test('an emergency: its own button for its groups alone, and a reason', { skip }, async (t) => {
  const { row, taskId, buttons, admin } = await stage(t, { approvers: { groups: ['dba'] }, quorum: { dba: 1 }, emergency: { groups: ['oncall'] } }, 'olga');
  await row.waitFor();
  await buttons('emergency');
  await row.locator('button.emergency').click();
  await row.getByText('An emergency needs a reason.').waitFor();
  await row.locator('.reason').fill('the site is down');
  await row.locator('button.emergency').click();
  await row.page().locator('#decide').getByText('You decide without the others.').waitFor();
  assert.equal((await admin.task(taskId)).state, 'pending');
  await row.page().getByRole('button', { name: 'Approve alone', exact: true }).click();
  const task = await admin.inState(taskId, 'completed');
  assert.deepEqual([task.emergency, task.decidedBy], [true, 'olga']);
  await row.getByText('In an emergency, alone: olga (“the site is down”)').waitFor();
});

test('a call is not approved unseen when each reading of it is overtaken by an event', { skip, timeout: 60_000 }, async (t) => {
  const { page, row, taskId, buttons, as } = await stage(t, { quorum: { dba: 1, security: 1, oncall: 1 } }, 'alice', { pad: 'x'.repeat(60_000), db: 'PRODUCTION' });
  await buttons('approve', 'reject'); // or the reading before the reload counts as the first one below
  const posted = [];
  page.on('request', (request) => request.method() === 'POST' && posted.push(request.url()));
  const [asked, mayAnswer] = [resolvers(), resolvers()];
  let readings = 0;
  await page.route(`**/api/v1/tasks/${taskId}`, async (route) => {
    const response = await route.fetch();
    asked.resolve();
    await mayAnswer.promise;
    readings += 1;
    const isVote = readings % 2 === 1;
    await as('bob').post(`/api/v1/tasks/${taskId}/${isVote ? 'approve' : 'withdraw'}`, {});
    await row.locator('.line').getByText(isVote ? '1 of 3: bob' : '0 of 3').waitFor();
    await route.fulfill({ response });
  });
  await page.reload();
  await asked.promise;
  await row.focus();
  await page.keyboard.press('a');
  mayAnswer.resolve();
  await page.locator('#decide[open]').waitFor();
  assert.ok(readings >= 3, `${readings}`);
  const confirm = page.locator('#dialog-confirm');
  assert.deepEqual([await page.locator('#dialog-arguments .end-of-request').count(), await confirm.isDisabled()], [1, true]);
  assert.match(await page.locator('#dialog-arguments').textContent(), /PRODUCTION/);
  await page.locator('#dialog-arguments').evaluate((part) => (part.scrollTop = part.scrollHeight));
  await page.locator('#dialog-unseen').waitFor({ state: 'hidden' });
  assert.deepEqual([await confirm.isDisabled(), posted], [false, []]);
  await page.unrouteAll({ behavior: 'ignoreErrors' }); // a reading may be under way
});
