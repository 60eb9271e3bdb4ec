// A TCP connection that can be cut: between one replica and the database.
import net from 'node:net';
import { defer } from '../../integration/lib/lifetime.mjs';

/** `target` is the path of a socket, `address` where the wire begins. */
export async function startWire(t, target, address = '127.0.0.1') {
  const wire = new Wire(target, address);
  defer(t, () => wire.end());
  await wire.listen();
  return wire;
}

export class Wire {
  constructor(target, address) {
    this.target = target;
    this.address = address;
    this.pairs = new Set();
    this.state = 'whole';
  }

  async listen() {
    this.server = net.createServer({ pauseOnConnect: true }, (near) => this.join(near));
    await new Promise((resolve) => this.server.listen(0, this.address, resolve));
    this.port = this.server.address().port;
  }

  join(near) {
    if (this.state === 'broken') return near.destroy();
    const far = net.connect(this.target);
    const pair = { near, far };
    this.pairs.add(pair);
    const over = () => {
      this.pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const [from, to] of [[near, far], [far, near]]) {
      from.setNoDelay(true);
      from.on('error', over).on('close', over);
      from.on('data', (bytes) => to.writable && to.write(bytes));
    }
    if (this.state === 'silent') this.hold(pair);
    else near.resume();
  }

  hold({ near, far }) {
    near.pause();
    far.pause();
  }

  /** Nothing arrives any more, in both directions, and nobody is told. Bytes sent meanwhile arrive after `mend`. */
  silence() {
    this.state = 'silent';
    for (const pair of this.pairs) this.hold(pair);
  }

  /** Every connection ends, and no new one begins. */
  break() {
    this.state = 'broken';
    for (const { near, far } of this.pairs) {
      near.resetAndDestroy();
      far.destroy();
    }
  }

  mend() {
    this.state = 'whole';
    for (const { near, far } of this.pairs) {
      near.resume();
      far.resume();
    }
  }

  end() {
    this.break();
    return new Promise((resolve) => this.server.close(resolve));
  }
}
