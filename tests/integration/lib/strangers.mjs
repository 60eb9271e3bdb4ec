// Strangers who send large bodies that never end, each from an address of their own.
import net from 'node:net';
import { defer } from './lifetime.mjs';

const HEAD = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n';
const UNFINISHED = Buffer.concat([Buffer.from(HEAD), Buffer.alloc(3_900_000, 'x')]);

/** One of each address, so that none has a share that bounds the others, until the test is over. One who is turned away comes again. */
export function attack(t, { host = '127.0.0.1', port, addresses }) {
  const sockets = new Set();
  let isOver = false;
  const open = (localAddress) => {
    const socket = net.connect({ port, host, localAddress });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
    socket.write(UNFINISHED);
    socket.on('close', () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(() => isOver || open(localAddress), 200).unref();
    });
  };
  for (const address of addresses) open(address);
  defer(t, () => ((isOver = true), sockets.forEach((socket) => socket.destroy())));
}
