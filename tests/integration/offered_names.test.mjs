// Every text of the gateway's names only tools that its client is offered, by the names it is offered them by.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const NAMES = ['list_tasks', 'get_task', 'get_task_result', 'cancel_task', 'await_activity', 'execute_tool', 'get_elicitations', 'respond_to_elicitation', 'cancel_elicitation_request', 'get_sampling_requests', 'respond_to_sampling', 'cancel_sampling_request', 'get_notifications', 'get_logs', 'list_servers', 'list_tools'];
/** Those that have a parameter which is required, and those that list. */
const NEEDY = ['get_task', 'get_task_result', 'cancel_task', 'execute_tool', 'respond_to_elicitation', 'cancel_elicitation_request', 'respond_to_sampling', 'cancel_sampling_request'];
const LISTS = ['list_tools', 'list_servers', 'get_logs', 'get_notifications', 'get_elicitations', 'get_sampling_requests'];
const PREFIX = 'own-';
const THEIRS = [tool('delete_user'), tool('slow')];

/** Calls of the tool "slow" are answered by `finish`. */
async function stage(t, more = {}) {
  const held = [];
  const on = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    upstream: { tools: THEIRS, handlers: { 'tools/call': ({ params, reply }) => (params.name === 'slow' ? held.push(reply) : reply.result({ content: [] })) }, ...more },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '100ms', wait_max: '100ms', prefix: PREFIX } },
  });
  return { ...on, finish: () => held.splice(0).forEach((reply) => reply.result({ content: [] })) };
}

/** The remains of a text that was not filled. */
const MARKS = /\[\[|\]\]|\|\||\{[a-z_]+\}/;

/** Every name of one of the tools that a text speaks of, with the prefix where it stands there. */
const spokenOf = (text) => [...text.matchAll(new RegExp(`(?<![\\w-])(${PREFIX})?(${NAMES.join('|')})(?![\\w])`, 'g'))].map((match) => match[0]);

const allText = (value) => JSON.stringify(value).replaceAll('\\"', '"').replaceAll('\\n', ' ');
const describes = (definition) => [definition.title, definition.description, ...Object.values(definition.inputSchema.properties ?? {}).map((property) => property.description)].join(' ');

/** Every text that the client can get out of the gateway, by what it comes from. */
async function textsFor(client, offered) {
  const texts = {};
  const at = (name) => offered.get(name);
  const ask = async (label, name, args) => {
    if (at(name)) texts[label] = allText((await callTool(client, at(name), args)).content[0]);
  };
  const pending = await callTool(client, 'delete_user', { n: Math.random() });
  texts['a call that waits for approval'] = pending.content[0].text;
  const id = pending.structuredContent.proxy_task.task_id;
  await Promise.all([
    callTool(client, 'slow').then((result) => (texts['a slow call'] = result.content[0].text)),
    ask('a slow call by execute_tool', 'execute_tool', { server: 'up', tool: 'slow', timeout_ms: 10 }),
    ask('another server', 'execute_tool', { server: 'other', tool: 'slow' }),
    ask('our own tool by execute_tool', 'execute_tool', { server: 'up', tool: at('execute_tool') }),
    ask('a result that is not there yet', 'get_task_result', { task_id: id, timeout_ms: 10 }),
    ask('an unknown task', 'get_task_result', { task_id: 'x' }),
    ...NEEDY.map((name) => ask(`wrong arguments of ${name}`, name, {})),
    ...['cancel_elicitation_request', 'cancel_sampling_request'].map((name) => ask(`no question for ${name}`, name, { request_id: 'x' })),
    ask('an answer to no question', 'respond_to_elicitation', { request_id: 'x', action: 'cancel' }),
    ...LISTS.map((name) => ask(name, name, name === 'list_tools' ? { tool: 'none' } : {})),
  ]);
  texts['the diagrams'] = JSON.parse((await client.result('resources/read', { uri: 'emceepee://diagrams' })).contents[0].text).diagrams.map((d) => d.mermaid).join('\n');
  await ask('cancelled', 'cancel_task', { task_id: id });
  return texts;
}

/** Lists the tools and returns by which name each of ours is offered. */
async function offeredTo(client, theirs) {
  const definitions = (await client.result('tools/list')).tools.filter(({ name }) => !theirs.includes(name));
  const byName = new Map(definitions.map((definition) => [definition.name.replace(PREFIX, ''), definition]));
  return { definitions, offered: new Map([...byName].map(([name, definition]) => [name, definition.name])) };
}

async function assertNamesFit({ connect, finish }, theirs, expected) {
  const client = await connect(kinds.old.client);
  const { definitions, offered } = await offeredTo(client, theirs);
  assert.deepEqual([...offered.values()], expected);
  const texts = await textsFor(client, offered);
  finish();
  for (const definition of definitions) texts[`the description of ${definition.name}`] = describes(definition);
  // A client with tasks is not listed the tools, but an error about the task field offers them to it.
  const modern = await connect();
  await modern.result('tools/list');
  texts['task required'] = allText(await modern.error('tools/call', { name: 'delete_user', arguments: {} }));
  texts['task forbidden'] = allText(await modern.error('tools/call', { name: 'slow', arguments: {}, task: {} }));
  for (const [from, text] of Object.entries(texts)) {
    assert.deepEqual(spokenOf(text).filter((name) => !expected.includes(name)), [], `${from}: ${text}`);
    assert.doesNotMatch(text, from === 'the diagrams' ? MARKS : new RegExp(`${MARKS.source}|\\s[.,;]| {2}`), `${from}: ${text}`);
  }
  return texts;
}

test('with every tool on, each text names what goes on from there', async (t) => {
  const texts = await assertNamesFit(await stage(t), THEIRS.map((x) => x.name), NAMES);
  const spoken = Object.fromEntries(Object.entries(texts).map(([from, text]) => [from, spokenOf(text)]));
  assert.deepEqual(spoken['a call that waits for approval'], ['get_task_result']);
  assert.deepEqual(spoken['a slow call'], ['get_task_result']);
  assert.deepEqual(spoken['another server'], ['list_servers']);
  assert.deepEqual(spoken['a result that is not there yet'], ['get_task_result', 'await_activity']);
  assert.deepEqual(spoken['the description of execute_tool'], ['get_task_result', 'list_servers', 'list_tools']);
  assert.deepEqual(spoken['the description of respond_to_elicitation'], ['get_elicitations']);
  assert.deepEqual(spoken['task required'], ['execute_tool', 'get_task_result', 'await_activity', 'list_tasks']);
  assert.equal(spoken['the diagrams'].length, 13);
});

/** Reloads the configuration with those tools alone, and asserts of every text for a client that it fits. */
async function assertFitWith(only, on, watcher) {
  on.gateway.writeConfig({ config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '100ms', wait_max: '100ms', prefix: PREFIX, only } } });
  on.gateway.hangUp();
  const names = THEIRS.map((x) => x.name);
  await until(async () => [...(await offeredTo(watcher, names)).offered.keys()].join() === only.join(), `only ${only}`);
  await assertNamesFit(on, names, only);
}

test('a tool that is switched off is named in no text', async (t) => {
  const on = await stage(t);
  const watcher = await on.connect(kinds.old.client);
  for (const off of NAMES) await assertFitWith(NAMES.filter((name) => name !== off), on, watcher);
});

test('one tool alone: no text names another', async (t) => {
  const on = await stage(t);
  const watcher = await on.connect(kinds.old.client);
  for (const name of NAMES) await assertFitWith([name], on, watcher);
});

test('a tool whose name upstream has is named with the prefix in every text', async (t) => {
  const on = await stage(t);
  for (const taken of NAMES) {
    on.upstream.tools = [...THEIRS, tool(taken)];
    const texts = await assertNamesFit(on, on.upstream.tools.map((x) => x.name), NAMES.map((name) => (name === taken ? PREFIX + taken : name)));
    if (taken === 'get_task_result') assert.deepEqual(spokenOf(texts['a slow call']), ['own-get_task_result']);
  }
});

test('a client with neither session nor token is not sent to await_activity, which keeps nothing for it', async (t) => {
  const { connect } = await stage(t, { sessions: false });
  const client = await connect(kinds.old.client);
  const { definitions, offered } = await offeredTo(client, THEIRS.map((x) => x.name));
  assert.equal(offered.has('await_activity'), false);
  for (const definition of definitions) assert.equal(describes(definition).includes('await_activity'), false, definition.name);
  const pending = await callTool(client, 'execute_tool', { server: 'up', tool: 'delete_user', timeout_ms: 10 });
  assert.doesNotMatch(pending.content[0].text, /await_activity/);
  assert.match(pending.content[0].text, /get_task_result/);
  assert.match((await callTool(client, 'await_activity')).content[0].text, /Nothing is kept for this client.*Use get_task_result instead$/);
});
