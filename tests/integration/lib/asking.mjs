// Tools of a scripted upstream that ask their client before they answer.

/** A form (behaviour 12.1). */
export const PARTY = {
  message: 'How many people will be dining?',
  requestedSchema: { type: 'object', properties: { partySize: { type: 'number', minimum: 1, maximum: 20, title: 'Number of guests' } }, required: ['partySize'] },
};

export const SAMPLE = { messages: [{ role: 'user', content: { type: 'text', text: 'Say hello' } }], systemPrompt: 'Be brief.', maxTokens: 10, temperature: 0.5 };

/** The next JSON-RPC response with this id that upstream receives. */
export async function responseTo(upstream, id, count = 1) {
  return (await upstream.received((r) => r.rpc?.id === id && r.rpc.method === undefined, count, 20_000)).rpc;
}

/**
 * A handler of tools/call that sends `requests` ({id, method, params}) one after the other on its stream, and answers
 * with their responses as structuredContent.answers.
 */
export const asks = (...requests) => async ({ upstream, reply, id }) => {
  const stream = reply.sse();
  const answers = [];
  for (const request of requests) {
    stream.event({ jsonrpc: '2.0', ...request });
    const response = await responseTo(upstream, request.id).catch(() => undefined);
    if (!response) return; // the call has been given up meanwhile
    const { result, error } = response;
    answers.push(result ?? { error });
  }
  stream.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: `answered ${JSON.stringify(answers)}` }], structuredContent: { answers } } });
  stream.end();
};

export const elicit = (id, params = PARTY) => ({ id, method: 'elicitation/create', params });
export const sample = (id, params = SAMPLE) => ({ id, method: 'sampling/createMessage', params });
