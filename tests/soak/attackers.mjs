// A hostile server, a hostile stranger and a hostile agent, in a process of their own. They tell the server's URL, and are told the
// gateway's ports and the stranger's address.
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { RawClient } from '../integration/lib/client.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';

/** A server whose calls end in no good way. */
const answers = {
  silent: () => {},
  garbage: (reply) => reply.http(200, { 'content-type': 'application/json' }, '{"jsonrpc":"2.0","id":'),
  leaves: (reply) => reply.cut(),
  huge: (reply) => reply.result({ content: [{ type: 'text', text: 'x'.repeat(500_000) }] }),
};
const upstream = await startUpstream({ after: () => {} }, { tools: ['delete_user', ...Object.keys(answers)].map((name) => tool(name)) });
upstream.handlers['tools/call'] = ({ params, reply }) => ((upstream.requests = []), answers[params.name]?.(reply));
const told = new Promise((resolve) => process.once('message', resolve));
process.send(upstream.url);
const { port, adminPort, address } = await told;

const PATH = '/hostile/mcp';
const MIB = 1024 * 1024;
const head = (path, lines) => `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;

/** Opens connections with `bytes` on them, at most `most` at a time, the oldest one closed for the next. */
async function flood(to, bytes, most, { from, reads = false } = {}) {
  const sockets = [];
  for (;;) {
    const socket = net.connect({ port: to, host: '127.0.0.1', ...(from ? { localAddress: from } : {}) });
    socket.on('error', () => {});
    socket.write(bytes);
    if (reads) socket.resume();
    else socket.pause();
    sockets.push(socket);
    if (sockets.length > most) sockets.shift().destroy();
    await pause(bytes.length > 100_000 ? 500 : 50); // it is about memory, not about the processor
  }
}

const half = Buffer.alloc(3_900_000, 'x');
const body = (lines, path = PATH) => Buffer.concat([Buffer.from(head(path, [...lines, 'Content-Length: 4000000'])), half]);
const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'huge', arguments: {} } });

const stranger = { from: address };
flood(port, body([]), 60, stranger);
flood(port, body(['Expect: 100-continue']), 60, { ...stranger, reads: true });
flood(port, '', 300, stranger);
flood(adminPort, '', 300, stranger);
flood(adminPort, body(['Authorization: Bearer made-up'], '/api/v1/calls'), 60, stranger);
flood(port, head(PATH, ['Authorization: Bearer made-up', `Content-Length: ${call.length}`]) + call, 60, stranger);

/** Errors are what it deserves. */
async function agent() {
  const client = new RawClient(`http://127.0.0.1:${port}${PATH}`, { token: 'hostile' });
  await client.connect();
  const lines = ['Authorization: Bearer hostile', ...(client.session ? [`Mcp-Session-Id: ${client.session}`] : [])];
  flood(port, head(PATH, [...lines, `Content-Length: ${call.length}`]) + call, 100); // nobody reads the answers
  flood(port, head(PATH, lines).replace('POST', 'GET'), 200);
  flood(port, body(lines), 40);
  for (let i = 0; ; i++) {
    await client.send('tools/call', { name: 'delete_user', arguments: { i, text: 'x'.repeat(100_000) }, task: {} }).catch(() => {});
    for (const name of ['silent', 'garbage', 'leaves']) client.send('tools/call', { name }).catch(() => {});
    await pause(200);
  }
}
agent().catch(() => {});
process.on('unhandledRejection', () => {});
setInterval(() => process.memoryUsage().rss > 1500 * MIB && process.exit(1), 1000).unref();
process.on('disconnect', () => process.exit(0));
