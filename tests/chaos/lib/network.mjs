// The network of the replicas: a namespace for each, joined by a bridge, so that links can be pulled; or the loopback.
import { execFileSync, spawnSync } from 'node:child_process';
import { defer } from '../../integration/lib/lifetime.mjs';

const ip = (...words) => execFileSync('ip', words, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });

/** A network for `count` replicas. It is gone after the test. Namespaces need root, iproute2 and a machine that allows them. */
export function startNetwork(t, count) {
  const namespaces = new Namespaces(count);
  process.once('exit', () => namespaces.end());
  defer(t, () => namespaces.end());
  try {
    namespaces.begin();
    return namespaces;
  } catch (error) {
    namespaces.end();
    return new Loopback(error.message.trim().split('\n').pop());
  }
}

/** All in one place: nothing to pull but the wires to the database. */
class Loopback {
  hasLinks = false;
  outside = '127.0.0.1';

  constructor(why) {
    this.description = `the loopback, cuts by a TCP proxy before the database alone; no network namespaces: ${why}`;
  }

  host() {
    return '127.0.0.1';
  }

  wrapper() {
    return undefined;
  }
}

const isAlive = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
};

/** Removes the remains of a run that was killed: its number is in the names. */
function clearAfterTheDead() {
  for (const [, id, number] of ip('netns', 'list').matchAll(/^taskgate-([0-9a-z]+)-(\d+)/gm)) {
    if (isAlive(parseInt(id, 36))) continue;
    spawnSync('ip', ['netns', 'del', `taskgate-${id}-${number}`], { stdio: 'ignore' });
    spawnSync('ip', ['link', 'del', `tgb${id}`], { stdio: 'ignore' });
  }
}

/** The addresses are of the range for benchmarks of networks (RFC 2544), in which nobody lives. */
class Namespaces {
  description = 'a network namespace for each replica, and a TCP proxy before the database';
  hasLinks = true;

  constructor(count) {
    this.numbers = Array.from({ length: count }, (_, i) => i + 1);
    this.id = process.pid.toString(36);
    this.net = `198.18.${process.pid % 256}`;
    /** Of the balancer, the database and the server. */
    this.outside = `${this.net}.1`;
    this.bridge = `tgb${this.id}`;
  }

  name(number) {
    return `taskgate-${this.id}-${number}`;
  }

  link(number) {
    return `tgl${this.id}-${number}`;
  }

  host(number) {
    return `${this.net}.${10 + number}`;
  }

  /** A command that runs in the namespace; `ip` becomes it, so the process has one id. */
  wrapper(number) {
    return ['ip', 'netns', 'exec', this.name(number)];
  }

  begin() {
    clearAfterTheDead();
    ip('link', 'add', this.bridge, 'type', 'bridge');
    ip('address', 'add', `${this.outside}/24`, 'dev', this.bridge);
    ip('link', 'set', this.bridge, 'up');
    for (const number of this.numbers) {
      const name = this.name(number);
      ip('netns', 'add', name);
      ip('link', 'add', this.link(number), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      ip('link', 'set', this.link(number), 'master', this.bridge, 'up');
      ip('-n', name, 'address', 'add', `${this.host(number)}/24`, 'dev', 'eth0');
      ip('-n', name, 'link', 'set', 'eth0', 'up');
      ip('-n', name, 'link', 'set', 'lo', 'up');
    }
    for (const number of this.numbers)
      for (const address of [this.outside, ...this.numbers.map((other) => this.host(other))]) this.reach(number, address);
  }

  /** Some machines make all this and carry nothing. A refusal is an answer. */
  reach(number, address) {
    const [command, ...words] = this.wrapper(number);
    const { stderr } = spawnSync(command, [...words, 'timeout', '5', 'bash', '-c', `echo > /dev/tcp/${address}/9`], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
    if (!/refused/.test(stderr)) throw new Error(`a namespace does not reach ${address}: ${stderr}`);
  }

  /** Nothing reaches the replica and nothing leaves it, and nobody is told. */
  pull(number) {
    ip('link', 'set', this.link(number), 'down');
  }

  plug(number) {
    ip('link', 'set', this.link(number), 'up');
  }

  /** Sends the packets of `from` for `to` to a machine that is not there; the other direction is whole. */
  lose(from, to) {
    ip('-n', this.name(from), 'neighbour', 'replace', this.host(to), 'lladdr', '02:00:00:00:00:ff', 'nud', 'permanent', 'dev', 'eth0');
  }

  find(from, to) {
    ip('-n', this.name(from), 'neighbour', 'del', this.host(to), 'dev', 'eth0');
  }

  /** Also where it was made in part. */
  end() {
    if (this.ended) return;
    this.ended = true;
    for (const number of this.numbers) spawnSync('ip', ['netns', 'del', this.name(number)], { stdio: 'ignore' });
    spawnSync('ip', ['link', 'del', this.bridge], { stdio: 'ignore' });
  }
}
