// The four pairs of eras: a kind of client before a kind of server, with the same scenarios for each.
import { ALL, accept } from '../../integration/lib/bridged_stage.mjs';
import { elicit, PARTY, SAMPLE, sample } from '../../integration/lib/asking.mjs';
import { WITH_TASKS } from '../../integration/lib/modern_client.mjs';
import { complete, modernUpstream } from '../../integration/lib/modern_upstream.mjs';
import { tool } from '../../integration/lib/upstream.mjs';
import { until } from '../../integration/lib/wait.mjs';

const DECLARED = { plain: {}, asked: ALL };

class Pair {
  constructor(client, server) {
    Object.assign(this, { client, server, name: `${client}_to_${server}`, title: `a ${client} client, a ${server} server` });
  }

  get isModernServer() {
    return this.server === 'modern';
  }

  get isModernClient() {
    return this.client === 'modern';
  }

  /** Options of a scenario before this pair's server; `upstream.handlers` are laid over the era's own. */
  options({ upstream = {}, source = {}, ...more } = {}) {
    return {
      ...more,
      upstream: this.isModernServer ? modernUpstream(upstream) : upstream,
      source: { era: this.server, ...(this.isModernClient && !this.isModernServer ? { bridge: 'modern' } : {}), ...source },
    };
  }

  /** A result in the words of the server's era. */
  result(more) {
    return this.isModernServer ? complete(more) : more;
  }

  text(text, more) {
    return this.result({ content: [{ type: 'text', text }], ...more });
  }

  /** A client after its handshake. `knows`: 'plain', 'asked' (what servers ask), 'tasks', or 'tasks asked'. */
  async connect(stage, name = 'client', { knows = 'plain', token = `token of ${name}`, ...more } = {}) {
    const capabilities = { ...(knows.includes('tasks') ? (this.isModernClient ? WITH_TASKS : { tasks: {} }) : {}), ...(knows.includes('asked') ? DECLARED.asked : {}) };
    return this.isModernClient ? stage.modern(name, { capabilities, token, ...more }) : stage.connect(name, { capabilities, token, ...more });
  }

  /** A call that becomes a task at the gateway; its id. */
  async task(client, name, args = {}, more = {}) {
    const params = { name, arguments: args, ...(this.isModernClient ? {} : { task: { ttl: 600_000 } }), ...more };
    const { message, text } = await client.send('tools/call', params);
    const id = message?.result?.task?.taskId ?? message?.result?.taskId;
    if (!id) throw new Error(`no task: ${text}`);
    return id;
  }

  /** The outcome of a task that has ended, as this client asks for it. */
  outcome(client, taskId) {
    return client.send(this.isModernClient ? 'tasks/get' : 'tasks/result', { taskId });
  }
}

export const PAIRS = ['legacy', 'modern'].flatMap((client) => ['legacy', 'modern'].map((server) => new Pair(client, server)));

export const tools = (...names) => names.map((name) => tool(name));

export const progress = (progressToken, value) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: value, total: 3 } });
export const log = (level, data) => ({ jsonrpc: '2.0', method: 'notifications/message', params: { level, logger: 'script', data } });
export const answerTo = (id, result) => ({ jsonrpc: '2.0', id, result });

const SPOKEN = { role: 'assistant', model: 'm', content: { type: 'text', text: 'hello' } };
/** The answers of clients, by the method of the question. */
export const ANSWERS = { 'elicitation/create': accept(), 'sampling/createMessage': SPOKEN, 'roots/list': { roots: [{ uri: 'file:///home', name: 'home' }] } };

/** The client's response to a question of a call; undefined once the call has been left. */
export const responded = async (recorded, upstream, id) =>
  until(() => (recorded.left ? {} : upstream.requests.find((r) => r.rpc?.id === id && r.rpc.method === undefined)), `the response to ${id}`, { deadline: 30_000 }).then(({ rpc }) => rpc);

/** Handlers of a server whose tool `ask` asks for a form, a sample and roots, one after the other, in the way of its era. */
export const asking = (pair) => {
  const questions = [elicit('q-1'), sample('q-2'), { id: 'q-3', method: 'roots/list' }];
  if (pair.isModernServer) {
    return ({ reply, params }) => {
      const round = params.requestState === undefined ? 0 : Number(params.requestState.split('-')[1]);
      if (round === 3) return reply.result(pair.text(`answered ${JSON.stringify(params.inputResponses)}`));
      const { method, params: asked } = [{ method: 'elicitation/create', params: { mode: 'form', ...PARTY } }, { method: 'sampling/createMessage', params: SAMPLE }, { method: 'roots/list' }][round];
      return reply.result(pair.result({ resultType: 'input_required', inputRequests: { [`k-${round + 1}`]: { method, ...(asked ? { params: asked } : {}) } }, requestState: `round-${round + 1}` }));
    };
  }
  return async ({ upstream, reply, id, recorded }) => {
    const stream = reply.sse();
    const answers = [];
    for (const question of questions) {
      stream.event({ jsonrpc: '2.0', ...question });
      const response = await responded(recorded, upstream, question.id);
      if (!response) return; // the call has been given up meanwhile
      answers.push(response.result ?? { error: response.error });
    }
    stream.event(answerTo(id, pair.text(`answered ${JSON.stringify(answers)}`)));
    stream.end();
  };
};

/** Waits, out of the recording, until this client's task shows what `fits`. */
export const shown = (stage, client, taskId, fits, what = 'the task as expected') =>
  until(async () => {
    const task = await stage.twin(client).result('tasks/get', { taskId });
    return fits(task) && task;
  }, what);
