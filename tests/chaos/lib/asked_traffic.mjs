// Calls of modern clients whose server asks its user, once or twice, while they run. Clients with tasks read the questions in
// the task and answer by `tasks/update`; the others get an InputRequiredResult and send the call again with the answers.
import { setTimeout as pause } from 'node:timers/promises';
import { clocksMissing } from '../../faults/lib/clock.mjs';
import { Traffic } from '../../faults/lib/traffic.mjs';
import { pick } from '../../integration/lib/random.mjs';
import { until } from '../../integration/lib/wait.mjs';
import { complete, form, modernUpstream } from '../../integration/lib/modern_upstream.mjs';
import { tool } from '../../integration/lib/upstream.mjs';
import { ModernTraffic } from './modern_traffic.mjs';

/** Decided by its marker; and for a workflow with little time, as nobody will decide. */
export const ASKING = { decided: 'ask_user', left: 'ask_nobody' };
const SETTLED_MS = 30_000;
const OPEN_AT_ONCE = 4;

const toolFor = (marker) => (Traffic.fate(marker) ? ASKING.decided : ASKING.left);
const accept = (answer) => ({ action: 'accept', content: { answer } });
/** The question of a key as the gateway tells it: r1:q is the first. */
const roundOf = (key) => Number(/^r(\d+):q$/.exec(key)[1]) - 1;

/** A modern server that asks one question after the other. `requestState` says how many it has asked. */
export function askingUpstream({ ledger, problems, work, address }) {
  const noted = (entry) => {
    try {
      entry();
    } catch (error) {
      problems.push(error);
    }
  };
  const toolsCall = async ({ recorded, params, reply }) => {
    const { marker } = params.arguments;
    const questions = params.name === 'read' ? 0 : 1 + (marker % 2);
    const round = Number(params.requestState ?? 0);
    if (round === 0) noted(() => ledger.called(marker));
    else noted(() => ledger.acted(marker, round - 1, params.inputResponses?.q?.content?.answer));
    await work(recorded, params.name);
    if (round === questions) return reply.result(complete({ content: [{ type: 'text', text: `did ${marker}` }] }));
    noted(() => ledger.asked(marker, round));
    reply.result(complete({ resultType: 'input_required', inputRequests: { q: form(`Question ${round} of ${marker}?`) }, requestState: String(round + 1) }));
  };
  return modernUpstream({ tools: ['read', ...Object.values(ASKING)].map((name) => tool(name)), address, handlers: { 'tools/call': toolsCall } });
}

/** Asks about each of `open` until it `isOver`. Resolves to sentences about those that are not so in time. */
async function endless(open, isOver, what) {
  const lost = [];
  const settled = open.map((one) => until(() => isOver(one), () => what(one), { deadline: SETTLED_MS, every: 200 }).catch((error) => lost.push(error.message)));
  await Promise.all(settled);
  return lost;
}

export class AskedTraffic extends ModernTraffic {
  create(client) {
    return this.createWith(client, toolFor);
  }

  /** Answers each question, each time in other words; also if another connection of the client does so at once. */
  async look(client, id) {
    const answer = await client.send('tasks/get', { taskId: id });
    if (this.refused(`tasks/get ${id}`, answer)) return;
    const { status, inputRequests } = answer.message.result;
    this.toldTask(id, answer.message.result);
    if (status !== 'input_required') return;
    const { marker } = this.ledger.tasks.get(id);
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, accept(this.ledger.answering(marker, roundOf(key)))]));
    const update = await client.send('tasks/update', { taskId: id, inputResponses });
    this.refused(`tasks/update ${id}`, update);
  }

  /** Each task whose server has asked something comes to its end: its client sees the question, or is told of the end. */
  settle(client) {
    const open = client.tasks.map((id) => this.ledger.tasks.get(id)).filter(({ marker, status }) => this.ledger.questions.has(marker) && !status);
    return endless(open, (task) => this.look(client, task.id).then(() => task.status), ({ id }) => `an end of ${id}, whose server has asked something`);
  }
}

/** The state of a held call's task after this error. Those of the server may come before the task. */
const ENDS = {
  approval_rejected: 'rejected',
  approval_timeout: 'expired',
  task_expired: 'expired',
  task_cancelled: 'cancelled',
  outcome_unknown: 'failed',
  upstream_error: undefined,
  upstream_timeout: undefined,
  upstream_connection_failed: undefined,
};

/** A replica whose clock is an hour back writes a state that the others take for an old one. */
const STALE = /^requestState is not valid/;

/** Of a client without tasks: {marker, name, state, requests}. `over` says how it ended. */
class Conversation {
  constructor(marker) {
    this.marker = marker;
    this.params = { name: toolFor(marker), arguments: { marker } };
    this.requests = [];
  }
}

export class HeldTraffic extends ModernTraffic {
  client(client, { steps = 20 } = {}) {
    client.tasks ??= [];
    client.conversations ??= [];
    return this.repeat(steps, async () => {
      const open = client.conversations.filter(({ over }) => !over);
      const isNew = open.length < OPEN_AT_ONCE && (open.length === 0 || this.random() < 0.5);
      const asked = open.filter(({ requests }) => requests.length > 0);
      if (!isNew) return this.goOn(client, pick(this.random, asked.length > 0 ? asked : open));
      await this.begin(client);
    });
  }

  /** The first answer has a state. Without that it has nothing to come back with. */
  async begin(client) {
    const conversation = new Conversation(this.ledger.markHeld());
    await this.goOn(client, conversation);
    if (conversation.state !== undefined && !conversation.over) client.conversations.push(conversation);
  }

  /** The next round, or the last one again if it had no answer. */
  async goOn(client, conversation) {
    const { marker, params, state, requests } = conversation;
    const inputResponses = Object.fromEntries(requests.map((key) => [key, accept(this.ledger.answering(marker, roundOf(key)))]));
    const more = state === undefined ? {} : { requestState: state, ...(requests.length > 0 && { inputResponses }) };
    const answer = await client.send('tools/call', { ...params, ...more });
    const { result, error } = answer.message ?? {};
    conversation.said = `HTTP ${answer.status} ${answer.text}`;
    if (result?.resultType === 'input_required') {
      conversation.state = result.requestState;
      conversation.requests = Object.keys(result.inputRequests);
    } else if (result) this.end(conversation, result);
    else if (!this.isEnd(conversation, error)) this.refused(`call ${marker}`, answer);
  }

  /** Other words than its server's: the call is pending still. */
  end(conversation, { content: [{ text }] }) {
    conversation.over = text;
    this.ledger.toldHeld(conversation.marker, text, /^did /.test(text) ? 'completed' : undefined);
  }

  isEnd(conversation, error) {
    const type = error?.data?.error_type;
    if (!clocksMissing && STALE.test(error?.message)) this.ledger.stale++;
    else if (!(type in ENDS)) return false;
    conversation.over = type;
    this.ledger.toldHeld(conversation.marker, undefined, ENDS[type]);
    return true;
  }

  waiter() {
    return pause(1000);
  }

  settle(client) {
    const open = client.conversations.filter(({ over }) => !over);
    client.conversations = [];
    return endless(open, (one) => this.goOn(client, one).then(() => one.over), ({ marker, said }) => `an end of the held call ${marker}; its last answer: ${said}`);
  }
}
