// Servers made with the official SDK 2: of both eras, or of the modern one alone, with and without tasks of their own.
import http from 'node:http';
import { createMcpHandler, createRequestStateCodec, MissingRequiredClientCapabilityError, ProtocolError, Server } from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { defer } from './lifetime.mjs';
import { key, TASKS_EXTENSION } from './modern_client.mjs';
import { ServerTasks } from './sdk2_tasks.mjs';

const anything = { '~standard': { version: 1, vendor: 'tests', validate: (value) => ({ value }) } };

export const text = (value) => ({ content: [{ type: 'text', text: value }] });
export const noArguments = { type: 'object', properties: {} };
/** A result that asks the client's side. */
export const ask = (inputRequests, requestState) => ({ resultType: 'input_required', inputRequests, ...(requestState === undefined ? {} : { requestState }) });
/** A form with one required field. */
export const oneField = (message, name, type = 'string') => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { [name]: { type } }, required: [name] } },
});

/**
 * A tool's view of its call: `responses` (the client's answers), `state()` (what the client has kept), `mint(value)`
 * (such a state), `capabilities` (of this request), `signal`, `progress(done, total)`, `say(level, data)`.
 */
function callOf(ctx, codec) {
  const { _meta: { progressToken } = {}, envelope = {} } = ctx.mcpReq;
  return {
    era: envelope[key('protocolVersion')] === undefined ? 'legacy' : 'modern',
    responses: ctx.mcpReq.inputResponses ?? {},
    state: () => ctx.mcpReq.requestState(),
    mint: (value) => codec.mint(value),
    capabilities: envelope[key('clientCapabilities')] ?? {},
    signal: ctx.mcpReq.signal,
    say: (level, data) => ctx.mcpReq.log(level, data),
    async progress(progress, total) {
      if (progressToken !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
    },
  };
}

/** Refuses a call of a client that lacks `capabilities`. */
export function need(capabilities) {
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: capabilities });
}

export const fault = (code, message, data) => new ProtocolError(code, message, data);

/**
 * The handler of such a server. `tools` maps a name to {run(args, call), inputSchema?, task?}. If `tasks`, `task: true`
 * makes a task of a call that declares the extension, `required` refuses any other, and `after answers` asks first. `resources` maps a URI to its content, `prompts` a name to
 * {args?, messages(args, call)}. `legacy` is `stateless` or `reject`.
 */
export function sdk2Handler({ name = 'sdk2-server', tools = {}, prompts = {}, resources = {}, templates = [], readTemplate, tasks = false, legacy = 'stateless', onCall = () => {} }) {
  const codec = createRequestStateCodec({ key: Buffer.alloc(32, 7) });
  const made = new ServerTasks();
  const listings = {
    'tools/list': () => ({ tools: Object.entries(tools).map(([tool, { inputSchema = noArguments, description = `Tool ${tool}` }]) => ({ name: tool, description, inputSchema })) }),
    'prompts/list': () => ({
      prompts: Object.entries(prompts).map(([prompt, { args = [] }]) => ({ name: prompt, description: `Prompt ${prompt}`, arguments: args.map((argument) => ({ name: argument, required: true })) })),
    }),
    'resources/list': () => ({ resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, mimeType })) }),
    'resources/templates/list': () => ({ resourceTemplates: templates }),
    'completion/complete': () => ({ completion: { values: ['paris', 'park', 'party'], total: 3, hasMore: false } }),
  };

  const answers = {
    'tools/call'({ params }, ctx) {
      const tool = tools[params.name] ?? raise(fault(-32602, `Unknown tool ${params.name}`));
      const call = callOf(ctx, codec);
      onCall({ tool: params.name, arguments: params.arguments ?? {}, era: call.era });
      const isDeclared = call.capabilities.extensions?.[TASKS_EXTENSION] !== undefined;
      if (tasks && tool.task === 'required' && !isDeclared) need({ extensions: { [TASKS_EXTENSION]: {} } });
      const isAsked = tool.task === 'after answers' && Object.keys(call.responses).length === 0;
      if (tasks && tool.task && isDeclared && !isAsked) return made.create((more) => tool.run(params.arguments ?? {}, { ...call, ...more }), call);
      return tool.run(params.arguments ?? {}, call);
    },
    async 'prompts/get'({ params }, ctx) {
      const prompt = prompts[params.name] ?? raise(fault(-32602, `Unknown prompt ${params.name}`));
      const messages = await prompt.messages(params.arguments ?? {}, callOf(ctx, codec));
      return Array.isArray(messages) ? { messages } : messages;
    },
    'resources/read': ({ params: { uri } }) => ({ contents: [{ uri, ...(resources[uri] ?? readTemplate?.(uri) ?? raise(fault(-32602, `Resource ${uri} not found`))) }] }),
  };

  const create = ({ era }) => {
    const capabilities = {
      tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true }, completions: {}, logging: {},
      ...(tasks && era === 'modern' ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
    };
    const server = new Server({ name, version: '1.0.0' }, { capabilities, requestState: { verify: codec.verify } });
    for (const [method, answer] of Object.entries({ ...listings, ...answers })) server.setRequestHandler(method, answer);
    if (tasks && era === 'modern') {
      for (const [method, answer] of Object.entries(made.methods)) {
        server.setRequestHandler(method, { params: anything }, (params, ctx) => {
          if (callOf(ctx, codec).capabilities.extensions?.[TASKS_EXTENSION] === undefined) need({ extensions: { [TASKS_EXTENSION]: {} } });
          return answer({ ...params, inputResponses: ctx.mcpReq.inputResponses }); // the SDK has taken it out of them
        });
      }
    }
    return server;
  };
  return createMcpHandler(create, { legacy });
}

function raise(error) {
  throw error;
}

/** Serves `handler` on a free port; the answer's `stop` closes it and what hangs on it. */
export async function serve(handler, { port = 0, isLocal = () => true } = {}) {
  const answer = toNodeHandler(handler);
  const listener = http.createServer((request, response) => (isLocal(request) ? answer(request, response) : response.writeHead(403).end()));
  await new Promise((resolve) => listener.listen(port, '127.0.0.1', resolve));
  return {
    port: listener.address().port,
    url: `http://127.0.0.1:${listener.address().port}/mcp`,
    async stop() {
      await handler.close();
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** The tools of the tests: one of each kind. */
export const usualTools = (events = []) => ({
  read: { run: () => text('did read') },
  delete_user: { task: true, inputSchema: { type: 'object', properties: { id: { type: 'integer' } } }, run: ({ id }) => text(`deleted ${id}`) },
  count: {
    inputSchema: { type: 'object', properties: { to: { type: 'integer' } }, required: ['to'] },
    async run({ to }, call) {
      for (let done = 1; done <= to; done++) await call.progress(done, to);
      return text(`counted to ${to}`);
    },
  },
  ask_name: {
    run: (_, { responses: { name } }) => (name ? text(name.action === 'accept' ? `Hello ${name.content.name}` : `they said ${name.action}`) : ask({ name: oneField('Who are you?', 'name') })),
  },
  wait: {
    async run(_, { signal }) {
      events.push('began');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      events.push('cancelled');
      return text('nobody reads this');
    },
  },
});

/** Such a server with the usual tools, closed after the test. `calls` has every tools/call, `events` what `wait` has seen. */
export async function startSdk2Server(t, { tools = {}, ...options } = {}) {
  const [calls, events] = [[], []];
  const server = await serve(sdk2Handler({ tools: { ...usualTools(events), ...tools }, onCall: (call) => calls.push(call), ...options }));
  defer(t, () => server.stop());
  return { ...server, calls, events };
}
