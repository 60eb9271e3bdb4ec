// A collector of OTLP over HTTP: decodes what comes by the official definitions, and answers as the test says.
import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import path from 'node:path';
import { defer } from './lifetime.mjs';
import { until } from './wait.mjs';

// The package shows no door to the code that is generated from the definitions.
const require = createRequire(import.meta.url);
const { opentelemetry } = require(path.join(path.dirname(require.resolve('@opentelemetry/otlp-transformer')), 'generated/root.js'));
const { ExportTraceServiceRequest, ExportTraceServiceResponse } = opentelemetry.proto.collector.trace.v1;

export const SERVER = 2;
export const CLIENT = 3;
export const INTERNAL = 1;
export const ERROR = 2;

const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');
const valueOf = ({ stringValue, intValue }) => (stringValue ?? Number(intValue));
const attributesOf = (pairs) => {
  const keys = pairs.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, `an attribute is there twice: ${keys}`);
  return Object.fromEntries(pairs.map(({ key, value }) => [key, valueOf(value)]));
};

/** A listening collector, stopped after the test. */
export async function startCollector(t, options) {
  const collector = new Collector(options);
  defer(t, () => collector.stop());
  await collector.listen();
  return collector;
}

export class Collector {
  constructor({ tls } = {}) {
    this.tls = tls;
    this.port = 0;
    this.requests = []; // {headers, path, body, spans}
    this.answer = () => ({ status: 200 }); // (request) => {status, headers, rejected, message}; undefined: none
  }

  get url() {
    return `${this.tls ? 'https' : 'http'}://127.0.0.1:${this.port}`;
  }

  async listen() {
    const receive = (request, response) => this.receive(request, response);
    this.server = this.tls ? https.createServer(this.tls, receive) : http.createServer(receive);
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(this.port, '127.0.0.1', resolve));
    this.port = this.server.address().port;
  }

  async stop() {
    if (!this.server) return;
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    this.server = null;
    await closed;
  }

  async receive(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const isJson = request.headers['content-type'] === 'application/json';
    const recorded = { method: request.method, path: request.url, headers: request.headers, body, isJson };
    recorded.resources = isJson ? fromJson(JSON.parse(body.toString('utf8'))) : fromProtobuf(body);
    recorded.spans = recorded.resources.flatMap(({ spans }) => spans);
    this.requests.push(recorded);
    const answer = this.answer(recorded);
    if (!answer) return;
    const { status, headers = {}, rejected = 0, message = '' } = answer;
    const partial = rejected ? { partialSuccess: { rejectedSpans: rejected, errorMessage: message } } : {};
    response.writeHead(status, { 'content-type': request.headers['content-type'], ...headers });
    response.end(isJson ? JSON.stringify(partial) : ExportTraceServiceResponse.encode(ExportTraceServiceResponse.fromObject(partial)).finish());
  }

  /** Every span that has come in a request which was taken. */
  get spans() {
    return this.requests.flatMap(({ spans }) => spans);
  }

  /** The first span that `fits` (a name, or a predicate), awaited. */
  async span(fits, deadline = 10_000) {
    const matches = typeof fits === 'string' ? ({ name }) => name === fits : fits;
    return until(() => this.spans.find(matches), () => `a span ${fits}; there are ${this.spans.map(({ name, kind }) => `${name} (${kind})`).join(', ')}`, { deadline });
  }
}

function fromProtobuf(body) {
  const decoded = ExportTraceServiceRequest.decode(body);
  // Written by the official encoder the message is the same to the byte: nothing was lost, and nothing is malformed.
  assert.equal(hex(ExportTraceServiceRequest.encode(decoded).finish()).length, hex(body).length, 'the official encoder writes as much');
  return decoded.resourceSpans.map(({ resource, scopeSpans }) => ({
    attributes: attributesOf(resource.attributes),
    scopes: scopeSpans.map(({ scope }) => scope),
    spans: scopeSpans.flatMap(({ spans }) => spans.map((span) => ({
      ...ids(span, hex),
      name: span.name,
      kind: span.kind,
      start: BigInt(span.startTimeUnixNano.toString()),
      end: BigInt(span.endTimeUnixNano.toString()),
      state: span.traceState ?? '',
      flags: span.flags,
      status: { code: span.status?.code ?? 0, message: span.status?.message ?? '' },
      attributes: attributesOf(span.attributes),
      links: span.links.map((link) => ids(link, hex)),
    }))),
  }));
}

/** Spans out of OTLP's JSON. */
export function fromJson({ resourceSpans }) {
  const same = (text) => text ?? '';
  return resourceSpans.map(({ resource, scopeSpans }) => ({
    attributes: attributesOf(resource.attributes),
    scopes: scopeSpans.map(({ scope }) => scope),
    spans: scopeSpans.flatMap(({ spans }) => spans.map((span) => ({
      ...ids(span, same),
      name: span.name,
      kind: span.kind,
      start: BigInt(span.startTimeUnixNano),
      end: BigInt(span.endTimeUnixNano),
      state: span.traceState ?? '',
      flags: span.flags,
      status: { code: span.status?.code ?? 0, message: span.status?.message ?? '' },
      attributes: attributesOf(span.attributes),
      links: (span.links ?? []).map((link) => ids(link, same)),
    }))),
  }));
}

const ids = (span, text) => ({ traceId: text(span.traceId), spanId: text(span.spanId), parentId: text(span.parentSpanId) });

/** "00-TRACE-SPAN-01" to {traceId, spanId, flags}. */
export function parseTraceparent(text) {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? assert.fail(`no traceparent: ${text}`);
  return { traceId, spanId, flags };
}
