// A session whose commit is slow: a replica that is asked for it too early asks the database again.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { connectedRaw, rawClient } from './lib/client.mjs';
import { defer, wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { relayed, relaying, through } from './lib/relaying.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
const AUDIENCE = 'https://gate.example/mcp';
const READ = ['tools/call', { name: 'read', arguments: {} }];

let postgres, upstream, issuer;
let numbers = 0;

before(async () => {
  if (postgresMissing) return;
  [postgres, upstream, issuer] = [await startPostgres(file), await startUpstream(file, { tools: [tool('read')] }), await startIssuer(file)];
});

/** Two replicas that know of each other, at a server that sees no token: only they know whose a session is. `backends` serve q. */
async function two(t, more = {}) {
  const name = `gate_${++numbers}`;
  const url = postgres.createDatabase(name);
  const settings = { source: { auth: { issuer: issuer.url, audience: AUDIENCE } }, ...more };
  const backends = () => postgres.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}' AND pid <> pg_backend_pid()`, name).map(([pid]) => Number(pid));
  const { p } = await relaying(t, upstream, url, ['p'], settings);
  const ofP = backends();
  const { q } = await relaying(t, upstream, url, ['q'], settings);
  const knows = async (gateway) => (await gateway.admin.get('/ready')).json.replica.peers.some(({ state }) => state === 'alive');
  await until(async () => (await knows(p)) && (await knows(q)), 'the replicas to know of each other');
  return { p, q, name, backends: backends().filter((pid) => !ofP.includes(pid)) };
}

/** The database does nothing for q until the returned function is called. */
function hold(t, backends) {
  assert.ok(backends.length > 0);
  for (const pid of backends) process.kill(pid, 'SIGSTOP');
  let isHeld = true;
  const release = () => {
    if (isHeld) for (const pid of backends) process.kill(pid, 'SIGCONT');
    isHeld = false;
  };
  defer(t, release);
  return release;
}

/** Opens a session at `q` whose commit waits; `p` is asked for it in vain, and later not. */
async function opened(t, { p, q, backends }) {
  const release = hold(t, backends);
  const atQ = rawClient(t, q.url, { token: issuer.token(AUDIENCE) });
  assert.equal((await atQ.initialize()).status, 200);
  const atP = through(t, atQ, p);
  assert.equal((await atP.send(...READ)).status, 404, 'no replica has opened it so far');
  release();
  const answer = await until(async () => {
    const { status, message } = await atP.send(...READ);
    return status === 200 && message;
  }, 'the session to be known', { deadline: 15_000, every: 100 });
  assert.equal(answer.result.content[0].text, 'did read');
}

test('a session that is stored late is relayed to its home then', options, async (t) => {
  const stage = await two(t);
  assert.equal(await relayed(stage.p), 0);
  await opened(t, stage);
  assert.equal(await relayed(stage.p), 1);
});

test('without relaying, too, a session that is stored late is known then', options, async (t) => {
  const stage = await two(t, { address: false });
  await opened(t, stage);
  assert.equal(await relayed(stage.p), 0);
});

test('an id that nobody knows is looked for once in a second, and not waited for again', options, async (t) => {
  const { p, name } = await two(t);
  const clients = await Promise.all(Array.from({ length: 8 }, async (_, i) => {
    const client = await connectedRaw(t, p.url, { token: issuer.token(AUDIENCE) });
    client.session = `made-up-${i}`;
    return client;
  }));
  const ask = async (client) => assert.equal((await client.send(...READ)).status, 404);
  const scans = () => Number(postgres.query("SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_user_tables WHERE relname = 'taskgate_session_home'", name)[0][0]);
  await Promise.all(clients.map(ask));
  await until(() => scans() >= 3 * clients.length, 'the database to count the first three reads of each id', { deadline: 20_000, every: 200 });
  const [before, began] = [scans(), performance.now()];
  let requests = 0;
  for (; performance.now() - began < 2500; requests += clients.length) await Promise.all(clients.map(ask));
  const seconds = (performance.now() - began) / 1000;
  await until(() => scans() > before, 'an id to be looked for again', { deadline: 20_000, every: 200 });
  const reads = scans() - before;
  t.diagnostic(`${requests} requests in ${seconds.toFixed(1)} s: ${reads} reads`);
  assert.ok(reads <= clients.length * (seconds + 1), `${reads} reads in ${seconds} s for ${requests} requests`);
});
