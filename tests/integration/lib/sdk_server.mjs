// The example servers that come with the official SDK.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from './child.mjs';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';

const FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), '../node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server');

/** Starts the example `name`, for instance "simpleTaskInteractive", on a port of its own. */
export async function startSdkServer(t, name) {
  const port = await freePort();
  const child = new Child(process.execPath, [path.join(FOLDER, `${name}.js`)], { env: { PORT: String(port) }, name });
  defer(t, () => child.stop('SIGINT'));
  await child.ready(() => /localhost:\d+/.test(child.stdout + child.stderr), 'listening');
  return { url: `http://127.0.0.1:${port}/mcp`, port, child };
}
