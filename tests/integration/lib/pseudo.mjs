// Clients that know no tasks, and the answers of the gateway's own tools.

/** Every kind of client that never sees `required`: its handshake, and its configuration. */
export const kinds = {
  old: { client: { protocol: '2025-06-18', capabilities: {} } },
  older: { client: { protocol: '2025-03-26', capabilities: {} } },
  listed: { client: { name: 'legacy-bot', capabilities: {} }, clients: [{ match: 'legacy-*', tasks: 'no' }] },
};

/** Calls a tool and returns its result, which must be one. */
export const callTool = (client, name, args = {}, more = {}) => client.result('tools/call', { name, arguments: args, ...more }, { deadline: 60_000 });

/** The text blocks of a result; those that hold JSON as values. */
export const blocks = (result) =>
  result.content.map(({ text }) => {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  });

/** The events that stand in a result's block, or [] without one. */
export const eventsOf = (result) => blocks(result).find((block) => block?.events_since_last_response)?.events_since_last_response ?? [];

/** The sentence of a call that waits, or whose `state` is another. */
export const pendingText = (name, id, { state = `${name} has not run yet: it waits for a person's approval`, fetch = 'get_task_result', offered = true, token = false } = {}) =>
  `${state} (task ${id}).${offered ? ` To get the outcome, call ${fetch} with task_id "${id}".` : ''} Calling ${name} again with the same arguments${token ? '' : ' in this session'} asks for the same task and does not run it twice.`;
