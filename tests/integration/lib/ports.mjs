// Free TCP ports for servers that cannot choose their own.
import dgram from 'node:dgram';
import net from 'node:net';

/**
 * A free port, another one at each call. Taken below the kernel's ephemeral range, so that no outgoing
 * connection of a parallel test can sit on it by chance. The UDP port of the same number is held until this process
 * ends: no other test gets the port meanwhile, also while a gateway that is started again leaves it for a moment.
 */
export async function freePort() {
  for (let tries = 0; tries < 50; tries++) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    if ((await hold(port)) && (await canListen(port))) return port;
  }
  throw new Error('no free port between 12000 and 30000');
}

function hold(port) {
  return new Promise((resolve) => {
    const socket = dgram.createSocket('udp4').unref();
    socket.once('error', () => socket.close(() => resolve(false)));
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true));
  });
}

function canListen(port) {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
