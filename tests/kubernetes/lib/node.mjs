// A Kubernetes of one node that runs pods: kubelet and containerd in namespaces of their own, beside the API server, its
// controllers and the scheduler. The machine reaches each pod at its address, and each pod the machine at `outside`. There
// is no kube-proxy: a Service's name leads to the addresses of its pods. No network plugin enforces a NetworkPolicy.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { defer } from '../../integration/lib/lifetime.mjs';
import { until } from '../../integration/lib/wait.mjs';
import { inRoot, run } from '../../deploy/lib/tools.mjs';
import { find, freePort, place, start, startServer } from './cluster.mjs';
import { good, makeImage } from './images.mjs';

const GROUPS = '/sys/fs/cgroup';
const PLUGINS = '/usr/lib/cni';
const SOCKET = '/run/containerd/containerd.sock';
const SERVER = process.env.TASKGATE_EXAMPLE_SERVER ? path.resolve(process.env.TASKGATE_EXAMPLE_SERVER) : inRoot('build/examples/taskgate-example-server');
const OF_KUBERNETES = ['kubelet', 'kube-controller-manager', 'kube-scheduler'];
const OF_DEBIAN = ['containerd', 'containerd-shim-runc-v2', 'ctr', 'runc', 'dnsmasq', 'ip', 'iptables', 'unshare', 'nsenter', 'cc', 'helm', 'kubectl', 'dpkg-buildpackage'];

/** {name, programs}, or {name, why}: what pods run on, and why there is nothing. */
export function nodePlace() {
  const on = place();
  if (on.why) return on;
  const programs = { ...on.programs, ...Object.fromEntries([...OF_KUBERNETES, ...OF_DEBIAN].map((program) => [program, find(program)])) };
  const absent = Object.keys(programs).filter((program) => !programs[program]);
  if (absent.length > 0) return { ...on, why: `${absent.join(', ')} not found in $KUBE_BIN or the PATH; no pod runs` };
  if (process.getuid() !== 0) return { ...on, why: 'root alone starts a node; no pod runs' };
  for (const file of [path.join(PLUGINS, 'bridge'), SERVER]) if (!existsSync(file)) return { ...on, why: `${file} is not there; no pod runs` };
  const [, version] = /(\d+\.\S+)/.exec(run(programs.containerd, ['--version']).stdout);
  return { name: `node, ${run(programs.kubelet, ['--version']).stdout.trim()}, containerd ${version}`, programs };
}

/** A number of networks that nobody on this machine has yet. */
function freeNetwork() {
  const used = good('ip', ['-o', '-4', 'address']) + good('ip', ['route']);
  for (let number = process.pid % 200; ; number = (number + 1) % 200) if (!used.includes(`10.201.${number}.`)) return number;
}

function gatewayImage(folder) {
  if (process.env.TASKGATE_IMAGE) return process.env.TASKGATE_IMAGE;
  const made = good(inRoot('scripts/image'), ['--out', folder], { timeout: 1_800_000 });
  return made.trim().split('\n').at(-1);
}

const VERSION = /version: '(.*)'/.exec(readFileSync(inRoot('meson.build'), 'utf8'))[1];
/** The values of the chart that name the image of scripts/image. */
export const IMAGE = { image: { repository: 'docker.io/library/taskgate', tag: VERSION, pullPolicy: 'Never' } };
/** The example server; /stubborn before its name does not end at SIGTERM. */
export const SERVER_IMAGE = 'docker.io/library/server:1';

export async function startNode(on) {
  const node = new Node(on.programs);
  try {
    await node.start(on);
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}

class Node {
  constructor(programs) {
    Object.assign(this, { programs, processes: [], name: `tgnode-${process.pid}`, network: freeNetwork(), volumes: 0 });
    this.outside = `10.201.${this.network}.1`;
    this.inside = `10.201.${this.network}.2`;
  }

  async start(on) {
    // The machine's end of the cable has the API server's address, so the server waits for the first process.
    const folder = (this.folder = good('mktemp', ['-d', '/tmp/taskgate-node-XXXXXX']).trim());
    await this.startFirst();
    this.api = await startServer(on, { address: this.outside, controllers: true });
    this.ask = this.api.ask;
    const access = [`--kubeconfig=${this.api.kubeconfig}`];
    const plain = [...access, '--leader-elect=false', '--bind-address=127.0.0.1'];
    const account = path.join(this.api.folder, 'account.key'), ca = path.join(this.api.folder, 'certificates/apiserver.crt');
    this.run('kube-controller-manager', [...plain, `--secure-port=${await freePort()}`, `--cert-dir=${folder}/controllers`, `--service-account-private-key-file=${account}`, `--root-ca-file=${ca}`]);
    this.run('kube-scheduler', [...plain, `--secure-port=${await freePort()}`, `--cert-dir=${folder}/scheduler`]);
    await this.startContainerd();
    await this.startNames();
    this.startKubelet(access);
    this.kubectl('wait', '--for=create', `node/${this.name}`, '--timeout=120s');
    this.kubectl('wait', '--for=condition=Ready', `node/${this.name}`, '--timeout=120s');
  }

  /** Starts a program of the node, or, with `inside`, words before its name, in the node's namespaces. */
  run(program, words, inside = []) {
    const command = [...inside, this.programs[program] ?? program, ...words];
    const { PATH, HOME } = process.env;
    const child = start(command[0], command.slice(1), this.folder, { env: { PATH, HOME } });
    this.processes.push(Object.assign(child, { program }));
    return child;
  }

  async startFirst() {
    const { name, outside, inside, network, folder } = this;
    for (const group of readdirSync(GROUPS)) mkdirSync(path.join(GROUPS, group, name));
    const spaces = ['--mount', '--pid', '--net', '--uts', '--ipc', '--fork', '--kill-child=SIGKILL', '--mount-proc'];
    const words = [...spaces, inRoot('tests/kubernetes/node/first.sh'), folder, name, outside, inside, `10.202.${network}`];
    this.first = start(this.programs.unshare, words, folder, { stdio: ['ignore', 'pipe', 'pipe', openSync('/proc/self/ns/net', 'r')] });
    const ended = this.first.ended.then(() => Promise.reject(new Error(`the node's namespaces: ${this.first.log}`)));
    await Promise.race([once(this.first.child.stdout, 'data'), ended]);
    const pid = this.first.child.pid;
    this.pid = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    this.within = [this.programs.nsenter, `--target=${this.pid}`, '--mount', '--net', '--uts', '--ipc', '--pid', `--wd=${folder}`];
    good('ip', ['address', 'add', `${outside}/30`, 'dev', name]);
    good('ip', ['link', 'set', name, 'up']);
    good('ip', ['route', 'add', `10.202.${network}.0/24`, 'via', inside]);
  }

  async startContainerd() {
    const { folder } = this;
    writeFileSync(
      path.join(folder, 'containerd.toml'),
      `version = 2
root = "${folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "${SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "${PLUGINS}"
  conf_dir = "${folder}/network"
`,
    );
    const containerd = this.run('containerd', ['--config', path.join(folder, 'containerd.toml')], this.within);
    const archives = [gatewayImage(folder), ...this.makeImages()];
    const ctr = (...words) => run(this.within[0], [...this.within.slice(1), this.programs.ctr, '--address', SOCKET, '--namespace', 'k8s.io', ...words]);
    await until(() => ctr('version').status === 0, () => `containerd to answer: ${containerd.log}`, { deadline: 60_000 });
    for (const archive of archives) {
      const { status, stderr } = ctr('images', 'import', '--snapshotter', 'overlayfs', archive);
      if (status !== 0) throw new Error(`${archive}: ${stderr}`);
    }
  }

  makeImages() {
    const { folder } = this;
    for (const name of ['pause', 'stubborn']) good('cc', ['-static', '-O1', '-o', path.join(folder, name), inRoot(`tests/kubernetes/node/${name}.c`)]);
    return [makeImage(folder, 'pause', { '/pause': path.join(folder, 'pause') }), makeImage(folder, 'server', { '/server': SERVER, '/stubborn': path.join(folder, 'stubborn') })];
  }

  /** Gives each Service the addresses of its pods that are ready, as a name. */
  async startNames() {
    const hosts = path.join(this.folder, 'names');
    writeFileSync(hosts, '');
    // Without a change of its rights, which would take the signal of its parent's death from it.
    const names = this.run('dnsmasq', ['--no-daemon', '--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--local=/local/', '--local=/svc/', `--addn-hosts=${hosts}`, `--listen-address=${this.inside}`, '--bind-interfaces'], [this.programs.nsenter, `--net=/proc/${this.pid}/ns/net`]);
    let before = '';
    const tick = async () => {
      const { status, body } = await this.ask('GET', '/apis/discovery.k8s.io/v1/endpointslices').catch(() => ({}));
      if (status !== 200) return;
      const lines = JSON.parse(body).items.flatMap(({ metadata, endpoints }) =>
        (endpoints ?? []).filter(({ conditions }) => conditions.ready).flatMap(({ addresses }) => addresses.map((address) => `${address} ${metadata.labels['kubernetes.io/service-name']}.${metadata.namespace}.svc.cluster.local\n`)),
      );
      const text = lines.sort().join('');
      if (text === before) return;
      writeFileSync(hosts, (before = text));
      names.child.kill('SIGHUP');
    };
    this.names = setInterval(tick, 500);
    this.names.unref();
  }

  startKubelet(access) {
    const { folder, name, inside } = this;
    writeFileSync(path.join(folder, 'resolv.conf'), '');
    const config = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      failCgroupV1: false,
      cgroupDriver: 'cgroupfs',
      cgroupRoot: `/${name}`,
      failSwapOn: false,
      localStorageCapacityIsolation: false,
      evictionHard: { 'memory.available': '1Mi' },
      imageGCHighThresholdPercent: 100,
      containerRuntimeEndpoint: `unix://${SOCKET}`,
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
      address: inside,
      podLogsDir: path.join(folder, 'logs'),
      volumePluginDir: path.join(folder, 'plugins'),
      resolvConf: path.join(folder, 'resolv.conf'),
      clusterDNS: [inside],
      clusterDomain: 'cluster.local',
      // A changed ConfigMap is in its pods sooner.
      syncFrequency: '5s',
      nodeStatusUpdateFrequency: '5s',
    };
    writeFileSync(path.join(folder, 'kubelet.json'), JSON.stringify(config));
    const words = [...access, `--config=${folder}/kubelet.json`, `--root-dir=${folder}/kubelet`, `--cert-dir=${folder}/kubelet-certificates`, `--hostname-override=${name}`, `--node-ip=${inside}`, '--node-labels=disk=ssd', '--v=1'];
    this.run('kubelet', words, this.within);
  }

  /** So many addresses of the machine that a pod reaches. */
  strangers(count) {
    const addresses = Array.from({ length: count }, (_, i) => `10.203.${this.network}.${i + 1}`);
    const has = good('ip', ['address', 'show', 'dev', this.name]);
    for (const address of addresses) if (!has.includes(`${address}/`)) good('ip', ['address', 'add', `${address}/32`, 'dev', this.name]);
    return addresses;
  }

  /** The most memory that the first container of a pod has had, in MiB. */
  memoryPeak({ uid, containers: [{ containerID }] }) {
    const id = containerID.replace('containerd://', '');
    const file = good('find', [path.join(GROUPS, 'memory', this.name), '-path', `*${uid}/${id}/memory.max_usage_in_bytes`]).trim();
    return (Number(readFileSync(file, 'utf8')) / 2 ** 20).toFixed(0);
  }

  /** What a program of the cluster's user prints; one that fails ends the test. */
  kubectl(...words) {
    return this.command('kubectl', words);
  }

  helm(...words) {
    return this.command('helm', words);
  }

  get environment() {
    return { PATH: process.env.PATH, HOME: this.folder, KUBECONFIG: this.api.kubeconfig };
  }

  /** A command that takes its time: its exit code and what it says. Names are made meanwhile. */
  async later(program, ...words) {
    const command = start(this.programs[program], words, this.folder, { env: this.environment, stdio: ['ignore', 'pipe', 'pipe'] });
    command.child.stdout.on('data', (bytes) => (command.log += bytes));
    await command.ended;
    return { status: command.child.exitCode, text: command.log };
  }

  command(program, words) {
    const { status, stdout, stderr } = run(this.programs[program], words, { env: this.environment });
    if (status !== 0) throw new Error(`${program} ${words.join(' ')}: ${stderr}${stdout}\n${this.logs()}`);
    return stdout;
  }

  /** The last lines of the node's programs. */
  logs() {
    return this.processes.map(({ program, log }) => `--- ${program}\n${log.slice(-1500)}`).join('\n');
  }

  async get(where) {
    const { status, body } = await this.ask('GET', where);
    if (status !== 200) throw new Error(`${where}: ${body}`);
    return JSON.parse(body);
  }

  async make(where, object) {
    const { status, body } = await this.ask('POST', where, object);
    if (status !== 201) throw new Error(`${where}: ${body}`);
    return JSON.parse(body);
  }

  /** A namespace under PodSecurity's level restricted, gone after the test. */
  async namespace(t, name) {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await this.make('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    t.after(() => this.kubectl('delete', 'namespace', name, '--wait=false'));
    return new Namespace(this, name);
  }

  async stop() {
    clearInterval(this.names);
    // Its end is that of each process in its namespace, and of the mounts and the network.
    if (this.first) {
      this.first.child.kill('SIGKILL');
      await this.first.ended;
    }
    for (const { child, ended } of this.processes) {
      child.kill('SIGKILL');
      await ended;
    }
    await this.api?.stop();
    const groups = readdirSync(GROUPS).map((group) => path.join(GROUPS, group, this.name)).filter((group) => existsSync(group));
    await until(() => groups.every(removeGroup), 'the control groups to be empty', { deadline: 30_000 });
    if (this.folder) good('rm', ['-rf', '--one-file-system', this.folder]);
  }
}

function removeGroup(folder) {
  if (!existsSync(folder)) return true;
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory() && !removeGroup(path.join(folder, entry.name))) return false;
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

class Namespace {
  constructor(node, name) {
    Object.assign(this, { node, name, root: `/api/v1/namespaces/${name}` });
  }

  kubectl(...words) {
    return this.node.kubectl('--namespace', this.name, ...words);
  }

  /** Installs or upgrades the release `gate` of the chart, and does not wait for it. */
  helm(values, { chart = inRoot('deploy/helm/taskgate'), verb = ['upgrade', '--install'], words = [] } = {}) {
    const file = path.join(this.node.folder, `${this.name}.json`);
    writeFileSync(file, JSON.stringify(values));
    return this.node.helm(...verb, 'gate', chart, '--namespace', this.name, '--values', file, ...words);
  }

  /** Runs a command that must succeed, and takes its time. */
  async later(program, ...words) {
    const { status, text } = await this.node.later(program, '--namespace', this.name, ...words);
    assert.equal(status, 0, text);
  }

  /**
   * An address that leads to any pod of a Service that is ready, a connection to one of them, as kube-proxy has it: a
   * connection stays where it is when its pod is told to stop.
   */
  async balancer(t, service, port) {
    const where = `/apis/discovery.k8s.io/v1/namespaces/${this.name}/endpointslices`;
    const { items, metadata } = await this.node.get(where);
    const slices = new Map();
    const take = (slice) => slices.set(slice.metadata.name, slice.metadata.labels['kubernetes.io/service-name'] === service ? (slice.endpoints ?? []) : []);
    for (const slice of items) take(slice);
    const follow = async () => {
      for await (const { object } of this.node.api.watch(where, metadata.resourceVersion)) take(object);
    };
    follow().catch(() => {}); // the API server's end
    const sockets = new Set();
    const server = net.createServer({ allowHalfOpen: true }, (agent) => {
      const ready = [...slices.values()].flat().filter(({ conditions }) => conditions.ready).flatMap(({ addresses }) => addresses);
      const pod = net.connect({ port, host: ready[Math.floor(Math.random() * ready.length)], allowHalfOpen: true });
      for (const [from, to] of [[agent, pod], [pod, agent]]) {
        sockets.add(from);
        from.on('error', () => to.destroy()).on('close', () => sockets.delete(from)).pipe(to);
      }
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    defer(t, () => (server.close(), sockets.forEach((socket) => socket.destroy())));
    return `http://127.0.0.1:${server.address().port}`;
  }

  /** Makes an object of version v1. */
  make(plural, object) {
    return this.node.make(`${this.root}/${plural}`, { apiVersion: 'v1', ...object });
  }

  secret(name, stringData) {
    return this.make('secrets', { kind: 'Secret', metadata: { name }, stringData });
  }

  /**
   * A volume for the claim of that name: a folder of the machine, which is returned. The kubelet gives its files to the
   * pod's group, as it does with a disk; with a hostPath it would not.
   */
  async volume(claim, storageClassName = '') {
    const { node } = this, name = `volume-${++node.volumes}`, folder = path.join(node.folder, 'volumes', name);
    mkdirSync(folder, { recursive: true });
    const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node.name] }] }];
    const spec = { storageClassName, capacity: { storage: '5Gi' }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Retain', claimRef: { namespace: this.name, name: claim }, local: { path: folder }, nodeAffinity: { required: { nodeSelectorTerms: terms } } };
    await node.make('/api/v1/persistentvolumes', { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec });
    return folder;
  }

  async pods(labels = '') {
    const { items } = await this.node.get(`${this.root}/pods?labelSelector=${encodeURIComponent(labels)}`);
    return items;
  }

  /** All pods of these labels, once there are `count` of them and each is ready. */
  async allReady(labels, count) {
    let seen;
    const isReady = ({ metadata, status }) => !metadata.deletionTimestamp && status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
    const found = async () => (seen = await this.pods(labels)).length === count && seen.every(isReady);
    const what = () => `${count} ready pods ${labels} in ${this.name}: ${JSON.stringify(seen?.map(({ metadata, status }) => [metadata.name, status]))}\n${this.events()}`;
    await until(found, what, { deadline: 180_000, every: 200 });
    return seen.map(podOf);
  }

  /** The pod of these labels that is ready and not yet told to stop, and not `other`; with its address and restarts. */
  async ready(labels, { other, deadline = 120_000 } = {}) {
    let seen;
    const found = async () => {
      seen = await this.pods(labels);
      return seen.find(({ metadata, status }) => metadata.uid !== other && !metadata.deletionTimestamp && status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'));
    };
    const what = () => `a ready pod ${labels} in ${this.name}: ${JSON.stringify(seen?.map(({ metadata, status }) => [metadata.name, metadata.deletionTimestamp, status]))}\n${this.events()}`;
    return podOf(await until(found, what, { deadline, every: 100 }));
  }

  /** Deletes a pod. Returns what it was at its end: {seconds (since then), codes: {container: exit code}}. */
  async deleted({ name, uid }) {
    const { metadata } = await this.node.get(`${this.root}/pods`);
    const began = performance.now();
    const { status, body } = await this.node.ask('DELETE', `${this.root}/pods/${name}`);
    assert.equal(status, 200, body);
    for await (const { type, object } of this.node.api.watch(`${this.root}/pods`, metadata.resourceVersion)) {
      if (type !== 'DELETED' || object.metadata.uid !== uid) continue;
      const ended = podOf(object).containers.map(({ name: container, state }) => [container, state.terminated?.exitCode]);
      return { seconds: (performance.now() - began) / 1000, codes: Object.fromEntries(ended) };
    }
    throw new Error(`the watch of ${name} ended`);
  }

  events() {
    return this.kubectl('get', 'events', '--sort-by=.lastTimestamp');
  }
}

const podOf = ({ metadata, status }) => {
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return { name: metadata.name, uid: metadata.uid, address: status.podIP, restarts: containers.reduce((sum, { restartCount }) => sum + restartCount, 0), containers };
};
