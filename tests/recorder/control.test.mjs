// Calls of the control plane, and the moments between a vote and its call.
import { TOKENS } from '../integration/lib/control_plane.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { until } from '../integration/lib/wait.mjs';
import { PAIRS, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const SETTINGS = {
  rules: [['delete_*', 'approve'], ['drop_*', 'deny']],
  approval: workflow('10m'),
  expose: { mode: 'blocklist', tools: ['hidden'] },
  env: TOKENS,
  config: { admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } },
};
const server = (pair) => ({
  tools: tools('read', 'delete_user', 'drop_all', 'hidden'),
  handlers: {
    'tools/call': ({ reply, params }) => {
      if (params.arguments?.n === 3) return reply.error(-32602, 'wrong arguments', { field: 'n' });
      return reply.result(pair.text(`did ${params.name}`, params.arguments?.n === 4 ? { isError: true } : {}));
    },
  },
});
/** Until the session of the last call has been given back. */
const sessionEnds = ({ upstream }, count) => upstream.received((r) => r.method === 'DELETE', count + 1); // the first is the gateway's own

for (const pair of PAIRS.filter(({ client }) => client === 'legacy')) {
  const source = { headers: { authorization: { env: 'UPSTREAM_SECRET' } } };
  scenario(`control_plane_to_${pair.server}`, { title: `calls of the control plane: a ${pair.server} server`, ...SETTINGS, ...pair.options({ upstream: server(pair), source }) }, async (stage) => {
    const ci = await stage.operator('ci', TOKENS.CI_TOKEN);
    let sessions = 0;
    const ended = async () => (pair.isModernServer ? undefined : sessionEnds(stage, ++sessions));
    const outcome = (id) => ci.get(`/api/v1/tasks/${id}/result?wait=20s`);
    const post = async (body) => (await ci.post('/api/v1/calls', body)).json;
    for (const n of [1.5, 3, 4]) {
      const { id } = await post({ tool: 'read', arguments: { n, odd: [1.0, null] } });
      await outcome(id);
      await ended();
    }
    const approved = await post({ tool: 'delete_user', arguments: { n: 1 }, ttl: 600_000 });
    await stage.admin.approve(approved.id, 'fine');
    await stage.admin.inState(approved.id, 'completed', 'failed');
    await outcome(approved.id);
    await ended();
    const rejected = await post({ tool: 'delete_user', arguments: { n: 2 } });
    await stage.admin.reject(rejected.id, 'no');
    await outcome(rejected.id);
    await post({ tool: 'drop_all' });
    await post({ tool: 'hidden' });
    await post({ tool: 'read', arguments: [] });
    await post('{"tool":');
  });
}

for (const pair of PAIRS) {
  const people = { admin: { people: [{ name: 'alice' }, { name: 'bob' }], tokens: ['alice', 'bob'].map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })) } };
  const voting = (rule, keys = {}) => ({ rules: [{ match: 'delete_*', action: 'approve', ...rule }], approval: workflow('10m', keys), env: { ALICE: 'token-of-alice', BOB: 'token-of-bob' }, config: people });
  const vote = (operator, id) => operator.post(`/api/v1/tasks/${id}/approve`, { reason: 'fine' });

  scenario(`claimed_${pair.name}`, { title: `the second of two votes brings the call: ${pair.title}`, ...voting({}, { quorum: 2 }), ...pair.options({ upstream: server(pair) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const [alice, bob] = [await stage.operator('alice', 'token-of-alice'), await stage.operator('bob', 'token-of-bob')];
    const id = await pair.task(client, 'delete_user', { n: 1 });
    await vote(alice, id);
    await client.send('tasks/get', { taskId: id });
    await vote(alice, id);
    await vote(bob, id);
    await stage.admin.inState(id, 'completed');
    await vote(bob, id);
    await pair.outcome(client, id);
    if (pair.name === 'modern_to_legacy') await sessionEnds(stage, 1);
  });

  const held = [];
  const holding = { tools: tools('delete_user'), handlers: { 'tools/call': (call) => held.push(call) } };
  scenario(`on_result_${pair.name}`, { title: `an approved call that runs once its result is asked for: ${pair.title}`, ...voting({ execution: 'on_result' }), ...pair.options({ upstream: holding }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const alice = await stage.operator('alice', 'token-of-alice');
    const id = await pair.task(client, 'delete_user', { n: 1 });
    await vote(alice, id);
    stage.note(`calls at the server before the result is asked for: ${stage.upstream.calls.length}`);
    const answer = pair.outcome(client, id);
    const call = await until(() => held[0], 'the call at the server');
    if (pair.isModernClient) await answer; // it does not wait for the call
    call.reply.result(pair.text('did it'));
    await answer;
    await stage.admin.inState(id, 'completed');
    await pair.outcome(client, id);
    if (pair.name === 'modern_to_legacy') await sessionEnds(stage, 1);
  });

  if (pair.isModernClient) continue;
  scenario(`on_result_awaited_${pair.name}`, { title: `a call that runs with the vote, since its result is waited for: ${pair.title}`, ...voting({ execution: 'on_result' }), ...pair.options({ upstream: server(pair) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks' });
    const alice = await stage.operator('alice', 'token-of-alice');
    const id = await pair.task(client, 'delete_user', { n: 1 });
    const outcome = client.stream('tasks/result', { taskId: id }).catch(() => {});
    await until(async () => (await stage.admin.task(id)).state === 'pending', 'the wait');
    await vote(alice, id);
    const stream = await outcome;
    if (stream) await stream.end();
  });
}
