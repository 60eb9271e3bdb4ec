// An operators' endpoint: records every notification to the byte, checks its signature, answers as the test says.
import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';
import { until } from './wait.mjs';

export const SECRET = 'integration-notify-secret-0000000001';

/** A listening receiver, stopped after the test. `path` is of its URL. */
export async function startReceiver(t, options) {
  const receiver = new Receiver(options);
  receiver.port = await freePort();
  defer(t, () => receiver.stop());
  if (options?.listening !== false) await receiver.listen();
  return receiver;
}

export class Receiver {
  constructor({ path = '/hook', secret = SECRET } = {}) {
    this.path = path;
    this.secret = secret;
    this.answer = () => 204; // (delivery) => a status, {status, headers, body}, or undefined: no answer
    this.deliveries = []; // in the order they came
    this.open = 0; // requests without an answer
    this.mostOpen = 0;
  }

  get url() {
    return `http://127.0.0.1:${this.port}${this.path}`;
  }

  async listen() {
    this.server = http.createServer((request, response) => this.receive(request, response));
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(this.port, '127.0.0.1', resolve));
  }

  /** Cuts every connection and refuses new ones; `listen()` brings it back. */
  async stop() {
    if (!this.server) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    this.server = null;
    await closed;
  }

  async receive(request, response) {
    this.mostOpen = Math.max(this.mostOpen, ++this.open);
    response.on('close', () => this.open--);
    const parts = [];
    try {
      for await (const part of request) parts.push(part);
    } catch {
      return; // the gateway was killed in the middle
    }
    const body = Buffer.concat(parts);
    const delivery = { method: request.method, path: request.url, headers: request.headers, body, at: Date.now() };
    delivery.id = request.headers['x-taskgate-delivery'];
    delivery.event = request.headers['x-taskgate-event'];
    delivery.json = JSON.parse(body.toString('utf8'));
    this.verify(delivery);
    this.deliveries.push(delivery);
    const answer = await this.answer(delivery);
    if (answer === undefined) return;
    const { status, headers = {}, body: text = '' } = typeof answer === 'number' ? { status: answer } : answer;
    response.writeHead(status, headers).end(text);
  }

  /** The duties of a receiver; sets `signed`. */
  verify(delivery) {
    const timestamp = delivery.headers['x-taskgate-timestamp'];
    const expected = createHmac('sha256', this.secret).update(`${timestamp}.`).update(delivery.body).digest();
    const given = Buffer.from(/^v1=([0-9a-f]{64})$/.exec(delivery.headers['x-taskgate-signature'])?.[1] ?? '', 'hex');
    const age = Math.abs(Date.now() / 1000 - Number(timestamp));
    delivery.signed = given.length === expected.length && timingSafeEqual(given, expected) && age < 300;
  }

  /** "created:pending …" of one task, or of all, in the order they came. */
  heard(taskId) {
    return this.deliveries.filter((d) => taskId === undefined || d.json.task?.id === taskId).map((d) => `${d.event}:${d.json.task?.state}`);
  }

  /** The `count`-th delivery, awaited. */
  async received(count = 1, deadline = 15_000) {
    const delivery = await until(() => this.deliveries[count - 1], () => `delivery ${count}; it has ${this.heard().join(', ') || 'none'}`, { deadline });
    assert.ok(delivery.signed, 'the signature is right');
    return delivery;
  }
}
