// Free TCP ports for servers that cannot choose their own.
import net from 'node:net';

const given = new Set();

/**
 * A free port, another one at each call. Taken below the kernel's ephemeral range, so that no outgoing
 * connection of a parallel test can sit on it by chance.
 */
export async function freePort() {
  for (let tries = 0; tries < 50; tries++) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    if (given.has(port)) continue;
    given.add(port);
    if (await canListen(port)) return port;
  }
  throw new Error('no free port between 12000 and 30000');
}

function canListen(port) {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
