// docs/goals: each page is whole. Its files are written, its commands run in their order, and they print what it says.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { blocks, files, read, root } from '../docs/lib/documents.mjs';
import { BINARY, temporaryFolder } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';

const EXAMPLE = path.resolve(process.env.TASKGATE_EXAMPLE_SERVER ?? path.join(root, 'build/examples/taskgate-example-server'));
const MOST_MS = 240_000;
const has = (program) => !spawnSync(program, ['--help']).error;
const skip = fs.existsSync(EXAMPLE) ? false : `${EXAMPLE} is not built`;

/** Programs that a page needs and a test has not: each is a script in the folder `bin`. */
const stand = (folder, name, script) => fs.writeFileSync(path.join(folder, 'bin', name), `#!/usr/bin/env bash\nset -euo pipefail\n${script}\n`, { mode: 0o755 });

/** Runs the page in a folder of its own: {status, output}. `values` are put in place of the page's own. */
async function run(t, page, { values = {}, env = {}, prepare = () => {} } = {}) {
  const found = blocks(read(`docs/goals/${page}.md`));
  const folder = temporaryFolder(t);
  const store = path.join(folder, 'store');
  const backup = path.join(folder, 'backup');
  for (const each of [store, backup, path.join(folder, 'bin')]) fs.mkdirSync(each);
  fs.symlinkSync(BINARY, path.join(folder, 'bin/taskgate'));
  fs.symlinkSync(EXAMPLE, path.join(folder, 'bin/taskgate-example-server'));
  const [proxy, admin, second, secondAdmin, server, one, two] = await Promise.all(Array.from({ length: 7 }, () => freePort()));
  const all = { ...values, 7467: proxy, 7469: admin, 7470: server, 7471: one, 7477: second, 7479: secondAdmin, 7481: two, '/var/lib/taskgate/': `${store}/`, '/backup/': `${backup}/`, 'taskgate-example-server &': `taskgate-example-server --port ${server} &` };
  const filled = (text) => Object.entries(all).reduce((result, [from, to]) => result.replaceAll(from, String(to)), text);
  for (const { text } of found.filter(({ language }) => language !== 'sh' && language !== 'text')) {
    const [, name] = /^(?:#|\/\/) (\S+)\n/.exec(text) ?? [];
    assert.ok(name, 'a file says its name in its first line');
    fs.writeFileSync(path.join(folder, name), filled(text));
  }
  await prepare({ folder, store, filled });
  const script = `set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${found.filter(({ language }) => language === 'sh').map(({ text }) => filled(text)).join('\n')}`;
  const { THOUGHTGATE_ADMIN_TOKEN, TASKGATE_TOKEN, ...own } = process.env;
  const child = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd: folder,
    env: { ...own, PATH: `${path.join(folder, 'bin')}:${own.PATH}`, THOUGHTGATE_OUTBOUND_PORT: String(proxy), THOUGHTGATE_ADMIN_PORT: String(admin), THOUGHTGATE_ADMIN_URL: `http://127.0.0.1:${admin}`, THOUGHTGATE_CONFIG: path.join(folder, 'config.yaml'), THOUGHTGATE_STORE_PATH: path.join(store, 'taskgate.db'), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  t.after(() => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of them have ended.
    }
  });
  let output = '';
  child.stdout.on('data', (bytes) => (output += bytes));
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGTERM'), MOST_MS);
  const status = await new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
  clearTimeout(timer);
  assert.equal(status, 0, output);
  for (const line of found.filter(({ language }) => language === 'text').flatMap(({ text }) => filled(text).trimEnd().split('\n'))) assert.ok(output.includes(line), `"${line}" is not printed:\n${output}`);
  return { folder, output };
}

const pages = ['backup', 'cedar-arguments', 'from-thoughtgate', 'keycloak', 'kubernetes', 'replicas', 'slack', 'two-approvers', 'upgrade', 'who-approved'];
test('there are these pages', () => assert.deepEqual(files('.md').filter((name) => name.startsWith('docs/goals/')).map((name) => path.basename(name, '.md')).sort(), pages));

for (const page of ['backup', 'cedar-arguments', 'from-thoughtgate', 'slack', 'two-approvers', 'who-approved']) test(`${page}: its commands do what it says`, { skip }, (t) => run(t, page));

test('replicas: its commands do what it says', { skip: skip || postgresMissing }, async (t) => {
  const postgres = await startPostgres(t);
  await run(t, 'replicas', { values: { 'postgres://taskgate@127.0.0.1:5432/taskgate': postgres.createDatabase('goals') }, env: { THOUGHTGATE_STORE_PATH: undefined } });
});

test('kubernetes: Helm makes what it says', { skip: skip || (!has('helm') && 'helm is not installed') || (!has('kubectl') && 'kubectl is not installed') }, async (t) => {
  const helm = execFileSync('bash', ['-c', 'command -v helm'], { encoding: 'utf8' }).trim();
  const kubectl = execFileSync('bash', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).trim();
  await run(t, 'kubernetes', {
    values: { 'deploy/helm/taskgate': path.join(root, 'deploy/helm/taskgate') },
    prepare: ({ folder }) => {
      // Without a cluster: the objects are made, and not sent.
      stand(folder, 'helm', `[ "$1 $2" = 'upgrade --install' ]; shift 2; exec ${helm} template --kube-version 1.34.0 "$@"`);
      stand(folder, 'kubectl', `case "$1 $2" in 'create secret') exec ${kubectl} "$@" --dry-run=client ;; 'rollout status' | 'port-forward statefulset/gate') ;; 'get secret') printf YWxpY2U= ;; *) exit 1 ;; esac`);
    },
  });
});

test('upgrade: an older program refuses a newer store, says so, and goes on with the copy', { skip: skip || (!has('sqlite3') && 'sqlite3 is not installed') }, async (t) => {
  const tokens = { THOUGHTGATE_ADMIN_TOKEN: 'token-of-the-operator', NIGHTLY_TOKEN: 'token-of-the-nightly-job' };
  const { output } = await run(t, 'upgrade', {
    env: tokens,
    prepare: ({ folder, store, filled }) => {
      const config = path.join(folder, 'config.yaml');
      fs.writeFileSync(config, filled('schema: 1\nsources: [{id: up, kind: mcp, url: "http://127.0.0.1:7470/mcp", identity: authorization}]\ngovernance: {defaults: {action: approve}}\nadmin: {tokens: [{name: nightly, token_env: NIGHTLY_TOKEN, roles: [caller]}]}\nstore: {path: /var/lib/taskgate/taskgate.db}\n'));
      const db = path.join(store, 'taskgate.db');
      // The newer program leaves a schema behind that this one does not know.
      const apt = `case "$*" in *OLD*) rm -f ${folder}/newer ;; *) touch ${folder}/newer ;; esac`;
      const stop = `if [ -e ${folder}/pid ]; then kill "$(cat ${folder}/pid)" 2>/dev/null || true; while [ -d "/proc/$(cat ${folder}/pid)" ] && ! grep -q zombie "/proc/$(cat ${folder}/pid)/status"; do sleep 0.1; done; rm ${folder}/pid; fi`;
      const start = `taskgate serve --config ${config} 2>${folder}/log & echo $! >${folder}/pid\nuntil taskgate health 2>/dev/null; do [ -d "/proc/$(cat ${folder}/pid)" ] || exit 1; sleep 0.1; done\n[ ! -e ${folder}/newer ] || sqlite3 ${db} "PRAGMA user_version = $(( $(sqlite3 ${db} 'PRAGMA user_version') + 1 ))"`;
      stand(folder, 'apt', apt);
      stand(folder, 'systemctl', `stop() { ${stop}; }\nstart() { ${start}; }\ncase $1 in stop) stop ;; start) start ;; restart) stop; start ;; esac`);
      stand(folder, 'journalctl', `cat ${folder}/log`);
      const env = { ...process.env, ...tokens, PATH: `${folder}/bin:${process.env.PATH}`, THOUGHTGATE_CONFIG: config, ...portsOf(filled) };
      execFileSync(path.join(folder, 'bin/systemctl'), ['start'], { env, stdio: 'ignore' });
      // A call that waits before the upgrade, and after the downgrade again. The server is not there, and need not be.
      const call = execFileSync(BINARY, ['call', 'get_time'], { encoding: 'utf8', env: { ...env, TASKGATE_TOKEN: tokens.NIGHTLY_TOKEN, THOUGHTGATE_ADMIN_URL: `http://127.0.0.1:${filled('7469')}` } });
      assert.match(call, /^tg_\S+ +pending +get_time/);
    },
  });
  assert.equal(output.match(/^1 rows, up to row 1,/gm).length, 2, output);
  assert.match(output, /^tg_\S+ +.*pending/m);
});
const portsOf = (filled) => ({ THOUGHTGATE_OUTBOUND_PORT: filled('7467'), THOUGHTGATE_ADMIN_PORT: filled('7469') });

/** A configuration of a page, as data. */
const configurationOf = (page) => parse(blocks(read(`docs/goals/${page}.md`)).find(({ text }) => text.startsWith('# config.yaml\n')).text);

test('keycloak: its commands do what it says, and the realm has what it configures', { skip }, async (t) => {
  await run(t, 'keycloak');
  const realm = JSON.parse(read('deploy/keycloak/realm.json'));
  const { admin, sources } = configurationOf('keycloak');
  const client = (id) => realm.clients.find(({ clientId }) => clientId === id);
  const mapper = (of, kind) => of.protocolMappers.find(({ protocolMapper }) => protocolMapper === kind).config;
  assert.ok(admin.oidc.issuer.endsWith(`/realms/${realm.realm}`));
  const operators = client(admin.oidc.client_id);
  assert.ok(operators.redirectUris.includes(`${admin.public_url}/login/callback`));
  assert.match(read('src/admin/routes_table.h'), /^OPEN_ROUTE\("GET", +"\/login\/callback", /m);
  assert.deepEqual([mapper(operators, 'oidc-group-membership-mapper')['claim.name'], mapper(operators, 'oidc-group-membership-mapper')['full.path']], [admin.oidc.groups_claim, 'false']);
  for (const group of Object.values(admin.oidc.roles).flat()) assert.ok(realm.groups.some(({ name }) => name === group), group);
  assert.equal(mapper(client('agents'), 'oidc-audience-mapper')['included.custom.audience'], sources[0].auth.audience);
});

test('the manifest of Slack has the scope of each method that the gateway asks, and the address of its route', () => {
  const manifest = parse(read('deploy/slack/manifest.yaml'));
  const scopes = { chat: 'chat:write', reactions: 'reactions:read', conversations: ['channels:history', 'groups:history'], bots: 'users:read', auth: [], views: [] };
  const asked = files('.c').filter((name) => name.startsWith('src/slack/') || name.startsWith('src/notify/')).flatMap((name) => [...read(name).matchAll(/"((?:chat|reactions|conversations|bots|auth|views|users)\.[a-zA-Z]+)"/g)].map(([, method]) => method));
  assert.ok(new Set(asked).size >= 6, asked.join(' '));
  assert.deepEqual(manifest.oauth_config.scopes.bot.toSorted(), [...new Set(asked.flatMap((method) => scopes[method.split('.')[0]]))].sort());
  const { pathname } = new URL(manifest.settings.interactivity.request_url);
  assert.match(read('src/admin/routes_table.h'), new RegExp(`^OPEN_ROUTE\\("POST", +"${pathname}", .*slack_interactions_take\\)`, 'm'));
});
