// The operators' inbox under the hands of one person while another decides: a press means the call that has the focus. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { picture, violations } from '../lib/axe.mjs';
import { answered, noBrowser as skip, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

/* A row out of view is not laid out, and has a height that is only a guess. */
const inView = async (row) => {
  await row.evaluate((element) => element.scrollIntoView({ block: 'center' }));
  await row.evaluate((element) => new Promise((resolve) => (element.checkVisibility({ contentVisibilityAuto: true }) ? resolve() : element.addEventListener('contentvisibilityautostatechange', resolve, { once: true }))));
};

/** `count` calls of as many tools, in the order in which they run out: two that are made in one millisecond too. */
async function stage(t, count) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m'), upstream: { tools: Array.from({ length: 100 }, (_, n) => tool(`deploy_${n}`)) } });
  const client = await all.connect();
  const call = async (n) => (await client.createTask(`deploy_${n}`, { n }, { ttl: 1_200_000 + n * 1000 })).taskId;
  const ids = [];
  for (let n = 0; n < count; n += 1) ids.push(await call(n));
  const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${all.gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const row = (id) => page.locator(`[data-task-id="${id}"]`);
  await page.waitForFunction(() => !document.querySelector('.row.open:not(.stack, :has(.detail))')); // cards that are read make others move no more
  return {
    ...all,
    page,
    ids,
    call,
    row,
    /* The dialog comes once the whole call is read. */
    press: async (...keys) => {
      for (const [at, key] of keys.entries()) {
        if (key === 'Enter' && keys[at - 1] === 'a' && (await page.evaluate(() => document.activeElement.dataset.state === 'pending'))) await page.locator('#decide').waitFor();
        await page.keyboard.press(key);
      }
    },
    focused: () => page.evaluate(() => document.activeElement.dataset.taskId),
    places: () => page.locator('#pending > li').evaluateAll((rows) => rows.map((element) => [element.dataset.taskId, element.getBoundingClientRect().y, element.offsetHeight])),
    said: () => page.locator('#announcer').textContent(),
  };
}

for (const [name, count] of [['lines', 7], ['open cards', 3]]) {
  test(`a call that another person decides keeps place, height and focus, and keys do nothing to the next one (${name})`, { skip }, async (t) => {
    const { admin, page, ids, call, row, press, focused, places, said } = await stage(t, count);
    const [first, second] = ids;
    await press('j');
    assert.equal(await focused(), first);
    await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)));
    const buttons = () => row(first).locator('button.copy-link, button.block, button.more').evaluateAll((all) => all.map((button) => button.getBoundingClientRect().y));
    const [before, buttonsBefore] = [await places(), await buttons()];
    await admin.reject(first, 'not today');
    await page.locator(`#pending [data-task-id="${first}"][data-state="rejected"]`).waitFor();
    const late = await call(99);
    await row(late).waitFor();
    assert.deepEqual((await places()).slice(0, count), before);
    assert.deepEqual(await buttons(), buttonsBefore, 'no other button comes under the next press');
    assert.equal((await places())[count][0], late, 'a new one comes at the end');
    assert.match(await row(first).locator('.outcome').textContent(), /^Rejected by admin/);
    assert.equal(await row(first).locator('.outcome').isVisible(), true);
    assert.equal(await focused(), first);
    await press('a', 'Enter');
    assert.match(await said(), /^deploy_0 does not wait any more\. Rejected by admin/);
    await press('r', 'Enter', 'x');
    assert.equal(await page.locator('#decide').isVisible(), false);
    assert.equal((await admin.task(second)).state, 'pending');
    assert.equal(await page.locator('#arrange').textContent(), 'Arrange: 1 decided, 1 new');
    await picture(page, `still-${count}`);
    assert.deepEqual(await violations(page), []);
    await press('j');
    assert.equal(await focused(), second);
    await press('k');
    assert.equal(await focused(), second, 'a call that waits no more is passed over');
    await press('.');
    await page.locator(`#decided [data-task-id="${first}"]`).waitFor();
    assert.equal(await focused(), second);
    assert.equal(await page.locator('#arrange').isVisible(), false);
    await admin.reject(second);
    await page.locator(`#pending [data-task-id="${second}"][data-state="rejected"]`).waitFor();
    await page.locator('#search').focus();
    await page.locator(`#decided [data-task-id="${second}"]`).waitFor();
  });
}

/** A stack of three above six other calls, with a page of somebody who is at the list. */
async function stackStage(t, { approval = workflow('30m'), token = ADMIN_TOKEN, ...more } = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval, upstream: { tools: ['restart', ...'abcdef'].map((name) => tool(name)) }, ...more });
  const client = await all.connect();
  const ids = [];
  const call = async (name, args, ttl = 1_200_000 + ids.length * 1000) => (await client.createTask(name, args, { ttl })).taskId;
  for (let n = 0; n < 3; n += 1) ids.push(await call('restart', { host: `db-${n}`, same: true }));
  for (const name of 'abcdef') ids.push(await call(name, { name }));
  const page = await openPage(t, all.gateway.adminUrl, { viewport: { width: 1280, height: 900 } });
  await page.goto(`${all.gateway.adminUrl}/#token=${token}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const places = () => page.locator('#pending > li, .stack tbody tr, .stack .buttons button, .stack thead').evaluateAll((rows) => rows.map((element) => [element.dataset.taskId ?? element.dataset.call ?? element.localName, element.getBoundingClientRect().y, element.offsetHeight]));
  return { ...all, call, ids, page, places, stack: page.locator('#pending > li[data-stack]') };
}

test('in an open stack a call that another person decides keeps its line and the focus; new ones come at the end', { skip }, async (t) => {
  const { admin, page, call, ids, stack, places } = await stackStage(t);
  await stack.locator('.line > .more').click();
  await stack.locator('tbody tr').nth(2).waitFor();
  const line = (id) => stack.locator(`[data-call="${id}"]`);
  assert.equal(await stack.locator('.stack-table').evaluate((box) => box.scrollHeight <= box.clientHeight), true, 'all lines are in view');
  await line(ids[0]).locator('button').focus();
  await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)));
  const before = await places();
  await admin.reject(ids[0], 'not today');
  await line(ids[0]).getByText('Rejected by admin').waitFor();
  assert.match(await line(ids[0]).locator('.ended').textContent(), /^Rejected by admin, .* · “not today”$/);
  assert.deepEqual(await places(), before);
  assert.deepEqual(await line(ids[0]).locator('input, button').evaluateAll((all) => all.map(({ disabled }) => disabled)), [true, true]);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.call), ids[0]);
  const urgent = await call('restart', { host: 'db-9', same: false, more: 1 }, 600_000);
  await line(urgent).waitFor({ state: 'attached' });
  assert.deepEqual((await places()).filter(([name]) => name !== urgent), before);
  assert.deepEqual(await stack.locator('tbody tr').evaluateAll((all) => all.map(({ dataset }) => dataset.call)), [...ids.slice(0, 3), urgent]);
  assert.deepEqual(await Promise.all(['.tool', '.brief'].map((part) => stack.locator(`.line ${part}`).textContent())), ['restart × 3', 'host: db-0 · same: true']);
  assert.equal(await page.locator('#arrange').textContent(), 'Arrange: 1 decided');
  assert.deepEqual(await violations(page), []);
  await picture(page, 'still-stack');
  await line(ids[1]).locator('input').check();
  await admin.reject(ids[1]);
  await line(ids[1]).getByText('Rejected by admin').waitFor();
  await page.locator('#selection').waitFor({ state: 'hidden' });
  await page.locator('#search').focus();
  await page.locator('h1').hover();
  await line(ids[0]).waitFor({ state: 'detached' });
  assert.deepEqual(await stack.locator('tbody tr').evaluateAll((all) => all.map(({ dataset }) => dataset.call)), [urgent, ids[2]]);
  assert.equal(await stack.locator('.line .brief').textContent(), 'host: db-9 · same: false · more: 1');
});

for (const name of ['closed', 'open']) {
  test(`a stack whose last call ends keeps its place and height until somebody has left (${name})`, { skip }, async (t) => {
    const { admin, page, ids, stack, places } = await stackStage(t);
    if (name === 'open') {
      await stack.locator('.line > .more').click();
      await stack.locator('tbody tr').nth(2).waitFor();
    }
    await page.locator(`#pending > [data-task-id="${ids[4]}"] .tool`).hover();
    await page.locator(`#pending > [data-task-id="${ids[4]}"]`).focus();
    await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)));
    const before = await places();
    for (const id of ids.slice(0, 3)) await admin.reject(id);
    await stack.getByText('None of them waits any more.').waitFor();
    assert.deepEqual(await places(), before);
    assert.equal(await page.locator('#arrange').textContent(), 'Arrange: 3 decided');
    await picture(page, `still-stack-over-${name}`);
    await page.locator('#search').focus();
    await page.locator('h1').hover();
    await stack.waitFor({ state: 'detached' });
    assert.equal(await page.locator('#arrange').isVisible(), false);
  });
}

for (const name of ['closed', 'open']) {
  test(`a vote with a long reason makes no line higher (${name})`, { skip }, async (t) => {
    const people = ['alice', 'bob'].map((person) => ({ name: person }));
    const tokens = people.map((person) => ({ name: `${person.name}-cli`, person: person.name, token_env: person.name.toUpperCase(), roles: ['approver'] }));
    const { admin, page, ids, places } = await stackStage(t, { approval: workflow('30m', { quorum: 2 }), token: 'token-of-alice', env: { ALICE: 'token-of-alice', BOB: 'token-of-bob' }, config: { admin: { people, tokens } } });
    const row = page.locator(`#pending > [data-task-id="${ids[4]}"]`);
    await row.focus();
    if (name === 'open') {
      await page.keyboard.press('Enter');
      await row.locator('button.approve').waitFor();
    }
    await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished)));
    const buttons = () => row.locator('button:visible').evaluateAll((all) => all.map((button) => button.getBoundingClientRect().y));
    const before = [await places(), await buttons()];
    const reason = 'as agreed with everybody '.repeat(20).trim();
    await admin.as('token-of-bob').decide('approve', ids[4], reason);
    await row.locator('.votes').getByText('1 of 2: bob (“as agreed').waitFor();
    assert.deepEqual([await places(), await buttons()], before);
    await picture(page, `still-votes-${name}`);
    if (name === 'closed') return;
    await page.locator('#search').focus();
    await page.locator('h1').hover();
    await page.waitForFunction(() => document.querySelector('.held') === null);
    assert.equal(await row.locator('.votes').evaluate((votes) => votes.scrollWidth <= votes.clientWidth), true, 'all of it is shown once somebody has left');
  });
}

test('j a Enter, repeated, decides each call once', { skip }, async (t) => {
  const { admin, page, ids, press, focused, upstream } = await stage(t, 7);
  for (const id of ids) {
    await press('j');
    assert.equal(await focused(), id);
    await press('a', 'Enter');
    await admin.inState(id, 'completed');
    await answered(page);
    assert.equal(await focused(), id, 'the focus stays');
    await until(async () => (await admin.list({ state: 'pending' })).tasks.length === ids.length - 1 - ids.indexOf(id), 'one less');
  }
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.arguments.n).sort(), [0, 1, 2, 3, 4, 5, 6]);
});

test('a dialog whose call is decided meanwhile says so, and decides nothing', { skip }, async (t) => {
  const { admin, page, ids, press } = await stage(t, 6);
  await press('j', 'a');
  await page.locator('#decide').waitFor();
  const confirm = page.locator('#dialog-confirm');
  assert.equal(await confirm.isEnabled(), true);
  await admin.reject(ids[0], 'no');
  await page.locator('#dialog-ended').getByText(/^Too late\. Rejected by admin/).waitFor();
  assert.equal(await confirm.isDisabled(), true);
  await press('Enter');
  assert.equal(await page.locator('#decide').isVisible(), true);
  await press('Escape');
  assert.equal((await admin.task(ids[1])).state, 'pending');
});

test('the second click of two on a dialog decides nothing that is below it', { skip }, async (t) => {
  const { admin, page, ids, row } = await stage(t, 3);
  await page.setViewportSize({ width: 390, height: 844 });
  const confirm = page.locator('#dialog-confirm');
  const ask = async () => {
    await row(ids[0]).evaluate((element) => element.focus({ preventScroll: true }));
    await page.keyboard.press('a');
    await page.locator('#decide[open]').waitFor();
  };
  await ask();
  const centre = async (button) => {
    const { x, y, width, height } = await button.boundingBox();
    return [x + width / 2, y + height / 2];
  };
  const [x, y] = await centre(confirm);
  await page.keyboard.press('Escape');
  const below = row(ids[1]).locator('button.approve');
  await page.evaluate((by) => scrollBy(0, by), (await centre(below))[1] - y);
  assert.equal(await below.evaluate((button, at) => document.elementFromPoint(...at) === button, [x, y]), true, 'a button of another call is at this place');
  await ask();
  assert.deepEqual(await centre(confirm), [x, y]);
  const sent = [];
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.url().split('/').slice(-2)));
  await page.mouse.dblclick(x, y);
  await admin.inState(ids[0], 'completed');
  await answered(page);
  assert.deepEqual(sent, [[ids[0], 'approve']]);
  assert.equal((await admin.task(ids[1])).state, 'pending');
  await below.click();
  await admin.inState(ids[1], 'completed');
});

test('keys that are pressed before the answer to a decision are dropped', { skip }, async (t) => {
  const { admin, page, ids, press, focused, said } = await stage(t, 7);
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  await page.route('**/approve', async (route) => {
    await gate;
    await route.continue();
  });
  const sent = page.waitForRequest('**/approve');
  await press('j', 'a', 'Enter');
  await sent;
  for (const key of ['j', 'a', 'Enter', 'r', 'Enter']) await page.keyboard.press(key);
  assert.match(await said(), /on its way/);
  assert.equal(await focused(), ids[0]);
  assert.equal(await page.locator('#decide').isVisible(), false);
  go();
  await admin.inState(ids[0], 'completed');
  await answered(page);
  await press('j');
  assert.equal(await focused(), ids[1]);
  assert.equal((await admin.task(ids[1])).state, 'pending');
});

for (const [width, height] of [[1440, 900], [1024, 768], [390, 844]]) {
  test(`a row at ${width} px: nothing of tool, values and caller is cut, and its controls have a size and a name of their own`, { skip }, async (t) => {
    const { page, connect, row } = await stage(t, 5);
    await page.setViewportSize({ width, height });
    const { taskId } = await (await connect({ name: 'the nightly clean-up job of billing' })).createTask('delete_database_of_the_production_cluster', { database: 'production-customers-eu-central', cascade: true }, { ttl: 3_600_000 });
    await row(taskId).waitFor();
    await inView(row(taskId));
    for (const part of ['.tool', '.brief', '.asker']) {
      const box = row(taskId).locator(`.line ${part}`);
      assert.equal(await box.isVisible(), true, part);
      assert.equal(await box.evaluate((element) => element.scrollWidth <= element.clientWidth + 1 && element.scrollHeight <= element.clientHeight + 1), true, `${part} is cut`);
    }
    const { height: high } = await row(taskId).boundingBox();
    assert.ok(high < (width > 1000 ? 70 : 180), `${high} px high`);
    await page.locator('.row .more').first().click();
    const names = await page.locator('#pending').locator('button:visible, input:visible').evaluateAll((all) => all.map((control) => control.getAttribute('aria-label')));
    assert.equal(new Set(names).size, names.length, names.join('\n'));
    const small = await page.locator('button:visible, select:visible, input[type="checkbox"]:visible').evaluateAll((all) => all.map((control) => [control.outerHTML.slice(0, 80), control.offsetWidth, control.offsetHeight]).filter(([, wide, high]) => wide < 44 || high < 44));
    if (width === 390) assert.deepEqual(small, []);
    await row(taskId).locator('.pick').check();
    const cut = await page.locator('#board button:visible, #selection button:visible').evaluateAll((all) => all.filter((control) => control.scrollWidth > control.clientWidth).map((control) => control.id || control.outerHTML));
    assert.deepEqual(cut, []);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    const below = await page.locator('#tools').evaluate((tools) => tools.getBoundingClientRect().bottom);
    assert.equal(below > 0, width > 390, 'on a phone the tools leave the screen to the calls');
    await page.evaluate(() => scrollTo(0, 0));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    assert.deepEqual(await violations(page), []);
    await picture(page, `rows-${width}`);
  });
}

for (const [width, height] of [[1440, 900], [1024, 768], [390, 844]]) {
  test(`the line of a rule's summary, a stack and the filters at ${width} px: whole, in two lines, each with a caller, and large enough for a finger`, { skip }, async (t) => {
    const summary = 'Deletes {database} of {cluster}';
    const rules = [{ match: 'delete_*', action: 'approve', approval: 'urgent', show: { summary, risk: 'high' } }, { match: '*', action: 'approve', approval: 'default' }];
    const { gateway, connect } = await scene(t, { rules, approval: { ...workflow('30m'), urgent: workflow('10m').default }, upstream: { tools: ['delete_database_of_the_cluster', 'restart', ...'abcdef'].map((one) => tool(one)) } });
    const client = await connect({ name: 'billing clean-up job' });
    const { taskId } = await client.createTask('delete_database_of_the_cluster', { database: 'customers-production', cluster: 'eu-central-1' }, { ttl: 3_600_000 });
    for (let n = 0; n < 3; n += 1) await client.createTask('restart', { host: `db-${n}` }, { ttl: 3_600_000 });
    for (const one of 'abcdef') await client.createTask(one, {}, { ttl: 3_600_000 });
    const page = await openPage(t, gateway.adminUrl, { viewport: { width, height } });
    await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
    const row = page.locator(`#pending > [data-task-id="${taskId}"]`);
    const stack = page.locator('#pending > li[data-stack]');
    await row.waitFor();
    assert.equal(await row.locator('.brief').textContent(), 'Deletes "customers-production" of "eu-central-1"');
    for (const line of [row.locator('> .line'), stack.locator('> .line')]) {
      assert.match(await line.locator('.asker').innerText(), /^unverified "billing clean-up job \(session \w+\)"$/);
      for (const part of width < 1024 ? ['.asker'] : ['.tool', '.brief', '.asker']) assert.equal(await line.locator(part).evaluate((element) => element.scrollWidth <= element.clientWidth + 1 && element.scrollHeight <= element.clientHeight + 1), true, `${part} is cut`);
    }
    await picture(page, `summary-${width}`);
    for (const one of width < 1024 ? [] : [row, stack]) {
      await inView(one);
      const { height: high } = await one.boundingBox();
      assert.ok(high < 70, `two lines, of ${high} px`);
    }
    await stack.locator('.line > .more').click();
    await stack.locator('tbody tr').nth(2).waitFor();
    const controls = page.locator('button:visible, select:visible, input[type="checkbox"]:visible');
    const sizes = await controls.evaluateAll((all) => all.map((control) => [control.id || control.getAttribute('aria-label') || control.className, control.offsetWidth, control.offsetHeight]));
    assert.ok(sizes.some(([name]) => name === 'filter-workflow') && sizes.some(([name]) => name === 'filter-risk'), 'there are selects');
    if (width === 390) assert.deepEqual(sizes.filter(([, wide, high]) => wide < 44 || high < 44), []);
    const names = await page.locator('#pending').locator('button:visible, input:visible').evaluateAll((all) => all.map((control) => control.getAttribute('aria-label')));
    assert.equal(new Set(names).size, names.length, names.join('\n'));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    assert.deepEqual(await violations(page), []);
  });
}

test('all that can be filled in on two open cards has a name of its own, and on a phone room for a finger, as in the dialogs', { skip }, async (t) => {
  const { gateway, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('30m', { allow_edit: ['n'], grants: { max: '1h', max_calls: 5 } }), upstream: { tools: [tool('restart'), tool('deploy')] } });
  const client = await connect();
  const ids = [];
  for (const name of ['restart', 'deploy']) ids.push((await client.createTask(name, { n: 1 }, { ttl: 3_600_000 })).taskId);
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const row = (id) => page.locator(`[data-task-id="${id}"]`);
  for (const id of ids) {
    await row(id).locator('.edit-begin').click();
    await row(id).locator('.grant-wanted').check();
  }
  const controls = await page.locator('#pending').locator('button:visible, input:visible, select:visible, textarea:visible').evaluateAll((all) => all.map((control) => control.getAttribute('aria-label') ?? control.labels?.[0]?.textContent));
  assert.ok(controls.length >= 2 * 10, controls.join('\n'));
  assert.equal(new Set(controls).size, controls.length, controls.join('\n'));
  const small = (box) => box.locator('button:visible, select:visible, input[type="checkbox"]:visible').evaluateAll((all) => all.map((control) => [control.outerHTML.slice(0, 80), control.offsetWidth, control.offsetHeight]).filter(([, wide, high]) => wide < 44 || high < 44));
  assert.deepEqual(await small(page.locator('#pending')), []);
  assert.deepEqual(await violations(page), []);
  await row(ids[0]).locator('button.block').click();
  assert.deepEqual(await small(page.locator('#block-dialog')), []);
  await page.keyboard.press('Escape');
  await row(ids[0]).locator('.edit-drop').click();
  await row(ids[0]).focus();
  await page.keyboard.press('r');
  await page.locator('#decide[open]').waitFor();
  assert.deepEqual(await small(page.locator('#decide')), []);
  await page.keyboard.press('Escape');
  await page.locator('#help-open').click();
  assert.deepEqual(await small(page.locator('#help')), []);
});

for (const [name, view] of [['desk', { width: 1280, height: 900 }], ['phone', { width: 390, height: 844 }]]) {
  test(`the buttons of a card stay where they are when the call to compare with comes late, and when the end of the request was seen (${name})`, { skip }, async (t) => {
    const { admin, page, ids, connect, row } = await stage(t, 1);
    await page.setViewportSize(view);
    const placesOf = (id) => row(id).locator('button:visible').evaluateAll((all) => all.map((button) => [button.className, button.getBoundingClientRect().y + scrollY]));
    await row(ids[0]).locator('button.approve').click();
    await admin.inState(ids[0], 'completed');
    await answered(page);
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    await page.route(/\/api\/v1\/tasks\?.*tool=deploy_0/, async (route) => {
      await gate;
      await route.continue();
    });
    const asked = page.waitForRequest(/\/api\/v1\/tasks\?.*tool=deploy_0/);
    const lines = Array.from({ length: 20 }, (_, n) => `line ${n}`);
    const id = (await (await connect()).createTask('deploy_0', { n: 1, lines }, { ttl: 3_600_000 })).taskId;
    await row(id).locator('button.reject').hover();
    await asked;
    const before = await placesOf(id);
    assert.ok(before.length > 3);
    go();
    await row(id).locator('.since-last').getByText('Compared with the call that admin approved').waitFor();
    assert.deepEqual(await placesOf(id), before);
    const other = (await (await connect()).result('tools/call', { name: 'deploy_9', task: {}, arguments: { lines: [...lines, ...lines, ...lines] }, _meta: { lines: [...lines, ...lines] } })).task.taskId;
    await row(other).locator('.unseen').waitFor();
    const unseen = await placesOf(other);
    for (const part of ['.arguments', '.meta']) {
      await row(other).locator(part).evaluate((box) => (box.scrollIntoView({ block: 'center' }), (box.scrollTop = box.scrollHeight)));
      assert.deepEqual(await placesOf(other), unseen);
    }
    await row(other).locator('.unseen').waitFor({ state: 'hidden' });
    assert.equal(await row(other).locator('button.approve').isEnabled(), true);
    assert.deepEqual(await placesOf(other), unseen);
    assert.deepEqual(await violations(page), []);
    await picture(page, `still-card-${name}`);
  });
}

test('on a phone the button that arranges the list comes where nothing else is pressed', { skip }, async (t) => {
  const { page, ids, call, row } = await stage(t, 5);
  await page.setViewportSize({ width: 390, height: 844 });
  await row(ids[3]).locator('button.reject').hover();
  const head = () => page.locator('.list-head').boundingBox();
  const before = await head();
  assert.deepEqual([before.y, before.height < 60], [0, true], 'it stays in sight');
  await call(99);
  await page.locator('#arrange').waitFor();
  assert.deepEqual(await head(), before);
  const button = await page.locator('#arrange').boundingBox();
  assert.ok(button.y >= before.y && button.y + button.height <= before.y + before.height && button.x + button.width <= 390, JSON.stringify(button));
  const heading = await page.locator('#pending-count').boundingBox();
  assert.ok(heading.x + heading.width < button.x, 'the count stays in sight');
  assert.deepEqual(await violations(page), []);
  await picture(page, 'arrange-390');
});

test('a call that runs out keeps its place and the focus, and its dialog decides nothing any more', { skip }, async (t) => {
  const { admin, page, connect, row, press, focused, places } = await stage(t, 7);
  const { taskId } = await (await connect()).createTask('deploy_50', { n: 50 }, { ttl: 8000 });
  await row(taskId).waitFor();
  await row(taskId).focus();
  await press('a');
  await page.locator('#decide').waitFor();
  const before = await places();
  await admin.inState(taskId, 'expired');
  await page.locator('#dialog-ended').getByText(/^Too late\. ./).waitFor();
  assert.equal(await page.locator('#dialog-confirm').isDisabled(), true);
  await press('Escape');
  assert.deepEqual(await places(), before);
  assert.equal(await focused(), taskId);
  assert.equal(await row(taskId).locator('.outcome').innerText(), (await admin.task(taskId)).statusMessage);
});

test('for 10 s after a touch nothing moves in the list', { skip }, async (t) => {
  const { page, ids, connect, row } = await stage(t, 7);
  await page.evaluate(() => {
    let ahead = 0;
    const now = performance.now.bind(performance);
    performance.now = () => now() + ahead;
    window.goAhead = (ms) => (ahead += ms);
  });
  const order = () => page.locator('#pending > li').evaluateAll((all) => all.map(({ dataset }) => dataset.taskId));
  const touch = (type) => page.evaluate((name) => document.querySelector('#pending').dispatchEvent(name === 'touchmove' ? new TouchEvent(name, { bubbles: true }) : new PointerEvent(name, { bubbles: true, pointerType: 'touch' })), type);
  await page.locator('h1').hover();
  const client = await connect();
  const urgent = async (n) => (await client.createTask(`deploy_${n}`, { n }, { ttl: 600_000 })).taskId;
  await touch('pointerdown');
  const first = await urgent(60);
  await row(first).waitFor();
  assert.deepEqual(await order(), [...ids, first], 'at the end, though it is the most urgent');
  await page.evaluate(() => window.goAhead(9000));
  const second = await urgent(61);
  await row(second).waitFor();
  assert.deepEqual(await order(), [...ids, first, second]);
  await touch('touchmove');
  await page.evaluate(() => window.goAhead(9000));
  const third = await urgent(62);
  await row(third).waitFor();
  assert.deepEqual(await order(), [...ids, first, second, third]);
  await page.evaluate(() => window.goAhead(1001));
  const last = await urgent(63);
  await row(last).waitFor();
  await until(async () => (await order()).join() === [first, second, third, last, ...ids].join(), 'all in order');
});
