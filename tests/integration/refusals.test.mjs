// Each refusal of the operators' API has its status and its code, and changes nothing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const tokens = [{ name: 'screen', token_env: 'SCREEN', roles: ['viewer'] }];
const stage = (t) => scene(t, { rules: [['*', 'approve']], approval: workflow('10m', { redact_fields: ['secret', 'card.number'] }), upstream: { tools: [tool('delete_user')] }, env: { SCREEN: 'token-of-screen' }, config: { admin: { tokens } } });
const told = ({ status, json }) => [status, json.error.code];

test('faults of the credentials, the form and the arguments: 400 to 415', async (t) => {
  const { admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const approve = `/api/v1/tasks/${taskId}/approve`;
  const json = { 'content-type': 'application/json' };
  const refused = [
    [admin.as(undefined).get('/api/v1/tasks'), 401, 'unauthorized'],
    [admin.as('made-up').post(approve, {}), 401, 'unauthorized'],
    [admin.as('token-of-screen').post(approve, {}), 403, 'forbidden'],
    [admin.post(approve, {}, { origin: 'https://elsewhere.example' }), 403, 'forbidden'],
    [admin.get('/api/v1/tasks/tg_none'), 404, 'not_found'],
    [admin.get(approve), 405, 'method_not_allowed'],
    [admin.request('POST', approve, { headers: { 'content-type': 'text/plain' }, body: 'yes' }), 415, 'unsupported_media_type'],
    [admin.request('POST', approve, { headers: json, body: '{"reason": 1}' }), 400, 'invalid_request'],
    [admin.get('/api/v1/tasks?sort=tool'), 400, 'invalid_request'],
  ];
  for (const [answer, status, code] of refused) assert.deepEqual(told(await answer), [status, code]);
  assert.deepEqual([(await admin.task(taskId)).state, (await admin.task(taskId)).votes], ['pending', []]);
});

test('without the database: 503 unavailable, and nothing is decided', async (t) => {
  const { admin, connect, gateway } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  fs.renameSync(gateway.storePath, `${gateway.storePath}.aside`);
  assert.deepEqual(told(await admin.decide('approve', taskId)), [503, 'unavailable']);
  fs.renameSync(`${gateway.storePath}.aside`, gateway.storePath);
  await admin.inState(taskId, 'pending');
  assert.equal((await admin.approve(taskId)).state, 'approved');
});

test('redactFields names what is hidden, so that the same text of an agent is told apart', async (t) => {
  const { admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user', { secret: 'x', note: '[REDACTED]' });
  const { arguments: args, redactFields, principal, principalBy } = await admin.task(taskId);
  assert.deepEqual([principal.startsWith('raw-client '), principalBy], [true, 'client'], 'its own word');
  assert.deepEqual([args, redactFields], [{ secret: '[REDACTED]', note: '[REDACTED]' }, ['secret', 'card.number']]);
});
