// The operators' API of one gateway.
import { once } from 'node:events';
import http from 'node:http';
import { exchange, open } from './http.mjs';
import { until } from './wait.mjs';

export class AdminClient {
  constructor(url, token) {
    this.url = url;
    this.token = token;
  }

  /** The same endpoint with another token (undefined: none). */
  as(token) {
    return new AdminClient(this.url, token);
  }

  authorization() {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
  }

  /** Any request; returns {status, headers, text, json}. */
  async request(method, path, { headers = {}, body } = {}) {
    const response = await exchange(this.url + path, { method, headers: { ...this.authorization(), ...headers }, body });
    const text = await response.text();
    let json;
    try {
      json = JSON.parse(text);
    } catch {
      // Metrics and the page are not JSON.
    }
    return { status: response.status, headers: response.headers, text, json };
  }

  get(path, headers) {
    return this.request('GET', path, { headers });
  }

  post(path, body, headers = {}) {
    return this.request('POST', path, {
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  async list(query = {}) {
    const answer = await this.get(`/api/v1/tasks?${new URLSearchParams(query)}`);
    if (answer.status !== 200) throw new Error(`task list: HTTP ${answer.status} ${answer.text}`);
    return answer.json;
  }

  async task(id) {
    const answer = await this.get(`/api/v1/tasks/${encodeURIComponent(id)}`);
    if (answer.status !== 200) throw new Error(`task ${id}: HTTP ${answer.status} ${answer.text}`);
    return answer.json;
  }

  decide(verb, id, reason) {
    return this.post(`/api/v1/tasks/${encodeURIComponent(id)}/${verb}`, reason === undefined ? {} : { reason });
  }

  /** A decision that must succeed. */
  async decided(verb, id, reason) {
    const answer = await this.decide(verb, id, reason);
    if (answer.status !== 200) throw new Error(`${verb} ${id}: HTTP ${answer.status} ${answer.text}`);
    return answer.json;
  }

  approve(id, reason) {
    return this.decided('approve', id, reason);
  }

  reject(id, reason) {
    return this.decided('reject', id, reason);
  }

  cancel(id, reason) {
    return this.decided('cancel', id, reason);
  }

  /** The task `id` once it is in one of `states`. */
  async inState(id, ...states) {
    let last;
    return until(
      async () => {
        last = await this.task(id);
        return states.includes(last.state) && last;
      },
      () => `task ${id} ${states.join(' or ')}; it is ${last?.state} (${last?.statusMessage})`,
      { deadline: 15_000 },
    );
  }

  /** The first pending task that `fits`, awaited. */
  async pending(fits = () => true, deadline = 10_000) {
    return until(async () => (await this.list({ state: 'pending' })).tasks.find(fits), 'a pending task', { deadline });
  }

  /** The live stream of task events as an SseReader. */
  async events(headers = {}, query = '') {
    const response = await open(`${this.url}/api/v1/events${query}`, { headers: { ...this.authorization(), accept: 'text/event-stream', ...headers } });
    if (response.status !== 200) throw new Error(`events: HTTP ${response.status}`);
    return response.sse();
  }

  /** GET of what is answered later: resolves once the gateway has the request, to {answer: a promise of {status, json}}. */
  async held(path, headers = {}) {
    const request = http.get(this.url + path, { agent: false, headers: { ...this.authorization(), ...headers } });
    const answer = once(request, 'response').then(async ([response]) => ({ status: response.statusCode, json: JSON.parse(Buffer.concat(await response.toArray()).toString()) }));
    await once(request, 'finish');
    await this.get('/health'); // it comes behind on the same loop
    return { answer };
  }

  /** All samples of /metrics as {'name{labels}': number}. */
  async metrics() {
    const { text } = await this.get('/metrics');
    const samples = {};
    for (const line of text.split('\n')) {
      const match = /^([^#\s]\S*(?:\{.*\})?)\s+(\S+)/.exec(line);
      if (match) samples[match[1]] = Number(match[2]);
    }
    return samples;
  }
}

/** The sum of all samples of one metric with all of `labels`. */
export function sample(samples, name, labels = {}) {
  let sum = 0;
  let found = false;
  for (const [key, value] of Object.entries(samples)) {
    if (key !== name && !key.startsWith(`${name}{`)) continue;
    if (!Object.entries(labels).every(([label, text]) => key.includes(`${label}="${text}"`))) continue;
    sum += value;
    found = true;
  }
  return found ? sum : undefined;
}
