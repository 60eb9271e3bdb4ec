// HAProxy before the replicas, as scripts/run --postgres has it: each request goes to one at random.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Child } from '../../integration/lib/child.mjs';
import { temporaryFolder } from '../../integration/lib/gateway.mjs';
import { defer } from '../../integration/lib/lifetime.mjs';
import { freePort } from '../../integration/lib/ports.mjs';

const PROGRAM = ['haproxy', '/usr/sbin/haproxy'].find((name) => spawnSync(name, ['-v']).status === 0);

/** Why there is no balancer here, or false. */
export const balancerMissing = PROGRAM ? false : 'HAProxy is not installed';

const serversOf = (replicas, host, port) =>
  replicas.map((replica, i) => `    server replica-${i + 1} ${host(i + 1)}:${port(replica)} check port ${replica.adminPort} inter 500ms fall 2 rise 1\n`).join('');

/** A balancer before `replicas`, whose addresses `network` knows. */
export async function startBalancer(t, replicas, network) {
  const balancer = new Balancer(temporaryFolder(t));
  balancer.agents = await freePort();
  balancer.operators = await freePort();
  const host = (number) => network.host(number);
  fs.writeFileSync(balancer.config, `global
    log stderr format raw local0 notice
    stats socket ${balancer.socket} mode 600 level user
defaults
    mode http
    log global
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    option httpchk GET /ready
    option redispatch
    retries 3
listen agents
    bind 127.0.0.1:${balancer.agents}
    balance random
${serversOf(replicas, host, ({ port }) => port)}listen operators
    bind 127.0.0.1:${balancer.operators}
    balance random
${serversOf(replicas, host, ({ adminPort }) => adminPort)}`);
  balancer.child = new Child(PROGRAM, ['-db', '-f', balancer.config], { name: 'haproxy' });
  defer(t, () => balancer.child.stop('SIGKILL'));
  await balancer.child.ready(async () => (await balancer.requests()).every((count) => count >= 0), 'answering');
  return balancer;
}

class Balancer {
  constructor(folder) {
    this.config = path.join(folder, 'haproxy.cfg');
    this.socket = path.join(folder, 'haproxy.sock');
  }

  urlOf(source) {
    return `http://127.0.0.1:${this.agents}/${source}/mcp`;
  }

  get adminUrl() {
    return `http://127.0.0.1:${this.operators}`;
  }

  /** How many requests of agents each replica was given. */
  async requests() {
    const [head, ...rows] = (await ask(this.socket, 'show stat')).replace(/^# /, '').trim().split('\n').map((line) => line.split(','));
    return rows.filter((row) => row[0] === 'agents' && row[1].startsWith('replica-')).map((row) => Number(row[head.indexOf('stot')]));
  }
}

function ask(socket, command) {
  return new Promise((resolve, reject) => {
    let answer = '';
    net.connect(socket).on('error', reject).on('data', (text) => (answer += text)).on('end', () => resolve(answer)).end(`${command}\n`);
  });
}
