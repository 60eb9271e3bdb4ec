// The command line over https: whom it believes, and what it shows.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { Authority, gatewayCertificates, tlsBlock } from './lib/certificates.mjs';
import { temporaryFolder } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';

async function stage(t, admin = () => ({})) {
  const folder = temporaryFolder(t, 'taskgate-tls-');
  const { authority, server } = gatewayCertificates(folder);
  const operators = new Authority(folder, 'Operators');
  const { gateway, admin: client, connect } = await scene(t, { rules: [['write', 'approve']], config: { admin: { tls: tlsBlock(server, admin(operators)) } } });
  return { gateway, admin: client, connect, authority, operators, folder };
}

test('an authority that TASKGATE_CA names is believed, for every request of a command', async (t) => {
  const { gateway, connect, admin, authority } = await stage(t);
  const client = await connect();
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await client.createTask('write', { i })).task?.taskId);
  const env = { TASKGATE_CA: authority.file };
  const listed = await gateway.cli(['tasks', 'list', '--json'], { env });
  assert.equal(listed.code, 0, listed.stderr);
  assert.equal(JSON.parse(listed.stdout).tasks?.length ?? JSON.parse(listed.stdout).length, 3);
  const pending = (await admin.list({ state: 'pending' })).tasks.map(({ id }) => id);
  for (const id of pending) {
    const shown = await gateway.cli(['tasks', 'approve', id], { env });
    assert.equal(shown.code, 0, shown.stderr);
  }
  for (const id of pending) await admin.inState(id, 'completed', 'approved');
});

test('another is not, and the message says what to do', async (t) => {
  const { gateway, operators, folder } = await stage(t);
  const without = await gateway.cli(['tasks', 'list'], { env: { TASKGATE_CA: undefined } });
  assert.equal(without.code, 3, without.stderr);
  assert.match(without.stderr, /https:.* cannot be reached: .*; TASKGATE_CA names a file/);
  const foreign = await gateway.cli(['tasks', 'list'], { env: { TASKGATE_CA: operators.file } });
  assert.equal(foreign.code, 3, foreign.stderr);
  const missing = await gateway.cli(['tasks', 'list'], { env: { TASKGATE_CA: path.join(folder, 'nothing.pem') } });
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /TASKGATE_CA: .*nothing\.pem cannot be read: No such file/);
});

test('client_ca: the certificate of TASKGATE_CERT is shown', async (t) => {
  const { gateway, operators, authority } = await stage(t, (authorities) => ({ client_ca: authorities.file }));
  const mine = operators.issue('alice', { usage: 'clientAuth' });
  const env = { TASKGATE_CA: authority.file };
  const without = await gateway.cli(['tasks', 'list'], { env });
  assert.equal(without.code, 3, without.stderr);
  assert.match(without.stderr, /a client certificate is needed/);
  const shown = await gateway.cli(['tasks', 'list'], { env: { ...env, TASKGATE_CERT: mine.certFile, TASKGATE_KEY: mine.keyFile } });
  assert.equal(shown.code, 0, shown.stderr);
  const half = await gateway.cli(['tasks', 'list'], { env: { ...env, TASKGATE_CERT: mine.certFile } });
  assert.equal(half.code, 2);
  assert.match(half.stderr, /TASKGATE_CERT and TASKGATE_KEY belong together/);
});
