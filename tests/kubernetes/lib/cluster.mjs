// Decides on which Kubernetes the manifests are tried, and starts it: an API server with etcd, of the folder $KUBE_BIN or
// of the PATH. By itself it runs no pod: admission and validation are the real ones. node.mjs adds a node to it.
import { spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

const START_MS = 180_000;
const TOKEN = 'a-token-of-the-tests-alone';

export function find(program) {
  const folders = [process.env.KUBE_BIN, ...(process.env.PATH ?? '').split(':')].filter(Boolean);
  return folders.map((folder) => path.join(folder, program)).find((file) => existsSync(file));
}

/** {name, programs}, or {name, why}: what the tests run on, and why it is no more than that. */
export function place() {
  const programs = Object.fromEntries(['kube-apiserver', 'etcd'].map((program) => [program, find(program)]));
  const absent = Object.keys(programs).filter((program) => !programs[program]);
  if (absent.length > 0) return { name: 'helm template', why: `${absent.join(' and ')} not found in $KUBE_BIN or the PATH; the manifests are only rendered` };
  const { stdout } = spawnSync(programs['kube-apiserver'], ['--version'], { encoding: 'utf8' });
  return { name: `API server, ${stdout.trim()}`, programs };
}

export async function freePort() {
  const probe = net.createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** A program that ends with this process, however that ends; what is in its namespaces ends with it. */
export function start(program, words, cwd, options) {
  const child = spawn('setpriv', ['--pdeathsig=KILL', '--', program, ...words], { cwd, stdio: ['ignore', 'ignore', 'pipe'], ...options });
  const process = { child, log: '' };
  child.stderr?.on('data', (bytes) => (process.log = (process.log + bytes).slice(-20_000)));
  process.ended = new Promise((resolve) => child.on('close', resolve));
  return process;
}

/** For kubectl and helm. */
function writeAccess(folder, address, port) {
  const file = path.join(folder, 'kubeconfig');
  const cluster = { server: `https://${address}:${port}`, 'certificate-authority': path.join(folder, 'certificates/apiserver.crt') };
  const access = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'tests',
    clusters: [{ name: 'tests', cluster }],
    users: [{ name: 'tests', user: { token: TOKEN } }],
    contexts: [{ name: 'tests', context: { cluster: 'tests', user: 'tests' } }],
  };
  writeFileSync(file, JSON.stringify(access), { mode: 0o600 });
  return file;
}

/**
 * An API server of its own: ask(method, path, body) → {status, warnings, body}; watch(path, version) of {type, object};
 * kubeconfig; folder; stop(). With `controllers` there will be some: accounts exist then.
 */
export async function startServer({ programs }, { address = '127.0.0.1', controllers = false } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-kubernetes-'));
  const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } });
  writeFileSync(path.join(folder, 'account.key'), privateKey, { mode: 0o600 });
  writeFileSync(path.join(folder, 'account.pub'), publicKey);
  writeFileSync(path.join(folder, 'tokens.csv'), `${TOKEN},tester,tester,system:masters\n`, { mode: 0o600 });
  const own = `http://127.0.0.1:${client}`;
  const etcd = start(programs.etcd, ['--data-dir', 'etcd', '--listen-client-urls', own, '--advertise-client-urls', own, '--listen-peer-urls', `http://127.0.0.1:${peer}`], folder);
  const server = start(
    programs['kube-apiserver'],
    [
      `--etcd-servers=${own}`,
      `--bind-address=${address}`,
      `--secure-port=${secure}`,
      '--cert-dir=certificates',
      '--token-auth-file=tokens.csv',
      '--authorization-mode=RBAC',
      // It looks for accounts, which a controller makes.
      ...(controllers ? [] : ['--disable-admission-plugins=ServiceAccount']),
      '--kubelet-preferred-address-types=InternalIP',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--service-account-issuer=https://kubernetes.default.svc',
      '--service-account-key-file=account.pub',
      '--service-account-signing-key-file=account.key',
    ],
    folder,
  );
  const stop = async () => {
    for (const { child, ended } of [server, etcd]) {
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const open = (method, where) => {
    const ca = readFileSync(path.join(folder, 'certificates/apiserver.crt'));
    // A connection for each request: the server closes an idle one while images are made, when nothing here reads.
    return https.request({ agent: false, host: address, port: secure, method, path: where, headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }, ca });
  };
  const ask = (method, where, body) =>
    new Promise((resolve, reject) => {
      const request = open(method, where).on('response', (response) => {
        let text = '';
        response.on('data', (bytes) => (text += bytes));
        response.on('end', () => resolve({ status: response.statusCode, warnings: response.headers.warning ?? '', body: text }));
      });
      request.on('error', reject).end(body && JSON.stringify(body));
    });
  async function* watch(where, version) {
    const request = open('GET', `${where}?watch=true&resourceVersion=${version}`).end();
    const [response] = await once(request, 'response');
    request.on('error', () => {}); // the loop below has it, too
    let rest = '';
    for await (const text of response.setEncoding('utf8')) {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) yield JSON.parse(line);
    }
  }
  const deadline = Date.now() + START_MS;
  for (;;) {
    const answer = await ask('GET', '/readyz').catch((error) => ({ status: 0, body: String(error) }));
    if (answer.status === 200) return { ask, watch, stop, folder, kubeconfig: writeAccess(folder, address, secure) };
    const exited = [etcd, server].find(({ child }) => child.exitCode !== null);
    if (exited || Date.now() > deadline) {
      await stop();
      throw new Error(`the API server does not start: ${answer.body}\n${(exited ?? server).log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
