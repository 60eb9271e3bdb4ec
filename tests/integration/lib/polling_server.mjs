// A server made with the official SDK whose tool `long` ends its event stream, and answers once a client has come back for the rest.
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { defer } from './lifetime.mjs';
import { signal } from './wait.mjs';

/** The SDK's interface for a store of events: their ids are "<stream> <place>". */
class EventStore {
  constructor() {
    this.events = [];
  }

  async storeEvent(stream, message) {
    return `${stream} ${this.events.push({ stream, message }) - 1}`;
  }

  async getStreamIdForEventId(id) {
    return id.split(' ')[0];
  }

  async replayEventsAfter(id, { send }) {
    const [stream, last] = id.split(' ');
    for (let i = Number(last) + 1; i < this.events.length; i++) {
      const event = this.events[i];
      if (event.stream === stream && event.message.jsonrpc) await send(`${stream} ${i}`, event.message);
    }
    return stream;
  }
}

export async function startPollingServer(t) {
  const back = signal();
  const transports = new Map();
  const open = async () => {
    const server = new McpServer({ name: 'polling', version: '1.0.0' });
    server.registerTool('long', {}, async (extra) => {
      extra.closeSSEStream();
      await back.promise;
      return { content: [{ type: 'text', text: 'the rest' }] };
    });
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new EventStore(),
      retryInterval: 100,
      onsessioninitialized: (id) => void transports.set(id, transport),
    });
    await server.connect(transport);
    return transport;
  };
  const listener = http.createServer(async (request, response) => {
    const transport = transports.get(request.headers['mcp-session-id']) ?? (await open());
    if (request.method === 'GET' && request.headers['last-event-id']) back.fire();
    await transport.handleRequest(request, response);
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  defer(t, async () => {
    for (const transport of transports.values()) await transport.close();
    listener.closeAllConnections();
    await new Promise((resolve) => listener.close(resolve));
  });
  return { url: `http://127.0.0.1:${listener.address().port}/mcp` };
}
