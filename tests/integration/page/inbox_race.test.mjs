// Two approvers in a hurry, each with a page, over the same calls. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answered, noBrowser as skip, openPage } from '../lib/browser.mjs';
import { workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const NAMES = ['alice', 'bob'];
const PEOPLE = { people: NAMES.map((name) => ({ name })), tokens: NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })) };
const env = Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`]));
const COUNT = 12;

/** A gateway with COUNT calls that differ in their tool, and a page of each person. */
async function stage(t, keys = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m', keys), upstream: { tools: Array.from({ length: 40 }, (_, n) => tool(`deploy_${n}`)) }, env, config: { admin: PEOPLE } });
  const client = await all.connect();
  const call = async (n) => (await client.createTask(`deploy_${n}`, { n }, { ttl: 3_600_000 })).taskId;
  const ids = [];
  for (let n = 0; n < COUNT; n += 1) ids.push(await call(n));
  const pages = [];
  for (const name of NAMES) {
    const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
    await page.goto(`${all.gateway.adminUrl}/#token=token-of-${name}`);
    await page.locator('.link[data-state="live"]').waitFor();
    const sent = [];
    page.on('request', (request) => request.method() === 'POST' && sent.push(request.url().split('/').slice(-2)));
    pages.push({ name, page, sent });
  }
  return { ...all, call, ids, pages };
}

const focused = (page) => page.evaluate(() => document.activeElement?.dataset.taskId);

/** One press after the other; returns the call that had the focus when it was decided, or undefined. */
async function decideNext({ page, sent }, verb) {
  await page.keyboard.press('j');
  const meant = await focused(page);
  if (meant === undefined) return undefined;
  const before = sent.length;
  await page.keyboard.press(verb === 'approve' ? 'a' : 'r');
  const opens = await Promise.race([page.locator('#decide[open]').waitFor().then(() => true), page.waitForFunction(() => /does not wait any more/.test(document.querySelector('#announcer').textContent)).then(() => false)]).catch(() => false);
  if (!opens) return undefined;
  const named = await page.locator('#dialog-title').textContent();
  await page.keyboard.press('Enter');
  if (await page.locator('#dialog-ended').isVisible()) await page.keyboard.press('Escape');
  await answered(page);
  assert.ok(sent.length - before <= 1, 'at most one decision for one Enter');
  if (sent.length > before) assert.deepEqual(sent.at(-1), [meant, verb]);
  return sent.length > before ? [meant, named] : undefined;
}

test('two people who press j a Enter and j r Enter over the same calls decide each once, and only what they looked at', { skip, timeout: 120_000 }, async (t) => {
  const { admin, upstream, ids, pages } = await stage(t);
  const verbs = { alice: 'approve', bob: 'reject' };
  const work = async (person) => {
    const meant = [];
    for (let n = 0; n < 2 * COUNT; n += 1) {
      const one = await decideNext(person, verbs[person.name]);
      if (one) meant.push(one);
      if ((await admin.get('/api/v1/inbox')).json.waiting === 0) break;
    }
    return meant;
  };
  const [approved, rejected] = await Promise.all(pages.map(work));
  assert.equal((await admin.get('/api/v1/inbox')).json.waiting, 0);
  const tasks = [];
  for (const id of ids) tasks.push(await until(async () => ['completed', 'rejected'].includes((await admin.task(id)).state) && admin.task(id), 'the end'));
  for (const [at, { id, state, decidedBy, tool: name }] of tasks.entries()) {
    assert.equal(name, `deploy_${at}`);
    const [by, list, title] = state === 'completed' ? ['alice', approved, 'Approve'] : ['bob', rejected, 'Reject'];
    assert.equal(decidedBy, by);
    assert.deepEqual(list.filter(([meant]) => meant === id), [[id, `${title}: ${name}`]]);
  }
  const ran = upstream.calls.map(({ rpc }) => rpc.params.arguments.n).toSorted((a, b) => a - b);
  assert.deepEqual(ran, tasks.flatMap(({ state }, at) => (state === 'completed' ? [at] : [])));
  assert.ok(approved.length > 0 && rejected.length > 0, `${approved.length} and ${rejected.length}`);
  for (const { page } of pages) {
    await until(async () => (await page.locator('#pending-count').textContent()) === '', 'no call left');
    await page.keyboard.press('.');
    await until(async () => (await page.locator('#decided [data-task-id]').count()) === COUNT, 'all of them below');
  }
});

test('while another decides and new calls come, a click means the call under the pointer when it was shown', { skip, timeout: 120_000 }, async (t) => {
  const { admin, ids, call, pages } = await stage(t);
  const [alice, bob] = pages;
  const row = (person, id) => person.page.locator(`[data-task-id="${id}"]`);
  await row(alice, ids[6]).locator('.line').click();
  const reject = row(alice, ids[6]).locator('button.reject');
  await reject.hover();
  const { x, y, width, height } = await reject.boundingBox();
  for (const [at, id] of ids.entries()) {
    if (at === 6) continue;
    await bob.page.locator(`[data-task-id="${id}"]`).focus();
    await bob.page.keyboard.press('r');
    await bob.page.locator('#decide[open]').waitFor();
    await bob.page.keyboard.press('Enter');
    await admin.inState(id, 'rejected');
    await answered(bob.page);
    if (at % 4 === 0) await call(20 + at);
  }
  await until(async () => (await alice.page.locator('#arrange').textContent()) === `Arrange: ${COUNT - 1} decided, 3 new`, 'all news');
  assert.deepEqual(await reject.boundingBox(), { x, y, width, height });
  await alice.page.mouse.click(x + width / 2, y + height / 2);
  await admin.inState(ids[6], 'rejected');
  await answered(alice.page); // or the browser may not have reported the request yet
  assert.deepEqual(alice.sent, [[ids[6], 'reject']]);
  assert.equal((await admin.get('/api/v1/inbox')).json.waiting, 3);
});
