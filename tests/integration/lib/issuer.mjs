// A real, certified OpenID provider (npm oidc-provider) with a sign-in form, and a browser that fills it in.
import { createHash, generateKeyPair } from 'node:crypto';
import http from 'node:http';
import { promisify } from 'node:util';
import { defer } from './lifetime.mjs';

/** People by login: their claims beside `sub`, which is the login. Anybody else has none. */
const PEOPLE = {
  alice: { email: 'alice@example.org', email_verified: true, name: 'Alice', groups: ['dba'] },
  bob: { email: 'bob@example.org', email_verified: true, name: 'Bob', groups: ['watchers'] },
  mallory: { email: 'alice@example.org', email_verified: false, name: 'Mallory', groups: ['interns'] },
};

async function loadProvider() {
  const { warn } = console;
  console.warn = () => {}; // of a runtime that it has not been tried with
  try {
    return (await import('oidc-provider')).default;
  } finally {
    console.warn = warn;
  }
}

/** The options of startIssuer() for an issuer of access tokens that are JWTs for one resource each (RFC 8707, RFC 9068). */
export function forResources({ scope = 'mcp:read mcp:write', ttl = 300, registration = true, clients = [] } = {}) {
  const getResourceServerInfo = (_, resource) => ({ scope, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: ttl, jwt: { sign: { alg: 'ES256' } } });
  return {
    clients,
    features: { clientCredentials: { enabled: true }, resourceIndicators: { enabled: true, getResourceServerInfo, useGrantedResource: () => true }, registration: { enabled: registration } },
    configuration: {
      scopes: ['openid', 'offline_access', ...scope.split(' ')],
      issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    },
  };
}

export async function privateKey(alg, kid) {
  const [type, options] = { RS256: ['rsa', { modulusLength: 2048 }], ES256: ['ec', { namedCurve: 'P-256' }] }[alg];
  const { privateKey: key } = await promisify(generateKeyPair)(type, options);
  return { ...key.export({ format: 'jwk' }), alg, kid, use: 'sig' };
}

/**
 * Starts a provider. Options: `clients` (of oidc-provider), `people` (laid over those above), `idTokenClaims` (false: only
 * userinfo has the claims), `configuration` (laid over the provider's), `features` (laid over its features). It has `url`,
 * `requests` (method and path of each), `stop()`, `rotate()` (other keys; all else goes on), and `answer` (a handler that
 * may answer in its place: returns true when it has).
 */
export async function startIssuer(t, { clients = [], people = {}, idTokenClaims = true, configuration = {}, features = {} } = {}) {
  const issuer = { people: { ...PEOPLE, ...people }, requests: [], answer: null };
  const server = http.createServer((request, response) => {
    issuer.requests.push(`${request.method} ${request.url.split('?')[0]}`);
    if (issuer.answer?.(request, response)) return;
    issuer.callback(request, response);
  });
  await new Promise((resolve) => server.listen(issuer.port ?? 0, '127.0.0.1', resolve));
  issuer.port = server.address().port;
  issuer.url = `http://127.0.0.1:${issuer.port}`;
  const Provider = await loadProvider();
  const settings = {
    clients,
    cookies: { keys: ['cookies of a test'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    conformIdTokenClaims: !idTokenClaims,
    features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true }, rpInitiatedLogout: { enabled: true }, ...features },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...issuer.people[id] }) }),
    ...configuration,
  };
  // Clients, sessions and refresh tokens outlive a provider with other keys.
  const { createMemoryAdapter } = await import('oidc-provider/lib/adapters/memory_adapter.js');
  settings.adapter = createMemoryAdapter();
  issuer.rotate = async (first = 'first') => {
    const jwks = { keys: [await privateKey('ES256', first), await privateKey('RS256', 'second')] };
    issuer.provider = new Provider(issuer.url, { ...settings, jwks });
    issuer.provider.on('server_error', (_, error) => (issuer.error = error));
    issuer.callback = issuer.provider.callback();
  };
  await issuer.rotate();
  issuer.stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  issuer.start = () => new Promise((resolve) => server.listen(issuer.port, '127.0.0.1', resolve));
  defer(t, () => issuer.stop());
  return issuer;
}

/** A browser without a screen: cookies by host and port's host, redirects one by one, forms. */
export class FormBrowser {
  constructor() {
    this.cookies = new Map(); // "host name" -> value
  }

  header(url) {
    const prefix = `${new URL(url).hostname} `;
    return [...this.cookies].filter(([key]) => key.startsWith(prefix)).map(([key, value]) => `${key.slice(prefix.length)}=${value}`).join('; ');
  }

  async request(url, { method = 'GET', body, headers = {} } = {}) {
    const cookie = this.header(url);
    const response = await fetch(url, { method, body, redirect: 'manual', headers: { ...(cookie ? { cookie } : {}), ...headers } });
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map((part) => part.trim());
      const [name, ...value] = pair.split('=');
      const key = `${new URL(url).hostname} ${name}`;
      const isOver = attributes.some((text) => /^max-age=0$/i.test(text) || (/^expires=/i.test(text) && Date.parse(text.slice(8)) < Date.now()));
      if (isOver) this.cookies.delete(key);
      else this.cookies.set(key, value.join('='));
    }
    const location = response.headers.get('location');
    return { url, status: response.status, headers: response.headers, text: await response.text(), location: location && new URL(location, url).href };
  }

  /** Follows redirects until there is none, or one leads to where `stopAt` fits. */
  async follow(url, stopAt = () => false) {
    let answer = await this.request(url);
    while (answer.location && !stopAt(answer.location)) answer = await this.request(answer.location);
    return answer;
  }

  /** Sends the page's form with the fields laid over its hidden ones, and follows. */
  async submit(page, fields = {}, stopAt = () => false) {
    const action = /<form[^>]*action="([^"]+)"/.exec(page.text)?.[1];
    if (!action) throw new Error(`there is no form at ${page.url}: HTTP ${page.status}\n${page.text}`);
    const form = new URLSearchParams();
    for (const [input] of page.text.matchAll(/<input[^>]*>/g)) {
      const [name, value] = ['name', 'value'].map((key) => new RegExp(`\\b${key}="([^"]*)"`).exec(input)?.[1]);
      if (name && /type="hidden"/.test(input)) form.set(name, value ?? '');
    }
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    const answer = await this.request(new URL(action.replaceAll('&amp;', '&'), page.url).href, {
      method: 'POST',
      body: form.toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    return answer.location && !stopAt(answer.location) ? this.follow(answer.location, stopAt) : answer;
  }

  /** From `url` over the provider's forms, as `login`, to what comes after them. */
  async signIn(url, login, stopAt = () => false) {
    let page = await this.follow(url, stopAt);
    for (let step = 0; /<form[^>]* action=/.test(page.text) && step < 5; step++) {
      const isLogin = /name="login"/.test(page.text);
      page = await this.submit(page, isLogin ? { login, password: 'any' } : {}, stopAt);
    }
    return page;
  }
}

/** The tokens that the provider's token endpoint gives `client` for `login`, by the code flow. `more` is laid over the parameters of both requests. */
export async function tokensOf(issuer, client, login, more = {}) {
  const verifier = 'v'.repeat(43);
  const url = new URL(`${issuer.url}/auth`);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const [back] = client.redirect_uris;
  url.search = new URLSearchParams({ response_type: 'code', client_id: client.client_id, redirect_uri: back, scope: 'openid profile email', code_challenge: challenge, code_challenge_method: 'S256', ...more });
  const { location } = await new FormBrowser().signIn(url.href, login, (to) => to.startsWith(back));
  const code = new URL(location).searchParams.get('code');
  const body = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: back, code_verifier: verifier, ...more });
  const authorization = `Basic ${Buffer.from(`${encodeURIComponent(client.client_id)}:${encodeURIComponent(client.client_secret)}`).toString('base64')}`;
  return (await fetch(`${issuer.url}/token`, { method: 'POST', body, headers: { authorization } })).json();
}
