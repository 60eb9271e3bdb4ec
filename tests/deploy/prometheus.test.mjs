// Prometheus scrapes a gateway in both formats, and traffic makes each alarm fire.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { gatewayCertificates, tlsBlock } from '../integration/lib/certificates.mjs';
import { temporaryFolder } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';
import { missing, read } from './lib/tools.mjs';

const skip = missing('prometheus', 'apt-get install prometheus');
const alerts = read('deploy/monitoring/alerts.yaml');
const panels = JSON.parse(read('deploy/monitoring/dashboard.json')).panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr]));
const names = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
const JOBS = ['taskgate-openmetrics', 'taskgate-text'];
const POLICY = '@id("small") forbid(principal, action, resource) when { resource.arguments.amount > 100 };';
const ADMIN = {
  people: [{ name: 'alice', groups: ['dba', 'oncall'] }],
  tokens: [{ name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver'] }],
};

/** Answers GET /metrics as the gateway does to somebody who knows no OpenMetrics. */
async function startPlain(t, admin) {
  const server = http.createServer(async (request, response) => {
    const { text, headers } = await admin.get('/metrics', { accept: 'text/plain' });
    response.writeHead(200, { 'content-type': headers['content-type'] }).end(text);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), server.close()));
  return server.address().port;
}

/** `query(text)` has the result's series. Alarms fire without the time that they wait otherwise. */
async function startPrometheus(t, targets) {
  const folder = temporaryFolder(t), port = await freePort();
  const jobs = Object.entries(targets).map(([job, target]) => ({ job_name: job, static_configs: [{ targets: [`127.0.0.1:${target}`] }] }));
  writeFileSync(path.join(folder, 'alerts.yaml'), alerts.replace(/^ +for: .*\n/gm, ''));
  writeFileSync(path.join(folder, 'config.yaml'), JSON.stringify({ global: { scrape_interval: '250ms', scrape_timeout: '250ms', evaluation_interval: '250ms' }, rule_files: ['alerts.yaml'], scrape_configs: jobs }));
  const child = spawn('prometheus', [`--config.file=${folder}/config.yaml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (bytes) => (log += bytes));
  const ended = new Promise((resolve) => child.on('close', resolve));
  defer(t, () => (child.kill('SIGKILL'), ended));
  const query = async (text) => {
    const { status, data, error } = await (await fetch(`http://127.0.0.1:${port}/api/v1/query?${new URLSearchParams({ query: text })}`)).json();
    assert.equal(status, 'success', `${text}: ${error}`);
    return data.result;
  };
  await until(() => query('up'), () => `Prometheus answers\n${log}`, { deadline: 30_000 });
  return query;
}

test('each alarm fires for what it is about, scraped as OpenMetrics and as text, and for nothing else', { skip, timeout: 120_000 }, async (t) => {
  const folder = temporaryFolder(t), policies = path.join(folder, 'small.cedar');
  writeFileSync(policies, POLICY);
  const gone = http.createServer((request, response) => response.writeHead(410).end()).listen(0, '127.0.0.1');
  await new Promise((resolve) => gone.once('listening', resolve));
  defer(t, () => (gone.closeAllConnections(), gone.close()));
  const config = {
    admin: ADMIN,
    cedar: { policies: [policies] },
    proxy: { tls: tlsBlock(gatewayCertificates(folder).server) },
    limits: { pending_per_principal: 2 },
  };
  const { gateway, admin, upstream, connect } = await scene(t, {
    rules: [{ match: 'pay', action: 'policy', policy_id: 'small' }, ['drop', 'approve']],
    approval: { default: { timeout: '10m', approvers: { groups: ['dba'] }, emergency: { groups: ['oncall'] } } },
    upstream: { tools: ['read', 'pay', 'drop'].map((name) => tool(name)) },
    env: { ALICE: 'token-of-alice', NOTIFY_SECRET: 'x'.repeat(32) },
    config,
  });
  const targets = { 'taskgate-openmetrics': gateway.adminPort, 'taskgate-text': await startPlain(t, admin), 'taskgate-gone': await freePort() };
  const query = await startPrometheus(t, targets);
  const fired = async () => (await query('max_over_time(ALERTS{alertstate="firing"}[1h])')).map(({ metric }) => `${metric.alertname} ${metric.job}`);
  const scraped = (what, count = JOBS.length) => until(async () => (await query(what)).length >= count, what, { deadline: 20_000 });
  const alice = admin.as('token-of-alice'), client = await connect(), crowd = await connect();

  const approve = async (body = {}) => {
    const { taskId } = await client.createTask('drop');
    const answer = await alice.post(`/api/v1/tasks/${taskId}/approve`, body);
    assert.equal(answer.status, 200, answer.text);
  };
  const several = async (count, act) => {
    for (let i = 0; i < count; i++) await act();
  };
  const guess = async () => assert.equal((await admin.as('no such token').get('/api/v1/tasks')).status, 401);
  const pay = async () => assert.ok((await client.call('tools/call', { name: 'pay', arguments: { amount: 'x' }, task: {} })).error);
  const fail = async () => assert.ok((await client.call('tools/call', { name: 'read' })).error);
  const crowded = async () => assert.equal((await crowd.error('tools/call', { name: 'drop', task: {} })).code, -32013);

  // The first of each kind: a series of its own in both formats, before it goes up.
  await several(2, () => crowd.createTask('drop'));
  for (const act of [approve, guess, pay, crowded]) await act();
  await upstream.stop();
  await fail();
  await upstream.listen();
  assert.ok((await client.call('tools/call', { name: 'read' })).result);
  for (const what of ['thoughtgate_decision_seconds_count', 'thoughtgate_operators_refused_total', 'thoughtgate_cedar_policy_errors_total', 'thoughtgate_limits_reached_total', 'thoughtgate_errors_total{error_type=~"upstream_.*"}']) await scraped(what);
  await scraped('ALERTS{alertname="TaskgateCertificateExpires"}');
  await scraped('ALERTS{alertname="TaskgateDown"}', 1);
  const early = (await fired()).filter((line) => !/^TaskgateServerDown /.test(line));
  assert.deepEqual(early.sort(), [...JOBS.map((job) => `TaskgateCertificateExpires ${job}`), 'TaskgateDown taskgate-gone'].sort());
  assert.deepEqual((await query('thoughtgate_decision_seconds_bucket{le=~"5|5.0"} == 1')).map(({ metric }) => `${metric.job} ${metric.le}`).sort(), ['taskgate-openmetrics 5.0', 'taskgate-text 5']);

  // More of each kind.
  await several(22, approve);
  await several(22, guess);
  for (const act of [pay, crowded, () => approve({ emergency: true, reason: 'an alarm' })]) await act();
  gateway.writeConfig({ config: { ...config, notify: [{ url: `http://127.0.0.1:${gone.address().port}/`, secret_env: 'NOTIFY_SECRET' }] } });
  gateway.hangUp();
  await gateway.logged(({ msg }) => msg === 'Configuration reloaded');
  const writer = await connect();
  await several(2, () => writer.createTask('drop', { text: 'x'.repeat(600_000) }));
  // The first one runs out while the second has used more than half of its time.
  for (const ttl of [3000, 4500]) await client.createTask('drop', { ttl }, { ttl });
  await scraped('ALERTS{alertname="TaskgateCallWaitsTooLong"}');
  await until(async () => Number(/^thoughtgate_store_bytes (\d+)$/m.exec((await admin.get('/metrics')).text)[1]) > 900_000, 'the store has grown', { deadline: 20_000 });
  gateway.writeConfig({ config: { ...config, limits: { store_bytes: '1MiB' } } });
  gateway.hangUp();
  await scraped('thoughtgate_store_limit_bytes == 1048576');
  gateway.replaceConfig('schema: 1\nno such key: 1\n');
  gateway.hangUp();
  await gateway.logged(/^Configuration not reloaded/);
  await upstream.stop();
  await several(12, fail);
  const expected = names.flatMap((name) => (name === 'TaskgateDown' ? [`${name} taskgate-gone`] : JOBS.map((job) => `${name} ${job}`)));
  await until(async () => expected.every((line) => new Set(early).has(line)) || (early.push(...(await fired())), false), () => `these have not fired: ${expected.filter((line) => !early.includes(line)).join(', ')}`, { deadline: 20_000 });
  assert.deepEqual([...new Set(early)].filter((line) => !expected.includes(line)), []);
  // Each expression of the dashboard has numbers for each format.
  const plain = (expr, job) => expr.replaceAll('$__rate_interval', '1h').replaceAll('$__range', '1h').replaceAll('$job', job).replaceAll('$instance', '.*');
  const isNumber = ({ value: [, text] }) => Number.isFinite(Number(text));
  for (const [title, expr] of panels)
    for (const job of JOBS) assert.ok((await query(plain(expr, job))).some(isNumber), `${title}: nothing of ${job} by ${expr}`);
});
