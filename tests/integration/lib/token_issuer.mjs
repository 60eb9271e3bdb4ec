// An issuer of access tokens: metadata, keys, and tokens signed by Node's own cryptography.
import crypto from 'node:crypto';
import http from 'node:http';
import { defer } from './lifetime.mjs';

const encode = (value) => Buffer.from(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)).toString('base64url');

/** `place` is where the metadata is: that of RFC 8414, or of OpenID. */
export async function startIssuer(t, options) {
  const issuer = new Issuer(options);
  defer(t, () => issuer.stop());
  await issuer.listen();
  return issuer;
}

export class Issuer {
  constructor({ place = '/.well-known/oauth-authorization-server', port = 0 } = {}) {
    this.place = place;
    this.keys = new Map(); // kid -> private key
    this.published = []; // JWKs
    this.asked = []; // paths
    this.port = port;
    this.metadata = {}; // laid over the real one
    this.exchanges = []; // {authorization, form} of each request to exchange a token
    /** The answer to a request to exchange, once its promise is kept. */
    this.exchange = async (form, number) => ({ status: 200, body: { access_token: `up-${number}`, issued_token_type: 'urn:ietf:params:oauth:token-type:access_token', token_type: 'Bearer', expires_in: 300 } });
    this.rotate('first');
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A new key that is published, and signs from now on. `keep`: the old ones stay published. */
  rotate(kid, { keep = false, publish = true } = {}) {
    const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.kid = kid;
    this.keys.set(kid, privateKey);
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' };
    if (publish) this.published = keep ? [...this.published, jwk] : [jwk];
  }

  async listen() {
    this.server = http.createServer((request, response) => {
      this.asked.push(request.url);
      if (request.method === 'POST' && request.url === '/token') {
        this.trade(request, response);
        return;
      }
      const pages = {
        [this.place]: { issuer: this.url, jwks_uri: `${this.url}/keys`, ...this.metadata },
        '/keys': { keys: this.published },
      };
      const page = pages[request.url];
      response.writeHead(page ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify(page ?? {}));
    });
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(this.port, '127.0.0.1', resolve));
    this.port = this.server.address().port;
  }

  /** RFC 8693. */
  async trade(request, response) {
    let text = '';
    for await (const chunk of request) text += chunk;
    const form = Object.fromEntries(new URLSearchParams(text));
    const number = this.exchanges.push({ authorization: request.headers.authorization, form });
    const { status, body } = await this.exchange(form, number);
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  async stop() {
    if (!this.server) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    this.server = null;
    await closed;
  }

  /** Claims of a good token for `audience`; `more` is laid over them. A claim that is undefined is left out. */
  claims(audience, more = {}) {
    const now = Math.floor(Date.now() / 1000);
    return { iss: this.url, aud: audience, sub: 'alice', iat: now, exp: now + 300, jti: crypto.randomUUID(), ...more };
  }

  /** With claims as they are written. */
  signText(text) {
    return this.sign(text);
  }

  sign(claims, header = {}, key = this.keys.get(this.kid)) {
    const input = `${encode({ alg: 'ES256', kid: this.kid, typ: 'at+jwt', ...header })}.${encode(claims)}`;
    return `${input}.${crypto.sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  }

  token(audience, more) {
    return this.sign(this.claims(audience, more));
  }
}
