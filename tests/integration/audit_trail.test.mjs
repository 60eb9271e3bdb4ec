// The audit trail from outside: the operators' API, the commands, anchors, backups.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, verify } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, temporaryFolder, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const TOKENS = [
  { name: 'alice', token_env: 'ALICE', roles: ['approver'] },
  { name: 'ledger', token_env: 'LEDGER', roles: ['auditor'] },
];
const ENV = { ALICE: 'the-long-token-of-alice', LEDGER: 'the-long-token-of-ledger' };

const stage = (t, audit, more = {}) =>
  scene(t, {
    rules: [{ match: 'delete_*', action: 'approve' }],
    approval: workflow('10m', { redact_fields: ['password'] }),
    upstream: { tools: [tool('delete_user'), tool('delete_all'), tool('read')] },
    env: ENV,
    config: { admin: { tokens: TOKENS }, ...(audit && { audit }) },
    ...more,
  });

/** One approved and one rejected call: seven rows or more. */
async function history({ admin, connect }) {
  const client = await connect();
  const first = (await client.createTask('delete_user', { name: 'x', password: 'hunter2' })).taskId;
  await admin.as(ENV.ALICE).approve(first, '=1+1');
  await admin.inState(first, 'completed');
  const second = (await client.createTask('delete_user', { name: 'y' })).taskId;
  await admin.as(ENV.ALICE).reject(second, 'no');
  return { first, second };
}

/** Keys sorted, no white space: the canonical form of what these rows hold. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value && typeof value === 'object') return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
  return JSON.stringify(value);
}

function expectedHashes(rows) {
  let previous = '0'.repeat(64);
  return rows.map(({ hash, ...row }) => (previous = createHash('sha256').update(previous + canonical(row)).digest('hex')));
}

const lines = (text) => text.trim().split('\n').map((line) => JSON.parse(line));
const offline = (gateway, args) => run(BINARY, ['audit', ...args, '--store', gateway.storePath], { cwd: gateway.folder });

test('the API: rows in order with hashes that anybody can compute, for auditors alone', async (t) => {
  const play = await stage(t);
  const { first, second } = await history(play);
  const { status, json } = await play.admin.as(ENV.LEDGER).get('/api/v1/audit?after=0&limit=1000');
  assert.equal(status, 200);
  assert.deepEqual([json.nextAfter, json.start], [null, null]);
  const rows = json.entries;
  assert.deepEqual(rows.map((row) => row.sequence), rows.map((_, i) => i + 1));
  assert.deepEqual(rows.map((row) => row.hash), expectedHashes(rows));
  const of = (id) => rows.filter((row) => row.taskId === id).map((row) => row.event);
  assert.deepEqual(of(first), ['create', 'approve', 'execute', 'complete']);
  assert.deepEqual(of(second), ['create', 'reject']);
  const approval = rows.find((row) => row.event === 'approve');
  assert.equal(approval.person, 'alice');
  assert.equal(approval.rule, 'delete_*');
  assert.equal(approval.workflow, 'default');
  assert.deepEqual(approval.votes, [{ at: approval.at, person: 'alice', reason: '=1+1', verb: 'approve' }]);
  for (const key of ['argumentsDigest', 'definitionDigest', 'policyDigest', 'requestDigest']) assert.match(approval[key], /^[0-9a-f]{64}$/, key);
  assert.equal(approval.argumentsDigest, createHash('sha256').update('{"name":"x","password":"hunter2"}').digest('hex'));
  assert.doesNotMatch(JSON.stringify(rows), /hunter2/);

  const page = (await play.admin.as(ENV.LEDGER).get('/api/v1/audit?after=1&limit=2')).json;
  assert.deepEqual([page.entries.map((row) => row.sequence), page.nextAfter], [[2, 3], 3]);
  assert.equal((await play.admin.get('/api/v1/audit')).status, 200, 'the token of the environment');
  assert.equal((await play.admin.as(ENV.ALICE).get('/api/v1/audit')).status, 403);
  assert.equal((await play.admin.as('nobody').get('/api/v1/audit')).status, 401);
  for (const query of ['limit=0', 'limit=1001', 'after=-1', 'after=x', 'before=3']) assert.equal((await play.admin.get(`/api/v1/audit?${query}`)).status, 400, query);
});

test('export and verify, from the store and from a running gateway', async (t) => {
  const play = await stage(t);
  const { first } = await history(play);
  const { gateway } = play;
  const online = (args) => run(BINARY, ['audit', ...args], { cwd: gateway.folder, env: { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: ENV.LEDGER } });
  const exported = await offline(gateway, ['export', '--format', 'jsonl']);
  assert.deepEqual([exported.code, exported.stderr], [0, '']);
  const rows = lines(exported.stdout);
  assert.deepEqual(rows.map((row) => row.hash), expectedHashes(rows));
  assert.equal((await online(['export'])).stdout, exported.stdout);
  for (const check of [offline, (_, args) => online(args)]) {
    const good = await check(gateway, ['verify']);
    assert.deepEqual([good.code, good.stderr], [0, '']);
    assert.equal(good.stdout, `${rows.length} rows, up to row ${rows.length}, hash ${rows.at(-1).hash}\n`);
  }

  const file = path.join(gateway.folder, 'trail.jsonl');
  const verifyFile = (text, more = []) => {
    fs.writeFileSync(file, text);
    return run(BINARY, ['audit', 'verify', file, ...more], { cwd: gateway.folder });
  };
  assert.equal((await verifyFile(exported.stdout)).code, 0);
  const changed = await verifyFile(exported.stdout.replace('"person":"alice"', '"person":"mallory"'));
  const at = rows.findIndex((row) => row.person === 'alice') + 1;
  assert.deepEqual([changed.code, changed.stderr], [1, `taskgate: the audit trail is not whole: row ${at} was changed: its hash is not that of its content\n`]);
  const without = exported.stdout.split('\n').filter((_, i) => i !== 2).join('\n');
  assert.match((await verifyFile(without)).stderr, /row 3 is missing/);
  const headless = await verifyFile(exported.stdout.split('\n').slice(2).join('\n'));
  assert.deepEqual([headless.code, /give an anchor of row 2/.test(headless.stderr)], [1, true]);
  assert.equal((await verifyFile('no row\n')).code, 2);

  const csv = (await offline(gateway, ['export', '--format', 'csv'])).stdout;
  assert.match(csv, /^sequence,at,taskId,event,/);
  assert.match(csv, /"'=1\+1"/, 'no spreadsheet takes it for a formula');
  const cef = (await offline(gateway, ['export', '--format', 'cef'])).stdout;
  assert.match(cef, /^CEF:0\|taskgate\|taskgate\|[\d.]+\|approve\|task approve\|5\|rt=\S+ externalId=\d+ suser=alice reason=\\=1\+1 /m);
  const wrong = await offline(gateway, ['export', '--format', 'xml']);
  assert.deepEqual([wrong.code, /--format xml is none of jsonl, csv and cef/.test(wrong.stderr)], [2, true]);
  assert.equal((await offline(gateway, ['export', '--since', '2999-01-01'])).stdout, '');
  assert.equal((await offline(gateway, ['export', '--since', 'soon'])).code, 2);

  const shown = await offline(gateway, ['show', first]);
  assert.deepEqual([shown.code, shown.stdout.match(/"event": "(\w+)"/g).length], [0, 4]);
  assert.equal((await offline(gateway, ['show', 'tg_none'])).code, 4);
  const listed = await offline(gateway, ['list', '--limit', '2']);
  assert.deepEqual(listed.stdout.trim().split('\n').map((line) => line.split(/\s+/)[0]), ['ROW', String(rows.length - 1), String(rows.length)]);
});

test('arguments are kept without what is redacted, and go when their time is over', async (t) => {
  const play = await stage(t, { keep_arguments: '90d' });
  const { first } = await history(play);
  const shown = await offline(play.gateway, ['show', first]);
  assert.match(shown.stdout, /kept arguments: \{\n {2}"name": "x",\n {2}"password": "\[REDACTED\]"\n\}/);
  const page = async (query) => (await play.admin.as(ENV.LEDGER).get(`/api/v1/audit?${query}`)).json;
  const whole = await page('arguments=true');
  const creations = whole.entries.filter(({ event }) => event === 'create').map(({ sequence }) => sequence);
  const kept = createHash('sha256').update('{"name":"x","password":"[REDACTED]"}').digest('hex');
  assert.deepEqual(whole.entries.filter(({ event }) => event === 'create').map(({ keptDigest }) => keptDigest === kept), [true, false]);
  assert.deepEqual(whole.arguments, { [creations[0]]: { name: 'x', password: '[REDACTED]' }, [creations[1]]: { name: 'y' } });
  assert.equal('arguments' in (await page('arguments=false')), false);
  assert.deepEqual((await page(`after=${creations[0]}&limit=1&arguments=true`)).arguments, {});
  assert.equal((await play.admin.as(ENV.LEDGER).get('/api/v1/audit?arguments=some')).status, 400);
  assert.equal((await play.admin.as(ENV.ALICE).get('/api/v1/audit?arguments=true')).status, 403, 'auditors alone');
  const online = await run(BINARY, ['audit', 'show', first], { cwd: play.gateway.folder, env: { ...process.env, THOUGHTGATE_ADMIN_URL: play.gateway.adminUrl, TASKGATE_TOKEN: ENV.LEDGER } });
  assert.deepEqual([online.code, online.stdout], [0, shown.stdout], 'the same as offline');
  play.gateway.writeConfig({ config: { admin: { tokens: TOKENS }, audit: { keep_arguments: '1s' } } });
  play.gateway.hangUp();
  await play.gateway.logged(/Configuration reloaded/);
  const client = await play.connect();
  const third = (await client.createTask('delete_user', { name: 'z' })).taskId;
  await until(async () => !/kept arguments/.test((await offline(play.gateway, ['show', third])).stdout), 'the kept arguments to go', { deadline: 20_000 });
  assert.equal((await offline(play.gateway, ['verify'])).code, 0);
});

test('anchors: signed, logged, and what verify holds the trail against', async (t) => {
  const keys = temporaryFolder(t);
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const write = (name, text) => (fs.writeFileSync(path.join(keys, name), text, { mode: 0o600 }), path.join(keys, name));
  const keyFile = write('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const publicFile = write('public.pem', publicKey.export({ type: 'spki', format: 'pem' }));
  const other = write('other.pem', generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
  const play = await stage(t, { key_file: keyFile, anchor: { every: '1s' } });
  await history(play);
  const count = lines((await offline(play.gateway, ['export'])).stdout).length;
  const anchor = await play.gateway.logged((entry) => entry.msg === 'Audit anchor' && entry.sequence === count, 20_000);
  assert.ok(verify(null, Buffer.from(`${anchor.sequence} ${anchor.hash} ${anchor.time}`), publicKey, Buffer.from(anchor.signature, 'base64url')), 'the signature of sequence, hash and time');
  const anchors = write('anchors.log', play.gateway.child.stderr);
  const good = await offline(play.gateway, ['verify', '--anchor', anchors, '--key', publicFile]);
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /anchors? fit, their signatures too/);
  assert.equal((await run(BINARY, ['audit', 'verify', '--config', play.gateway.configPath, '--anchor', anchors], { cwd: play.gateway.folder, env: ENV })).code, 0);
  const forgedFile = write('forged.log', play.gateway.child.stderr.replaceAll(anchor.signature, 'A'.repeat(anchor.signature.length)));
  const online = (...options) => run(BINARY, ['audit', 'verify', '--anchor', ...options], { cwd: play.gateway.folder, env: { THOUGHTGATE_ADMIN_URL: play.gateway.adminUrl, TASKGATE_TOKEN: ENV.LEDGER } });
  const keyless = await online(forgedFile);
  assert.deepEqual([keyless.code, /cannot be checked: name their key with --key, or say --unsigned/.test(keyless.stderr)], [1, true], 'a trail and anchors that fit it can be made by one hand');
  assert.equal((await online(forgedFile, '--unsigned')).code, 0);
  assert.deepEqual([(await online(forgedFile, '--key', publicFile)).code, (await online(anchors, '--key', publicFile)).code], [1, 0]);
  const foreign = await offline(play.gateway, ['verify', '--anchor', anchors, '--key', other]);
  assert.deepEqual([foreign.code, /is not signed by the key/.test(foreign.stderr)], [1, true]);

  // A trail that was made anew from its first row on is whole in itself; the anchor tells.
  const rows = lines((await offline(play.gateway, ['export'])).stdout).map((row) => ({ ...row, ...(row.person && { person: 'mallory' }) }));
  const hashes = expectedHashes(rows);
  const forged = write('forged.jsonl', rows.map((row, i) => JSON.stringify({ ...row, hash: hashes[i] })).join('\n'));
  assert.equal((await run(BINARY, ['audit', 'verify', forged])).code, 0);
  const caught = await run(BINARY, ['audit', 'verify', forged, '--anchor', anchors]);
  assert.deepEqual([caught.code, /is not the one that the anchor names/.test(caught.stderr)], [1, true]);
  const short = write('short.jsonl', rows.slice(0, 1).map((row) => JSON.stringify({ ...row, hash: hashes[0] })).join('\n'));
  assert.match((await run(BINARY, ['audit', 'verify', short, '--anchor', anchors])).stderr, /is missing, which an anchor names/);
});

test('rows beyond keep leave a signed anchor from which the chain goes on', async (t) => {
  const play = await stage(t, { keep: '1s' });
  await history(play);
  const auditor = play.admin.as(ENV.LEDGER);
  const page = await until(async () => {
    const { json } = await auditor.get('/api/v1/audit');
    return json.entries.length === 0 && json;
  }, 'all rows to be removed', { deadline: 20_000 });
  assert.match(page.start.hash, /^[0-9a-f]{64}$/);
  play.gateway.writeConfig({ config: { admin: { tokens: TOKENS } } });
  play.gateway.hangUp();
  await play.gateway.logged(/Configuration reloaded/);
  await history(play);
  const { entries } = (await auditor.get('/api/v1/audit')).json;
  assert.equal(entries[0].sequence, page.start.sequence + 1);
  for (const env of [{ TASKGATE_TOKEN: ENV.LEDGER, THOUGHTGATE_ADMIN_URL: play.gateway.adminUrl }, {}]) {
    const good = await run(BINARY, ['audit', 'verify', ...(env.TASKGATE_TOKEN ? [] : ['--store', play.gateway.storePath])], { env });
    assert.deepEqual([good.code, good.stderr], [0, '']);
  }
});

test('the report says how people decide, tool by tool', async (t) => {
  const play = await stage(t);
  await history(play);
  const client = await play.connect();
  for (let i = 0; i < 20; i++) await play.admin.approve((await client.createTask('delete_user', { name: `n${i}` })).taskId);
  const { tools } = JSON.parse((await offline(play.gateway, ['report', '--json', '--since', '7d'])).stdout);
  const [{ medianMs, ...row }] = tools;
  assert.deepEqual(row, { tool: 'delete_user', source: 'up', calls: 22, decided: 22, approved: 21, rejected: 1, expired: 0, cancelled: 0, underFiveSeconds: 22, approvedShare: 0.955, suggestion: null });
  assert.ok(medianMs >= 0 && medianMs < 5000);
  for (let i = 0; i < 20; i++) await play.admin.reject((await client.createTask('delete_user', { name: `m${i}` })).taskId);
  assert.match((await offline(play.gateway, ['report'])).stdout, /delete_user +up +42 +42 +50 %/);
});

test('the report suggests what its counts show', async (t) => {
  const play = await stage(t);
  const client = await play.connect();
  const twenty = async (name, verb) => {
    for (let i = 0; i < 20; i++) await play.admin[verb]((await client.createTask(name, { i })).taskId);
  };
  await twenty('delete_user', 'approve');
  await twenty('delete_all', 'reject');
  const { tools } = JSON.parse((await offline(play.gateway, ['report', '--json'])).stdout);
  assert.deepEqual(tools.map(({ tool: name, approvedShare, suggestion }) => [name, approvedShare, suggestion]).sort(), [
    ['delete_all', 0, 'never approved: deny it'],
    ['delete_user', 1, 'approved every time, mostly at a glance: forward it, or narrow the rule'],
  ]);
  const since = (text) => offline(play.gateway, ['report', '--json', '--since', text]).then(({ stdout }) => JSON.parse(stdout).tools.length);
  assert.deepEqual([await since('1h'), await since('2020-01-01T00:00:00Z'), await since('2999-01-01T00:00:00Z')], [2, 2, 0]);
});

test('no cell of a CSV export is a formula', async (t) => {
  const play = await stage(t);
  const client = await play.connect();
  for (const sign of ['=', '+', '-', '@']) await play.admin.reject((await client.createTask('delete_user')).taskId, `${sign}cmd "x"`);
  const { stdout } = await offline(play.gateway, ['export', '--format', 'csv']);
  for (const sign of ['=', '+', '-', '@']) assert.ok(stdout.includes(`,"'${sign}cmd ""x""",`), sign);
  assert.doesNotMatch(stdout, /(^|,)"?[=+\-@]/m);
});

test('backup: one private file, whole, while the gateway runs', async (t) => {
  const play = await stage(t);
  await history(play);
  const { gateway } = play;
  const copy = path.join(gateway.folder, 'copy.db');
  const backup = () => run(BINARY, ['backup', copy, '--config', gateway.configPath], { cwd: gateway.folder, env: ENV });
  assert.deepEqual(await backup().then(({ code, stderr }) => [code, stderr]), [0, '']);
  assert.equal(fs.statSync(copy).mode & 0o777, 0o600);
  await history(play);
  assert.equal((await run(BINARY, ['audit', 'verify', '--store', copy])).code, 0);
  const size = fs.statSync(copy).size;
  const again = await backup();
  assert.deepEqual([again.code, /File exists/.test(again.stderr), fs.statSync(copy).size], [1, true, size]);
  assert.equal((await run(BINARY, ['backup'])).code, 2);
  // Operators have a token in their environment; a backup is of the store all the same.
  const env = { ...ENV, TASKGATE_TOKEN: ENV.LEDGER, THOUGHTGATE_ADMIN_URL: gateway.adminUrl, THOUGHTGATE_CONFIG: gateway.configPath };
  const other = path.join(gateway.folder, 'other.db');
  assert.deepEqual(await run(BINARY, ['backup', other], { cwd: gateway.folder, env }).then(({ code, stderr }) => [code, stderr]), [0, '']);
  assert.equal((await run(BINARY, ['audit', 'verify', '--store', other])).code, 0);
});

test('the configuration of the trail is checked', async (t) => {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'config.yaml');
  const checked = (audit) => {
    fs.writeFileSync(file, `schema: 1\nsources: [{id: up, kind: mcp, url: "http://127.0.0.1:9/"}]\ngovernance: {defaults: {action: forward}}\naudit: ${JSON.stringify(audit)}\n`);
    return run(BINARY, ['check', '--config', file], { cwd: folder, env: { THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN } });
  };
  const { publicKey } = generateKeyPairSync('ed25519');
  fs.writeFileSync(path.join(folder, 'public.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
  fs.writeFileSync(path.join(folder, 'rsa.pem'), generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const cases = [
    [{ keep: '1d', keep_arguments: '2d' }, /audit\.keep_arguments: arguments cannot be kept longer/],
    [{ key_file: 'none.pem' }, /audit\.key_file: .*none\.pem cannot be read/],
    [{ key_file: 'public.pem' }, /holds a public key, which cannot sign/],
    [{ key_file: 'rsa.pem' }, /is not an Ed25519 key/],
    [{ anchor: {} }, /audit\.anchor\.every/],
    [{ keep: 'long' }, /audit\.keep/],
  ];
  for (const [audit, said] of cases) {
    const { code, stderr } = await checked(audit);
    assert.deepEqual([code, said.test(stderr)], [2, true], stderr);
  }
  assert.equal((await checked({ keep: '400d', keep_arguments: '90d' })).code, 0);
});

test('the commands find the store where the gateway has it, or say where they looked', async (t) => {
  const play = await stage(t);
  await history(play);
  await play.gateway.stop();
  const folder = temporaryFolder(t);
  const config = path.join(folder, 'taskgate.yaml');
  fs.writeFileSync(config, 'schema: 1\nsources:\n  - {id: up, kind: mcp, url: "http://127.0.0.1:1/mcp"}\ngovernance: {defaults: {action: forward}}\n');
  const ask = (...args) => run(BINARY, [...args, '--config', config], { cwd: folder });
  for (const args of [['audit', 'list'], ['audit', 'verify'], ['backup', 'copy.db']]) {
    const { code, stderr } = await ask(...args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /there is no store at \/var\/lib\/taskgate\/taskgate\.db and none at \.\/taskgate\.db/);
  }
  assert.ok(!fs.existsSync(path.join(folder, 'copy.db')));
  fs.copyFileSync(play.gateway.storePath, path.join(folder, 'taskgate.db'));
  assert.match((await ask('audit', 'verify')).stdout, /\d rows, up to row \d/);
  assert.equal((await ask('backup', 'copy.db')).code, 0);
  assert.equal(fs.statSync(path.join(folder, 'copy.db')).mode & 0o777, 0o600);
});
