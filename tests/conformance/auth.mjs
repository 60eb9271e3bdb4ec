// The suite's auth scenarios. In each the suite is the protected server and its provider, and checks the client. Here the
// client is the official SDK, once directly and once through the gateway, which relays 401, 403 and the metadata: no
// check may be worse. The suite has no scenario for a server that checks tokens itself; the gateway as such a server is
// tested with a real provider, in tests/integration/oauth_clients.test.mjs.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Child } from '../integration/lib/child.mjs';

const RUN = [
  'metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3', 'basic-cimd', 'scope-from-www-authenticate',
  'scope-from-scopes-supported', 'scope-omitted-when-undefined', 'scope-step-up', 'scope-retry-limit',
  'token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none', 'pre-registration',
  'offline-access-scope', 'offline-access-not-supported',
];
/** Scenarios that say nothing of a gateway, each with the reason. */
const SKIPPED = {
  'resource-mismatch': 'the client must refuse metadata of another address, which behind a gateway that only relays is every one',
  '2025-03-26-oauth-metadata-backcompat': 'a revision without protected-resource metadata; the gateway does not pose as an issuer',
  '2025-03-26-oauth-endpoint-fallback': 'a revision without protected-resource metadata; the gateway does not pose as an issuer',
  'client-credentials-jwt': 'an extension between client and provider alone',
  'client-credentials-basic': 'an extension between client and provider alone',
  'cross-app-access-complete-flow': 'an extension between client and two providers',
};
const RUN_LIMIT_MS = 60_000;

/** Runs all of RUN both ways. Returns what is wrong, a sentence each. */
export async function compareAuth({ suite, node, client, binary, folder }) {
  const problems = missing(execFileSync(node, [suite, 'list'], { encoding: 'utf8' }));
  console.log(`\nauth scenarios\n${'scenario'.padEnd(44)} direct   through`);
  for (const scenario of RUN) {
    const run = (label, env) => checks({ suite, node, client, scenario, env, output: path.join(folder, `auth-${scenario}-${label}`) });
    const [direct, through] = [await run('direct', { TASKGATE_BIN: '' }), await run('through', { TASKGATE_BIN: binary })];
    console.log(`${`auth/${scenario}`.padEnd(44)} ${String(direct.good).padEnd(8)} ${through.good}`);
    for (const [label, { good, bad }] of Object.entries({ directly: direct, 'through the gateway': through })) {
      if (bad.length > 0 || good === 0) problems.push(`auth/${scenario} ${label}: ${bad.join(', ') || 'no check has passed'}`);
    }
    if (through.good < direct.good) problems.push(`auth/${scenario}: ${direct.good} checks pass directly, ${through.good} through the gateway`);
  }
  for (const [scenario, reason] of Object.entries(SKIPPED)) console.log(`${`auth/${scenario}`.padEnd(44)} skipped: ${reason}`);
  return problems;
}

/** A scenario that a newer suite brings must be judged before it is left out. */
function missing(list) {
  const known = new Set([...RUN, ...Object.keys(SKIPPED)].map((name) => `auth/${name}`));
  const [servers, clients] = list.split('Client scenarios');
  const names = [...clients.matchAll(/^ +- (auth\/\S+)/gm)].map(([, name]) => name);
  const unnamed = names.filter((name) => !known.has(name)).map((name) => `${name} is new in the suite: run it or say why not`);
  const gone = [...known].filter((name) => !names.includes(name)).map((name) => `${name} is not in the suite any more`);
  const ofServers = [...servers.matchAll(/^ +- (\S*auth\S*)/gm)].map(([, name]) => `${name} tests a server: run it against a source with auth`);
  return [...unnamed, ...gone, ...ofServers];
}

async function checks({ suite, node, client, scenario, env, output }) {
  const args = [suite, 'client', '--command', `${node} ${client}`, '--scenario', `auth/${scenario}`, '-o', output];
  const child = new Child(node, args, { env, name: `auth/${scenario}` });
  const limit = setTimeout(() => child.signal('SIGKILL'), RUN_LIMIT_MS);
  await child.exited;
  clearTimeout(limit);
  const file = fs.existsSync(output) && fs.readdirSync(output, { recursive: true }).find((name) => name.endsWith('checks.json'));
  if (!file) return { good: 0, bad: [`no results\n${child.output()}`] };
  const all = JSON.parse(fs.readFileSync(path.join(output, file), 'utf8'));
  const bad = all.filter(({ status }) => status === 'FAILURE' || status === 'WARNING').map(({ id, errorMessage }) => `${id} ${errorMessage ?? ''}`.trim());
  return { good: all.filter(({ status }) => status === 'SUCCESS').length, bad };
}
