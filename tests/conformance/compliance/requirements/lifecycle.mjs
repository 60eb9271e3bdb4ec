// The handshake, and the requirements on every message and session.
import { implementation, initializeResult } from '../shapes.mjs';
import { PROTOCOL } from '../run.mjs';
import { demand, demandCode, errorOf, fail, isObject, outcome, resultOf, shown, skip } from '../verdict.mjs';

const LIFECYCLE = 'MCP 2025-11-25 Lifecycle';
const TRANSPORTS = 'MCP 2025-11-25 Transports';
const SESSIONS = 'MCP 2025-11-25 Transports, Session Management';
const OTHER_VERSION = '1999-01-01';
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

const refused = ({ status }) => status >= 400 && status < 500;

/** A client that has only said `initialize`. */
async function begun(run) {
  const client = run.newClient();
  resultOf(await client.initialize(PROTOCOL, { tasks: {} }));
  return client;
}

const needsSession = (run) => run.client.session ?? skip('the endpoint gives no session ids');

export const lifecycle = [
  {
    name: 'initialize-answered',
    source: LIFECYCLE,
    check(run) {
      const wrong = initializeResult(resultOf(run.initialize), 'result');
      demand(!wrong, wrong);
      return `version ${run.version}, capabilities ${Object.keys(run.capabilities).join(', ') || 'none'}`;
    },
  },
  {
    name: 'initialize-server-info',
    source: `${LIFECYCLE}; schema Implementation`,
    check(run) {
      const { serverInfo } = run.initialize.message.result;
      const wrong = implementation(serverInfo, 'serverInfo');
      demand(!wrong, wrong);
      return `${serverInfo.name} ${serverInfo.version}`;
    },
  },
  {
    name: 'initialize-capabilities-objects',
    source: `${LIFECYCLE}; schema ServerCapabilities`,
    check(run) {
      const wrong = Object.entries(run.capabilities).filter(([name, value]) => name !== 'tasks' && !isObject(value));
      demand(wrong.length === 0, `no objects: ${shown(Object.fromEntries(wrong))}`);
    },
  },
  {
    name: 'initialize-version-kept',
    source: `${LIFECYCLE}, Version Negotiation`,
    check: (run) => demand(run.version === PROTOCOL, `asked for ${PROTOCOL}, the version that has tasks; answered ${shown(run.version)}`),
  },
  {
    name: 'initialize-version-negotiated',
    source: `${LIFECYCLE}, Version Negotiation`,
    async check(run) {
      const answer = await run.newClient().initialize(OTHER_VERSION, {});
      if (isObject(answer.message?.error)) return `${OTHER_VERSION} is refused with ${errorOf(answer).code}`;
      const { protocolVersion } = resultOf(answer);
      demand(protocolVersion !== OTHER_VERSION, `${OTHER_VERSION}, which is no version, is accepted`);
      demand(/^\d{4}-\d\d-\d\d$/.test(protocolVersion), `answered with ${shown(protocolVersion)}, which is no version`);
      return `${OTHER_VERSION} is answered with ${protocolVersion}`;
    },
  },
  {
    name: 'initialized-accepted',
    source: `${LIFECYCLE}; Transports: a notification gets 202`,
    async check(run) {
      run.client.version = run.version;
      const { status, text } = await run.client.notify('notifications/initialized');
      demand(status === 202 && text === '', `HTTP ${status}, ${shown(text)} instead of 202 without a body`);
    },
  },
  {
    name: 'notification-unanswered',
    source: `${TRANSPORTS}: a notification gets 202`,
    async check(run) {
      const { status, text } = await run.client.notify('notifications/cancelled', { requestId: 'no-such-request', reason: 'compliance check' });
      demand(status === 202 && text === '', `HTTP ${status}, ${shown(text)} instead of 202 without a body`);
    },
  },
  {
    name: 'ping-empty',
    source: 'MCP 2025-11-25 Ping; official SDK: only _meta beside',
    async check(run) {
      const { _meta, ...rest } = resultOf(await run.client.send('ping'));
      demand(Object.keys(rest).length === 0, `the result has ${shown(rest)}`);
    },
  },
  {
    name: 'unknown-method-refused',
    source: 'JSON-RPC 2.0 §5.1: -32601',
    check: async (run) => void demandCode(await run.client.send('compliance/no-such-method', {}), -32601),
  },
  {
    name: 'unreadable-json-refused',
    source: `${TRANSPORTS}; JSON-RPC 2.0 §5.1: -32700`,
    async check(run) {
      const answer = await run.client.send('ping', undefined, { body: '{"jsonrpc":"2.0","id":1,"method":', odd: true });
      demand(answer.status === 400, `${outcome(answer)} instead of HTTP 400`);
      const { message } = answer;
      if (message === undefined) return 'HTTP 400';
      demand((message.id ?? null) === null, `the error has the id ${shown(message.id)}, which nobody sent`);
      demandCode(answer, -32700);
      return 'HTTP 400, -32700 without an id';
    },
  },
  {
    name: 'batch-refused',
    source: `${TRANSPORTS}: the body is a single message (no batches since 2025-06-18)`,
    async check(run) {
      const batch = ['a', 'b'].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
      const answer = await run.client.send('a batch', undefined, { body: JSON.stringify(batch), odd: true });
      demand(refused(answer) || isObject(answer.message?.error), `${outcome(answer)} instead of a refusal`);
      return `HTTP ${answer.status}`;
    },
  },
  {
    name: 'content-type-checked',
    source: `${TRANSPORTS}: the body is JSON; RFC 9110 §15.5.16: 415`,
    async check(run) {
      const answer = await run.client.send('ping', undefined, { headers: { 'content-type': 'text/plain' }, odd: true });
      demand(refused(answer), `a body of text/plain: ${outcome(answer)}`);
      return `HTTP ${answer.status}`;
    },
  },
  {
    name: 'version-header-checked',
    source: `${TRANSPORTS}, Protocol Version Header: 400`,
    async check(run) {
      const answer = await run.client.send('ping', undefined, { headers: { 'mcp-protocol-version': OTHER_VERSION }, odd: true });
      demand(answer.status === 400, `MCP-Protocol-Version: ${OTHER_VERSION}: ${outcome(answer)} instead of HTTP 400`);
    },
  },
  {
    name: 'origin-checked',
    source: `${TRANSPORTS}, Security Warning: 403`,
    async check(run) {
      if (!LOOPBACK.test(run.client.url.hostname)) skip('which origins a public endpoint admits is its own affair; this looks at loopback addresses only');
      const answer = await run.client.send('ping', undefined, { headers: { origin: 'http://rebound.example' }, odd: true });
      demand(answer.status === 403, `Origin: http://rebound.example: ${outcome(answer)} instead of HTTP 403`);
    },
  },
  {
    name: 'get-stream-or-405',
    source: `${TRANSPORTS}, Listening for Messages`,
    async check(run) {
      const stream = await run.stream();
      demand(stream.opened || stream.status === 405, `GET: HTTP ${stream.status}, ${stream.type || 'no content type'}; neither an event stream nor 405`);
      return stream.opened ? 'an event stream' : 'HTTP 405';
    },
  },
  {
    name: 'session-id-visible',
    source: `${SESSIONS}: visible ASCII`,
    check: (run) => demand(/^[\x21-\x7e]+$/.test(needsSession(run)), `the session id is ${shown(run.client.session)}`),
  },
  {
    name: 'session-ids-distinct',
    source: `${SESSIONS}: globally unique`,
    async check(run) {
      needsSession(run);
      const { session } = await begun(run);
      demand(session !== run.client.session, `two sessions have the id ${shown(session)}`);
    },
  },
  {
    name: 'session-missing-refused',
    source: `${SESSIONS}: 400`,
    async check(run) {
      needsSession(run);
      const answer = await run.client.send('ping', undefined, { headers: { 'mcp-session-id': undefined }, odd: true });
      demand(answer.status === 400, `a request without Mcp-Session-Id: ${outcome(answer)} instead of HTTP 400`);
    },
  },
  {
    name: 'session-unknown-refused',
    source: `${SESSIONS}: 404 (400 is let pass)`,
    async check(run) {
      needsSession(run);
      const answer = await run.client.send('ping', undefined, { headers: { 'mcp-session-id': '00000000-0000-4000-8000-000000000000' }, odd: true });
      return notThere(answer);
    },
  },
  {
    name: 'session-ended-refused',
    source: `${SESSIONS}: 404 (400 is let pass)`,
    needs: ['session-ids-distinct'], // else it would end the session of all
    async check(run) {
      needsSession(run);
      const client = await begun(run);
      const { status } = await client.exchange('DELETE', { headers: { 'content-type': undefined } });
      if (status === 405) skip('clients may not end sessions here: DELETE is HTTP 405');
      demand(status >= 200 && status < 300, `DELETE: HTTP ${status}; neither a success nor 405`);
      const answer = await client.send('ping', undefined, { odd: true });
      client.session = undefined;
      return notThere(answer);
    },
  },
];

function notThere(answer) {
  if (answer.status !== 404 && answer.status !== 400) fail(`${outcome(answer)} instead of HTTP 404`);
  return `HTTP ${answer.status}`;
}
