// The client of one auth scenario: the official SDK 1.x, with a gateway before the suite's server when TASKGATE_BIN is set.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Gateway } from '../integration/lib/gateway.mjs';

const CALLBACK = 'http://127.0.0.1:3000/callback';

class Keeper {
  clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
  redirectUrl = CALLBACK;
  clientMetadata = { client_name: 'taskgate', redirect_uris: [CALLBACK], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };

  constructor(client) {
    this.client = client;
  }

  clientInformation() {
    return this.client;
  }

  saveClientInformation(client) {
    this.client = client;
  }

  tokens() {
    return this.saved;
  }

  saveTokens(tokens) {
    this.saved = tokens;
  }

  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }

  codeVerifier() {
    return this.verifier;
  }

  /** The suite's provider asks nobody: its answer is the return. */
  async redirectToAuthorization(url) {
    const answer = await fetch(url, { redirect: 'manual' });
    this.code = new URL(answer.headers.get('location')).searchParams.get('code');
  }

  /** The metadata is that of the server behind the gateway. */
  async validateResourceURL(_, resource) {
    return resource && new URL(resource);
  }
}

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const keeper = new Keeper(context.client_id ? { client_id: context.client_id, client_secret: context.client_secret } : undefined);

/** `action`, again after each sign-in that it has led to. */
async function signedIn(transport, action) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      if (error.constructor.name !== 'UnauthorizedError' || attempt === 3) throw error;
      await transport().finishAuth(keeper.code);
    }
  }
}

async function main(upstream) {
  let gateway;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-auth-'));
  try {
    if (process.env.TASKGATE_BIN) {
      gateway = new Gateway(folder, { upstream });
      await gateway.start({ awaitUpstream: false });
    }
    const url = new URL(gateway?.url ?? upstream);
    let transport, client;
    await signedIn(() => transport, async () => {
      transport = new StreamableHTTPClientTransport(url, { authProvider: keeper });
      client = new Client({ name: 'taskgate-conformance', version: '1.0.0' });
      await client.connect(transport);
    });
    await signedIn(() => transport, () => client.listTools());
    await signedIn(() => transport, () => client.callTool({ name: 'test-tool', arguments: {} }));
    await client.close();
  } finally {
    await gateway?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

main(process.argv.at(-1)).catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
