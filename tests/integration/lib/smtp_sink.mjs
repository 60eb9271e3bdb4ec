// A mail server (RFC 5321) that keeps what it gets: STARTTLS (RFC 3207), AUTH PLAIN and LOGIN (RFC 4954), TLS from the first byte.
import net from 'node:net';
import tls from 'node:tls';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';
import { until } from './wait.mjs';

/**
 * A listening server, stopped after the test. `certificate`: {cert, key}, offers STARTTLS; `implicit`: TLS from the first byte;
 * `users`: {name: password}, which every mail then needs; `refuse(command)`: an answer such as '550 no', or undefined.
 */
export async function startMailServer(t, options = {}) {
  const server = new MailServer(options);
  server.port = await freePort();
  defer(t, () => server.stop());
  if (options.listening !== false) await server.listen();
  return server;
}

class MailServer {
  constructor({ certificate, implicit = false, users, refuse = () => undefined }) {
    Object.assign(this, { certificate, implicit, users, refuse });
    this.mails = []; // {from, to, data, tls, user} in the order they came
    this.commands = []; // of all connections, without mails
    this.sockets = new Set();
  }

  get url() {
    return `${this.implicit ? 'smtps' : 'smtp'}://127.0.0.1:${this.port}`;
  }

  async listen() {
    const serve = (socket) => new Conversation(this, socket, this.implicit);
    this.server = this.implicit ? tls.createServer(this.certificate, serve) : net.createServer(serve);
    this.server.on('tlsClientError', () => {});
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(this.port, '127.0.0.1', resolve));
  }

  /** Cuts every connection and refuses new ones; `listen()` brings it back. */
  async stop() {
    if (!this.server) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server = null;
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  /** The `count`-th mail, awaited and read. */
  async received(count = 1, deadline = 15_000) {
    const mail = await until(() => this.mails[count - 1], () => `mail ${count}; there are ${this.mails.length}; ${this.commands.slice(-8).join(' | ')}`, { deadline });
    return { ...mail, ...readMail(mail.data) };
  }
}

class Conversation {
  constructor(server, socket, isSecure) {
    Object.assign(this, { server, isSecure, rest: '', lines: null });
    this.reset();
    this.listenTo(socket);
    this.say('220 mail.example ESMTP');
  }

  listenTo(socket) {
    this.socket = socket;
    this.server.sockets.add(socket);
    socket.setEncoding('latin1');
    socket.on('data', (text) => this.take(text));
    socket.on('error', () => {});
    socket.on('close', () => this.server.sockets.delete(socket));
  }

  reset() {
    this.from = undefined;
    this.to = [];
  }

  say(line) {
    this.socket.write(`${line}\r\n`, 'latin1');
  }

  take(text) {
    this.rest += text;
    for (let end; (end = this.rest.indexOf('\r\n')) >= 0 && !this.isUpgrading;) {
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + 2);
      if (this.lines) this.takeData(line);
      else if (this.expects) this.expects(line);
      else this.obey(line);
    }
  }

  takeData(line) {
    if (line !== '.') return void this.lines.push(line.startsWith('.') ? line.slice(1) : line);
    const data = Buffer.from(this.lines.map((each) => `${each}\r\n`).join(''), 'latin1');
    this.lines = null;
    const answer = this.server.refuse('.');
    if (!answer) this.server.mails.push({ from: this.from, to: this.to, data, tls: this.isSecure, user: this.user });
    this.reset();
    this.say(answer ?? '250 kept');
  }

  obey(line) {
    const [, verb, argument] = /^(\S+) ?(.*)$/.exec(line) ?? [undefined, '', ''];
    this.server.commands.push(line);
    const answer = this.server.refuse(line);
    if (answer) return this.say(answer);
    switch (verb.toUpperCase()) {
      case 'EHLO': return this.greet();
      case 'STARTTLS': return this.upgrade();
      case 'AUTH': return this.authenticate(argument);
      case 'MAIL': return this.sender(argument);
      case 'RCPT': return this.recipient(argument);
      case 'DATA': return this.to.length > 0 ? ((this.lines = []), this.say('354 go on')) : this.say('554 nobody');
      case 'RSET': return this.reset(), this.say('250 ok');
      case 'QUIT': return this.say('221 bye'), this.socket.end();
      default: return this.say('502 unknown');
    }
  }

  greet() {
    const { certificate, users } = this.server;
    const offers = ['PIPELINING', ...(certificate && !this.isSecure ? ['STARTTLS'] : []), ...(users ? ['AUTH PLAIN LOGIN'] : [])];
    for (const offer of offers) this.say(`250-${offer}`);
    this.say('250 SIZE 10000000');
  }

  upgrade() {
    if (!this.server.certificate || this.isSecure) return this.say('502 no');
    this.isUpgrading = true;
    this.socket.write('220 go ahead\r\n', () => {
      const plain = this.socket;
      plain.removeAllListeners('data');
      const secure = new tls.TLSSocket(plain, { isServer: true, secureContext: tls.createSecureContext(this.server.certificate) });
      secure.once('secure', () => (this.isSecure = true));
      this.rest = ''; // the bytes before the handshake count for nothing (RFC 3207 §4.2)
      this.isUpgrading = false;
      this.listenTo(secure);
    });
  }

  authenticate(argument) {
    const [mechanism, initial] = argument.split(' ');
    const decode = (text) => Buffer.from(text, 'base64').toString();
    const judge = (user, password) => {
      this.expects = undefined;
      const isGood = this.server.users?.[user] !== undefined && this.server.users[user] === password;
      this.user = isGood ? user : undefined;
      this.say(isGood ? '235 welcome' : '535 5.7.8 wrong');
    };
    const plain = (line) => judge(...decode(line).split('\0').slice(1));
    if (mechanism === 'PLAIN') return initial ? plain(initial) : ((this.expects = plain), this.say('334 '));
    if (mechanism !== 'LOGIN') return this.say('504 unknown');
    const user = (line) => ((this.expects = (next) => judge(decode(line), decode(next))), this.say('334 UGFzc3dvcmQ6'));
    return initial ? user(initial) : ((this.expects = user), this.say('334 VXNlcm5hbWU6'));
  }

  sender(argument) {
    const [, address] = /^FROM:<([^<>]*)>/i.exec(argument) ?? [];
    if (address === undefined) return this.say('501 syntax');
    if (this.server.users && !this.user) return this.say('530 5.7.0 sign in first');
    this.from = address;
    this.say('250 ok');
  }

  recipient(argument) {
    const [, address] = /^TO:<([^<>]+)>/i.exec(argument) ?? [];
    if (address === undefined || this.from === undefined) return this.say('503 order');
    this.to.push(address);
    this.say('250 ok');
  }
}

/** {headers: {name: value}, order, text, rawHeader} of a mail; folded lines joined, encoded words and the text decoded. */
export function readMail(data) {
  const all = data.toString('latin1');
  const end = all.indexOf('\r\n\r\n');
  const rawHeader = all.slice(0, end);
  const headers = {};
  for (const line of rawHeader.replaceAll(/\r\n[ \t]/g, ' ').split('\r\n')) {
    const [, name, value] = /^([!-9;-~]+): (.*)$/.exec(line) ?? [];
    if (name === undefined || name.toLowerCase() in headers) throw new Error(`not a header line, or there twice: ${JSON.stringify(line)}`);
    headers[name.toLowerCase()] = decodeWords(value);
  }
  const body = all.slice(end + 4);
  const text = headers['content-transfer-encoding'] === 'quoted-printable' ? unquote(body) : body;
  return { headers, rawHeader, body, text: Buffer.from(text, 'latin1').toString('utf8').replaceAll('\r\n', '\n') };
}

function decodeWords(value) {
  return value.replaceAll(/(=\?UTF-8\?B\?[A-Za-z0-9+/=]*\?=)\s+(?==\?)/g, '$1').replaceAll(/(?:=\?UTF-8\?B\?[A-Za-z0-9+/=]*\?=)+/g, (words) => words.split('?=').slice(0, -1).map((word) => {
    if (word.length + 2 > 75) throw new Error(`an encoded word of ${word.length + 2} characters`);
    const text = Buffer.from(word.split('?B?')[1], 'base64').toString('utf8');
    if (text.includes('\ufffd')) throw new Error('an encoded word that cuts a character');
    return text;
  }).join(''));
}

function unquote(body) {
  for (const line of body.split('\r\n')) {
    if (line.length > 76 || /[ \t]$/.test(line)) throw new Error(`not quoted-printable: ${line}`);
  }
  return body.replaceAll('=\r\n', '').replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
}
