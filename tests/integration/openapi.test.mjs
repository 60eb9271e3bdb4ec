// docs/openapi.yaml: it has the routes of the router's table and their parameters, and no others, and real answers fit its schemas.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { read } from '../docs/lib/documents.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const api = parse(read('docs/openapi.yaml'));
const METHODS = ['get', 'post'];
const operations = Object.entries(api.paths).flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })));
const resolve = ({ $ref, ...rest }) => ($ref ? $ref.slice(2).split('/').reduce((node, name) => node[name], api) : rest);
const parameters = (operation, where) => (operation.parameters ?? []).map(resolve).filter((each) => each.in === where).map(({ name }) => name);

const ajv = new Ajv({ strict: false, allErrors: true });
ajv.addSchema({ $id: 'api', components: api.components });

/** The operation that a request reaches, and what it says of this status: the name of a response, or an inner one. */
function expectAnswer(method, path, { status, json, text }) {
  const parts = path.split('?')[0].split('/');
  const operation = operations.find((each) => each.method === method && each.path.split('/').length === parts.length && each.path.split('/').every((part, i) => part === '{id}' || part === parts[i]));
  assert.ok(operation, `${method} ${path} is not described`);
  const response = operation.responses[status] ?? operation.responses.default;
  assert.ok(response, `${method} ${path}: ${status} is not described`);
  const { content } = resolve(response);
  const schema = content?.['application/json']?.schema;
  if (!schema) return;
  const validate = ajv.getSchema(`api${schema.$ref}`);
  assert.ok(validate(json), `${method} ${path} ${status}: ${ajv.errorsText(validate.errors)}: ${text.slice(0, 2000)}`);
}

/** The rows of the table of routes, from the source: [method, path, roles], the roles undefined where none is needed. */
function routes() {
  const roles = ['viewer', 'approver', 'caller', 'auditor'];
  const open = [...read('src/admin/routes_table.h').matchAll(/^OPEN_ROUTE\("([A-Z]+)", +"([^"]+)",/gm)].map(([, method, path]) => [method, path, undefined]);
  const closed = [...read('src/admin/routes_table.h').matchAll(/^ROUTE\("([A-Z]+)", +"([^"]+)", +(\w+), +(\w+), +(\w+), +(\w+),/gm)].map(([, method, path, ...rights]) => [
    method,
    path,
    Object.fromEntries(roles.map((role, i) => [role, rights[i].toLowerCase()]).filter(([, right]) => right !== 'no')),
  ]);
  return [...open, ...closed];
}

test('it describes each route of the table with its roles, and no other', () => {
  const table = routes();
  assert.ok(table.length >= 30, `${table.length} routes`);
  const order = (a, b) => `${a[1]} ${a[0]}`.localeCompare(`${b[1]} ${b[0]}`);
  assert.deepEqual(operations.map((each) => [each.method, each.path, each['x-roles']]).sort(order), table.sort(order));
  for (const each of operations) {
    assert.deepEqual(each.security, each['x-roles'] ? undefined : [], each.path);
    assert.deepEqual(parameters(each, 'path'), each.path.includes('{id}') ? ['id'] : [], each.path);
    assert.ok(METHODS.includes(each.method.toLowerCase()) && each.summary && each.responses, each.path);
  }
});

const env = { ALL: 'token-of-all-roles', BOB: 'token-of-bob-alone' };
const stage = (t, more = {}) =>
  scene(t, {
    rules: [{ match: 'drop_*', action: 'approve', approval: 'default', show: { summary: 'Drops {name}', risk: 'high' } }, { match: 'pay', action: 'approve', approval: 'pair' }, { match: '*', action: 'approve', approval: 'default' }],
    approval: { ...workflow('10m'), default: { timeout: '10m', redact_fields: ['secret'], grants: { max: '1h' }, allow_edit: ['name'], typed: 'off' }, pair: { timeout: '10m', quorum: 2 } },
    upstream: { tools: [tool('drop_table', { description: 'Drops it.', annotations: { destructiveHint: true } }), tool('pay'), tool('read'), tool('run')] },
    env,
    config: {
      admin: {
        people: [{ name: 'alice' }, { name: 'bob' }],
        tokens: [{ name: 'all', person: 'alice', token_env: 'ALL', roles: ['viewer', 'approver', 'caller', 'auditor'] }, { name: 'bob', person: 'bob', token_env: 'BOB', roles: ['approver'] }],
      },
    },
    ...more,
  });

test('the gateway has each route with these methods and takes these parameters alone', async (t) => {
  const { admin } = await stage(t);
  const all = admin.as(env.ALL);
  for (const path of Object.keys(api.paths)) {
    const each = operations.filter((operation) => operation.path === path);
    const wrong = await all.request('DELETE', path.replace('{id}', 'tg_x'));
    assert.equal(wrong.status, 405, path);
    assert.deepEqual(wrong.headers.allow.split(', ').sort(), each.map(({ method }) => method).sort(), path);
  }
  assert.equal((await all.get('/api/v1/nothing')).status, 404);
  for (const operation of operations.filter(({ method, path }) => method === 'GET' && path.startsWith('/api/v1/') && !['/api/v1/events', '/api/v1/whoami', '/api/v1/sign-in', '/api/v1/tasks/{id}'].includes(path))) {
    const path = operation.path.replace('{id}', 'tg_6b3b5ab1-8675-425a-bc83-7dc96d01aff5');
    const refused = await all.get(`${path}?nonsense=1`);
    assert.equal(refused.status, 400, path);
    expectAnswer('GET', path, refused);
    const known = refused.json.error.message.match(/; there (?:are|is) (.*)$/)[1].split(/, | and /);
    assert.deepEqual(parameters(operation, 'query').sort(), known.sort(), path);
  }
});

test('real answers of every route fit their schemas', async (t) => {
  const { admin, connect, gateway } = await stage(t);
  const all = admin.as(env.ALL);
  const seen = new Set();
  const ask = async (method, path, body, as = all) => {
    const answer = method === 'GET' ? await as.get(path) : await as.post(path, body ?? {});
    expectAnswer(method, path, answer);
    seen.add(`${method} ${path.split('?')[0].replace(/(tasks|grants|blocks)\/[^/]+/, (whole, list) => (whole.includes('accept') ? whole : `${list}/{id}`))} ${answer.status}`);
    return answer;
  };
  const client = await connect({ token: 'A' });
  const call = async (name, args = {}) => (await client.createTask(name, args)).taskId;
  const task = (id) => `/api/v1/tasks/${id}`;

  for (const path of ['/health', '/health/idle?wait=0', '/ready', '/api/v1/sign-in', '/api/v1/whoami', '/metrics', '/']) await ask('GET', path);
  const first = await call('drop_table', { name: 'users' });
  const [again, paid, cancelled, left] = [await call('drop_table', { name: 'b\u202eac' }), await call('pay'), await call('run'), await call('run', { secret: 'x' })];
  await ask('GET', '/api/v1/inbox');
  const { json: page } = await ask('GET', '/api/v1/inbox?limit=1');
  await ask('GET', `/api/v1/inbox?limit=1&cursor=${page.nextCursor}`);
  await ask('GET', '/api/v1/tasks');
  await ask('GET', '/api/v1/tasks?limit=1');
  await ask('GET', task(first));
  await ask('GET', task('tg_nothing'));
  await ask('GET', `${task(first)}/result`);
  assert.equal((await ask('POST', `${task(first)}/approve`, { reason: 'good', arguments: { name: 'staging' } })).status, 200);
  assert.equal((await ask('POST', `${task(again)}/approve`, { grant: { for: '10m', calls: 3 } })).status, 200);
  assert.equal((await ask('POST', `${task(paid)}/approve`)).status, 202);
  await ask('POST', `${task(paid)}/withdraw`);
  await ask('POST', `${task(paid)}/reject`, { reason: 'no' });
  await ask('POST', `${task(paid)}/reject`);
  await ask('POST', `${task(cancelled)}/cancel`);
  assert.equal((await ask('GET', `${task(first)}/result?wait=30s`)).status, 200);
  assert.equal((await ask('GET', `${task(paid)}/result`)).status, 200);
  const { json: decided } = await ask('POST', '/api/v1/decisions', { items: [{ id: left }, { id: 'tg_nothing' }], verb: 'reject' });
  assert.deepEqual(decided.results.map(({ status }) => status), [200, 404]);
  await ask('GET', task(first));
  const { json: grants } = await ask('GET', '/api/v1/grants');
  assert.equal(grants.grants.length, 1);
  assert.equal((await ask('POST', `/api/v1/grants/${grants.grants[0].id}/revoke`, { reason: 'enough' })).status, 200);
  const { json: block } = await ask('POST', '/api/v1/blocks', { task: first, for: '1h', reason: 'odd' });
  await ask('GET', '/api/v1/blocks');
  assert.equal((await ask('POST', `/api/v1/blocks/${block.id}/lift`)).status, 200);
  assert.equal((await ask('POST', `/api/v1/blocks/${block.id}/lift`)).status, 409);
  const { json: definitions } = await ask('GET', '/api/v1/definitions');
  assert.ok(definitions.definitions.length > 0);
  const [{ source, kind, name, digest }] = definitions.definitions;
  await ask('POST', '/api/v1/definitions/accept', { source, kind, name, digest });
  assert.equal((await ask('POST', '/api/v1/calls', { tool: 'run', arguments: {} })).status, 201);
  await ask('POST', '/api/v1/calls', { tool: 5 });
  const { json: trail } = await ask('GET', '/api/v1/audit?arguments=true');
  assert.ok(trail.entries.length > 5);
  await ask('GET', '/api/v1/audit?limit=1');
  for (const path of ['/login', '/login/callback']) await ask('GET', path);
  await ask('POST', '/slack/interactions');
  await ask('GET', '/api/v1/tasks', undefined, admin.as('wrong'));
  const events = await all.request('HEAD', '/api/v1/events');
  assert.equal(events.status, 405);
  await gateway.stop?.();
  const described = operations.filter(({ path }) => path !== '/api/v1/events' && path !== '/logout').map(({ method, path }) => `${method} ${path}`);
  const answered = new Set([...seen].map((each) => each.replace(/ \d+$/, '')));
  assert.deepEqual(described.filter((each) => !answered.has(each)), [], 'each route was asked');
});
