// The examples of docs/agents.md, in their order, against the gateway and the example server: each answer is as the document has it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exampleMissing, startExample } from '../integration/lib/example_server.mjs';
import { startGateway, workflow } from '../integration/lib/gateway.mjs';
import { modernScene } from '../integration/lib/modern_scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';
import { blocks, exists, read } from './lib/documents.mjs';
import { Session } from './lib/session.mjs';

const document = 'docs/agents.md';
const skip = process.env.TASKGATE_BIN || exists('build/taskgate') ? exampleMissing : 'build/taskgate is not built';

/** Each example: the request, and the block with its answer, if the document shows it. */
const examples = [];
for (const block of blocks(read(document)).filter(({ language }) => language.startsWith('json'))) {
  const value = JSON.parse(block.text);
  const asks = !Array.isArray(value) && (value.method !== undefined || (value.name !== undefined && value.arguments !== undefined));
  if (asks) examples.push({ line: block.line, note: block.example, value });
  else examples.at(-1).answer ??= { value, isError: block.language === 'json isError' };
}

const ID = /tg_[0-9a-f-]{36}|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const TIME = /\b20\d\d-\d\d-\d\dT[\d:.]+Z/g;

/** The ids of this run for the ids of the document: each stands for one, everywhere. */
class Names {
  known = new Map();

  bind(ours, theirs) {
    if (!this.known.has(ours)) this.known.set(ours, theirs);
    assert.equal(this.known.get(ours), theirs, `${ours} is another one here`);
  }

  /** The document's words with this run's ids. */
  filled = (value) => JSON.parse(JSON.stringify(value).replace(ID, (id) => this.known.get(id) ?? id));

  /** Asserts that `actual` equals the document's answer; "…" stands for further members. */
  same(actual, said, at = 'the answer') {
    if (typeof said === 'string' && typeof actual === 'string') {
      const [ours, theirs] = [said.match(ID) ?? [], actual.match(ID) ?? []];
      if (ours.length === theirs.length) ours.forEach((id, i) => this.bind(id, theirs[i]));
      assert.equal(actual.replace(TIME, 'then'), this.filled(said).replace(TIME, 'then'), at);
    } else if (said === null || typeof said !== 'object') {
      assert.deepEqual(actual, said, at);
    } else {
      const keys = Object.keys(said).filter((key) => key !== '…');
      if (!('…' in said)) assert.deepEqual(Object.keys(actual).sort(), Object.keys(said).sort(), at);
      for (const key of keys) this.same(actual[key], said[key], `${at}.${key}`);
    }
  }
}

const isModern = (note) => note?.startsWith('modern');

const asJson = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
const isEvents = (block) => block?.events_since_last_response !== undefined;
const isPending = (block) => block?.pending_client_action !== undefined;

/** The gateway before the example server, and sessions of clients of every kind, made when needed. */
async function stage(t, rules, config) {
  const server = await startExample(t);
  const gateway = await startGateway(t, { upstream: { example: server.url }, rules, approval: workflow('10m'), config });
  const sessions = new Map();
  return {
    admin: gateway.admin,
    session: async (options) => {
      const key = JSON.stringify(options);
      if (!sessions.has(key)) sessions.set(key, await Session.open(gateway.url, options));
      return sessions.get(key);
    },
  };
}

const held = (admin) => until(async () => (await admin.metrics()).thoughtgate_active_requests >= 1, 'the held call');

test('clients without tasks: each call is answered as the document says', { skip, timeout: 120_000 }, async (t) => {
  const { admin, session } = await stage(t, [['delete_*', 'approve']], { pseudo_tools: { promote: 'wait', only: 'all', wait: '500ms', wait_max: '500ms' } });
  const names = new Names();
  const events = { said: [], actual: [] };
  for (const { line, note, value, answer } of examples.filter(({ value: { name } }) => name)) {
    await t.test(`line ${line}: ${value.name}`, async () => {
      const client = await session(note === '2025-11-25' ? { protocol: note, capabilities: { tasks: {} } } : { protocol: '2025-06-18' });
      const answered = client.send('tools/call', names.filled(value));
      if (note === 'meanwhile approved') {
        await held(admin);
        await admin.approve((await admin.pending()).id);
      }
      const message = await answered;
      if (!Array.isArray(answer.value)) return names.same(message.error, answer.value);
      const { content, structuredContent, isError = false } = message.result;
      const found = content.map(({ text }) => asJson(text));
      assert.equal(isError, answer.isError);
      // An event may come with an earlier answer or a later one; that each comes once is seen at the end.
      events.said.push(...answer.value.filter(isEvents).flatMap((block) => block.events_since_last_response));
      events.actual.push(...found.filter(isEvents).flatMap((block) => block.events_since_last_response));
      names.same(found.filter((block) => !isEvents(block)), answer.value.filter((block) => !isEvents(block)));
      const own = found.find((block) => typeof block === 'object' && !Array.isArray(block) && !isEvents(block) && !isPending(block));
      if (own) assert.deepEqual({ ...structuredContent, ...own }, structuredContent, 'structuredContent says the same');
    });
  }
  names.same(events.actual, events.said, 'the events');
});

test('clients with tasks: each request is answered as the document says', { skip, timeout: 120_000 }, async (t) => {
  const { admin, session } = await stage(t, [['delete_*', 'approve'], ['ask', 'approve']]);
  const client = await session({ capabilities: { tasks: {}, elicitation: {} } });
  const names = new Names();
  for (const { line, note, value, answer } of examples.filter(({ note, value: { method } }) => method && !isModern(note))) {
    await t.test(`line ${line}: ${value.method}`, async () => {
      const ask = async () => (await client.send(value.method, names.filled(value.params))).result;
      if (note === 'once it asks') {
        const { result } = await client.send('tools/call', { name: 'ask', arguments: { question: 'Which colour?' }, task: {} });
        names.bind(value.params.taskId, result.taskId);
        await admin.approve(result.taskId);
        await until(async () => (await ask()).statusMessage !== 'Awaiting approval' && (await ask()).status === 'input_required', 'the question');
      }
      const result = await ask();
      if (answer) names.same(result, answer.value);
      else assert.ok(['working', 'completed'].includes(result.status), result.status);
    });
  }
});

test('modern clients: each request is answered as the document says', { skip, timeout: 120_000 }, async (t) => {
  const { modern, admin } = await modernScene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), source: { era: 'modern' }, upstream: { tools: [tool('delete_database')] } });
  const client = modern();
  const names = new Names();
  for (const { line, note, value, answer } of examples.filter(({ note }) => isModern(note))) {
    await t.test(`line ${line}: ${value.method}`, async () => {
      const ask = () => client.result(value.method, names.filled(value.params));
      if (note === 'modern approved') {
        await admin.approve((await admin.pending()).id);
        await until(async () => (await ask()).status === 'completed', 'the outcome');
      }
      if (note === 'modern listen') {
        const { notifications } = names.filled(value.params);
        const stream = await client.stream(value.method, { notifications });
        assert.deepEqual((await stream.message()).params.notifications, { toolsListChanged: true, taskIds: notifications.taskIds });
        const told = await stream.message();
        assert.deepEqual([told.method, told.params.taskId, told.params.status], ['notifications/tasks', notifications.taskIds[0], 'completed']);
        return;
      }
      names.same(await ask(), answer.value);
    });
  }
});

test('the table of tools is theirs', { skip }, async (t) => {
  const { session } = await stage(t, [], { pseudo_tools: { only: 'all' } });
  const client = await session({});
  const { tools } = (await client.send('tools/list')).result;
  const theirs = (await client.send('tools/call', { name: 'list_tools', arguments: {} })).result.structuredContent.tools.map(({ name }) => name);
  const [, table] = /^## Without tasks\n([^]*?)^### /m.exec(read(document));
  const said = [...table.matchAll(/^\| `(\w+)` \|([^|]*)\|/gm)].map(([, name, takes]) => [name, [...takes.matchAll(/`(\w+\??)`/g)].map(([, word]) => word)]);
  const own = tools.filter(({ name }) => !theirs.includes(name));
  assert.deepEqual(said, own.map(({ name, inputSchema: { properties, required = [] } }) => [name, Object.keys(properties).map((key) => (required.includes(key) ? key : `${key}?`))]));
});
