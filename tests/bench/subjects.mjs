// The measured subjects: the fixed upstream alone, nginx before it, taskgate before it.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const build = path.join(root, 'build-bench');
export const program = (name) => path.join(build, 'tests/bench', `bench_${name}`);
export const SESSION = 'bench-session';
export const ADMIN_TOKEN = 'bench-admin-token-0000000000000000001';

const started = [];

function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options });
  child.errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => (child.errors = (child.errors + text).slice(-4000)));
  child.over = new Promise((resolve) => child.once('close', resolve));
  started.push(child);
  return child;
}

export async function stop(child, signal = 'SIGKILL') {
  child.kill(signal);
  await child.over;
}

export async function stopAll() {
  await Promise.all(started.filter((child) => child.exitCode === null && child.signalCode === null).map((child) => stop(child)));
}

export async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const accepts = (port) =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)));
    socket.on('error', () => resolve(false));
  });

async function listening(port, child, deadline = 60_000) {
  for (const end = performance.now() + deadline; performance.now() < end; await pause(1)) {
    if (child.exitCode !== null) break;
    if (await accepts(port)) return;
  }
  throw new Error(`${child.spawnfile} does not listen on ${port}\n${child.errors}`);
}

export async function startUpstream(tools = 3) {
  const port = await freePort();
  const child = start(program('upstream'), [String(port), String(tools)]);
  await listening(port, child);
  return { name: 'direct', port, pids: [] };
}

export const hasNginx = () => ['/usr/sbin/nginx', '/usr/bin/nginx'].find((file) => fs.existsSync(file));

/** One worker, keep-alive on both sides, nothing buffered to disk, no log. */
export async function startNginx(parent, upstream, tls) {
  const folder = fs.mkdtempSync(path.join(parent, 'nginx-'));
  const port = await freePort();
  const file = path.join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
  fs.writeFileSync(file, `worker_processes 1; daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr crit;
events { worker_connections 20000; }
http {
  access_log off; keepalive_requests 1000000000; ${temporary}
  client_max_body_size 64m; client_body_buffer_size 2m; proxy_buffers 64 16k; tcp_nodelay on;
  upstream fixed { server 127.0.0.1:${upstream.port}; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} ${tls ? 'ssl ' : ''}backlog=4096;
    ${tls ? `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key}; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets on;` : ''}
    location / { proxy_pass http://fixed; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_max_temp_file_size 0; }
  }
}
`);
  const child = start(hasNginx(), ['-c', file, '-p', folder]);
  await listening(port, child);
  return { name: 'nginx', port, child, pids: [child.pid] };
}

/** Rules that match nothing of the benchmark stand in front of those that do. */
const configuration = (upstream, store, { rules, workers, tls, auth, show, workflow, limits = '', more = '' }) => `schema: 1
workers: ${workers}
sources:
  - {id: up, kind: mcp, url: "http://127.0.0.1:${upstream.port}/mcp"${auth ? `, auth: ${JSON.stringify(auth)}` : ''}}
governance:
  defaults: {action: forward}
  rules:
${Array.from({ length: rules - 1 }, (_, i) => `    - {match: "service_${i}_*_admin", action: deny}\n`).join('')}    - {match: "delete_*", action: approve${show ? `, ${show}` : ''}}
approval:
  default: {destination: {type: admin}, timeout: 1h${workflow ? `, ${workflow}` : ''}}
store: {path: "${store}"}
limits: {${limits}pending_per_principal: 10000000, pending_total: 10000000, connections: 20000}
${tls ? `proxy: {tls: {cert: "${tls.cert}", key: "${tls.key}"}}\n` : ''}${more}`;

let serial = 0;

/** A configuration in a folder of its own; answers its path. */
export function writeConfiguration(folder, upstream, rules, { workers = 1, tls = undefined, auth = undefined, store = undefined, ...keys } = {}) {
  const own = fs.mkdtempSync(path.join(folder, `gateway-${serial++}-`));
  const file = path.join(own, 'config.yaml');
  fs.writeFileSync(file, configuration(upstream, store ?? path.join(own, 'taskgate.db'), { rules, workers, tls, auth, ...keys }));
  return file;
}

export async function startTaskgate(folder, upstream, { rules = 10, workers = 1, under = [], tls = undefined, auth = undefined, env = {}, store = undefined, show = undefined, workflow = undefined, limits = undefined, more = undefined, binary = path.join(build, 'taskgate'), name = `taskgate, ${rules} ${rules === 1 ? 'rule' : 'rules'}` } = {}) {
  const file = writeConfiguration(folder, upstream, rules, { workers, tls, auth, store, show, workflow, limits, more });
  const own = path.dirname(file);
  const [port, adminPort] = [await freePort(), await freePort()];
  // Its log goes to a file, as where it is in use: to read it here would cost the time that is measured.
  const log = path.join(own, 'log');
  const descriptor = fs.openSync(log, 'w');
  const began = performance.now();
  const command = [...under, binary, 'serve', '--config', file];
  const child = start(command[0], command.slice(1), {
    cwd: own,
    stdio: ['ignore', 'ignore', descriptor],
    env: { PATH: process.env.PATH, THOUGHTGATE_OUTBOUND_PORT: String(port), THOUGHTGATE_ADMIN_PORT: String(adminPort), THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN, ...env },
  });
  fs.closeSync(descriptor);
  Object.defineProperty(child, 'errors', { get: () => fs.readFileSync(log, 'utf8').slice(-4000) });
  await listening(port, child);
  return { name, port, adminPort, child, pids: [child.pid], folder: own, readyMs: performance.now() - began };
}

/** CPU seconds of all threads of these processes so far. /proc/PID/stat would have them by samples of 10 ms. */
export function cpuSeconds(pids) {
  const threads = pids.flatMap((pid) => fs.readdirSync(`/proc/${pid}/task`).map((id) => `/proc/${pid}/task/${id}/schedstat`));
  return threads.reduce((sum, file) => sum + Number(fs.readFileSync(file, 'utf8').split(' ')[0]), 0) / 1e9;
}

const statusKb = (pid, key) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
export const rssKb = (pid) => statusKb(pid, 'VmRSS');

/** Starts now; the result says how far the RSS was at most above its present value. */
export function peakKb(pid) {
  fs.writeFileSync(`/proc/${pid}/clear_refs`, '5'); // the peak is the present
  const before = rssKb(pid);
  return () => statusKb(pid, 'VmHWM') - before;
}
