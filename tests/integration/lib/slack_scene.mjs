// A gateway that is decided upon in Slack: people, a channel, a tool that needs an approval.
import { sample } from './admin.mjs';
import { workflow } from './gateway.mjs';
import { scene } from './scene.mjs';
import { SIGNING_SECRET, startSlack, TOKEN } from './slack.mjs';
import { tool } from './upstream.mjs';
import { until } from './wait.mjs';

export const PUBLIC = 'https://gate.example';
export const PEOPLE = [
  { name: 'alice', slack: 'U0ALICE', groups: ['dba'] },
  { name: 'bob', slack: 'U0BOB', groups: ['security'] },
  { name: 'eve', slack: 'U0EVE', roles: ['viewer'] }, // known, and may not vote
  { name: 'carol' }, // not in Slack
];
const TOKENS = [
  { name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver', 'caller'] },
  { name: 'carol-cli', person: 'carol', token_env: 'CAROL', roles: ['approver'] },
];
export const ENV = {
  SLACK_TOKEN: TOKEN,
  SLACK_SIGNING: SIGNING_SECRET,
  ALICE: 'token-of-alice-0123456789',
  CAROL: 'token-of-carol-0123456789',
  THOUGHTGATE_APPROVAL_POLL_INTERVAL_SECS: '1',
  THOUGHTGATE_SLACK_RATE_LIMIT_PER_SEC: '100',
};

export const chat = (slack, more = {}) => ({ id: 'chat', type: 'slack', url: slack.url, channel: '#approvals', token_env: 'SLACK_TOKEN', include_arguments: true, ...more });
export const withButtons = (slack) => chat(slack, { signing_secret_env: 'SLACK_SIGNING' });

/** `keys` are those of the workflow; `notify(slack)` the endpoints; `people` and `tokens` those of admin; `env` is laid over ENV. */
export async function slackScene(t, { keys = {}, notify = (slack) => [chat(slack)], env = {}, approval, people = PEOPLE, tokens = TOKENS, prepare = () => {}, ...more } = {}) {
  const slack = await startSlack(t);
  prepare(slack);
  const all = await scene(t, {
    rules: [['write', 'approve']],
    approval: approval?.(slack) ?? workflow('10m', keys),
    upstream: { tools: [tool('read'), tool('write')] },
    env: { ...ENV, ...env },
    config: { admin: { public_url: PUBLIC, people, tokens }, notify: notify(slack) },
    ...more,
  });
  const client = await all.connect();
  /** The message of a task, once the gateway, too, knows that Slack has it. Not after a restart, which counts anew. */
  const messageOf = async (taskId) => {
    const message = await slack.messageOf(taskId);
    const delivered = async () => sample(await all.admin.metrics(), 'thoughtgate_notifications_total', { outcome: 'delivered' });
    await until(async () => (await delivered()) >= slack.accepted, 'the gateway to note its messages');
    return message;
  };
  /** A call that waits for a decision, with its message. */
  const asked = async (args = {}) => {
    const { taskId } = await client.createTask('write', args);
    return { taskId, message: await messageOf(taskId) };
  };
  return { ...all, slack, client, messageOf, asked };
}
