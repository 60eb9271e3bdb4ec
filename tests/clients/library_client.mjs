// Calls of tools by a library with what it has by default, as library_client.py says: `library_client.mjs LIBRARY URL CALLS`.
// LIBRARY_MODULES is the folder whose node_modules has the libraries; without it those of the integration tests are used.
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = process.env.LIBRARY_MODULES ?? path.join(here, '../integration');
const load = async (name) => import(pathToFileURL(createRequire(path.join(folder, 'package.json')).resolve(name)).href);
const AT_MOST = 30;
const textOf = (content) => (typeof content === 'string' ? content : JSON.stringify(content));

const libraries = {
  async typescript_1(url) {
    const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client({ name: 'agent', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await client.listTools();
    return async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text;
  },

  async typescript_2(url) {
    const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
    const client = new Client({ name: 'agent', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await client.listTools();
    return async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text;
  },

  async ai_sdk(url) {
    const { createMCPClient } = await load('@ai-sdk/mcp');
    const { generateText, stepCountIs } = await load('ai');
    const { MockLanguageModelV3, MockLanguageModelV4 } = await load('ai/test');
    const Mock = MockLanguageModelV4 ?? MockLanguageModelV3;
    const client = await createMCPClient({ transport: { type: 'http', url } });
    const tools = await client.tools();
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    return async (name, args) => {
      let seen;
      const model = new Mock({
        doGenerate: async ({ prompt }) => {
          const last = prompt.at(-1).content[0];
          const ended = last.type === 'tool-result';
          if (ended) seen = last.output;
          const content = ended ? [{ type: 'text', text: 'end' }] : [{ type: 'tool-call', toolCallId: '1', toolName: name, input: JSON.stringify(args) }];
          return { content, finishReason: { unified: ended ? 'stop' : 'tool-calls' }, usage, warnings: [] };
        },
      });
      await generateText({ model, tools, prompt: 'go', stopWhen: stepCountIs(2), maxRetries: 0 });
      return textOf(seen);
    };
  },

  async openai_agents_js(url) {
    const { Agent, Runner, MCPServerStreamableHttp, setTracingDisabled } = await load('@openai/agents');
    setTracingDisabled(true);
    const server = new MCPServerStreamableHttp({ url, name: 'server' });
    await server.connect();
    return async (name, args) => {
      let seen;
      const model = {
        async getResponse({ input }) {
          const last = typeof input === 'string' ? undefined : input.at(-1);
          const usage = { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 };
          if (last?.type === 'function_call_result') {
            seen = last.output;
            return { usage, output: [{ type: 'message', id: '1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'end' }] }] };
          }
          return { usage, output: [{ type: 'function_call', id: '1', callId: '1', name, status: 'completed', arguments: JSON.stringify(args) }] };
        },
      };
      await new Runner({ tracingDisabled: true }).run(new Agent({ name: 'agent', model, mcpServers: [server] }), 'go');
      return textOf(seen?.text ?? seen);
    };
  },

  async langchain_js(url) {
    const { MultiServerMCPClient } = await load('@langchain/mcp-adapters');
    const tools = await new MultiServerMCPClient({ mcpServers: { server: { transport: 'http', url } } }).getTools();
    return async (name, args) => textOf((await tools.find((one) => one.name === name).invoke({ type: 'tool_call', id: '1', name, args })).content);
  },

  async mastra(url) {
    const { MCPClient } = await load('@mastra/mcp');
    const tools = await new MCPClient({ servers: { server: { url: new URL(url) } } }).listTools();
    return async (name, args) => textOf(await tools[`server_${name}`].execute(args, {}));
  },
};

const [library, url, calls] = process.argv.slice(2);
const call = await libraries[library](url);
for (const [tool, args, again] of JSON.parse(calls)) {
  for (let left = again ? AT_MOST : 1; left > 0; left -= 1) {
    const outcome = await call(tool, args).then((text) => ({ text }), (error) => ({ error: `${error.name}: ${error.message}` }));
    console.log(JSON.stringify(outcome));
    if (!/has not run yet|timed? ?out|please try again/i.test(JSON.stringify(outcome))) break;
  }
}
setTimeout(() => process.exit(), Number(process.env.LINGER_MS ?? 0));
