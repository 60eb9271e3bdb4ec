// TLS on both ports: what is spoken, who is let in, and what becomes of clients that do it wrong.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, test } from 'node:test';
import tls from 'node:tls';
import { Authority, gatewayCertificates, tlsBlock } from './lib/certificates.mjs';
import { RawClient, sdkClient } from './lib/client.mjs';
import { sample } from './lib/admin.mjs';
import { ADMIN_TOKEN, temporaryFolder } from './lib/gateway.mjs';
import { exchange, socketTo, trust } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';
import { until, within } from './lib/wait.mjs';

/** Both ports with TLS; `proxy`, `admin` and `config` are laid over. */
async function secure(t, { proxy = {}, admin = {}, config = {}, ...options } = {}) {
  const folder = temporaryFolder(t, 'taskgate-tls-');
  const { authority, server } = gatewayCertificates(folder);
  const blocks = { proxy: { tls: tlsBlock(server, proxy) }, admin: { tls: tlsBlock(server, admin) } };
  const stage = await scene(t, { ...options, config: { ...config, ...blocks } });
  return { ...stage, folder, authority, server };
}

/** A TLS connection once it is established, or the error's code. */
function connect(t, port, options = {}) {
  return within(
    new Promise((resolve) => {
      const socket = tls.connect({ port, host: '127.0.0.1', checkServerIdentity: () => undefined, rejectUnauthorized: false, ...options });
      defer(t, () => socket.destroy());
      socket.once('secureConnect', () => resolve(socket));
      socket.once('error', (error) => resolve(error.code));
    }),
    'the end of a handshake',
    20_000,
  );
}

/** The outcome of a request: the response, or the error in capitals. In TLS 1.3 a client learns only then. */
const asked = (url, options) => exchange(url, { method: 'DELETE', headers: { 'mcp-session-id': 'asked' }, tls: options }).catch((error) => `${error.code} ${error.message}`.toUpperCase().replaceAll(' ', '_'));

const handshakes = async (admin, labels) => sample(await admin.metrics(), 'thoughtgate_tls_handshakes_total', labels) ?? 0;

describe('protocols and headers', () => {
  test('clients of the SDK and operators come by TLS, both directions whole', async (t) => {
    const { gateway, admin } = await secure(t);
    const client = await sdkClientOver(t, gateway.url);
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === 'read'));
    assert.equal((await client.callTool({ name: 'read', arguments: {} })).isError ?? false, false);
    assert.equal((await admin.get('/health')).json.status, 'healthy');
    assert.ok((await handshakes(admin, { port: 'proxy', outcome: 'full' })) >= 1);
    assert.ok((await handshakes(admin, { port: 'admin', outcome: 'full' })) >= 1);
  });

  test('TLS 1.2 and 1.3 with good suites, and nothing older', async (t) => {
    const { gateway, admin } = await secure(t);
    for (const port of [gateway.port, gateway.adminPort]) {
      for (const version of ['TLSv1.2', 'TLSv1.3']) {
        const socket = await connect(t, port, { minVersion: version, maxVersion: version });
        assert.equal(socket.getProtocol?.(), version, String(socket));
      }
      const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
      assert.equal(await connect(t, port, old), 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
      for (const ciphers of ['AES128-SHA', 'AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-SHA']) {
        // OpenSSL has had more than one name for this alert.
        assert.match(String(await connect(t, port, { ciphers, maxVersion: 'TLSv1.2' })), /^ERR_SSL_SSL(V3|\/TLS)_ALERT_HANDSHAKE_FAILURE$/, ciphers);
      }
    }
    assert.equal(await handshakes(admin, { port: 'proxy', outcome: 'version' }), 1);
    assert.equal(await handshakes(admin, { port: 'admin', outcome: 'version' }), 1);
  });

  test('min_version 1.3 refuses 1.2', async (t) => {
    const { gateway } = await secure(t, { proxy: { min_version: '1.3' } });
    assert.equal(await connect(t, gateway.port, { maxVersion: 'TLSv1.2' }), 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
    assert.equal((await connect(t, gateway.port)).getProtocol(), 'TLSv1.3');
    assert.equal((await connect(t, gateway.adminPort, { maxVersion: 'TLSv1.2' })).getProtocol(), 'TLSv1.2');
  });

  test('ALPN: http/1.1, never h2', async (t) => {
    const { gateway } = await secure(t);
    assert.equal((await connect(t, gateway.port, { ALPNProtocols: ['h2', 'http/1.1'] })).alpnProtocol, 'http/1.1');
    assert.equal((await connect(t, gateway.port)).alpnProtocol, false);
    assert.equal(await connect(t, gateway.port, { ALPNProtocols: ['h2'] }), 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL');
  });

  test('plain HTTP is told to use https, and the log says so once', async (t) => {
    const { gateway, admin } = await secure(t, { config: { workers: 4 } });
    for (let i = 0; i < 12; i++) {
      const answer = await exchange(`http://127.0.0.1:${gateway.port}/mcp`, { method: 'POST', body: '{}' });
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), /use https:/);
    }
    assert.equal(await handshakes(admin, { port: 'proxy', outcome: 'plain_http' }), 12);
    await gateway.logged(/^A TLS handshake failed$/);
    const lines = gateway.logs.filter((entry) => entry.msg === 'A TLS handshake failed');
    assert.equal(lines.length, 1, 'one for all workers');
    assert.equal(lines[0].port, 'proxy');
    assert.equal(lines[0].client, '127.0.0.1');
    assert.match(lines[0].reason, /http request/);
  });

  test('HSTS on the page when public_url is https, and only then; not under the name localhost', async (t) => {
    const { server } = gatewayCertificates(temporaryFolder(t));
    const hsts = async (gateway, host, path = '/') => {
      const page = await exchange(`${gateway.adminUrl}${path}`, { headers: { host }, tls: { checkServerIdentity: () => undefined } });
      return [page.status, page.headers['strict-transport-security']];
    };
    const tls = tlsBlock(server);
    const { gateway } = await scene(t, { config: { admin: { public_url: 'https://gate.example', tls } } });
    for (const path of ['/', '/page.js']) assert.deepEqual(await hsts(gateway, 'gate.example', path), [200, 'max-age=31536000'], path);
    for (const host of ['localhost', `LocalHost:${gateway.adminPort}`]) assert.deepEqual(await hsts(gateway, host), [200, undefined], host);
    assert.deepEqual(await hsts(gateway, 'gate.example', '/api/v1/tasks'), [401, undefined], 'the page alone');
    const { gateway: behindProxy } = await scene(t, { config: { admin: { public_url: 'https://gate.example' } } });
    assert.deepEqual(await hsts(behindProxy, 'gate.example'), [200, 'max-age=31536000'], 'which speaks TLS for it');
    for (const admin of [{ tls }, { tls, public_url: 'http://127.0.0.1:7469' }, {}]) {
      const { gateway: other } = await scene(t, { config: { admin: { ...admin, allowed_hosts: ['gate.example'] } } });
      assert.deepEqual(await hsts(other, 'gate.example'), [200, undefined], JSON.stringify(admin));
    }
  });
});

describe('bodies and streams', () => {
  test('bodies of megabytes up and down', async (t) => {
    const text = 'x'.repeat(3_000_000);
    const { connect: client } = await secure(t, { upstream: { handlers: { 'tools/call': ({ params, reply }) => reply.result({ content: [{ type: 'text', text: params.arguments.text }] }) } } });
    const raw = await client();
    const { content } = await raw.result('tools/call', { name: 'read', arguments: { text } });
    assert.equal(content[0].text, text);
  });

  test('an event stream comes event by event', async (t) => {
    const { connect: client, upstream } = await secure(t);
    let stream, ask;
    upstream.handlers['tools/call'] = (call) => {
      [stream, ask] = [call.reply.sse(), call];
      stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
    };
    const raw = await client();
    const events = await raw.stream('tools/call', { name: 'read', _meta: { progressToken: 'p' } });
    assert.equal((await events.message()).params.progress, 1, 'before the answer is there');
    stream.event({ jsonrpc: '2.0', id: ask.id, result: { content: [] } });
    stream.end();
    assert.deepEqual((await events.message()).result, { content: [] });
  });

  test('a reply that is cut upstream is no clean end for the client', async (t) => {
    const { connect: client, upstream } = await secure(t);
    upstream.handlers['tools/call'] = ({ reply }) => {
      reply.response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      reply.response.write('{"jsonrpc":"2.0",', () => setImmediate(() => reply.cut()));
    };
    const raw = await client();
    await assert.rejects(raw.call('tools/call', { name: 'read' }), /cut|aborted|hang up|RESET/i);
  });

  test('a client that leaves while its call waits is noticed', async (t) => {
    const { connect: client, upstream } = await secure(t);
    let gone;
    const left = new Promise((resolve) => (gone = resolve));
    upstream.handlers['tools/call'] = ({ recorded }) => void recorded.gone.then(gone);
    const raw = await client();
    const flying = raw.call('tools/call', { name: 'read' });
    flying.catch(() => {});
    await upstream.received('tools/call');
    raw.close();
    await within(left, 'the call upstream to end');
  });
});

describe('clients that the proxy port lets in', () => {
  test('client_ca: a certificate of that authority, and no other client', async (t) => {
    const folder = temporaryFolder(t);
    const clients = new Authority(folder, 'Clients');
    const strangers = new Authority(folder, 'Strangers');
    const { gateway, admin, upstream, authority } = await secure(t, { proxy: { client_ca: clients.file }, awaitUpstream: false });
    const { cert, key } = clients.issue('agent', { usage: 'clientAuth' });
    const ask = (more) => asked(gateway.url, { ca: authority.pem, ...more });
    for (const version of ['TLSv1.2', 'TLSv1.3']) {
      const only = { minVersion: version, maxVersion: version };
      assert.match(String(await ask(only)), version === 'TLSv1.3' ? /CERTIFICATE_REQUIRED/ : /HANDSHAKE_FAILURE/);
      const foreign = strangers.issue('agent', { usage: 'clientAuth' });
      assert.match(String(await ask({ ...only, cert: foreign.cert, key: foreign.key })), /UNKNOWN_CA/);
      const wrong = clients.issue('web', { usage: 'serverAuth' });
      assert.match(String(await ask({ ...only, cert: wrong.cert, key: wrong.key })), /UNSUPPORTED_CERTIFICATE/, 'not for clients');
      assert.equal((await ask({ ...only, cert, key })).status, 200, 'let in');
    }
    assert.equal(upstream.requests.filter((request) => request.headers['mcp-session-id'] === 'asked').length, 2, 'nothing else reaches the server');
    assert.equal(await handshakes(admin, { port: 'proxy', outcome: 'certificate' }), 6);
    trust({ ca: authority.pem, cert, key });
    const client = new RawClient(gateway.url);
    defer(t, () => client.close());
    await client.connect();
    assert.ok(await client.result('tools/list'));
    assert.equal(await handshakes(admin, { port: 'proxy', outcome: 'resumed' }), 0, 'each connection shows its certificate');
  });

  test('a certificate that has expired is refused', async (t) => {
    const folder = temporaryFolder(t);
    const clients = new Authority(folder, 'Clients');
    const { gateway, authority } = await secure(t, { proxy: { client_ca: clients.file }, awaitUpstream: false });
    const { cert, key } = clients.issue('late', { usage: 'clientAuth', endsAt: new Date(Date.now() - 86_400_000) });
    assert.match(String(await asked(gateway.url, { ca: authority.pem, cert, key })), /CERTIFICATE_EXPIRED/);
  });
});

describe('clients that the admin port lets in', () => {
  test('client_ca: without a certificate /health and /ready alone', async (t) => {
    const folder = temporaryFolder(t);
    const clients = new Authority(folder, 'Clients');
    const strangers = new Authority(folder, 'Strangers');
    const { gateway, authority } = await secure(t, { admin: { client_ca: clients.file } });
    const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const status = async (path, certificate) =>
      exchange(gateway.adminUrl + path, { headers: bearer, tls: { ca: authority.pem, ...certificate } }).then((answer) => answer.status, (error) => error.message);
    const { cert, key } = clients.issue('alice', { usage: 'clientAuth' });
    for (const path of ['/health', '/ready']) assert.equal(await status(path), 200, path);
    for (const path of ['/', '/metrics', '/api/v1/tasks', '/api/v1/events', '/nothing']) assert.equal(await status(path), 403, path);
    for (const path of ['/', '/metrics', '/api/v1/tasks', '/health']) assert.equal(await status(path, { cert, key }), 200, path);
    const foreign = strangers.issue('alice', { usage: 'clientAuth' });
    assert.match(await status('/health', { cert: foreign.cert, key: foreign.key }), /unknown ca/, 'a wrong certificate is none');
    const answer = await exchange(`${gateway.adminUrl}/api/v1/tasks`, { tls: { ca: authority.pem, cert, key } });
    assert.equal(answer.status, 401, 'a certificate is no token');
  });
});

describe('slow and many', () => {
  test('a client that says nothing in the handshake is dropped after 10 s, and counts until then', async (t) => {
    const { gateway, admin } = await secure(t, { config: { limits: { connections: 3 } } });
    const began = performance.now();
    const mute = await Promise.all([1, 2, 3].map(() => socketTo(gateway.port)));
    mute[1].write(Buffer.from([0x16, 3, 1, 2, 0, 1])); // the beginning of a record
    const ended = Promise.all(mute.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
    const late = connect(t, gateway.port);
    const served = late.then(() => performance.now());
    await within(ended, 'the mute to be dropped', 20_000);
    const seconds = (performance.now() - began) / 1000;
    assert.ok(seconds > 9 && seconds < 16, `after ${seconds} s`);
    assert.equal((await late).getProtocol(), 'TLSv1.3', 'and the next is served');
    assert.ok((await served) - began > 950, 'the limit holds in the handshake, until one has been silent for a second');
    assert.equal(await handshakes(admin, { port: 'proxy', outcome: 'timeout' }), 2, 'one has made room after a second');
    assert.ok((await admin.metrics())['thoughtgate_limits_reached_total{limit="connections"}'] >= 1);
  });

  test('the workers share the limit: as many connections as it says, wherever they arrive, and the next when one leaves', async (t) => {
    const { gateway, admin, upstream } = await secure(t, { config: { workers: 4, limits: { connections: 6 } }, upstream: { sessions: false, handlers: { 'tools/call': () => {} } } });
    // A connection's port chooses the worker, so more than a quarter of the limit may meet at one of them.
    // One that is silent for a second makes room, so each has a call that is not answered.
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } });
    const request = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const open = [];
    for (let i = 0; i < 18; i++) connect(t, gateway.port).then((socket) => open.push(socket) && socket.write(request));
    for (let left = 12; left > 0; left--) {
      await upstream.received('tools/call', 18 - left, 20_000);
      assert.deepEqual([open.length, (await admin.metrics())['thoughtgate_connections_active{transport="http"}']], [6, 6], `${left} are left`);
      open.shift().destroy();
    }
    await upstream.received('tools/call', 18, 20_000);
    assert.deepEqual(open.map((socket) => socket.getProtocol?.()), Array(6).fill('TLSv1.3'));
  });

  test('a client that announces much is dropped before room is made for it', async (t) => {
    const { gateway, admin } = await secure(t);
    const memory = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))[1]);
    const before = memory();
    const record = Buffer.from([22, 3, 1, 0, 4, 1, 1, 0xff, 0]); // a ClientHello of 130,816 bytes, and no more of it
    const sockets = await Promise.all(Array.from({ length: 300 }, () => socketTo(gateway.port)));
    const ended = Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
    for (const socket of sockets) socket.write(record);
    await within(ended, 'all of them to be dropped', 8_000);
    assert.equal(await handshakes(admin, { port: 'proxy', outcome: 'failed' }), 300);
    assert.match((await gateway.logged(/^A TLS handshake failed/)).reason, /longer than 16 KiB/);
    assert.ok(memory() - before < 300 * 100, `grown by ${memory() - before} KB`);
  });

  test('one that leaves in the middle, or sends rubbish, costs nothing', async (t) => {
    const { gateway, admin } = await secure(t);
    const rubbish = await socketTo(gateway.port);
    rubbish.write(Buffer.alloc(100_000, 0xa5));
    await within(new Promise((resolve) => rubbish.once('close', resolve)), 'the rubbish to be dropped');
    const leaver = await socketTo(gateway.port);
    leaver.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]));
    leaver.end();
    await until(async () => (await handshakes(admin, { port: 'proxy', outcome: 'left' })) >= 1, 'the leaver to be counted');
    await until(async () => ((await admin.metrics())['thoughtgate_connections_active{transport="http"}'] ?? 0) === 0, 'no connection to be left');
  });

  test('a shutdown does not wait for a handshake', async (t) => {
    const { gateway } = await secure(t);
    await socketTo(gateway.port);
    const held = await connect(t, gateway.port);
    assert.equal(held.getProtocol(), 'TLSv1.3');
    const began = performance.now();
    await gateway.stop();
    assert.ok(performance.now() - began < 8_000);
  });
});

describe('sessions', () => {
  /** A connection that resumes `session`; waits for the ticket that it gets itself. */
  async function visit(t, port, session, version) {
    let ticket;
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, session, minVersion: version, maxVersion: version });
    socket.on('session', (data) => (ticket = data));
    defer(t, () => socket.destroy());
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    socket.write('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await within(new Promise((resolve) => socket.once('data', resolve)), 'the answer');
    if (!socket.isSessionReused()) await until(() => ticket, 'a ticket');
    const resumed = socket.isSessionReused();
    socket.destroy();
    return { ticket, resumed };
  }

  const holds = async (t, version) => {
    const { gateway, admin } = await secure(t, { config: { workers: 2 } });
    const first = await visit(t, gateway.port, undefined, version);
    assert.equal(first.resumed, false);
    let { ticket } = first;
    for (let i = 0; i < 12; i++) {
      const next = await visit(t, gateway.port, ticket, version);
      assert.equal(next.resumed, true, `visit ${i}`);
      ticket = next.ticket ?? ticket;
    }
    assert.ok((await handshakes(admin, { port: 'proxy', outcome: 'resumed' })) >= 12);
    await gateway.restart();
    assert.equal((await visit(t, gateway.port, ticket, version)).resumed, false, 'its key is gone');
  };
  test('TLS 1.2: a ticket holds at every worker, and not after a restart', (t) => holds(t, 'TLSv1.2'));
  test('TLS 1.3: a ticket holds at every worker, and not after a restart', (t) => holds(t, 'TLSv1.3'));
});

async function sdkClientOver(t, url) {
  // The SDK's fetch has no option for an authority: what it checks is not what is tested here.
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  defer(t, () => {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  });
  return sdkClient(t, url);
}
