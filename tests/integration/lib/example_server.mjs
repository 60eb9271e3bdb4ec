// The example MCP server of this repository (examples/), with its journal of executed calls.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from './child.mjs';
import { temporaryFolder } from './gateway.mjs';
import { defer } from './lifetime.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

export const EXAMPLE_BINARY = path.resolve(
  process.env.TASKGATE_EXAMPLE_SERVER ?? path.join(here, '../../../build/examples/taskgate-example-server'),
);

export const exampleMissing = fs.existsSync(EXAMPLE_BINARY)
  ? false
  : `the example server ${EXAMPLE_BINARY} is not built; set TASKGATE_EXAMPLE_SERVER`;

/** Starts it on a port of its own choice. `journal()` returns the bodies of all executed tools/call requests. */
export async function startExample(t, { port: wanted = 0 } = {}) {
  const journalPath = path.join(temporaryFolder(t, 'taskgate-example-'), 'journal');
  const child = new Child(EXAMPLE_BINARY, ['--port', String(wanted), '--journal', journalPath], { name: 'taskgate-example-server' });
  defer(t, async () => {
    await child.stop('SIGTERM');
    child.assertNoSanitizerReport();
  });
  const port = await child.ready(() => portIn(child.stdout + child.stderr), 'printing its port');
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    child,
    alive: () => child.exit === null,
    stop: () => child.stop('SIGTERM'),
    journal: () => (fs.existsSync(journalPath) ? fs.readFileSync(journalPath, 'utf8').split('\n').filter(Boolean) : []),
  };
}

function portIn(output) {
  const match = /127\.0\.0\.1:(\d+)|localhost:(\d+)|port\D{0,4}(\d+)|^(\d+)$/m.exec(output);
  return match && Number(match.slice(1).find(Boolean));
}
