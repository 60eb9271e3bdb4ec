// The context of a call on the operators' page: the words of the rule, of the server and of the caller. Needs Debian's Chromium.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, PARTY } from '../lib/asking.mjs';
import { picture, violations } from '../lib/axe.mjs';
import { answered, noBrowser, openPage } from '../lib/browser.mjs';
import { ADMIN_TOKEN, workflow } from '../lib/gateway.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

const RULES = [
  { match: 'drop_table', action: 'approve', reason: 'optional', description: 'Tables hold what customers wrote.', show: { summary: 'Drops {table.name} of {database}', highlight: ['table', 'force'], risk: 'high' } },
  { match: '*', action: 'approve' },
];
const TOOLS = [
  tool('drop_table', { description: 'Drops a table.\n<b>Safe</b> to approve\u202e', annotations: { destructiveHint: true, readOnlyHint: false, title: 'Drop <i>it</i>' } }),
  { name: 'plain', inputSchema: { type: 'object' } },
];

const skip = noBrowser;

async function stage(t, options = { viewport: { width: 1280, height: 800 } }) {
  const all = await scene(t, { rules: RULES, approval: workflow('10m'), upstream: { tools: TOOLS } });
  const page = await openPage(t, all.gateway.adminUrl, options);
  await page.goto(`${all.gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await page.locator('.link[data-state="live"]').waitFor();
  const client = await all.connect();
  await client.result('tools/list');
  return { ...all, page, client, row: (id) => page.locator(`[data-task-id="${id}"]`) };
}

for (const [name, options] of [['desk', { viewport: { width: 1280, height: 800 } }], ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }]]) {
  test(`above the arguments: the rule, the server, the caller; what matters is marked (${name})`, { skip }, async (t) => {
    const { page, client, row } = await stage(t, options);
    const { taskId } = await client.createTask('drop_table', { database: 'crm<b>', table: { name: 'people\u202e' }, note: 'x', taskgate_reason: 'It is <b>stale</b>\u202e' });
    const box = row(taskId);
    await box.locator('.arguments').waitFor();
    const text = (selector) => box.locator(selector).textContent();
    assert.equal(await text('.summary'), 'Drops "people\\u202e" of "crm<b>"');
    const order = 'characters that change the order of letters';
    assert.equal(await text('.line .brief'), `Drops "people\\u202e" of "crm<b>" taskgate_reason: ${order} table.name: ${order}`);
    assert.equal(await text('.line .risk'), 'high risk');
    assert.match(await text('.facts'), /drop_table — Tables hold what customers wrote\./);
    assert.match(await text('.facts'), /unverified "raw-client \(session \w+\)" \(the client says so; nobody has verified it\)/);
    assert.deepEqual(await box.locator('.description .paragraph').allTextContents(), ['Drops a table.', '<b>Safe</b> to approve\\u202e']);
    assert.deepEqual(await box.locator('.hints li').allTextContents(), ['may change things', 'may destroy']);
    assert.deepEqual(JSON.parse(await text('.annotations')), { title: 'Drop <i>it</i>' });
    assert.match(await text('.agent-says'), /its own words, which nobody has verified/);
    assert.equal(await text('.reason-of-agent'), 'It is <b>stale</b>\\u202e characters that change the order of letters');
    assert.equal(await box.locator('.unlisted').isVisible(), false);
    await box.locator('.past:not([hidden])').waitFor();
    assert.match(await text('.past'), /^30 days: 0 approved, 0 rejected, 0 expired, 0 failed; this caller: 0 approved/);
    assert.equal((await box.locator('.arguments mark').allTextContents()).join(''), '{\n    "name": "people\\u202e"\n  }');
    const above = (selector) => box.locator(selector).boundingBox().then(({ y }) => y);
    assert.ok((await above('.server-says')) < (await above('.arguments')));
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    await picture(page, `context-${name}`);
  });
}

test('after the decision: what became of the call, its first words, and a button that ends it while it runs', { skip }, async (t) => {
  const { upstream, admin, page, client, row } = await stage(t);
  const long = 'é'.repeat(1000);
  upstream.handlers['tools/call'] = ({ rpc, reply }) => (rpc.params.arguments?.hangs ? undefined : reply.result({ content: [{ type: 'text', text: `<b>${long}` }] }));
  const { taskId: done } = await client.createTask('plain', {});
  await admin.approve(done);
  await admin.inState(done, 'completed');
  await row(done).locator('.line').click();
  await row(done).locator('.outcome-box:not([hidden])').waitFor();
  assert.match(await row(done).locator('.execution').textContent(), /^began .+, took [\d,]+ ms$/);
  assert.equal(await row(done).locator('.outcome-title').textContent(), 'Result');
  const words = await row(done).locator('.outcome-text').textContent();
  assert.ok(words.startsWith('<b>é') && words.endsWith('é…') && Buffer.byteLength(words) <= 1024 + 3, `${words.length}`);
  assert.equal(await row(done).locator('button.cancel').isVisible(), false);
  const { taskId: hangs } = await client.createTask('plain', { hangs: true });
  await admin.approve(hangs);
  await admin.inState(hangs, 'executing');
  await page.reload();
  await row(hangs).locator('.line').click();
  await row(hangs).locator('button.cancel').waitFor();
  assert.match(await row(hangs).locator('.execution').textContent(), /^runs since /);
  page.on('dialog', (dialog) => dialog.accept());
  await row(hangs).locator('button.cancel').click();
  await admin.inState(hangs, 'cancelled');
  await row(hangs).locator('button.cancel').waitFor({ state: 'hidden' });
  assert.deepEqual(await violations(page), []);
});

test('the reason of the agent is in each dialog, as its own words; calls that differ in it alone are each listed', { skip }, async (t) => {
  const { page, client, row } = await stage(t);
  const ask = async (taskgate_reason) => (await client.createTask('drop_table', { database: 'crm', ...(taskgate_reason ? { taskgate_reason } : {}) })).taskId;
  const ids = [await ask('Ada <b>has</b> asked for it\u202e'), await ask('It is in the way'), await ask()];
  const stack = page.locator('#pending > li[data-stack]');
  await stack.getByText('drop_table × 3').waitFor();
  await stack.locator('.line > .more').click();
  await stack.locator(`[data-call="${ids[0]}"] button`).click();
  const dialog = page.locator('#decide');
  for (const key of ['a', 'r']) {
    await row(ids[0]).focus();
    await page.keyboard.press(key);
    await page.locator('#decide[open]').waitFor();
    assert.deepEqual((await dialog.locator('.agent-says:visible').innerText()).split(/\n+/), ['Why the agent calls', 'its own words, which nobody has verified', 'Ada <b>has</b> asked for it\\u202e characters that change the order of letters']);
    const tops = await dialog.locator('.agent-says, #dialog-arguments').evaluateAll((all) => all.map((element) => element.getBoundingClientRect().bottom));
    assert.ok(tops[0] <= tops[1], 'before the arguments');
    assert.deepEqual(await violations(page), []);
    await picture(page, `agent-says-${key}`);
    await page.keyboard.press('Escape');
  }
  await stack.getByRole('button', { name: /^Reject all 3…/ }).click();
  await dialog.getByText('Reject: 3 calls').waitFor();
  assert.deepEqual(await page.locator('#dialog-list > li').evaluateAll((items) => items.map((item) => item.querySelector('.reason-of-agent')?.textContent)), ['Ada <b>has</b> asked for it\\u202e characters that change the order of letters', 'It is in the way', undefined]);
  await picture(page, 'agent-says-many');
});

test('high risk: approved only by who types the name of the tool; rejected without', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const call = async () => (await client.createTask('drop_table', { database: 'crm', table: { name: 'people' } })).taskId;
  const first = await call();
  await row(first).locator('.reason').fill('agreed with Ada');
  await row(first).locator('button.approve').click();
  await page.locator('#decide[open]').waitFor(); // once the whole call was read
  assert.equal(await page.locator('#dialog-reason').inputValue(), 'agreed with Ada');
  await page.locator('#dialog-typed').fill('drop_tabel');
  await page.locator('#dialog-confirm').click();
  assert.equal(await page.locator('#decide').isVisible(), true);
  assert.equal((await admin.task(first)).state, 'pending');
  await picture(page, 'high-risk');
  await page.locator('#dialog-typed').fill('drop_table');
  await page.keyboard.press('Enter');
  assert.equal((await admin.inState(first, 'completed')).reason, 'agreed with Ada');
  const second = await call();
  await row(second).locator('button.reject').click();
  await admin.inState(second, 'rejected');
});

test('high risk is left out of a decision over many', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const risky = (await client.createTask('drop_table', { database: 'crm' })).taskId;
  const others = [(await client.createTask('plain', { n: 1 })).taskId, (await client.createTask('ghost', { n: 2 })).taskId];
  for (const id of [risky, ...others]) await row(id).locator('.pick').check();
  await page.locator('#selection-approve').click();
  await page.getByText('1 call of high risk is left out').waitFor();
  await page.locator('#dialog-confirm').click();
  for (const id of others) await admin.inState(id, 'completed');
  assert.equal((await admin.task(risky)).state, 'pending');
});

test('a tool that the server does not list, and one of which it says nothing', { skip }, async (t) => {
  const { client, row } = await stage(t);
  const ghost = (await client.createTask('ghost')).taskId;
  await row(ghost).getByText('The server does not list this tool.').waitFor();
  const plain = (await client.createTask('plain')).taskId;
  await row(plain).locator('.arguments').waitFor();
  for (const selector of ['.unlisted', '.server-says', '.summary', '.line .risk']) assert.equal(await row(plain).locator(selector).isVisible(), false, selector);
});

test('the dialog shows the whole of each request, and its decision goes with the digests of what it shows', { skip }, async (t) => {
  const { admin, page, client, row } = await stage(t);
  const call = async (params, name = 'plain') => (await client.result('tools/call', { name, task: { ttl: 600_000 }, ...params })).task.taskId;
  const first = await call({ arguments: { pad: 'x'.repeat(400), db: 'PRODUCTION-1' }, _meta: { note: 'in meta' }, extra: 'in params' });
  const second = await call({ arguments: { pad: 'y'.repeat(400), db: 'PRODUCTION-2' } }, 'ghost');
  const digests = new Map();
  for (const id of [first, second]) digests.set(id, (await admin.task(id)).requestDigest);
  const sent = [];
  await page.route('**/api/v1/**', (route) => {
    if (route.request().method() === 'POST') sent.push(route.request().postDataJSON());
    return route.continue();
  });
  const dialog = page.locator('#decide');
  await row(first).focus();
  await page.keyboard.press('a');
  await page.locator('#decide').waitFor();
  for (const text of ['PRODUCTION-1', 'in meta', 'in params']) await dialog.getByText(text).waitFor();
  await page.locator('#dialog-cancel').click();
  for (const id of [first, second]) await row(id).locator('.pick').check();
  await page.locator('#selection-approve').click();
  for (const text of ['PRODUCTION-1', 'in meta', 'in params', 'PRODUCTION-2']) await page.locator('#dialog-list').getByText(text).waitFor();
  assert.deepEqual(await violations(page), []);
  for (const end of await page.locator('#dialog-list .end-of-request').all()) await end.scrollIntoViewIfNeeded();
  await page.locator('#dialog-confirm').click();
  for (const id of [first, second]) await admin.inState(id, 'completed');
  assert.deepEqual(sent[0].items, [first, second].map((id) => ({ id, requestDigest: digests.get(id) })));
  const third = await call({ arguments: { n: 3 } });
  const { requestDigest } = await admin.task(third);
  await row(third).locator('button.reject').click();
  await admin.inState(third, 'rejected');
  assert.equal(sent.at(-1).requestDigest, requestDigest);
});

test('the end of a request below the bar of the selection is not seen', { skip }, async (t) => {
  const { page, client, row } = await stage(t);
  const long = (await client.createTask('plain', { lines: Array.from({ length: 120 }, (_, i) => `line ${i}`) })).taskId;
  const other = (await client.createTask('ghost', { n: 1 })).taskId;
  for (const id of [long, other]) await row(id).locator('.pick').check();
  const end = row(long).locator('.end-of-request');
  const approve = row(long).locator('button.approve');
  await row(long).locator('.arguments').waitFor();
  /* Scrolls until the end is so far above the window's lower edge. */
  const scrollTo = (above) => end.evaluate(async (element, above) => {
    const box = element.closest('.arguments');
    box.scrollTop = box.scrollHeight;
    scrollBy(0, element.getBoundingClientRect().bottom - innerHeight + above);
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  }, above);
  const bar = await page.locator('#selection').boundingBox();
  const below = page.viewportSize().height - bar.y;
  await scrollTo(below / 2);
  assert.equal(await approve.evaluate((button) => button.disabled), true);
  await scrollTo(below + 40);
  await row(long).locator('.unseen').waitFor({ state: 'hidden' });
  assert.equal(await approve.evaluate((button) => button.disabled), false);
});

test('an approval waits until the end of each part of the request was on screen; a rejection does not', { skip }, async (t) => {
  const { page, client, row, admin } = await stage(t);
  const lines = Array.from({ length: 120 }, (_, i) => `line ${i}`);
  const ask = async (params) => (await client.result('tools/call', { name: 'plain', task: {}, ...params })).task.taskId;
  const id = await ask({ arguments: { lines }, _meta: { lines } });
  const box = row(id);
  await box.locator('.arguments').waitFor();
  const approve = box.locator('button.approve');
  const isDisabled = (locator) => locator.evaluate((button) => button.disabled);
  assert.equal(await box.locator('.end-of-request').count(), 2);
  assert.deepEqual([await isDisabled(approve), await isDisabled(box.locator('button.reject'))], [true, false]);
  assert.equal(await box.locator('.unseen').textContent(), 'Approving is possible when the end of each of these was on screen: the arguments, the metadata.');
  await picture(page, 'unseen');
  const toEnd = (locator) => locator.evaluate((part) => (part.scrollIntoView({ block: 'center' }), (part.scrollTop = part.scrollHeight)));
  await toEnd(box.locator('.arguments'));
  await box.getByText('on screen: the metadata.').waitFor();
  assert.equal(await isDisabled(approve), true);
  const dialog = page.locator('#decide');
  const confirm = page.locator('#dialog-confirm');
  await box.focus();
  await page.keyboard.press('r');
  await page.locator('#decide').waitFor();
  assert.deepEqual([await isDisabled(confirm), await dialog.locator('.unseen').isVisible()], [false, false]);
  await page.locator('#dialog-cancel').click();
  await box.focus();
  await page.keyboard.press('a');
  await page.locator('#decide').waitFor();
  assert.equal(await isDisabled(confirm), true, 'it has ends of its own');
  await dialog.getByText('on screen: the arguments, the metadata.').waitFor();
  await page.keyboard.press('Enter');
  await picture(page, 'unseen-dialog');
  await toEnd(page.locator('#dialog-arguments'));
  await dialog.getByText('on screen: the metadata.').waitFor();
  await toEnd(dialog.locator('.dialog-part'));
  await dialog.locator('.unseen').waitFor({ state: 'hidden' });
  assert.equal(await isDisabled(confirm), false);
  assert.deepEqual(await violations(page), []);
  await page.locator('#dialog-cancel').click();
  await toEnd(box.locator('.meta'));
  await box.locator('.unseen').waitFor({ state: 'hidden' });
  assert.equal((await admin.task(id)).state, 'pending');
  await approve.click();
  await admin.inState(id, 'completed');
  await answered(page);
  const short = await ask({ arguments: { a: 1 } });
  await row(short).focus();
  await page.keyboard.press('a');
  await page.locator('#decide').waitFor();
  await page.keyboard.press('Enter');
  await admin.inState(short, 'completed');
  await page.locator('h1').hover();
  const many = [await ask({ arguments: { lines } }), await ask({ arguments: { a: 2, lines } })];
  for (const other of many) await row(other).locator('.pick').check();
  await page.locator('#selection-approve').click();
  await page.locator('#decide[open]').waitFor(); // once both calls were read
  assert.equal(await isDisabled(confirm), true);
  for (const end of await page.locator('#dialog-list .end-of-request').all()) await end.scrollIntoViewIfNeeded();
  await confirm.click();
  for (const other of many) await admin.inState(other, 'completed');
});

test('metadata, other parameters and the arguments have an end each: one that was not on screen keeps the approval back', { skip }, async (t) => {
  const { page, client, row } = await stage(t);
  const lines = Array.from({ length: 120 }, (_, i) => `line ${i}`);
  const id = (await client.result('tools/call', { name: 'plain', task: {}, arguments: { lines }, _meta: { lines }, more: lines })).task.taskId;
  const box = row(id);
  await box.locator('.arguments').waitFor();
  assert.deepEqual(await box.locator('.end-of-request').evaluateAll((ends) => ends.map((end) => [end.parentElement.className.split(' ')[1], end.dataset.part])), [['arguments', 'the arguments'], ['meta', 'the metadata'], ['other-params', 'the other parameters']]);
  const left = { arguments: ['the arguments', 'the metadata', 'the other parameters'], meta: ['the metadata', 'the other parameters'], 'other-params': ['the other parameters'] };
  for (const [part, names] of Object.entries(left)) {
    await box.getByText(`Approving is possible when the end of each of these was on screen: ${names.join(', ')}.`).waitFor();
    assert.equal(await box.locator('button.approve').isDisabled(), true, part);
    await box.locator(`.${part}`).evaluate((element) => (element.scrollIntoView({ block: 'center' }), (element.scrollTop = element.scrollHeight)));
  }
  await box.locator('.unseen').waitFor({ state: 'hidden' });
  assert.equal(await box.locator('button.approve').isEnabled(), true);
  assert.equal(await page.locator('#decide').isVisible(), false);
});

test('a tool that has changed since the call: the card shows how, and offers no approval', { skip }, async (t) => {
  const { admin, page, client, row, upstream } = await stage(t);
  const { taskId } = await client.createTask('drop_table', { database: 'crm' });
  const box = row(taskId);
  await box.locator('.arguments').waitFor();
  upstream.tools = [{ ...TOOLS[0], description: 'Drops a table, and tells nobody.', annotations: { ...TOOLS[0].annotations, destructiveHint: false } }, TOOLS[1]];
  await client.result('tools/list');
  // The card is from before: the gateway's refusal brings what it says now.
  await box.locator('button.approve').click();
  await page.locator('#dialog-typed').fill('drop_table');
  await page.locator('#dialog-confirm').click();
  const changes = box.locator('.definition-now');
  await changes.getByText('"Drops a table, and tells nobody."').waitFor();
  assert.deepEqual(await changes.locator('.path').allTextContents(), ['description', 'annotations.destructiveHint']);
  assert.match(await box.locator('.why-not').textContent(), /the agent has to call again/);
  assert.equal(await box.locator('button.approve').isVisible(), false);
  assert.deepEqual(await violations(page), []);
  await picture(page, 'definition-changed');
  upstream.tools = [{ ...TOOLS[0], title: 'Drop' }, TOOLS[1]];
  await client.result('tools/list');
  await page.reload();
  await page.locator('.link[data-state="live"]').waitFor();
  await box.getByText('Its schema or its title has changed.').waitFor();
  await box.locator('button.reject').click();
  await admin.inState(taskId, 'rejected');
});

test('the card of an answer in an approved call shows what the server asked and what the client answered', { skip }, async (t) => {
  const { gateway, connect, admin } = await scene(t, {
    rules: [['book_dinner', 'approve']],
    approval: workflow('10m', { rounds: 'reapprove', redact_fields: ['pin'] }),
    upstream: { tools: [tool('book_dinner')], handlers: { 'tools/call': asks(elicit('e-1', { ...PARTY, message: 'How many <b>people</b>?\u202e' })) } },
  });
  const client = await connect({ capabilities: { tasks: {}, elicitation: {} } });
  const { taskId } = await client.createTask('book_dinner', { time: '19:00' });
  await admin.approve(taskId);
  const { elicitationId } = await until(async () => (await client.result('tasks/get', { taskId }))._meta['io.modelcontextprotocol/pending-elicitations']?.[0], 'the question');
  await client.result('tasks/get', { taskId, _meta: { 'io.modelcontextprotocol/elicitation-response': { elicitationId, action: 'accept', content: { partySize: 17, pin: '4711' } } } });
  const { id } = await admin.pending();
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  const box = page.locator(`[data-task-id="${id}"]`);
  const shown = box.locator('.arguments');
  await shown.waitFor();
  const text = await shown.innerText();
  for (const part of ['"method": "elicitation/create"', '"message": "How many <b>people</b>?\\u202e"', '"title": "Number of guests"', '"action": "accept"', '"partySize": 17', '[REDACTED]']) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.doesNotMatch(text, /4711/);
  assert.deepEqual(JSON.parse(await box.locator('.other-params').innerText()), { answerOf: taskId });
  assert.deepEqual(await violations(page), []);
  await shown.evaluate((part) => (part.scrollIntoView({ block: 'center' }), (part.scrollTop = part.scrollHeight)));
  await box.locator('button.approve').click();
  await admin.inState(taskId, 'completed');
});

test('the risk of a call stands in its line where it is high, and another one where the rule says it', { skip }, async (t) => {
  const says = (match, risk) => ({ match, action: 'approve', show: { risk } });
  const tools = [tool('kills', { annotations: { destructiveHint: true } }), tool('reads', { annotations: { readOnlyHint: true } }), tool('plain'), tool('low'), tool('medium'), tool('high')];
  const { gateway, connect } = await scene(t, { rules: [says('low', 'low'), says('medium', 'medium'), says('high', 'high'), ['*', 'approve']], approval: workflow('10m'), upstream: { tools } });
  const client = await connect();
  await client.result('tools/list');
  const ids = {};
  for (const { name } of tools) ids[name] = (await client.createTask(name, {})).taskId;
  const page = await openPage(t, gateway.adminUrl, { viewport: { width: 1280, height: 800 } });
  await page.goto(`${gateway.adminUrl}/#token=${ADMIN_TOKEN}`);
  await page.locator('#pending > li').nth(tools.length - 1).waitFor();
  const shown = {};
  for (const [name, id] of Object.entries(ids)) shown[name] = await page.locator(`[data-task-id="${id}"] > .line .risk:visible`).allInnerTexts();
  assert.deepEqual(shown, { kills: ['high risk'], reads: [], plain: [], low: ['low risk'], medium: ['medium risk'], high: ['high risk'] });
  assert.deepEqual(await violations(page), []);
});
