// A TCP tap: bytes pass between two ends unchanged, and each piece is kept in the order of its arrival.
import net from 'node:net';
import { defer } from '../../integration/lib/lifetime.mjs';

/** All that the taps of one scenario have seen: {lane, connection, from: 'asker' | 'answerer', bytes} or {…, end: true}. */
export class Journal {
  constructor() {
    this.pieces = [];
    this.connections = 0;
    this.endsAt = Infinity;
    this.servers = []; // ports of the taps before servers
    this.ends = []; // of the gateway's side of each connection, once it is read to its end
  }

  /** From here on the gateway ends. */
  mark() {
    this.endsAt = this.pieces.length;
  }

  /** The gateway has ended; what it sent last may still be in the sockets. Connections are accepted in their order: ours is the last. */
  async settle() {
    await Promise.all(this.servers.map((port) => new Promise((resolve) => net.connect(port, '127.0.0.1').on('error', () => {}).on('close', resolve).end().resume())));
    await Promise.all(this.ends);
  }

  add(piece) {
    this.pieces.push({ ...piece, at: this.pieces.length });
  }
}

/**
 * A tap before 127.0.0.1:`port()`; its connections belong to `lane`. Returns {port, refuse(), accept()}: refused are new
 * connections alone.
 */
export async function startTap(t, journal, lane, port) {
  const sockets = new Set();
  const isServers = lane.startsWith('server');
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (asker) => {
    const answerer = net.connect({ port: port(), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    const connection = ++journal.connections;
    const asked = join(asker, answerer, (more) => journal.add({ lane, connection, from: 'asker', ...more }));
    const answered = join(answerer, asker, (more) => journal.add({ lane, connection, from: 'answerer', ...more }));
    journal.ends.push(isServers ? asked : answered);
    for (const socket of [asker, answerer]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  defer(t, () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const own = server.address().port;
  if (isServers) journal.servers.push(own);
  return {
    port: own,
    refuse: () => void server.close(),
    accept: () => new Promise((resolve) => server.listen(own, '127.0.0.1', resolve)),
  };
}

/** Passes what `source` sends to `target`. Returns a promise of its end. */
function join(source, target, keep) {
  return new Promise((resolve) => {
    let isOver = false;
    const over = () => {
      if (!isOver) keep({ end: true });
      isOver = true;
      resolve();
    };
    source.on('data', (bytes) => {
      keep({ bytes });
      if (!target.write(bytes)) source.pause();
    });
    target.on('drain', () => source.resume());
    source.on('end', () => {
      over();
      target.end();
    });
    source.on('error', () => {
      over();
      target.destroy();
    });
    source.on('close', over);
  });
}
