// A PostgreSQL server of the test's own, in a folder of its own, on a unix socket.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Child } from './child.mjs';
import { defer } from './lifetime.mjs';

const FOLDER = fs.existsSync('/usr/lib/postgresql') ? fs.readdirSync('/usr/lib/postgresql').map(Number).filter((version) => version >= 15).sort((a, b) => b - a) : [];
const BIN = FOLDER.length > 0 ? `/usr/lib/postgresql/${FOLDER[0]}/bin` : null;
const isRoot = process.getuid() === 0;
/** The server refuses to run as root, so it runs as its package's user. */
const hasUser = !isRoot || spawnSync('id', ['-u', 'postgres']).status === 0;

/** Why there is no database to test with; false where there is one. */
export const postgresMissing = !BIN ? 'PostgreSQL 15 or later is not installed' : !hasUser ? 'there is no user postgres to run it as' : false;

/** The path of one of its programs. */
export const postgresBinary = (name) => path.join(BIN, name);

const asServer = (command, args) => (isRoot ? ['runuser', ['-u', 'postgres', '--', command, ...args]] : [command, args]);

export class Postgres {
  constructor(folder) {
    this.folder = folder;
    this.data = path.join(folder, 'data');
    this.child = null;
    this.settings = []; // of each start: name=value
    this.port = 5432; // of its socket, and of TCP where its settings have it listen
  }

  /** The socket that a program connects to. */
  get socket() {
    return path.join(this.folder, `.s.PGSQL.${this.port}`);
  }

  /** Of a database; the password counts where `initialize` was told so. */
  url(database = 'gate', { user = 'postgres', password } = {}) {
    return `postgres://${user}${password ? `:${password}` : ''}@/${database}?host=${encodeURIComponent(this.folder)}${this.port === 5432 ? '' : `&port=${this.port}`}`;
  }

  run(command, args) {
    return execFileSync(...asServer(path.join(BIN, command), args), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' });
  }

  initialize() {
    if (isRoot) execFileSync('chown', ['postgres', this.folder]);
    this.run('initdb', ['-D', this.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']);
  }

  /** Sets the server's demands on connections, from the next start or reload on: lines of pg_hba.conf. */
  access(lines) {
    fs.writeFileSync(path.join(this.data, 'pg_hba.conf'), `${lines.join('\n')}\n`);
  }

  /** A copy of a file for the server alone, such as its key. */
  give(file) {
    const copy = path.join(this.folder, path.basename(file));
    fs.copyFileSync(file, copy);
    fs.chmodSync(copy, 0o600);
    if (isRoot) execFileSync('chown', ['postgres', copy]);
    return copy;
  }

  async start() {
    const settings = ['listen_addresses=', 'unix_socket_permissions=0777', `port=${this.port}`, ...this.settings];
    const options = ['-D', this.data, '-k', this.folder, ...settings.flatMap((setting) => ['-c', setting])];
    const [command, args] = asServer(path.join(BIN, 'postgres'), options);
    this.child = new Child(command, args, { cwd: '/', name: 'postgres' });
    await this.child.ready(async () => spawnSync(path.join(BIN, 'pg_isready'), ['-q', '-h', this.folder, '-p', this.port]).status === 0, 'accepting connections', 30_000);
  }

  /** SIGINT is its fast shutdown; SIGQUIT is as if the power went, and it recovers at the next start. */
  async stop(signal = 'SIGINT') {
    if (!this.child || this.child.exit) return;
    const pid = Number(fs.readFileSync(path.join(this.data, 'postmaster.pid'), 'utf8').split('\n')[0]);
    process.kill(pid, signal);
    await this.child.exited;
  }

  /** The rows of a query as lists of texts. */
  query(sql, database = 'gate') {
    const text = execFileSync('psql', ['-X', '-A', '-t', '-F', '\t', '-v', 'ON_ERROR_STOP=1', '-h', this.folder, '-p', this.port, '-U', 'postgres', '-d', database, '-c', sql], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    return text.split('\n').filter((line) => line.length > 0).map((line) => line.split('\t'));
  }

  createDatabase(name = 'gate') {
    this.query(`CREATE DATABASE ${name}`, 'postgres');
    return this.url(name);
  }

  /** Nobody reads or writes the table until the function that this returns was called. */
  async holdTable(database, table) {
    const lock = new Child('psql', ['-X', '-h', this.folder, '-p', this.port, '-U', 'postgres', '-d', database, '-c', 'BEGIN', '-c', `LOCK TABLE ${table}`, '-c', "SELECT 'locked'", '-c', 'SELECT pg_sleep(60)'], { name: 'psql' });
    await lock.ready(() => lock.stdout.includes('locked'), 'locked');
    return async () => {
      this.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}' AND query LIKE 'SELECT pg_sleep%'`, 'postgres');
      await lock.exited;
    };
  }
}

/** One in a folder that ends with the test, and has nothing in it yet. */
function newPostgres(t) {
  // A short path: a socket's name may have 107 bytes.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tg-pg-'));
  fs.chmodSync(folder, 0o755);
  const postgres = new Postgres(folder);
  defer(t, async () => {
    await postgres.stop('SIGQUIT');
    fs.rmSync(folder, { recursive: true, force: true });
  });
  return postgres;
}

/** An asynchronous standby of the server, which follows it over its socket. */
export async function startStandby(t, primary) {
  const standby = newPostgres(t);
  if (isRoot) execFileSync('chown', ['postgres', standby.folder]);
  standby.run('pg_basebackup', ['-D', standby.data, '-h', primary.folder, '-U', 'postgres', '-R', '-X', 'stream', '-c', 'fast', '--no-sync']);
  await standby.start();
  return standby;
}

/** A server with an empty database `gate`. It ends with the test. `prepare` sees it before its first start. */
export async function startPostgres(t, { prepare } = {}) {
  const postgres = newPostgres(t);
  postgres.initialize();
  await prepare?.(postgres);
  await postgres.start();
  postgres.createDatabase();
  return postgres;
}

