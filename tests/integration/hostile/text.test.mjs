// Texts that agents and upstreams choose, on their way to logs, terminals, pages and event streams.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { sample } from '../lib/admin.mjs';
import { workflow } from '../lib/gateway.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';
import { hostileScene, lives } from './stage.mjs';

// Escape sequences, line breaks of every kind, deletions, direction, what cannot be seen (joiners, selectors, fillers,
// blanks, tags), and the look of a log line or an event.
const EVIL = '\u001b[2J\u001b]0;x\u0007\r\n{"time":"2026-01-01T00:00:00.000Z","level":"info","msg":"forged"}\n\ndata: {"forged":true}\n\n\b\u007f\u0085\u009b31m\u2028\u2029\u202e\u2066\u200f\u200b\u2060\ufe0f\u3164\u00a0\u2800\u{e0041}\u{e0100}</script><img src=x onerror=alert(1)>';
const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f\u200b\u2060\ufe0f\u3164\u00a0\u2800\u{e0000}-\u{e0fff}]/u;
const evilTool = `delete_${EVIL}`;

const stage = (t) => hostileScene(t, { upstream: { tools: [tool(evilTool), tool('read')], capabilities: { tools: {}, notifications: { tasks: { status: true } } } } });

test('log and terminal injection: tool names, arguments, reasons and client names in the log', async (t) => {
  const s = await stage(t);
  const client = await s.connect({ name: EVIL, token: EVIL.replace(/[^\x20-\x7e]/g, '') });
  const { taskId } = await client.createTask(evilTool, { [EVIL]: EVIL });
  await client.send('tools/call', { name: evilTool });
  await client.send(`tools/${EVIL}`, { name: EVIL });
  await client.send('tasks/get', { taskId: `tg_${EVIL}` });
  await client.send('', undefined, { body: `{"${EVIL}` });
  await s.admin.reject(taskId, EVIL);
  await s.admin.inState(taskId, 'rejected');
  await until(async () => s.gateway.logs.length > 0, 'log lines');
  for (const line of s.gateway.child.stderr.split('\n').slice(0, -1)) {
    assert.doesNotMatch(line, RAW, line);
    assert.notEqual(JSON.parse(line).msg, 'forged', line);
  }
  await lives(s, client);
});

test('log and terminal injection: `taskgate tasks list`, `show` and the decisions', async (t) => {
  const s = await stage(t);
  const client = await s.connect({ name: EVIL });
  const { taskId } = await client.createTask(evilTool, { [EVIL]: EVIL });
  const runs = [['tasks', 'list'], ['tasks', 'list', '--json'], ['tasks', 'show', taskId], ['tasks', 'reject', taskId, '--reason', EVIL], ['tasks', 'show', taskId], ['tasks', 'list', '--state', 'rejected']];
  for (const args of runs) {
    const { code, stdout, stderr } = await s.gateway.cli(args);
    assert.equal(code, 0, `${args[1]}: ${stderr}`);
    for (const line of `${stdout}${stderr}`.split('\n')) assert.doesNotMatch(line, RAW, `${args.slice(0, 2).join(' ')}: ${JSON.stringify(line)}`);
    assert.ok(!stdout.split('\n').some((line) => line.startsWith('{"time":"2026') || line.startsWith('data:')), stdout);
  }
});

test('log and terminal injection: on the page nothing of an agent is markup', async (t) => {
  const s = await stage(t);
  const client = await s.connect();
  await client.createTask(evilTool, { [EVIL]: EVIL });
  const page = await s.admin.get('/');
  assert.ok(!page.text.includes('onerror'), 'the page holds no data');
  assert.match(page.headers['content-security-policy'], /default-src 'none'|script-src 'self'/);
  assert.doesNotMatch(page.headers['content-security-policy'], /unsafe-inline|unsafe-eval/);
  // The page gets JSON with its content type.
  const list = await s.admin.get('/api/v1/tasks');
  assert.match(list.headers['content-type'], /^application\/json/);
  assert.equal(list.headers['x-content-type-options'], 'nosniff');
  for (const script of page.text.matchAll(/src="([^"]+\.js)"/g)) {
    const { text } = await s.admin.get(`/${script[1].replace(/^\//, '')}`);
    assert.doesNotMatch(text, /innerHTML|insertAdjacentHTML|document\.write|\beval\(/, script[1]);
  }
});

test('SSE injection through every field that becomes an event', async (t) => {
  const s = await stage(t);
  const client = await s.connect({ name: EVIL });
  const listening = await client.listen();
  const events = await s.admin.events();
  const { taskId } = await client.createTask(evilTool, { [EVIL]: EVIL });
  const waiting = await client.stream('tasks/result', { taskId, _meta: { progressToken: EVIL } }, { id: EVIL });
  await s.admin.reject(taskId, EVIL);
  await waiting.end();
  await events.next((e) => e.json?.state === 'rejected', 'the rejection');
  await listening.next((e) => e.data?.includes(taskId), 'the status');
  for (const stream of [listening, events, waiting]) {
    for (const event of stream.events) {
      assert.ok(event.json === undefined || event.json.forged === undefined, `a forged event: ${event.raw}`);
      assert.ok(event.comment !== undefined || event.json !== undefined, `a block that is no event of ours: ${event.raw}`);
      assert.doesNotMatch(event.raw.replaceAll('\n', ''), /\r/);
    }
  }
  assert.equal(waiting.events.filter((e) => e.json?.id === EVIL).length, 1, waiting.raw);
  listening.abort();
  events.abort();
  await lives(s, client);
});

test('SSE injection from upstream: a result, an error and progress during an execution stay one message each', async (t) => {
  const s = await hostileScene(t, { approval: workflow('10m') });
  const client = await s.connect();
  s.upstream.handlers['tools/call'] = ({ reply, rpc }) => {
    const stream = reply.sse();
    stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'x', progress: 1, message: EVIL } });
    stream.event({ jsonrpc: '2.0', id: rpc.id, result: { content: [{ type: 'text', text: EVIL }], isError: true } }, { event: 'message' });
    stream.end();
  };
  const { taskId } = await client.createTask('delete_user');
  const waiting = await client.stream('tasks/result', { taskId, _meta: { progressToken: 'p' } });
  await s.admin.approve(taskId);
  await waiting.end();
  const messages = waiting.events.filter((e) => e.json !== undefined);
  assert.ok(messages.every((e) => e.json.forged === undefined));
  assert.equal(messages.filter((e) => e.json.id === waiting.id).length, 1);
  assert.equal(messages.find((e) => e.json.id === waiting.id).json.result.content[0].text, EVIL);
  delete s.upstream.handlers['tools/call'];
  await lives(s, client);
});

test('metric labels are the gateway\'s own words: no text of an agent makes a sample or a line', async (t) => {
  const s = await stage(t);
  const client = await s.connect({ name: EVIL });
  for (let i = 0; i < 50; i++) await client.send(`x/${i}${EVIL}`, { name: `${EVIL}${i}` });
  await client.createTask(evilTool);
  const { text } = await s.admin.get('/metrics');
  for (const line of text.split('\n')) assert.doesNotMatch(line, RAW, JSON.stringify(line));
  assert.ok(!text.includes('forged'));
  for (const line of text.split('\n')) assert.match(line, /^(#.*|[a-z_:]+(\{.*\})? -?[\d.eE+-]+|)$/, line);
  assert.ok(text.split('\n').length < 600, 'labels are bounded');
  assert.ok(sample(await s.admin.metrics(), 'thoughtgate_tasks_pending') >= 1);
});

test('a tool name of a megabyte is kept as its beginning, its length and its digest', async (t) => {
  const s = await stage(t);
  const client = await s.connect();
  const long = `delete_${'x'.repeat(1_000_000)}`;
  const cut = (name) => `${name.slice(0, 1024)}... (${name.length} bytes, sha256 ${createHash('sha256').update(name).digest('hex')})`;
  await client.createTask(long);
  const { decision } = await s.gateway.logged(/^Task created$/);
  assert.equal(decision.tool, cut(long), 'as the audit trail has it');
  assert.equal((await client.error('tools/call', { name: `drop_${long}` })).code, -32014);
  assert.equal((await client.error('tools/call', { name: `drop_${long}y` })).code, -32014);
  const decided = async (name) => (await s.gateway.logged((entry) => entry.msg === 'Calls decided' && entry.tool === cut(name))).calls;
  assert.deepEqual([await decided(`drop_${long}`), await decided(`drop_${long}y`)], [1, 1]);
  await lives(s, client);
});
