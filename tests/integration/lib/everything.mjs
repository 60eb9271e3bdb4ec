// The official server-everything over Streamable HTTP.
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import { Child } from './child.mjs';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';

const SCRIPT = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  '../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
);

export async function startEverything(t, { port } = {}) {
  port ??= await freePort();
  const child = new Child(process.execPath, [SCRIPT, 'streamableHttp'], { env: { PORT: String(port) }, name: 'server-everything' });
  defer(t, () => child.stop('SIGINT'));
  await child.ready(() => child.stderr.includes('listening on port'), 'listening');
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    child,
    alive: () => child.exit === null,
    stop: () => child.stop('SIGINT'),
  };
}
