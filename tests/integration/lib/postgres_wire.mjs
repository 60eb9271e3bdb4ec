// A TCP proxy before a PostgreSQL server on a socket: it can be pointed elsewhere, and tell another version.
import net from 'node:net';
import { defer } from './lifetime.mjs';

const PARAMETER_STATUS = 'S'.charCodeAt(0);
/** ReadyForQuery with the state 'I': no transaction is open. */
const READY_OUTSIDE_TRANSACTION = Buffer.from('Z\0\0\0\x05I', 'latin1');

/** Writes the server's messages on, with another `server_version`. */
function tellVersion(version, write) {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 5 && rest.length >= 1 + rest.readUInt32BE(1)) {
      const length = 1 + rest.readUInt32BE(1);
      let message = rest.subarray(0, length);
      const [name] = message.toString('latin1', 5).split('\0');
      if (message[0] === PARAMETER_STATUS && name === 'server_version') {
        const body = Buffer.from(`server_version\0${version}\0`, 'latin1');
        message = Buffer.concat([Buffer.from('S'), Buffer.alloc(4), body]);
        message.writeUInt32BE(4 + body.length, 1);
      }
      write(message);
      rest = rest.subarray(length);
    }
  };
}

export class PostgresWire {
  constructor(target, { version } = {}) {
    this.target = target;
    this.version = version;
    this.sockets = new Set();
  }

  join(near) {
    if (this.isGone) return void near.destroy();
    const far = net.connect(this.target);
    const over = () => {
      near.destroy();
      far.destroy();
      this.sockets.delete(near);
    };
    this.sockets.add(near);
    for (const socket of [near, far]) socket.on('error', over).on('close', over);
    let tail = Buffer.alloc(0);
    near.on('data', (bytes) => {
      near.isSilent ||= near.fallsSilent && tail.equals(READY_OUTSIDE_TRANSACTION);
      tail = Buffer.alloc(0);
      const isLost = this.lost !== undefined && bytes.includes(this.lost);
      if (isLost && !this.arrives) return this.go();
      near.losesCommit ||= isLost;
      if (!near.isSilent) far.write(bytes);
    });
    const back = (bytes) => {
      if (near.losesCommit && bytes.includes('COMMIT\0')) return this.go();
      tail = Buffer.concat([tail, bytes]).subarray(-READY_OUTSIDE_TRANSACTION.length);
      if (!near.isSilent) near.write(bytes);
    };
    far.on('data', this.version ? tellVersion(this.version, back) : back);
  }

  /** From now on the name leads to another server; who is connected is cut off. */
  pointTo(target) {
    this.target = target;
    [this.isGone, this.lost] = [false, undefined];
    for (const socket of this.sockets) socket.destroy();
  }

  /**
   * The commit of the transaction that has `text` is done, but its answer is lost; with `arrives: false` the transaction
   * itself is. Nobody is served until `pointTo`.
   */
  loseCommitOf(text, { arrives = true } = {}) {
    [this.lost, this.arrives] = [text, arrives];
  }

  go() {
    this.isGone = true;
    for (const socket of this.sockets) socket.destroy();
  }

  /**
   * The connections of now fall silent at the beginning of their next transaction; later ones are served. A server
   * with an open transaction would close the connection itself (idle_in_transaction_session_timeout).
   */
  fallSilent() {
    for (const socket of this.sockets) socket.fallsSilent = true;
  }

  url(database = 'gate', more = '') {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}?sslmode=disable${more}`;
  }
}

export async function startWire(t, target, options) {
  const wire = new PostgresWire(target, options);
  const server = net.createServer((near) => wire.join(near));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  wire.port = server.address().port;
  defer(t, () => {
    wire.pointTo(target);
    server.close();
  });
  return wire;
}
