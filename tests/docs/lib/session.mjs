// The least of an MCP client: one session, and the answers to its requests.

export class Session {
  /** Does the handshake. */
  static async open(url, { protocol = '2025-11-25', capabilities = {} } = {}) {
    const session = new Session();
    Object.assign(session, { url, protocol, id: undefined, last: 0 });
    await session.send('initialize', { protocolVersion: protocol, capabilities, clientInfo: { name: 'documents', version: '1.0.0' } });
    await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return session;
  }

  async post(message) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(this.id ? { 'mcp-session-id': this.id, 'mcp-protocol-version': this.protocol } : {}) };
    const response = await fetch(this.url, { method: 'POST', headers, body: JSON.stringify(message) });
    this.id ??= response.headers.get('mcp-session-id') ?? undefined;
    return response;
  }

  /** The JSON-RPC message that answers the request. */
  async send(method, params) {
    const id = ++this.last;
    const response = await this.post({ jsonrpc: '2.0', id, method, params });
    const text = await response.text();
    const messages = response.headers.get('content-type').startsWith('text/event-stream') ? [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data]) => data) : [text];
    return messages.filter(Boolean).map((data) => JSON.parse(data)).find((message) => message.id === id && message.method === undefined);
  }
}
