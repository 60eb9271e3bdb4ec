// The server that the conformance suite describes, made with the official SDK: everything its scenarios ask for is here,
// so that each of their checks says something about what stands in between. `node fixture.mjs PORT`
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema, CompleteRequestSchema, CreateMessageResultSchema, ElicitResultSchema, GetPromptRequestSchema, ListPromptsRequestSchema,
  ListResourcesRequestSchema, ListResourceTemplatesRequestSchema, ListToolsRequestSchema, ReadResourceRequestSchema, SetLevelRequestSchema,
  SubscribeRequestSchema, UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { isLocal, noArguments, oneString, plainTools, prompts, readTemplate, resources, template, text } from './contents.mjs';

async function elicit(extra, message, requestedSchema) {
  return extra.sendRequest({ method: 'elicitation/create', params: { message, requestedSchema } }, ElicitResultSchema);
}

const completed = (answer) => text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`);

const tools = {
  ...plainTools,
  test_tool_with_logging: [
    noArguments,
    async (_, extra) => {
      for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
        await pause(50);
      }
      return text('Tool with logging executed successfully');
    },
  ],
  test_tool_with_progress: [
    noArguments,
    async (_, extra) => {
      const progressToken = extra._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        await pause(50);
      }
      return text('Tool with progress executed successfully');
    },
  ],
  test_sampling: [
    oneString('prompt'),
    async ({ prompt }, extra) => {
      const answer = await extra.sendRequest({ method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 } }, CreateMessageResultSchema);
      return text(`LLM response: ${answer.content.text}`);
    },
  ],
  test_elicitation: [
    oneString('message'),
    async ({ message }, extra) => {
      const answer = await elicit(extra, message, { type: 'object', properties: { username: { type: 'string', description: "User's response" }, email: { type: 'string', description: "User's email address" } }, required: ['username', 'email'] });
      return text(`User response: ${JSON.stringify(answer)}`);
    },
  ],
  test_elicitation_sep1034_defaults: [
    noArguments,
    async (_, extra) =>
      completed(
        await elicit(extra, 'Defaults', {
          type: 'object',
          properties: {
            name: { type: 'string', default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
            verified: { type: 'boolean', default: true },
          },
        }),
      ),
  ],
  test_elicitation_sep1330_enums: [
    noArguments,
    async (_, extra) => {
      const titled = [1, 2, 3].map((n) => ({ const: `value${n}`, title: `Option ${n}` }));
      const plain = ['option1', 'option2', 'option3'];
      return completed(
        await elicit(extra, 'Enums', {
          type: 'object',
          properties: {
            untitledSingle: { type: 'string', enum: plain },
            titledSingle: { type: 'string', oneOf: titled },
            legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
            untitledMulti: { type: 'array', items: { type: 'string', enum: plain } },
            titledMulti: { type: 'array', items: { anyOf: titled } },
          },
        }),
      );
    },
  ],
  test_reconnection: [
    noArguments,
    async (_, extra) => {
      // SEP-1699: the stream is closed in the middle of the call; the client fetches the rest by GET.
      extra.closeSSEStream?.();
      await pause(100);
      return text('Reconnection test completed successfully');
    },
  ],
};

function createServer() {
  const server = new Server(
    { name: 'conformance-fixture', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true }, logging: {}, completions: {} } },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: Object.entries(tools).map(([name, [inputSchema]]) => ({ name, description: `Tool ${name}`, inputSchema })) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const entry = tools[params.name];
    return entry ? entry[1](params.arguments ?? {}, extra) : { ...text(`Tool ${params.name} not found`), isError: true };
  });
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: Object.entries(resources).map(([uri, read]) => ({ uri, name: uri, description: `Resource ${uri}`, mimeType: read().mimeType })) }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [template] }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    if (resources[uri]) return { contents: [{ uri, ...resources[uri]() }] };
    const content = readTemplate(uri);
    if (!content) throw new Error(`Resource ${uri} not found`);
    return { contents: [{ uri, ...content }] };
  });
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: ['paris', 'park', 'party'], total: 3, hasMore: false } }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, [args]]) => ({ name, description: `Prompt ${name}`, arguments: args.map((argument) => ({ name: argument, description: argument, required: true })) })),
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    if (!prompts[params.name]) throw new Error(`Prompt ${params.name} not found`);
    return { messages: prompts[params.name][1](params.arguments ?? {}) };
  });
  return server;
}

/** Keeps every event of every stream, so that a client can come back for what it missed. */
class EventStore {
  events = [];

  async storeEvent(streamId, message) {
    this.events.push({ id: `${streamId}_${this.events.length}`, streamId, message });
    return this.events.at(-1).id;
  }

  async getStreamIdForEventId(eventId) {
    return this.events.find((event) => event.id === eventId)?.streamId;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const at = this.events.findIndex((event) => event.id === lastEventId);
    const streamId = this.events[at]?.streamId;
    for (const event of this.events.slice(at + 1)) {
      if (event.streamId === streamId && Object.keys(event.message).length > 0) await send(event.id, event.message);
    }
    return streamId;
  }
}

const port = Number(process.argv[2] ?? 0);

const transports = new Map();

const listener = http.createServer(async (request, response) => {
  if (!isLocal(request)) {
    response.writeHead(403).end();
    return;
  }
  const session = request.headers['mcp-session-id'];
  let transport = transports.get(session);
  if (!transport && session === undefined && request.method === 'POST') {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new EventStore(),
      retryInterval: 500,
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    await createServer().connect(transport);
  }
  if (!transport) {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}');
    return;
  }
  // The suite's polling scenario sends an old version on purpose, with which the SDK would not prime its streams (SEP-1699);
  // the fixture primes them for everybody.
  const version = request.rawHeaders.findIndex((header) => header.toLowerCase() === 'mcp-protocol-version');
  if (version >= 0) request.headers['mcp-protocol-version'] = request.rawHeaders[version + 1] = '2025-11-25';
  await transport.handleRequest(request, response);
});
listener.listen(port, '127.0.0.1', () => console.log(`listening on port ${listener.address().port}`));
