// The operators' page in a real browser: deciding, hostile arguments, live updates, lost
// connections. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { answered, outliveNetworkChanges } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
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

/** A gateway where every call waits, and a page beside it that must stay free of errors. */
async function stage(t, { token = ADMIN_TOKEN, ...more } = {}) {
  const { gateway, admin, connect } = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('pay')] }, ...more });
  const context = await (await browser()).newContext();
  defer(t, () => context.close());
  const page = await context.newPage();
  outliveNetworkChanges(page);
  const faults = [];
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on('console', (message) => /Content Security Policy|Uncaught/.test(message.text()) && faults.push(message.text()));
  page.on('request', (request) => request.url().startsWith(gateway.adminUrl) || faults.push(`a request to ${request.url()}`));
  defer(t, () => assert.deepEqual(faults, []));
  await page.goto(`${gateway.adminUrl}/${token ? `#token=${token}` : ''}`);
  if (token === ADMIN_TOKEN) await page.locator('.link[data-state="live"]').waitFor();
  return { gateway, admin, page, faults, client: await connect(), row: (id) => page.locator(`[data-task-id="${id}"]`) };
}

const shown = (page) => page.evaluate(() => document.body.innerText);

test('a gateway without tasks says that nothing waits and nothing has been decided', { skip }, async (t) => {
  const { page } = await stage(t);
  await page.locator('#pending-empty').waitFor();
  await page.locator('#decided-empty').waitFor();
  assert.match(await shown(page), /Nothing is waiting\.[^]*Nothing has been decided yet\./);
  // Out of the browser's memory it is not shown: somebody may have signed out since.
  await Promise.all([page.waitForEvent('load'), page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))]);
  await page.locator('.link[data-state="live"]').waitFor();
});

test('decided by keyboard: the card stays until the list is arranged, then the focus goes on to the next call', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const first = await client.createTask('delete_user');
  const second = await client.createTask('pay');
  await row(second.taskId).waitFor();
  await page.locator('h1').hover();
  for (const { taskId } of [first, second]) {
    await row(taskId).locator('button.reject').focus();
    await page.keyboard.press('Enter');
    await page.locator(`#pending [data-task-id="${taskId}"][data-state="rejected"]`).waitFor();
    await answered(page);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.taskId), taskId);
    await page.keyboard.press('.');
    await page.locator(`#decided [data-task-id="${taskId}"]`).waitFor();
    assert.equal((await admin.task(taskId)).state, 'rejected');
    const focused = await page.evaluate(() => document.activeElement.dataset.taskId ?? document.activeElement.id);
    assert.equal(focused, taskId === first.taskId ? second.taskId : 'waiting');
  }
  await page.locator('#pending-empty').waitFor();
});

test('[REDACTED] from an agent is text; from the gateway it is a mark', { skip }, async (t) => {
  const { gateway, client, row } = await stage(t, { approval: workflow('10m', { redact_fields: ['card.number', 'keys.secret'] }) });
  const { taskId } = await client.createTask('pay', { note: '[REDACTED]', number: '[REDACTED]', card: { number: '4711', owner: '[REDACTED]' }, keys: [{ secret: 1 }, { open: '[REDACTED]' }] });
  const box = row(taskId).locator('.arguments');
  await box.waitFor();
  assert.deepEqual(await box.locator('.json-redacted').allTextContents(), ['[REDACTED]', '[REDACTED]']);
  assert.equal((await box.locator('.json-string').allTextContents()).filter((text) => text === '"[REDACTED]"').length, 4);
  const { stdout } = await gateway.cli(['tasks', 'show', taskId]);
  assert.match(stdout, /"note": "\[REDACTED\]"/);
  assert.match(stdout, /"number": "\[REDACTED\]",\n/);
  assert.match(stdout, /"card": \{\n\s+"number": \[REDACTED\],\n\s+"owner": "\[REDACTED\]"/);
  assert.match(stdout, /"secret": \[REDACTED\]\n/);
});

test('approve with a reason: executed, moved to the decided ones', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const { taskId } = await client.createTask('delete_user', { user_id: '123' });
  await row(taskId).locator('.reason').fill('asked Ada');
  assert.deepEqual(JSON.parse(await row(taskId).locator('.arguments').textContent()), { user_id: '123' });
  await row(taskId).locator('button.approve').click();
  const task = await admin.inState(taskId, 'completed');
  assert.deepEqual([task.decidedBy, task.reason], ['admin', 'asked Ada']);
  await row(taskId).getByText('completed').waitFor();
  assert.equal(await row(taskId).locator('button.approve').count(), 0);
  await answered(page);
  await page.locator('h1').hover();
  await page.keyboard.press('.');
  await page.locator(`#decided [data-task-id="${taskId}"]`).waitFor();
  assert.match(await row(taskId).locator('.outcome').textContent(), /Approved by admin.*asked Ada/);
});

test('a call that is stopped after its approval: who approved it is not taken for who stopped it', { skip }, async (t) => {
  const { admin, client, row } = await stage(t, { config: { execution: 'on_result' } });
  const { taskId } = await client.createTask('delete_user');
  await row(taskId).locator('.reason').fill('asked Ada');
  await row(taskId).locator('button.approve').click();
  await admin.inState(taskId, 'approved');
  await admin.cancel(taskId, 'the wrong one');
  await row(taskId).getByText('cancelled', { exact: true }).waitFor();
  assert.match(await row(taskId).locator('.outcome').textContent(), /^Approved by admin, [^·]* · “asked Ada” · Cancelled: the wrong one$/);
});

test('reject by keyboard alone: never executed', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const { taskId } = await client.createTask('delete_user');
  await row(taskId).locator('.reason').focus();
  await page.keyboard.type('not today');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const task = await admin.inState(taskId, 'rejected');
  assert.equal(task.reason, 'not today');
  await row(taskId).getByText('rejected', { exact: true }).waitFor();
});

test('arguments are text: no markup runs, no character hides, no digit is lost', { skip }, async (t) => {
  const { page, client, row } = await stage(t);
  const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  const args = `{"html":${JSON.stringify(hostile)},"${hostile.replaceAll('"', "'")}":1,"big":9007199254740993,"2":"b","1":"a","exact":1.50,"spoof":"user\u202egnp.exe","gap":"a\u200bb\u00a0c","tag":"\u{e0041}","lines":"one\\n\\"force\\": false","__proto__":{"x":1}}`;
  const answer = await client.post(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"delete_user","arguments":${args},"task":{}}}`);
  const taskId = (await answer.json()).result.task.taskId;
  const box = row(taskId).locator('.arguments');
  await box.waitFor();
  const text = await box.textContent();
  for (const part of [hostile.replaceAll('"', '\\"'), '9007199254740993', '1.50', 'user\\u202egnp.exe', 'a\\u200bb\\u00a0c', '\\udb40\\udc41']) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.deepEqual(JSON.parse(text), JSON.parse(args), 'what is shown is the value itself');
  assert.ok(text.indexOf('"2"') < text.indexOf('"1"'), 'in the order of the call');
  assert.doesNotMatch(text, /[\u202e\u200b\u00a0]/);
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.ok((await shown(page)).includes('<script>alert(2)</script>'));
});

test('members beside the arguments are shown as they are; of most calls there is nothing', { skip }, async (t) => {
  const { client, row } = await stage(t);
  const call = async (more, name = 'pay') => (await client.result('tools/call', { name, arguments: {}, task: {}, ...more })).task.taskId;
  const full = await call({ _meta: { progressToken: 1, tenant: '<b>prod</b>\u202e' }, force: [true] });
  const plain = await call({ _meta: { progressToken: 2 } }, 'delete_user');
  await row(full).locator('.meta').waitFor();
  assert.deepEqual(JSON.parse(await row(full).locator('.meta').textContent()), { tenant: '<b>prod</b>\u202e' });
  assert.doesNotMatch(await row(full).locator('.meta').textContent(), /\u202e/);
  assert.deepEqual(JSON.parse(await row(full).locator('.other-params').textContent()), { force: [true] });
  await row(plain).locator('.arguments').waitFor();
  for (const name of ['.meta', '.other-params']) assert.equal(await row(plain).locator(name).isVisible(), false);
});

test('letters written from the right leave each key before its value', { skip }, async (t) => {
  const { client, row } = await stage(t);
  const { taskId } = await client.createTask('pay', { אבג: 'דהו', 'to אבג': 'דהו', 'limit אבג': 100, 'in אבג': { 'at אבג': true } });
  const box = row(taskId).locator('.arguments');
  await box.waitFor();
  const places = await box.evaluate((element) =>
    [...element.querySelectorAll('.json-key')].map((key) => ({ key: key.textContent, left: key.getBoundingClientRect().left - element.getBoundingClientRect().left, right: key.getBoundingClientRect().right, next: key.nextElementSibling?.className === 'json-key' ? Infinity : key.nextElementSibling.getBoundingClientRect().left })),
  );
  assert.equal(places.length, 5);
  for (const { key, left, right, next } of places) {
    assert.ok(left < 100, `${key} begins its line`);
    assert.ok(right <= next, `${key} stands before its value`);
  }
});

test('names that an agent or an operator chose are text, too', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const { taskId } = await client.createTask('pay<b>\u202e');
  await row(taskId).waitFor();
  assert.equal(await row(taskId).locator('.tool').textContent(), 'pay<b>\\u202e');
  await admin.reject(taskId, '<i>no</i>\u202e');
  await page.getByText('<i>no</i>\\u202e').waitFor();
  assert.equal(await page.locator('main i, main .tool b').count(), 0);
});

test('a long run of white space is one mark, and the caller is quoted behind the witness', { skip }, async (t) => {
  const { client, row } = await stage(t);
  const { taskId } = await client.createTask('pay', { sql: `SELECT 1;${'\n'.repeat(60)}DROP TABLE${' '.repeat(3000)}x`, a: '\n\n\n', b: ' '.repeat(15) });
  const box = row(taskId).locator('.arguments');
  await box.waitFor();
  const text = await box.textContent();
  assert.ok(text.includes('"SELECT 1;[60 line breaks]DROP TABLE[3,000 blanks]x"'), text.slice(0, 400));
  assert.ok(text.includes('"\\n\\n\\n"') && text.includes(`"${' '.repeat(15)}"`));
  const asker = row(taskId).locator('.asker');
  assert.equal(await asker.getAttribute('data-by'), 'client');
  assert.match(await asker.textContent(), /^unverified ".+"$/);
});

test('a mark stands in words beside the tool, the caller and the value that it is about', { skip }, async (t) => {
  const { page, client, row } = await stage(t);
  const { task } = await client.result('tools/call', { name: 'p\u0430y', arguments: { table: 'us\u200bers', list: [{ 'a.b\u202e': 1 }], plain: 'x' }, task: {}, _meta: { note: '\u001b' } });
  const box = row(task.taskId);
  await box.locator('.arguments').waitFor();
  assert.deepEqual(await box.locator('.line .json-note:visible').allTextContents(), ['letters of alphabets that look alike']);
  const notes = (name) => box.locator(`${name} .json-note`).evaluateAll((all) => all.map((note) => [note.nextElementSibling?.textContent, getComputedStyle(note, '::after').content]));
  assert.deepEqual(await notes('.arguments'), [['"us', '"characters that cannot be seen"'], ['1', '"characters that change the order of letters"']]);
  assert.deepEqual((await notes('.meta'))[0][1], '"control characters"');
  await box.focus();
  await page.keyboard.press('a');
  await page.locator('#decide').waitFor();
  assert.deepEqual(await page.locator('#dialog-asker .json-note, #dialog-arguments .json-note, #dialog-more .json-note').count(), 4);
});

test('a call without end keeps nobody from the others', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const numbers = Array.from({ length: 200_000 }, (_, i) => i);
  const calls = [['pay', { numbers, text: 'é\u202e' }], ['pay_2', { ['x\n'.repeat(75_000)]: 1 }], ['pay_3', { text: '\u0001'.repeat(300_000) }], [`pay${'\u0001'.repeat(150_000)}`, {}]];
  for (const [name, args] of calls) {
    const { taskId } = await client.createTask(name, args);
    const box = row(taskId).locator('.arguments');
    await box.waitFor();
    assert.ok((await box.evaluate((element) => element.childNodes.length)) <= 40_000);
    const text = await box.textContent();
    assert.deepEqual(JSON.parse(text), args);
    assert.doesNotMatch(text, /[\u202e\u0001]/);
    assert.ok((await row(taskId).boundingBox()).height < 1500, 'the next call is not out of reach');
    assert.equal(await row(taskId).getByText('a name of 900,003 characters').count(), name.length < 100 ? 0 : 1);
  }
  const hiding = (await client.createTask('pay_5', { numbers, text: `SELECT 1;${'\n'.repeat(60)}DROP TABLE a${' '.repeat(3000)}` })).taskId;
  await row(hiding).locator('.arguments').waitFor();
  assert.match(await row(hiding).locator('.arguments').textContent(), /"text": "SELECT 1;\[60 line breaks\]DROP TABLE a\[3,000 blanks\]"/);
  await admin.reject(hiding);
  await row(hiding).getByText('Rejected by admin').waitFor();
  const { taskId } = await client.createTask('delete_user');
  await row(taskId).locator('.end-of-request').scrollIntoViewIfNeeded();
  await row(taskId).locator('button.approve').click();
  await admin.inState(taskId, 'completed');
  assert.equal(await page.locator('.link[data-state="live"]').count(), 1);
});

test('long arguments are folded, which is said, and can be shown whole', { skip }, async (t) => {
  const { client, row } = await stage(t);
  const { taskId } = await client.createTask('pay', { rows: Array.from({ length: 200 }, (_, i) => `row ${i}`) });
  const box = row(taskId).locator('.arguments');
  await box.waitFor();
  assert.match(await row(taskId).locator('.size').textContent(), /204 lines/);
  const clipped = () => box.evaluate((element) => element.scrollHeight > element.clientHeight + 1);
  assert.equal(await clipped(), true);
  await row(taskId).getByRole('button', { name: 'Show all' }).click();
  assert.equal(await clipped(), false);
  assert.ok((await box.textContent()).includes('row 199'));
});

test('changes by others are shown live, and a half-typed reason survives them', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const first = (await client.createTask('delete_user', { n: 1 })).taskId;
  await row(first).locator('.reason').fill('half a rea');
  const second = (await client.createTask('pay', { n: 2 })).taskId;
  await row(second).waitFor();
  assert.deepEqual(await page.locator('#pending [data-task-id]').evaluateAll((all) => all.map((one) => one.dataset.taskId)), [first, second], 'new ones at the end: nothing moves under the pointer');
  assert.match(await page.title(), /^\(2\)/);
  await admin.reject(second, 'by API');
  await row(second).getByText('Rejected by admin').waitFor();
  assert.equal(await row(first).locator('.reason').inputValue(), 'half a rea');
  assert.match(await page.title(), /^\(1\)/);
});

test('a decision that comes too late says who was first', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const { taskId } = await client.createTask('delete_user');
  await row(taskId).waitFor();
  // The news of the first decision is held back from this page.
  await page.route('**/api/v1/tasks/*/approve', async (route) => {
    await route.fulfill({ status: 409, contentType: 'application/json', body: JSON.stringify({ error: { code: 'conflict', message: 'the task is rejected, decided by bob', state: 'rejected' } }) });
  });
  await row(taskId).locator('button.approve').click();
  await row(taskId).getByText(/Too late: the task is rejected, decided by bob/).waitFor();
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('a viewer sees, and gets no buttons; becoming an approver brings them', { skip }, async (t) => {
  const tokens = (role) => ({ admin: { people: [{ name: 'eve', groups: ['audit', 'it'] }], tokens: [{ name: 'eye', person: 'eve', token_env: 'EYE', roles: [role] }] } });
  const { gateway, admin, page, client, row } = await stage(t, {
    token: 'viewer-token',
    config: tokens('viewer'),
    env: { EYE: 'viewer-token' },
  });
  const { taskId } = await client.createTask('delete_user');
  await row(taskId).locator('.arguments').waitFor();
  await page.getByText('You may look, but not decide.').waitFor();
  assert.equal(await page.locator('button.approve, button.reject, .reason').count(), 0);
  assert.equal(await page.locator('.who').textContent(), 'eve (eye)');
  assert.equal(await page.locator('.who').getAttribute('title'), 'Roles: viewer\nGroups: audit, it');
  gateway.writeConfig({ config: tokens('approver') });
  gateway.hangUp();
  await gateway.logged((entry) => entry.msg === 'Configuration reloaded');
  await page.reload();
  await row(taskId).locator('button.approve').click();
  assert.equal((await admin.inState(taskId, 'completed')).decidedBy, 'eve');
});

test('a caller is told why the same token does not approve, and may reject', { skip }, async (t) => {
  const { admin, row } = await stage(t, {
    token: 'both-token',
    config: { admin: { tokens: [{ name: 'both', token_env: 'BOTH', roles: ['caller', 'approver'] }] } },
    env: { BOTH: 'both-token' },
  });
  const called = await admin.as('both-token').post('/api/v1/calls', { tool: 'delete_user', arguments: {} });
  assert.equal(called.status, 201, called.text);
  const { id } = called.json;
  await row(id).getByText('This is your own call: somebody else must approve it.').waitFor();
  const asker = row(id).locator('.line .asker');
  assert.deepEqual([await asker.getAttribute('data-by'), await asker.textContent()], ['gateway', 'gateway "admin:both"']);
  assert.match(await row(id).locator('.facts').textContent(), /Asked bygateway "admin:both" \(a token of this gateway\)/);
  assert.deepEqual([await row(id).locator('button.approve').isVisible(), await row(id).locator('button.reject').isVisible()], [false, true]);
  assert.equal((await admin.task(id)).state, 'pending');
});

test('the token: asked for, kept for the tab, never in the address; signing out forgets it', { skip }, async (t) => {
  const { gateway, page, client, row } = await stage(t, { token: null });
  const { taskId } = await client.createTask('delete_user');
  await page.getByLabel('Token').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('not valid here').waitFor();
  assert.equal(await row(taskId).count(), 0);
  await page.getByLabel('Token').fill(ADMIN_TOKEN);
  await page.keyboard.press('Enter');
  await row(taskId).waitFor();
  await page.reload();
  await row(taskId).waitFor();
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await until(() => page.url() === `${gateway.adminUrl}/`, 'the token gone from the address');
  await page.getByRole('button', { name: 'Sign out' }).click();
  assert.equal(await row(taskId).count(), 0);
  assert.equal(await page.evaluate(() => sessionStorage.length + localStorage.length), 0);
  await page.reload();
  await page.getByLabel('Token').waitFor();
});

test('a link with a token does not make somebody who is signed in another person unasked', { skip }, async (t) => {
  const EYE = 'a-token-of-a-viewer-0001';
  const { gateway, page } = await stage(t, { env: { EYE }, config: { admin: { tokens: [{ name: 'eye', token_env: 'EYE', roles: ['viewer'] }] } } });
  const kept = () => page.evaluate(() => Object.values(sessionStorage).filter((value) => /token/.test(value)));
  page.removeAllListeners('dialog');
  for (const [answer, token] of [['dismiss', ADMIN_TOKEN], ['accept', EYE]]) {
    const asked = page.waitForEvent('dialog').then(async (dialog) => [dialog.message(), await dialog[answer]()][0]);
    await page.evaluate((value) => void setTimeout(() => (location.hash = `token=${value}`)), EYE);
    assert.match(await asked, /signs in with another token/);
    await until(() => page.url() === `${gateway.adminUrl}/`, 'the token gone from the address');
    await until(async () => (await kept()).includes(token), 'the token that was chosen');
  }
});

test('a lost connection is said, and what was missed is there when it is back', { skip }, async (t) => {
  const { gateway, page, client, row } = await stage(t);
  const { taskId } = await client.createTask('delete_user');
  await row(taskId).waitFor();
  await gateway.stop();
  await page.getByText('The connection is lost').waitFor();
  await gateway.launch();
  await gateway.admin.reject(taskId, 'while you were away');
  await page.locator('.link[data-state="live"]').waitFor({ timeout: 30_000 });
  await row(taskId).getByText('while you were away').waitFor();
  assert.equal(await page.getByText('The connection is lost').isVisible(), false);
});
