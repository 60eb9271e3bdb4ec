// Reloading: by signal, by file, by symlink; a bad file leaves the old one in force and says why.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { configuration, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream, TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const outcome = async (client) => (await client.call('tools/call', { name: 'read' })).error?.code ?? 'forwarded';
const becomes = (client, expected, deadline = 10_000) => until(async () => (await outcome(client)) === expected, `the call to be ${expected}`, { deadline });

test('SIGHUP reloads at once; sessions and tasks go on', async (t) => {
  const { gateway, connect, admin } = await scene(t, { rules: [['write', 'approve']], approval: workflow('10m') });
  const client = await connect();
  const { taskId } = await client.createTask('write');
  assert.equal(await outcome(client), 'forwarded');
  gateway.writeConfig({ rules: [['read', 'deny'], ['write', 'approve']] });
  gateway.hangUp();
  await becomes(client, -32014);
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
});

test('a changed file is seen within 5 seconds', async (t) => {
  const { gateway, connect } = await scene(t);
  const client = await connect();
  gateway.writeConfig({ rules: [['read', 'deny']] });
  await becomes(client, -32014, 6_000);
});

test('half a file, which is valid with fewer rules, is not taken up while it is being written', async (t) => {
  const { upstream, gateway, connect } = await scene(t, { rules: [['read', 'deny']] });
  const client = await connect();
  const text = toYaml(configuration({ upstream: upstream.url, store: gateway.storePath, rules: [['read', 'deny'], ['write', 'deny']] }));
  const half = text.indexOf('- match: read');
  // Once more, if this process was held up for longer than the file must be still.
  for (let longest = 1000; longest > 300; ) {
    const file = fs.openSync(gateway.configPath, 'w');
    fs.writeSync(file, `store: {path: ${gateway.storePath}}\n${text.slice(0, half).replace(/ *rules:\n *$/, '')}`);
    let last = performance.now();
    longest = 0;
    for (let line = 0; line < 24; line++) {
      if (line === 10) gateway.hangUp();
      const answers = await client.call('tools/call', { name: 'read' });
      fs.writeSync(file, '# and so on\n');
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
      if (longest <= 300) assert.equal(answers.error?.code, -32014, 'the rule of before is in force');
      await new Promise((resolve) => setTimeout(resolve, 75));
    }
    fs.closeSync(file);
  }
  gateway.writeConfig({ rules: [['read', 'forward']] });
  await becomes(client, 'forwarded', 6_000);
});

test('a swapped symlink, as of a ConfigMap, is seen within 5 seconds', async (t) => {
  const { upstream, gateway, connect } = await scene(t);
  const client = await connect();
  const text = (rules) => toYaml(configuration({ upstream: upstream.url, store: gateway.storePath, rules }));
  for (const [name, rules] of [['v1', []], ['v2', [['read', 'deny']]]]) {
    fs.mkdirSync(path.join(gateway.folder, name));
    fs.writeFileSync(path.join(gateway.folder, name, 'config.yaml'), text(rules));
  }
  fs.symlinkSync('v1', path.join(gateway.folder, '..data'));
  fs.symlinkSync('..data/config.yaml', path.join(gateway.folder, 'link'));
  fs.renameSync(path.join(gateway.folder, 'link'), gateway.configPath);
  await gateway.restart();
  assert.equal(await outcome(client), 'forwarded');
  fs.symlinkSync('v2', path.join(gateway.folder, '..fresh'));
  fs.renameSync(path.join(gateway.folder, '..fresh'), path.join(gateway.folder, '..data'));
  await becomes(client, -32014, 6_000);
});

test('a source with another url is another server: its tools and capabilities are asked for anew, the old ones are forgotten', async (t) => {
  const { upstream, gateway, admin, connect, raw } = await scene(t, { upstream: { tools: [tool('read'), tool('gone')] } });
  const count = async (annotation) => (await admin.metrics())[`thoughtgate_tools_by_annotation{annotation="${annotation}"}`];
  await until(async () => (await count('forbidden')) === 2, 'the tools of the first server');
  const keeper = await connect({ token: 'A' });
  await keeper.result('tools/list');
  const other = await startUpstream(t, { sessions: false, tools: [tool('run', { support: 'required' })], capabilities: { tools: {}, tasks: TASKS } });
  gateway.writeConfig({ upstream: other.url });
  gateway.hangUp();
  await until(async () => (await count('required')) === 1 && (await count('forbidden')) === 0, 'the tools of the other server');
  const created = await raw().result('tools/call', { name: 'run', task: {} });
  assert.match(created.task.taskId, /^up-/, 'what it says of its tool is known without any list');
  await upstream.stop();
  await other.stop();
  assert.equal((await keeper.error('tools/list')).code, -32000, 'a list of the old server is none of the new one');
});

test('a bad file leaves the old rules in force, says why in /ready and the log, and a good one mends it', async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['read', 'deny']] });
  const client = await connect();
  gateway.replaceConfig('schema: 1\nsources: []\ngovernance:\n  defaults:\n    action: forwrd\n');
  gateway.hangUp();
  const ready = await until(async () => {
    const answer = await admin.get('/ready');
    return answer.json?.config_error && answer;
  }, 'the error in /ready');
  assert.equal(ready.status, 200);
  assert.match(JSON.stringify(ready.json.config_error), /config\.yaml:\d+:\d+/);
  assert.equal(await outcome(client), -32014, 'the old rules');
  await gateway.logged((entry) => /^(error|warn)/i.test(entry.level) && /config\.yaml:\d+:\d+|forwrd/.test(JSON.stringify(entry)));
  gateway.writeConfig({ rules: [] });
  gateway.hangUp();
  await becomes(client, 'forwarded');
  // Another worker may already decide by the new rules before the admin port's loop hears of them.
  await until(async () => (await admin.get('/ready')).json.config_error === undefined, 'the error to go from /ready');
});

test('a secret in the place of its variable is repeated nowhere; /ready tells places alone', async (t) => {
  const SECRETS = ['xoxb-1234-secret', 'R0123456789ABCDEF0123456789ABCDEF', 'sk_live_0123456789', '*fromtheenvironment', 'ALONE'];
  const { gateway, admin } = await scene(t, { rules: [], env: { STARRED: SECRETS[3] } });
  const bad = (lines) => `schema: 1\nsources:\n  - id: up\n    kind: mcp\n    url: http://127.0.0.1:9/mcp\n${lines.join('\n')}\n`;
  const files = [
    bad([`    headers: {X-Key: {env: ${SECRETS[0]}}, X-Other: {env: ${SECRETS[1]}}}`, 'notify:', `  - {url: "http://127.0.0.1:9/", secret_env: ${SECRETS[2]}}`, `  - {type: pagerduty, routing_key_env: ${SECRETS[1]}}`, `  - {type: slack, channel: C1, token_env: ${SECRETS[0]}}`, `  - {type: pagerduty, routing_key_env: ${SECRETS[4]}}`]),
    bad(['    description: ${STARRED}']),
  ];
  for (const [index, file] of files.entries()) {
    gateway.replaceConfig(file);
    gateway.hangUp();
    const ready = await until(async () => { // the places of this file
      const { config_error: error } = (await admin.get('/ready')).json;
      return error?.includes('notify') === (index === 0) && error;
    }, 'the error in /ready');
    for (const line of ready.split('\n')) assert.match(line, /config\.yaml:\d+:\d+: [A-Za-z0-9_.[\]-]+$/);
  }
  assert.ok(gateway.child.stderr.includes('notify[1].routing_key_env: V-014 the environment variable named here is not set'));
  const { code, stdout, stderr } = await gateway.cli(['check', '--config', gateway.configPath], { env: { STARRED: SECRETS[3] } });
  assert.equal(code, 2, stderr);
  for (const secret of SECRETS) assert.ok(!(gateway.child.stderr + gateway.child.stdout + stdout + stderr).includes(secret), secret);
});

// As a token may look: of letters alone, of letters and digits, and no name of a variable at all.
for (const [form, secretOf] of Object.entries({
  letters: (place) => `SECRET${'ABCDEFGHIJ'[place]}`,
  'letters and digits': (place) => `Sk9live8${place}7x6y5`,
  'what is no name': (place) => `xoxb-${place}7-4secret`,
})) {
  test(`a secret in the place of its variable, at each key that names one, is repeated nowhere (${form})`, async (t) => {
    const KEYS = ['sources[0].auth.exchange.client_secret_env', 'replica.key_env', 'admin.tokens[0].token_env', 'admin.oidc.client_secret_env',
      'notify[0].token_env', 'notify[0].signing_secret_env', 'notify[1].password_env', 'approval.team.destination.token_env', 'approval.signed.destination.signing_secret_env'];
    const secrets = KEYS.map((_, place) => secretOf(place));
    const { gateway, admin } = await scene(t, { rules: [] });
    gateway.replaceConfig(JSON.stringify({
      schema: 1,
      governance: { defaults: { action: 'forward' } },
      sources: [{ id: 'up', kind: 'mcp', url: 'http://127.0.0.1:9/mcp', auth: { issuer: 'https://idp.example', audience: 'a', upstream: 'exchange', exchange: { token_url: 'https://idp.example/token', client_id: 'c', client_secret_env: secrets[0] } } }],
      replica: { address: 'http://127.0.0.1:7', key_env: secrets[1] },
      admin: {
        public_url: 'https://gate.example',
        tokens: [{ name: 'a', token_env: secrets[2], roles: ['approver'] }],
        oidc: { issuer: 'https://idp.example', client_id: 'c', client_secret_env: secrets[3], roles: { approver: ['x'] } },
      },
      notify: [
        { type: 'slack', channel: 'C1', token_env: secrets[4], signing_secret_env: secrets[5] },
        { type: 'smtp', url: 'smtp://mail.example', user: 'u', password_env: secrets[6], from: 'a@mail.example', to: ['a@mail.example'] },
      ],
      approval: {
        team: { destination: { type: 'slack', channel: 'C1', token_env: secrets[7] } },
        signed: { destination: { type: 'slack', channel: 'C1', token_env: 'PATH', signing_secret_env: secrets[8] } },
      },
    }));
    gateway.hangUp();
    const ready = await until(async () => (await admin.get('/ready')).json.config_error, 'the error in /ready');
    for (const line of ready.split('\n')) assert.match(line, /config\.yaml:\d+:\d+: [A-Za-z0-9_.[\]-]+$/);
    const { code, stdout, stderr } = await gateway.cli(['check', '--config', gateway.configPath]);
    assert.equal(code, 2, stderr);
    const said = stdout + stderr;
    const named = KEYS.filter((key) => said.includes(`${key}: `));
    assert.deepEqual(named, KEYS, said);
    for (const secret of secrets) assert.ok(!(ready + said + gateway.child.stderr + gateway.child.stdout).includes(secret), `${secret}: ${said}`);
  });
}

test('a file that is gone for a moment leaves the old rules in force', async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['read', 'deny']] });
  const client = await connect();
  fs.rmSync(gateway.configPath);
  gateway.hangUp();
  await until(async () => (await admin.get('/ready')).json?.config_error, 'the error in /ready');
  assert.equal(await outcome(client), -32014);
});

test('a file that stays away is said within some seconds, and its return mends it', async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['read', 'deny']] });
  const client = await connect();
  const away = `${gateway.configPath}.away`;
  const configError = async () => (await admin.get('/ready')).json.config_error;
  fs.renameSync(gateway.configPath, away);
  assert.equal(await until(configError, 'the error in /ready', { deadline: 15_000 }), `${gateway.configPath}: the file is gone; put it back`);
  assert.equal((await gateway.logged(/^Configuration not reloaded/)).level, 'error');
  assert.equal(await outcome(client), -32014, 'the rules before are in force');
  fs.renameSync(away, gateway.configPath); // the very same file
  await until(async () => (await configError()) === undefined, 'the error to go away', { deadline: 15_000 });
  assert.equal(await outcome(client), -32014);
  assert.equal(gateway.logs.filter((entry) => /^Configuration not reloaded/.test(entry.msg)).length, 1, 'said once');
});

test('a call in flight keeps the rules it was judged by', async (t) => {
  const { upstream, gateway, connect } = await scene(t);
  const client = await connect();
  let release;
  upstream.handlers['tools/call'] = ({ reply }) => void (release = () => reply.result({ content: [] }));
  const flying = client.call('tools/call', { name: 'read' });
  await upstream.received('tools/call');
  gateway.writeConfig({ rules: [['read', 'deny']] });
  gateway.hangUp();
  await until(async () => (await client.call('prompts/get', { name: 'read' })).error?.code === -32014, 'the new rules');
  release();
  assert.ok((await flying).result);
});

test('the metrics count loads, good and bad', async (t) => {
  const { gateway, admin } = await scene(t);
  const loads = async () => {
    const samples = await admin.metrics();
    return Object.entries(samples).filter(([name]) => name.startsWith('thoughtgate_config_load_total')).map(([, value]) => value).reduce((a, b) => a + b, 0);
  };
  const before = await loads();
  assert.ok(before >= 1);
  gateway.replaceConfig('schema: 2\n');
  gateway.hangUp();
  await until(async () => (await loads()) > before, 'the failed load counted');
});
