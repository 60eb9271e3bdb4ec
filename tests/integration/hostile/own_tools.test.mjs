// The gateway's own tools in hostile hands: no way past the human, into somebody else's things, or to the machine's memory.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sample as sampled } from '../lib/admin.mjs';
import { asks, elicit, sample } from '../lib/asking.mjs';
import { connectedRaw, errorOf } from '../lib/client.mjs';
import { startGateway, workflow } from '../lib/gateway.mjs';
import { callTool, eventsOf } from '../lib/pseudo.mjs';
import { startUpstream, tool } from '../lib/upstream.mjs';
import { defer } from '../lib/lifetime.mjs';
import { generator, seed } from '../lib/random.mjs';
import { until } from '../lib/wait.mjs';
import { hostileScene, lives, shielded, TOOLS } from './stage.mjs';

/** A client that declares nothing, so that the tools are for it. */
const PLAIN = { capabilities: {} };
/** A client that negotiated an older version: it is never asked to send a task. */
const OLD = { capabilities: {}, protocol: '2025-06-18' };
/** The prefix of a tool if upstream has one of the same name. */
const PREFIX = 'taskgate_';
const quick = { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' } } };
const execute = (client, tool, more = {}) => client.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool, timeout_ms: 50, ...more } });

test('execute_tool is no way past the human, the rules or what is hidden', async (t) => {
  const stage = await hostileScene(t, { ...quick, expose: { mode: 'blocklist', tools: ['hidden_*'] }, upstream: { tools: [...TOOLS, tool('hidden_one'), tool('get_task')] } });
  const agent = await stage.connect(PLAIN);
  await shielded(stage, agent, async () => {
    // Denied and hidden tools, however they are spelled or wrapped.
    for (const [name, code] of [['drop_table', -32014], ['hidden_one', -32015]]) {
      for (const more of [{}, { args: { task: {} } }, { args: { name: 'read' } }, { task: {} }, { name: 'read' }]) {
        assert.equal(errorOf((await execute(agent, name, more)).message)?.code, code, `${name} ${JSON.stringify(more)}`);
      }
    }
    // A tool that calls tools calls none of the gateway's own.
    for (const name of ['execute_tool', 'list_tasks', `${PREFIX}execute_tool`, `${PREFIX}get_task`]) {
      const { message } = await execute(agent, name, { args: { server: 'up', tool: 'drop_table', task_id: 'tg_x' } });
      assert.match(message.result.content[0].text, /^Failed to execute tool: '\w+' is no server's tool/, name);
    }
    // A call that needs a human waits for one.
    for (const more of [{}, { args: { id: 1 } }, { timeout_ms: 0 }]) {
      const { message } = await execute(agent, 'delete_user', more);
      assert.match(message.result.content[0].text, /has not run yet: it waits for a person's approval/);
    }
    // Nor does a task field on the outside, or a call without an id, change anything.
    const tasked = await agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user' }, task: {} });
    assert.equal(tasked.message.error.code, -32010);
    for (const name of ['drop_table', 'delete_user', 'hidden_one']) await agent.notify('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: name } });
  });
  assert.ok((await stage.admin.list()).tasks.every((task) => task.state === 'pending' && task.tool === 'delete_user'));
});

test('patterns of list_tools that would grow without end are refused or answered at once', async (t) => {
  const stage = await hostileScene(t, quick);
  const agent = await stage.connect(PLAIN);
  const repeated = [`a${'+'.repeat(200)}`, `${'('.repeat(60)}a${'+)'.repeat(60)}`, `${'(a+b+)+'.repeat(20)}`, `x${'+'.repeat(26)}`];
  const refused = ['a{1,255}'.repeat(30), `${'(.*)'.repeat(9)}\\9`];
  await shielded(stage, agent, async () => {
    for (const argument of ['tool', 'server']) {
      for (const pattern of [...repeated, ...refused]) {
        const began = stage.gateway.child.worked;
        const result = await callTool(agent, 'list_tools', { [argument]: pattern });
        if (refused.includes(pattern)) assert.match(result.content[0].text, /is no regular expression that can be used here/, pattern);
        const worked = stage.gateway.child.worked - began;
        assert.ok(worked < 500, `${pattern} took ${worked} ms`);
      }
    }
  });
  // Those that remain cost no more than they are long.
  for (const pattern of [`${'('.repeat(80)}a${'*)'.repeat(80)}`, '.*'.repeat(127), `(a|b)*a${'[ab]'.repeat(60)}$`, 'r.+d']) {
    const began = stage.gateway.child.worked;
    assert.ok((await callTool(agent, 'list_tools', { tool: pattern })).content, pattern);
    const worked = stage.gateway.child.worked - began;
    assert.ok(worked < 500, `${pattern} took ${worked} ms`);
  }
});

test('a session sees and touches nothing of another by any of the tools', async (t) => {
  const stage = await hostileScene(t, { ...quick, upstream: { handlers: { 'tools/call': async (call) => (call.params.name === 'read' ? call.reply.result({ content: [] }) : asks(elicit('e-1'))({ ...call, upstream: stage.upstream })) } } });
  const [owner, thief] = [await stage.connect(OLD), await stage.connect(OLD)];
  const pending = await callTool(owner, 'delete_user', { secret: 'of-the-owner' });
  const id = pending.structuredContent.proxy_task.task_id;
  stage.upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'of-the-owner' } });
  await stage.admin.approve(id);
  const asked = await until(async () => (await callTool(owner, 'get_elicitations')).structuredContent.elicitations[0], 'the question');
  const before = stage.upstream.requests.filter((r) => r.rpc?.id === 'e-1').length;
  const attempts = [
    ['list_tasks', { include_completed: true }],
    ['get_task', { task_id: id }],
    ['get_task_result', { task_id: id, timeout_ms: 10 }],
    ['cancel_task', { task_id: id }],
    ['get_elicitations', {}],
    ['respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: { partySize: 4 } }],
    ['cancel_elicitation_request', { request_id: asked.requestId }],
    ['respond_to_sampling', { request_id: asked.requestId, role: 'assistant', content: 'x', model: 'x' }],
    ['get_notifications', {}],
    ['get_logs', {}],
    ['await_activity', { timeout_ms: 50 }],
  ];
  for (const [name, args] of attempts) {
    const text = JSON.stringify(await callTool(thief, name, args)).replaceAll(id, args.task_id ? '' : id).replaceAll(asked.requestId, args.request_id ? '' : asked.requestId);
    for (const secret of ['of-the-owner', id, asked.requestId, 'dining']) assert.ok(!text.includes(secret), `${name} shows ${secret}: ${text}`);
  }
  // The same call joins only its own session's task.
  const same = await callTool(thief, 'delete_user', { secret: 'of-the-owner' });
  assert.notEqual(same.structuredContent.proxy_task.task_id, id);
  assert.equal(same.structuredContent.joined ?? false, false);
  assert.equal(stage.upstream.requests.filter((r) => r.rpc?.id === 'e-1').length, before, 'nobody has answered the question');
  assert.equal((await stage.admin.task(id)).state, 'executing');
  await callTool(owner, 'respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: { partySize: 4 } });
  await stage.admin.inState(id, 'completed');
  await lives(stage, thief);
});

test('a stranger who is told of no such session ends nothing of it', async (t) => {
  const stage = await hostileScene(t, { ...quick, upstream: { authorize: (r) => (r.headers.authorization === 'Bearer stranger' ? 404 : undefined) } });
  const victim = await stage.connect();
  const { taskId } = await victim.createTask('delete_user');
  const stranger = stage.raw({ token: 'stranger' });
  stranger.session = victim.session;
  assert.equal((await stranger.delete()).status, 404);
  assert.equal((await stage.admin.task(taskId)).state, 'pending');
  // Its credentials are still held: it runs without another request of the victim.
  await stage.admin.approve(taskId);
  await stage.admin.inState(taskId, 'completed');
  assert.equal(stage.upstream.calls.length, 1);
  assert.equal((await victim.delete()).status, 200);
});

test('a stranger in a session answers nothing that its client is asked', async (t) => {
  const stage = await hostileScene(t, { upstream: { authorize: (r) => (r.headers.authorization === 'Bearer stranger' ? 401 : undefined) } });
  const honest = (r) => r.rpc?.id === 7 && r.rpc.method === undefined && !r.headers.authorization;
  stage.upstream.handlers['tools/call'] = async ({ reply, id, params }) => {
    if (params.name === 'read') return reply.result({ content: [] });
    const stream = reply.sse();
    stream.event({ jsonrpc: '2.0', ...elicit(7) });
    const { rpc } = await stage.upstream.received(honest, 1, 20_000);
    stream.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: JSON.stringify(rpc.result) }] } });
    stream.end();
  };
  const victim = await stage.connect({ capabilities: { tasks: {}, elicitation: {} } });
  const { taskId } = await victim.createTask('delete_user');
  const waiting = await victim.stream('tasks/result', { taskId });
  await stage.admin.approve(taskId);
  await waiting.message((m) => m.method === 'elicitation/create', 'the question');
  const stranger = stage.raw({ token: 'stranger' });
  stranger.session = victim.session;
  assert.equal((await stranger.post({ jsonrpc: '2.0', id: 7, result: { action: 'accept', content: { partySize: 20 } } })).status, 401);
  assert.equal((await victim.post({ jsonrpc: '2.0', id: 7, result: { action: 'decline' } })).status, 202);
  const last = await waiting.message((m) => m.id === waiting.id, 'the result');
  assert.equal(last.result.content[0].text, '{"action":"decline"}');
  await lives(stage, victim);
});

test('another token in a session empties no ring of events of its owner', async (t) => {
  const stage = await hostileScene(t, quick);
  const victim = await stage.connect({ ...PLAIN, token: 'victim' });
  await callTool(victim, 'list_servers');
  const pending = await callTool(victim, 'execute_tool', { server: 'up', tool: 'delete_user', args: {}, timeout_ms: 0 });
  const { task_id } = pending.structuredContent.proxy_task;
  await stage.admin.approve(task_id);
  await stage.admin.inState(task_id, 'completed');
  const stranger = stage.raw({ ...PLAIN, token: 'stranger' });
  stranger.session = victim.session;
  for (const name of ['list_servers', 'get_logs', 'get_notifications', 'await_activity']) {
    assert.deepEqual(eventsOf(await callTool(stranger, name, name === 'await_activity' ? { timeout_ms: 0 } : {})), [], name);
  }
  const told = eventsOf(await callTool(victim, 'list_servers')).map((e) => e.type);
  assert.ok(told.includes('task_completed'), told.join());
  await lives(stage, victim);
});

test('a JSON-RPC error with HTTP 200 vouches for nobody', async (t) => {
  const stage = await hostileScene(t);
  const refuses = (r) => r.headers.authorization === 'Bearer stranger';
  stage.upstream.handlers.ping = ({ reply, recorded }) => (refuses(recorded) ? reply.error(-32001, 'who are you?') : reply.result({}));
  stage.upstream.handlers['tools/call'] = ({ reply, recorded }) => (refuses(recorded) ? reply.error(-32001, 'who are you?') : reply.result({ content: [] }));
  for (const list of ['tools/list', 'prompts/list']) stage.upstream.handlers[list] = ({ reply, recorded }) => (refuses(recorded) ? reply.error(-32001, 'who are you?') : reply.result({ tools: TOOLS, prompts: [] }));
  const victim = await stage.connect({ token: 'victim', capabilities: {} });
  const stranger = stage.raw({ token: 'stranger' });
  stranger.session = victim.session;
  assert.equal((await stranger.error('tools/call', { name: 'read', arguments: {} })).code, -32001);
  assert.equal((await stranger.error('tools/list')).code, -32001);
  assert.equal((await stranger.error('prompts/list')).code, -32001);
  await stranger.listen();
  for (const [method, params] of [['tasks/list', {}], ['tools/call', { name: 'delete_user', arguments: {}, task: {} }], ['tools/call', { name: 'list_tasks', arguments: {} }]]) {
    const error = await stranger.error(method, params);
    assert.equal(error.code, -32000, method);
    assert.match(error.data.details, /upstream does not vouch for this session and token: it answers a ping with the error .*who are you/, method);
  }
  assert.deepEqual((await stage.admin.list()).tasks, []);
  await lives(stage, victim);
});

test("a stranger's notifications/cancelled ends no other's wait", async (t) => {
  const stage = await hostileScene(t);
  const victim = await stage.connect({ token: 'victim', capabilities: { tasks: {} } });
  const { taskId } = await victim.createTask('delete_user');
  const waiting = await victim.stream('tasks/result', { taskId });
  const stranger = stage.raw({ token: 'stranger' });
  stranger.session = victim.session;
  await stranger.notify('notifications/cancelled', { requestId: waiting.id });
  await stage.admin.approve(taskId);
  const last = await waiting.message((m) => m.id === waiting.id, 'the result');
  assert.ok(last.result, JSON.stringify(last));
  await lives(stage, victim);
});

test('the end of a session at one server is no end at another that uses the same name', async (t) => {
  const upstreams = [await startUpstream(t, { tools: TOOLS }), await startUpstream(t, { tools: TOOLS })];
  upstreams[1].onHttp = (r, reply) => r.method === 'DELETE' && (reply.http(200), true);
  const gateway = await startGateway(t, {
    upstream: { a: upstreams[0].url, b: upstreams[1].url },
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
  });
  const url = (source) => `http://127.0.0.1:${gateway.port}/${source}/mcp`;
  const victim = await connectedRaw(t, url('a'));
  const { taskId } = await victim.createTask('delete_user');
  const other = await connectedRaw(t, url('b'));
  other.session = victim.session;
  assert.equal((await other.delete()).status, 200);
  await gateway.admin.approve(taskId);
  await gateway.admin.inState(taskId, 'completed');
  assert.equal(upstreams[0].calls.length, 1);
});

// A sanitizer keeps freed memory for a while: here that would look like a leak.
const measured = { env: { ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'quarantine_size_mb=1'].filter(Boolean).join(':') } };
const memoryOf = (pid) => Number(/^VmRSS:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

test("a server's questions are kept within bounds, and one too many is answered so", async (t) => {
  const big = (n) => sample(`s-${n}`, { messages: [{ role: 'user', content: { type: 'text', text: 'x'.repeat(900_000) } }], maxTokens: 1 });
  const stage = await hostileScene(t, {
    ...quick,
    ...measured,
    upstream: {
      handlers: {
        'tools/call': async ({ reply, params, id }) => {
          if (params.name === 'read') return reply.result({ content: [] });
          const stream = reply.sse();
          defer(t, () => reply.cut());
          for (let n = 0; n < 90; n++) {
            const more = stream.event({ jsonrpc: '2.0', ...big(`${id}-${n}`) });
            if (!more) await new Promise((resolve) => stream.response.once('drain', resolve));
          }
        },
      },
    },
  });
  stage.upstream.onHttp = (r, reply) => r.rpc?.method === undefined && r.rpc?.error !== undefined && (reply.http(202), true);
  const agent = await stage.connect(PLAIN);
  const before = memoryOf(stage.gateway.child.pid);
  const call = agent.send('tools/call', { name: 'ask_much' }).catch(() => {});
  const refusals = () => stage.upstream.requests.filter((r) => r.rpc?.error?.code === -32013).length;
  await until(() => refusals() >= 80, () => `refusals; ${refusals()} so far`, { deadline: 60_000 });
  const grown = memoryOf(stage.gateway.child.pid) - before;
  assert.ok(grown < 60e6, `${(grown / 1e6).toFixed(0)} MB for 81 MB of questions`);
  const { sampling_requests } = (await callTool(agent, 'get_sampling_requests')).structuredContent;
  assert.ok(sampling_requests.length >= 1 && sampling_requests.length <= 5, `${sampling_requests.length} are kept`);
  agent.close();
  await call;
  await lives(stage, await stage.connect());
});

test('slow calls that run as tasks are bounded in all, and one too many stays with its client', async (t) => {
  const held = [];
  const stage = await hostileScene(t, {
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '100ms', wait_max: '100ms' }, limits: { pending_total: 3 } },
    upstream: { tools: [...TOOLS, tool('slow')], handlers: { 'tools/call': (call) => (call.params.name === 'slow' ? held.push(call) : call.reply.result({ content: [] })) } },
  });
  defer(t, () => held.forEach(({ reply }) => reply.response.writableEnded || reply.cut()));
  for (let i = 0; i < 3; i++) {
    const { message } = await execute(await stage.connect(PLAIN), 'slow', { args: { i } });
    assert.match(message.result.content[0].text, /Promoted to task/);
  }
  const last = execute(await stage.connect(PLAIN), 'slow', { args: { last: true } });
  await until(() => held.length === 4, 'the fourth call');
  held[3].reply.result({ content: [{ type: 'text', text: 'itself' }] });
  assert.equal((await last).message.result.content[0].text, 'itself');
  await lives(stage, await stage.connect());
  assert.equal(sampled(await stage.admin.metrics(), 'thoughtgate_tasks_pending') ?? 0, 0, 'they are nobody\'s to decide');
});

test(`clients that come and go in the middle of the tools, over servers that do so too (TASKGATE_SEED=${seed})`, { timeout: 120_000 }, async (t) => {
  const open = [];
  const random = generator();
  const stage = await hostileScene(t, {
    config: { workers: 2, pseudo_tools: { promote: 'wait', only: 'all', wait: '100ms', wait_max: '100ms' }, pseudo_tasks: { elicitation_timeout: '300ms' } },
    upstream: {
      tools: [...TOOLS, tool('slow'), tool('ask_user')],
      handlers: {
        'tools/call': async (call) => {
          const { name } = call.params;
          const { reply } = call;
          const chance = random();
          open.push(reply);
          if (name === 'read') return reply.result({ content: [] });
          if (chance < 0.1) return reply.cut();
          if (name === 'ask_user') return asks(elicit(`e-${random()}`), sample(`s-${random()}`))({ ...call, upstream: stage.upstream }).catch(() => {});
          await pause(random() * 100);
          if (!reply.response.destroyed) reply.result({ content: [{ type: 'text', text: `did ${name}` }] });
        },
      },
    },
  });
  defer(t, () => open.forEach((reply) => reply.response.writableEnded || reply.cut()));
  const until_ms = performance.now() + Number(process.env.TASKGATE_CHAOS_MS ?? 6000);
  const names = ['list_tasks', 'get_task', 'get_task_result', 'cancel_task', 'await_activity', 'execute_tool', 'get_elicitations', 'respond_to_elicitation', 'cancel_elicitation_request', 'get_sampling_requests', 'respond_to_sampling', 'get_notifications', 'get_logs', 'list_servers', 'list_tools', 'delete_user', 'slow', 'ask_user'];
  const pick = (list) => list[Math.floor(random() * list.length)];
  const ids = [];
  const argumentsOf = (name) => {
    const id = pick(ids) ?? 'tg_x';
    return {
      get_task: { task_id: id }, get_task_result: { task_id: id, timeout_ms: random() * 60 }, cancel_task: { task_id: id },
      await_activity: { timeout_ms: random() * 60 },
      execute_tool: { server: 'up', tool: pick(['slow', 'delete_user', 'ask_user', 'read']), args: { n: Math.floor(random() * 5) }, timeout_ms: random() * 60 },
      respond_to_elicitation: { request_id: id, action: 'accept', content: { partySize: 4 } }, cancel_elicitation_request: { request_id: id },
      respond_to_sampling: { request_id: id, role: 'assistant', content: 'x', model: 'm' },
      delete_user: { n: Math.floor(random() * 5) }, slow: {}, ask_user: {},
    }[name] ?? {};
  };
  let answers = 0;
  const agent = async (token) => {
    while (performance.now() < until_ms) {
      const client = await stage.connect({ ...PLAIN, token });
      const stream = random() < 0.3 ? await client.listen().catch(() => {}) : undefined;
      const calls = Array.from({ length: 12 }, async () => {
        const name = pick(names);
        const response = await client.post({ jsonrpc: '2.0', id: ++client.lastId, method: 'tools/call', params: { name, arguments: argumentsOf(name), ...(random() < 0.3 ? { _meta: { progressToken: client.lastId } } : {}) } });
        if (random() < 0.25) return response.abort();
        const text = await response.text();
        answers++;
        for (const [id] of text.matchAll(/tg_[0-9a-f-]{36}|[0-7][0-9A-HJKMNP-TV-Z]{25}/g)) if (ids.push(id) > 200) ids.shift();
      });
      const fate = random();
      if (fate < 0.3) await pause(random() * 60);
      else await Promise.allSettled(calls);
      if (fate < 0.6) await client.delete().catch(() => {});
      stream?.abort();
      client.close();
      await Promise.allSettled(calls);
    }
  };
  const operator = async () => {
    while (performance.now() < until_ms) {
      for (const { id } of (await stage.admin.list({ state: 'pending', limit: '20' })).tasks) await stage.admin.decide(pick(['approve', 'approve', 'reject', 'cancel']), id);
      if (random() < 0.1) stage.gateway.hangUp();
      await pause(10);
    }
  };
  await Promise.all([agent('A'), agent('A'), agent('B'), agent(undefined), agent(undefined), operator()]);
  assert.ok(answers > 20, `only ${answers} answers`);
  await lives(stage, await stage.connect());
});
