// A Slack of one workspace, as far as the gateway speaks to it: the Web API's methods with their content types, tokens,
// scopes and refusals; reactions; and signed reports of presses and dialogs.
import crypto from 'node:crypto';
import http from 'node:http';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';
import { until } from './wait.mjs';

export const TOKEN = 'xoxb-secret-of-slack';
export const SIGNING_SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
export const TEAM = 'T0TEAM';
export const APP = 'A0GATE';
const BOT = 'B0GATE';
const CHANNELS = { '#approvals': 'C0APPROVALS', C0APPROVALS: 'C0APPROVALS', '#night': 'C0NIGHT' };
const BLOCKS = ['section', 'actions'];
const SCOPES = { 'reactions.get': 'reactions:read', 'conversations.history': 'channels:history', 'bots.info': 'users:read' };
const READS = ['reactions.get', 'conversations.history', 'bots.info']; // these take no JSON

class Slack {
  messages = []; // {channel, ts, text, blocks, reactions: [{name, users}]}
  requests = []; // {method, verb, args, at}
  accepted = 0; // posts and changes of messages
  views = []; // opened dialogs
  whispers = []; // lines for one person
  scopes = new Set(['chat:write', 'reactions:read', 'channels:history', 'users:read']);
  faults = {}; // method → [status, body, headers]
  usersShown = 1000; // in the history
  tellsApp = true; // in answers to posts

  methods = {
    'auth.test': () => ({ url: 'https://team.slack.com/', team: 'team', user: 'gate', team_id: TEAM, user_id: 'U0GATE', bot_id: BOT, is_enterprise_install: false }),
    'bots.info': ({ bot }) => (bot === BOT ? { bot: { id: BOT, deleted: false, name: 'gate', app_id: APP, user_id: 'U0GATE' } } : 'bot_not_found'),
    'chat.postMessage': ({ channel, text, blocks }) => {
      if (!CHANNELS[channel]) return 'channel_not_found';
      if (!text || !this.#areGood(blocks)) return 'invalid_blocks';
      const message = { channel: CHANNELS[channel], ts: `1768000${100 + this.messages.length}.000100`, text, blocks, reactions: [] };
      this.messages.push(message);
      return { channel: message.channel, ts: message.ts, message: { type: 'message', subtype: 'bot_message', text, ts: message.ts, bot_id: BOT, ...(this.tellsApp ? { app_id: APP } : {}) } };
    },
    'chat.update': ({ channel, ts, text, blocks }) => {
      const message = this.#find(channel, ts);
      if (!message) return 'message_not_found';
      if (!text || !this.#areGood(blocks)) return 'invalid_blocks';
      Object.assign(message, { text, blocks });
      return { channel, ts, text, message: { type: 'message', text } };
    },
    'chat.postEphemeral': ({ channel, user, text, thread_ts }) => (this.whispers.push({ channel, user, text, ...(thread_ts ? { thread_ts } : {}) }), { message_ts: '1768009999.000100' }),
    'views.open': ({ trigger_id, view }) => {
      if (!this.triggers.delete(trigger_id)) return 'expired_trigger_id';
      const known = view?.type === 'modal' && view.title?.text.length <= 24 && view.private_metadata.length <= 3000 && view.blocks.every((block) => block.type === 'input');
      if (!known) return 'invalid_arguments';
      this.views.push({ id: `V${this.views.length}`, ...view });
      return { view: this.views.at(-1) };
    },
    'reactions.get': ({ channel, timestamp, full }) => {
      const message = this.#find(channel, timestamp);
      if (!message) return 'message_not_found';
      return { type: 'message', channel, message: { type: 'message', text: message.text, ts: message.ts, ...this.#reactionsOf(message, full === 'true' ? 1e9 : this.usersShown), permalink: 'https://team.slack.com/x' } };
    },
    'conversations.history': ({ channel, oldest, inclusive, limit, cursor }) => {
      const later = (message) => message.ts > oldest || (inclusive === 'true' && message.ts === oldest);
      const all = this.messages.filter((message) => message.channel === channel && later(message)).reverse();
      const from = Number(cursor ?? 0);
      const page = all.slice(from, from + Number(limit));
      const next = from + page.length < all.length ? String(from + page.length) : '';
      return { messages: page.map((message) => ({ type: 'message', text: message.text, ts: message.ts, ...this.#reactionsOf(message, this.usersShown) })), has_more: next !== '', response_metadata: { next_cursor: next } };
    },
  };

  triggers = new Set();

  #areGood(blocks) {
    const texts = blocks.flatMap((block) => (block.type === 'section' ? [block.text] : block.elements.map((element) => element.text)));
    return blocks.every((block) => BLOCKS.includes(block.type)) && texts.every(({ text }) => text.length <= 3000);
  }

  #find(channel, ts) {
    return this.messages.find((message) => message.channel === channel && message.ts === ts);
  }

  #reactionsOf(message, most) {
    if (message.reactions.length === 0) return {};
    return { reactions: message.reactions.map(({ name, users }) => ({ name, users: users.slice(0, most), count: users.length })) };
  }

  answer(request, body) {
    const url = new URL(request.url, 'http://slack');
    const method = url.pathname.replace('/api/', '');
    const isJson = /^application\/json/.test(request.headers['content-type'] ?? '');
    const args = isJson ? JSON.parse(body) : Object.fromEntries([...url.searchParams, ...new URLSearchParams(body)]);
    this.requests.push({ method, verb: request.method, args, at: Date.now() });
    if (this.faults[method]) return this.faults[method];
    const result = this.#run(request, method, args, isJson);
    if (typeof result !== 'string' && ['chat.postMessage', 'chat.update'].includes(method)) this.accepted++;
    return [200, typeof result === 'string' ? { ok: false, error: result } : { ok: true, ...result }];
  }

  #run(request, method, args, isJson) {
    if (!this.methods[method]) return 'unknown_method';
    if (isJson && READS.includes(method)) return 'invalid_arguments';
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return 'invalid_auth';
    if (!this.scopes.has(SCOPES[method] ?? 'chat:write')) return 'missing_scope';
    return this.methods[method](args);
  }

  /* ---- people ---- */

  react(ts, name, user) {
    const { reactions } = this.messages.find((message) => message.ts === ts);
    const found = reactions.find((reaction) => reaction.name === name);
    if (found) found.users.push(user);
    else reactions.push({ name, users: [user] });
  }

  unreact(ts, name, user) {
    const message = this.messages.find((one) => one.ts === ts);
    for (const reaction of message.reactions) if (reaction.name === name) reaction.users = reaction.users.filter((one) => one !== user);
    message.reactions = message.reactions.filter(({ users }) => users.length > 0);
  }

  /** The message of a task, once it is there. */
  messageOf(taskId, channel) {
    const fits = (message) => JSON.stringify(message.blocks).includes(taskId) && (!channel || message.channel === channel);
    return until(() => this.messages.find(fits), () => `a message of ${taskId}; asked were ${this.requests.map(({ method }) => method).join(' ')}`, { deadline: 30_000 });
  }

  button(message, action) {
    const button = message.blocks.find((block) => block.type === 'actions')?.elements.find((element) => element.action_id.endsWith(action));
    if (!button) throw new Error(`no button ${action} in ${JSON.stringify(message.blocks)}`);
    return button;
  }

  /** Slack's report of a press. */
  pressOf(message, action, user) {
    const trigger_id = crypto.randomUUID();
    this.triggers.add(trigger_id);
    const { action_id, value } = this.button(message, action);
    return {
      type: 'block_actions',
      user: { id: user, username: user.toLowerCase(), team_id: TEAM },
      api_app_id: APP,
      token: 'old-and-unused',
      container: { type: 'message', message_ts: message.ts, channel_id: message.channel, is_ephemeral: false },
      trigger_id,
      team: { id: TEAM, domain: 'team' },
      channel: { id: message.channel, name: 'approvals' },
      message: { type: 'message', bot_id: BOT, app_id: APP, ts: message.ts, text: message.text },
      response_url: 'https://hooks.slack.com/actions/T0TEAM/1/x',
      actions: [{ action_id, block_id: 'taskgate', value, type: 'button', action_ts: '1768000999.000100' }],
    };
  }

  /** Slack's report of a dialog that was sent. */
  submissionOf(view, reason, user, typed = reason) {
    const values = Object.fromEntries(view.blocks.map((block) => [block.block_id, { [block.element.action_id]: { type: 'plain_text_input', value: block.block_id === 'typed' ? typed : reason } }]));
    return { type: 'view_submission', team: { id: TEAM, domain: 'team' }, user: { id: user, team_id: TEAM }, api_app_id: APP, token: 'old', trigger_id: crypto.randomUUID(), view: { ...view, team_id: TEAM, state: { values } }, response_urls: [] };
  }
}

/** Reports a payload to the gateway, signed as Slack does. */
export async function report(adminUrl, payload, { secret = SIGNING_SECRET, age = 0, body = `payload=${encodeURIComponent(JSON.stringify(payload)).replaceAll('%20', '+')}`, signature, timestamp = String(Math.floor(Date.now() / 1000) - age) } = {}) {
  const sum = crypto.createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-slack-request-timestamp': timestamp, 'x-slack-signature': signature ?? `v0=${sum}` };
  const response = await fetch(`${adminUrl}/slack/interactions`, { method: 'POST', headers, body });
  return { status: response.status, text: await response.text() };
}

export async function startSlack(t) {
  const slack = new Slack();
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const [status, body, headers = {}] = slack.answer(request, Buffer.concat(parts).toString('utf8'));
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
    response.end(JSON.stringify(body));
  });
  const port = await freePort();
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  slack.url = `http://127.0.0.1:${port}/api`;
  return slack;
}
