// Mails: a server that speaks SMTP with STARTTLS and AUTH, and what people read there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Authority } from './lib/certificates.mjs';
import { run } from './lib/child.mjs';
import { BINARY, temporaryFolder, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { startMailServer } from './lib/smtp_sink.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PASSWORD = 'secret-of-the-mail-server';
const mailTo = (server, more = {}) => ({ id: 'mail', type: 'smtp', url: server.url, from: 'taskgate@gate.example', to: ['dba@corp.example', 'lead@corp.example'], ...more });
const signedIn = (authority, more = {}) => ({ user: 'gate', password_env: 'MAIL_PASSWORD', tls: { ca: authority.file }, ...more });

/** A gateway whose `write` needs an approval, and that tells `notify`. */
const stage = (t, notify, more = {}) => scene(t, {
  rules: [{ match: 'write*', action: 'approve', reason: 'optional' }],
  approval: workflow('10m', { redact_fields: ['password'] }),
  upstream: { tools: [tool('read'), tool('write')] },
  env: { MAIL_PASSWORD: PASSWORD },
  config: { notify, admin: { public_url: 'https://gate.example' } },
  ...more,
});

/** An authority, and a server with its certificate that wants a password. */
async function guarded(t, more = {}) {
  const authority = new Authority(temporaryFolder(t));
  const { cert, key } = authority.issue('mail');
  const server = await startMailServer(t, { certificate: { cert, key }, users: { gate: PASSWORD }, ...more });
  return { authority, server };
}

test('a mail for each change, in one thread, with link and facts; STARTTLS and AUTH', async (t) => {
  const { authority, server } = await guarded(t);
  const { gateway, admin, connect } = await stage(t, [mailTo(server, signedIn(authority, { include_arguments: true, events: ['created', 'decided', 'ended'] }))]);
  const client = await connect();
  const { taskId } = await client.createTask('write', { path: '/tmp', password: 'hunter2-argument', taskgate_reason: 'tidying\nTool: read' });
  const asked = await server.received(1);
  assert.deepEqual([asked.from, asked.to, asked.tls, asked.user], ['taskgate@gate.example', ['dba@corp.example', 'lead@corp.example'], true, 'gate']);
  assert.ok(server.commands.indexOf('STARTTLS') < server.commands.findIndex((command) => command.startsWith('AUTH')), 'the password goes over TLS');
  const { headers } = asked;
  assert.deepEqual([headers.from, headers.to, headers.subject], ['taskgate@gate.example', 'dba@corp.example, lead@corp.example', 'Approval needed: write']);
  assert.deepEqual([headers['mime-version'], headers['content-type'], headers['content-transfer-encoding'], headers['auto-submitted']], ['1.0', 'text/plain; charset=utf-8', '7bit', 'auto-generated']);
  assert.ok(Math.abs(Date.parse(headers.date) - Date.now()) < 60_000 && /^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000$/.test(headers.date), headers.date);
  assert.match(headers['message-id'], new RegExp(`^<${taskId}\\.[0-9a-f]{12}@gate\\.example>$`));
  assert.ok(!('in-reply-to' in headers));
  assert.ok(asked.body.includes(`\r\nhttps://gate.example/#task=${taskId}\r\n`), 'the link can be read in the raw mail');
  assert.match(asked.text, /^Approval needed: write\n/);
  assert.match(asked.text, /\nTool: write\nServer: up\nAsked by: .*\nWorkflow: default\nDecide by: \d{4}-/);
  assert.ok(asked.text.includes('\nThe agent says: tidying\\nTool: read\nArguments: {"path":"/tmp","password":"[REDACTED]"}\n'), asked.text);
  await gateway.restart();
  await admin.approve(taskId, 'fine');
  const decided = await server.received(2);
  assert.equal(decided.headers.subject, 'Re: Approval needed: write');
  assert.deepEqual([decided.headers['in-reply-to'], decided.headers.references], [headers['message-id'], headers['message-id']]);
  assert.notEqual(decided.headers['message-id'], headers['message-id']);
  assert.match(decided.text, /^Approved: write\n[\s\S]*\nDecided by: admin\nReason: fine\n/);
  assert.ok(decided.text.includes(`https://gate.example/#task=${taskId}`));
  assert.ok(!gateway.child.stderr.includes(PASSWORD) && !gateway.child.stderr.includes('hunter2-argument'));
});

test('no name and no reason can write a header or an SMTP command', async (t) => {
  const server = await startMailServer(t);
  const name = 'write\r\nBcc: eve@evil.example\r\n\r\nInjected';
  const { admin, connect } = await stage(t, [mailTo(server)], { upstream: { tools: [tool(name)] } });
  const { taskId } = await (await connect()).createTask(name);
  const asked = await server.received(1);
  assert.deepEqual([asked.to, Object.keys(asked.headers).includes('bcc')], [['dba@corp.example', 'lead@corp.example'], false]);
  assert.equal(asked.headers.subject, 'Approval needed: write\\r\\nBcc: eve@evil.example\\r\\n\\r\\nInjected');
  assert.match(asked.text, /\nTool: write\\r\\nBcc: eve@evil\.example\\r\\n\\r\\nInjected\n/);
  await admin.reject(taskId, '.\r\n.\r\nMAIL FROM:<eve@evil.example>');
  const decided = await server.received(2);
  assert.match(decided.text, /\nReason: \.\\r\\n\.\\r\\nMAIL FROM:<eve@evil\.example>\n/);
  assert.ok(!server.commands.some((command) => command.includes('eve')));
});

test('other letters than ASCII arrive as they were, and long names are cut', async (t) => {
  const server = await startMailServer(t);
  const name = `write ${'ä€😀'.repeat(40)}`;
  const { connect } = await stage(t, [mailTo(server, { include_arguments: true })], { upstream: { tools: [tool(name)] } });
  await (await connect()).createTask(name, { text: 'Grüße = ja ' });
  const { headers, text, body, rawHeader } = await server.received(1);
  assert.ok(headers.subject.startsWith(`Approval needed: write ä€😀ä€😀`) && headers.subject.endsWith('…'), headers.subject);
  assert.ok(rawHeader.split('\r\n').every((line) => line.length <= (line.includes('=?') ? 76 : 100) && /^[ -~]*$/.test(line)), rawHeader);
  assert.equal(headers['content-transfer-encoding'], 'quoted-printable');
  assert.ok(/^[\r\n -~]*$/.test(body));
  assert.ok(text.includes(`\nTool: ${name}\n`) && text.includes('\nArguments: {"text":"Grüße = ja "}\n'), text);
});

test('TLS from the first byte', async (t) => {
  const { authority, server } = await guarded(t, { implicit: true });
  const { connect } = await stage(t, [mailTo(server, signedIn(authority))]);
  assert.match(server.url, /^smtps:/);
  await (await connect()).createTask('write');
  const { tls, user } = await server.received(1);
  assert.deepEqual([tls, user, server.commands.includes('STARTTLS')], [true, 'gate', false]);
});

test('a password is not sent without TLS, nor to a server of another authority', async (t) => {
  const stranger = new Authority(temporaryFolder(t), 'Stranger');
  const { authority, server } = await guarded(t);
  const bare = await startMailServer(t, { users: { gate: PASSWORD } });
  const { gateway, admin, connect } = await stage(t, [
    mailTo(bare, { id: 'bare', user: 'gate', password_env: 'MAIL_PASSWORD' }),
    mailTo(server, { ...signedIn(stranger), id: 'strange' }),
    mailTo(server, { ...signedIn(authority), id: 'good', to: ['c@corp.example'] }),
  ]);
  const { taskId } = await (await connect()).createTask('write');
  await server.received(1);
  const failed = async (origin, reason) => gateway.logged((line) => line.msg === 'Notifications fail, and are tried again' && line.endpoint === origin && reason.test(line.reason));
  await failed(bare.url, /offers no STARTTLS/);
  await failed(server.url, /SSL certificate problem/);
  assert.ok(!bare.commands.some((command) => command.startsWith('AUTH')), 'nobody has signed in in the open');
  assert.deepEqual(server.mails.map(({ to }) => to), [['c@corp.example']]);
  assert.equal((await admin.task(taskId)).state, 'pending', 'a channel that fails decides nothing');
});

test('a mail that the server refuses is tried again; one bad address does not keep a mail from the others', async (t) => {
  const server = await startMailServer(t, { refuse: (command) => (command === '.' ? '451 4.3.0 later' : undefined) });
  const { gateway, connect } = await stage(t, [mailTo(server)]);
  await (await connect()).createTask('write');
  const { reason } = await gateway.logged((line) => line.msg === 'Notifications fail, and are tried again');
  assert.match(reason, /the server answered 451/);
  server.refuse = (command) => (command.startsWith('RCPT TO:<lead@') ? '550 5.1.1 unknown' : undefined);
  const mail = await server.received(1);
  assert.deepEqual(mail.to, ['dba@corp.example']);
  assert.equal((await gateway.logged(/refused for some of its recipients/)).status, 550);
  server.refuse = (command) => (command.startsWith('RCPT') ? '550 5.1.1 unknown' : undefined);
  await (await connect()).createTask('write', { n: 2 });
  await until(() => gateway.logs.filter((line) => line.msg === 'Notifications fail, and are tried again').length === 2, 'nobody is left');
  assert.equal(server.mails.length, 1);
  assert.ok(!gateway.child.stderr.includes('dba@corp'), 'the log names the server alone');
});

test('a server that is silent holds up nothing, and a stop does not wait for it', async (t) => {
  const server = await startMailServer(t, { refuse: (command) => (command.startsWith('EHLO') ? '250-still thinking' : undefined) });
  const { gateway, admin, connect } = await stage(t, [mailTo(server)]);
  const { taskId } = await (await connect()).createTask('write');
  await until(() => server.commands.some((command) => command.startsWith('EHLO')), 'the server is asked');
  await admin.reject(taskId);
  const before = Date.now();
  await gateway.stop();
  assert.ok(Date.now() - before < 9_000, `it took ${Date.now() - before} ms`);
});

test('check refuses what a mail lacks, and what could write a header', async (t) => {
  const { gateway } = await stage(t, []);
  const good = { type: 'smtp', url: 'smtp://mail.example:587', from: 'a@b.example', to: ['c@d.example'] };
  const findings = [
    [{ ...good, from: undefined }, /notify\[0\]\.from: the key is missing/],
    [{ ...good, to: undefined }, /notify\[0\]\.to: the key is missing/],
    [{ ...good, to: [] }, /notify\[0\]\.to: the list names nobody/],
    [{ ...good, url: 'https://mail.example/' }, /notify\[0\]\.url: V-008 mails are sent to smtp:\/\/HOST:PORT or smtps:/],
    [{ ...good, type: 'teams', from: undefined, to: undefined }, /notify\[0\]\.url: V-008 the URL must begin with http/],
    [{ ...good, url: 'smtp://user:pass@mail.example' }, /config\.yaml:\d+:\d+: notify\[0\]\.url: V-008 .*write it as smtp:\/\/HOST:PORT/],
    [{ ...good, from: 'a@b.example\r\nBcc: e@f' }, /notify\[0\]\.from: .*this is no mail address/],
    [{ ...good, to: ['<a@b.example>'] }, /notify\[0\]\.to\[0\]: .*this is no mail address/],
    [{ ...good, user: 'gate' }, /notify\[0\]\.password_env: the key is missing/],
    [{ ...good, password_env: 'MAIL_PASSWORD' }, /notify\[0\]\.user: the key is missing/],
    [{ ...good, user: 'gate', password_env: 'NOT_SET' }, /V-014 the environment variable NOT_SET is not set/],
    [{ ...good, tls: { ca: 'missing.pem' } }, /notify\[0\]\.tls\.ca: .*missing\.pem cannot be read/],
    [{ ...good, channel: 'C1' }, /notify\[0\]\.channel: this key is for the type slack alone/],
    [{ type: 'webhook', url: 'https://h/', secret_env: 'MAIL_PASSWORD', to: ['a@b.example'] }, /notify\[0\]\.to: this key is for the type smtp alone/],
  ];
  for (const [entry, finding] of findings) {
    gateway.writeConfig({ config: { notify: [JSON.parse(JSON.stringify(entry))], admin: { public_url: 'https://gate.example' } } });
    const { code, stderr } = await run(BINARY, ['check', '--config', gateway.configPath], { cwd: gateway.folder, env: { ...process.env, MAIL_PASSWORD: PASSWORD } });
    assert.equal(code, 2, `${JSON.stringify(entry)}\n${stderr}`);
    assert.match(stderr, finding);
    assert.ok(!stderr.includes('user:pass'), 'a url is not shown');
  }
});
