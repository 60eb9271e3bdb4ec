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

const asServer = (command, args) => (isRoot ? ['runuser', ['-u', 'postgres', '--', command, ...args]] : [command, args]);

export class Postgres {
  constructor(folder) {
    this.folder = folder;
    this.data = path.join(folder, 'data');
    this.child = null;
  }

  /** Of a database; the password counts where `initialize` was told so. */
  url(database = 'gate', { user = 'postgres', password } = {}) {
    return `postgres://${user}${password ? `:${password}` : ''}@/${database}?host=${encodeURIComponent(this.folder)}`;
  }

  run(command, args) {
    return execFileSync(...asServer(path.join(BIN, command), args), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' });
  }

  initialize() {
    if (isRoot) execFileSync('chown', ['postgres', this.folder]);
    this.run('initdb', ['-D', this.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']);
  }

  /** What the server asks of whom, from the next start or reload on: lines of pg_hba.conf. */
  access(lines) {
    fs.writeFileSync(path.join(this.data, 'pg_hba.conf'), `${lines.join('\n')}\n`);
  }

  async start() {
    const options = ['-D', this.data, '-k', this.folder, '-c', 'listen_addresses=', '-c', 'unix_socket_permissions=0777'];
    const [command, args] = asServer(path.join(BIN, 'postgres'), options);
    this.child = new Child(command, args, { cwd: '/', name: 'postgres' });
    await this.child.ready(async () => spawnSync(path.join(BIN, 'pg_isready'), ['-q', '-h', this.folder]).status === 0, 'accepting connections', 30_000);
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
    const text = execFileSync('psql', ['-X', '-A', '-t', '-F', '\t', '-v', 'ON_ERROR_STOP=1', '-h', this.folder, '-U', 'postgres', '-d', database, '-c', sql], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    return text.split('\n').filter((line) => line.length > 0).map((line) => line.split('\t'));
  }

  createDatabase(name = 'gate') {
    this.query(`CREATE DATABASE ${name}`, 'postgres');
    return this.url(name);
  }
}

/** A server with an empty database `gate`. It ends with the test. */
export async function startPostgres(t) {
  // A short path: a socket's name may have 107 bytes.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tg-pg-'));
  fs.chmodSync(folder, 0o755);
  const postgres = new Postgres(folder);
  defer(t, async () => {
    await postgres.stop('SIGQUIT');
    fs.rmSync(folder, { recursive: true, force: true });
  });
  postgres.initialize();
  await postgres.start();
  postgres.createDatabase();
  return postgres;
}

