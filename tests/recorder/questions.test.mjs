// A server's questions to the client: in a forwarded call, in a task, by the gateway's tools, and on a session's own stream.
import { asks, elicit, PARTY, sample } from '../integration/lib/asking.mjs';
import { accept } from '../integration/lib/bridged_stage.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { until } from '../integration/lib/wait.mjs';
import { answerTo, ANSWERS, asking, PAIRS, responded, shown, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const PENDING = 'io.modelcontextprotocol/pending-elicitations';
const RESPONSE = 'io.modelcontextprotocol/elicitation-response';

/** Answers what a legacy client is asked on `stream` until the answer to its own request. */
async function answerOnStream(client, stream) {
  for (;;) {
    const message = await stream.message();
    if (message.id === stream.id && message.method === undefined) return message;
    if (message.method && message.id !== undefined) await (await client.post(answerTo(message.id, ANSWERS[message.method]))).bytes();
  }
}

/** A modern client's call, sent again with its answers until it is complete. */
async function callInRounds(client, params) {
  let result = {};
  for (let round = 0; round < 8; round++) {
    const inputResponses = Object.fromEntries(Object.entries(result.inputRequests ?? {}).map(([key, { method }]) => [key, ANSWERS[method]]));
    ({ result } = (await client.send('tools/call', { ...params, ...(round ? { requestState: result.requestState, inputResponses } : {}) })).message);
    if (result?.resultType !== 'input_required') return;
  }
}

/** Answers each question of a task in turn, as its client finds them there. */
async function answerInTask(pair, stage, client, taskId, count) {
  for (let i = 0; i < count; i++) {
    if (pair.isModernClient) {
      const { inputRequests } = await shown(stage, client, taskId, (task) => task.status === 'input_required' && task, 'a question in the task');
      await client.send('tasks/get', { taskId });
      const responses = Object.fromEntries(Object.entries(inputRequests).map(([key, { method }]) => [key, ANSWERS[method]]));
      await client.send('tasks/update', { taskId, inputResponses: { ...responses, unknown: {} } });
    } else {
      const { _meta: meta } = await shown(stage, client, taskId, (task) => task._meta?.[PENDING]?.length > 0, 'a question in the task');
      await client.send('tasks/get', { taskId });
      await client.send('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId: meta[PENDING][0].elicitationId, ...accept() } } });
    }
  }
}

/** A server that asks one form, in the way of its era. */
const askingOnce = (pair) =>
  pair.isModernServer
    ? ({ reply, params }) => reply.result(params.inputResponses ? pair.text(`answered ${JSON.stringify(params.inputResponses)}`) : pair.result({ resultType: 'input_required', inputRequests: { k: { method: 'elicitation/create', params: { mode: 'form', ...PARTY } } }, requestState: 's-1' }))
    : async ({ upstream, reply, id, recorded }) => {
        const stream = reply.sse();
        stream.event({ jsonrpc: '2.0', ...elicit('q-1') });
        const response = await responded(recorded, upstream, 'q-1');
        if (!response) return;
        const { result, error } = response;
        stream.event(answerTo(id, pair.text(`answered ${JSON.stringify(result ?? error)}`)));
        stream.end();
      };

const approving = { rules: [['book_*', 'approve']], approval: workflow('10m') };

for (const pair of PAIRS) {
  const server = (handler) => ({ tools: tools('book_dinner', 'read'), handlers: { 'tools/call': handler } });
  const call = { name: 'read', arguments: { n: 1 } };

  scenario(`asked_${pair.name}`, { title: `a forwarded call asks its client three times: ${pair.title}`, ...pair.options({ upstream: server(asking(pair)) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'asked' });
    if (pair.isModernClient) return callInRounds(client, call);
    return answerOnStream(client, await client.stream('tools/call', call));
  });

  scenario(`asked_not_declared_${pair.name}`, { title: `a forwarded call asks a client that cannot be asked: ${pair.title}`, ...pair.options({ upstream: server(asking(pair)) }), config: { pseudo_tools: { mode: 'never' } } }, async (stage) => {
    const client = await pair.connect(stage);
    // A legacy server's question comes down all the same.
    if (pair.name === 'legacy_to_legacy') await answerOnStream(client, await client.stream('tools/call', call));
    else await client.send('tools/call', call);
  });

  scenario(`asked_state_${pair.name}`, { title: `answers that fit no question: ${pair.title}`, ...pair.options({ upstream: server(askingOnce(pair)) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'asked' });
    if (pair.isModernClient) {
      const { result } = (await client.send('tools/call', call)).message;
      const again = { ...call, requestState: result.requestState, inputResponses: { [Object.keys(result.inputRequests)[0]]: accept() } };
      const stranger = await pair.connect(stage, 'stranger', { knows: 'asked' });
      await stranger.send('tools/call', again);
      await client.send('tools/call', { ...again, name: 'book_dinner' });
      await client.send('tools/call', { ...again, arguments: { n: 2 } });
      await client.send('tools/call', { ...again, inputResponses: { other: accept() } });
      await client.send('tools/call', again);
      await client.send('tools/call', again);
      return;
    }
    const stream = await client.stream('tools/call', call);
    const { id } = await stream.message((m) => m.method === 'elicitation/create');
    const post = async (who, message) => (await who.post(message)).bytes();
    const stranger = await pair.connect(stage, 'stranger', { knows: 'asked' });
    await post(stranger, answerTo(id, accept()));
    await post(client, answerTo('another', accept()));
    await post(client, answerTo(id, { action: 'decline' }));
    await stream.message((m) => m.id === stream.id);
    await post(client, answerTo(id, accept()));
  });

  scenario(`asked_in_task_${pair.name}`, { title: `a call in a task asks, and is answered in the task: ${pair.title}`, ...approving, ...pair.options({ upstream: server(askingOnce(pair)) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks asked' });
    const id = await pair.task(client, 'book_dinner', { n: 1 });
    await stage.admin.approve(id);
    await answerInTask(pair, stage, client, id, 1);
    await stage.admin.inState(id, 'completed');
    await pair.outcome(client, id);
    if (pair.name === 'modern_to_legacy') await stage.upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === stage.upstream.calls[0].headers['mcp-session-id']);
  });

  scenario(`asked_thrice_in_task_${pair.name}`, { title: `a call in a task asks three times, its client waits for the result: ${pair.title}`, ...approving, ...pair.options({ upstream: server(asking(pair)) }) }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'tasks asked' });
    const id = await pair.task(client, 'book_dinner', { n: 1 });
    if (pair.isModernClient) {
      await stage.admin.approve(id);
      await answerInTask(pair, stage, client, id, 3);
      await stage.admin.inState(id, 'completed');
      await pair.outcome(client, id);
      if (!pair.isModernServer) await stage.upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === stage.upstream.calls[0].headers['mcp-session-id']);
      return;
    }
    const stream = await client.stream('tasks/result', { taskId: id });
    await stage.admin.approve(id);
    await answerOnStream(client, stream);
  });

  scenario(`asked_held_${pair.name}`, { title: `an approved call asks a client without tasks that waits: ${pair.title}`, ...approving, ...pair.options({ upstream: server(askingOnce(pair)) }), config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '60s', wait_max: '60s' } } }, async (stage) => {
    const client = await pair.connect(stage, 'client', { knows: 'asked' });
    const params = { name: 'book_dinner', arguments: { n: 1 } };
    const answer = pair.isModernClient ? callInRounds(client, params) : client.stream('tools/call', params).then((stream) => answerOnStream(client, stream));
    const { id } = await stage.admin.pending();
    await stage.admin.approve(id);
    await answer;
    if (pair.name === 'modern_to_legacy') await stage.upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === stage.upstream.calls[0].headers['mcp-session-id']);
  });

  if (pair.name !== 'legacy_to_legacy') continue;
  scenario(`asked_by_tools_${pair.name}`, { title: `a client that cannot be asked finds the questions in the gateway's tools: ${pair.title}`, ...pair.options({ upstream: server(asks(elicit('q-1'), sample('q-2'))) }), config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '60s', wait_max: '60s' } } }, async (stage) => {
    const client = await pair.connect(stage);
    const tool = (name, args = {}) => client.send('tools/call', { name, arguments: args });
    const open = (name, member) =>
      until(async () => {
        const result = await stage.twin(client).result('tools/call', { name, arguments: {} });
        return result.structuredContent[member][0]?.requestId;
      }, `a question in ${name}`);
    const answer = client.send('tools/call', call);
    const form = await open('get_elicitations', 'elicitations');
    await tool('get_elicitations');
    await tool('respond_to_elicitation', { request_id: form, action: 'accept', content: { partySize: 'many' } });
    await tool('respond_to_elicitation', { request_id: form, ...accept() });
    const other = await open('get_sampling_requests', 'sampling_requests');
    await tool('get_sampling_requests');
    await tool('respond_to_sampling', { request_id: other, role: 'assistant', content: 'hello', model: 'm' });
    await answer;
  });
}
