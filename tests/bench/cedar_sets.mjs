// Policy sets for the measurement, made anew each time and always the same: N policies, their entities, and 64 requests.
import { Random } from '../cedar/random.mjs';

const uid = (type, id) => ({ type: `ThoughtGate::${type}`, id });
const head = (resource) => `principal, action == ThoughtGate::Action::"tools/call", resource${resource}`;

/** Kinds of sets: a policy of each, by its number and with a random choice of constants. */
export const kinds = {
  'each begins with its own policy_id': (i, random) => random.pick([
    `permit(${head('')}) when { context.policy_id == "rule-${i}" && resource.arguments has amount && resource.arguments.amount < ${random.below(5000)} };`,
    `permit(${head(' is ThoughtGate::ToolCall')}) when { context.policy_id == "rule-${i}" && resource.name like "get_*" };`,
    `forbid(principal, action, resource) when { context.policy_id == "rule-${i}" && ["XX", "YY"].contains(resource.arguments.country) };`,
  ]),
  'all are evaluated': (i, random) => random.pick([
    `permit(${head('')}) when { resource.arguments has amount && resource.arguments.amount < ${random.below(5000)} && context.time.hour >= ${random.below(24)} };`,
    `permit(${head(' is ThoughtGate::ToolCall')}) when { resource.name like "*_${random.below(200)}" || principal.identity == "role-${i}" };`,
    `forbid(principal, action, resource) when { [${random.below(9)}, ${random.below(9)}].contains(context.time.day_of_week) && resource.arguments.country == "C${i}" };`,
    `permit(principal in ThoughtGate::Role::"role-${i % 20}", action, resource) unless { context.time.hour < ${random.below(24)} };`,
  ]),
  'the scope excludes all but a few': (i, random) =>
    `${random.pick(['permit', 'forbid'])}(${head(` == ThoughtGate::ToolCall::"tool_${i}"`)}) when { resource.arguments.amount > ${random.below(5000)} };`,
};

function makeEntities(random, size) {
  const list = [];
  for (let i = 0; i < 20; i++) list.push({ uid: uid('Role', `role-${i}`), attrs: { name: `role-${i}` }, parents: [] });
  for (let i = 0; i < 16; i++) {
    list.push({ uid: uid('App', `app-${i}`), attrs: { name: `app-${i}`, identity: `role-${i}` }, parents: [uid('Role', `role-${random.below(20)}`)] });
  }
  for (let i = 0; i < 16; i++) {
    list.push({ uid: uid('ToolCall', `tool_${(i * 7) % size}`), parents: [], attrs: { name: `tool_${(i * 7) % size}`, server: 'upstream',
      arguments: { amount: (i * 313) % 5000, country: `C${i}`, recipient: 'user@example.com', tags: ['a', 'b', 'c'] } } });
  }
  return list.filter((one, at) => list.findIndex((other) => other.uid.type === one.uid.type && other.uid.id === one.uid.id) === at);
}

export function makeSet(kind, size) {
  const random = new Random(size);
  const policies = random.list(size, () => 0).map((_, i) => kinds[kind](i, random)).join('\n');
  const entities = makeEntities(random, size);
  const requests = random.list(64, () => ({
    principal: uid('App', `app-${random.below(16)}`),
    action: uid('Action', 'tools/call'),
    resource: uid('ToolCall', `tool_${(random.below(16) * 7) % size}`),
    context: { policy_id: `rule-${random.below(size)}`, source_id: 'upstream', time: { hour: random.below(24), day_of_week: random.below(7), timestamp: 1760000000 } },
  }));
  return { policies, entities, requests };
}
