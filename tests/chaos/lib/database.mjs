// A PostgreSQL of one's own, in a folder of its own, that can be stopped, crashed and started again.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../../integration/lib/ports.mjs';

/** The folder with the programs; Debian's are not on PATH. */
const programs = (() => {
  const places = fs.existsSync('/usr/lib/postgresql') ? fs.readdirSync('/usr/lib/postgresql').sort((a, b) => b - a).map((version) => `/usr/lib/postgresql/${version}/bin`) : [];
  return [...places, ...(process.env.PATH ?? '').split(':')].find((folder) => ['initdb', 'pg_ctl', 'createdb'].every((name) => fs.existsSync(path.join(folder, name))));
})();

/** Why there is no database here, or false. */
export const databaseMissing = programs ? false : 'PostgreSQL is not installed';

/** PostgreSQL refuses to run as root. */
const user = (() => {
  if (process.getuid() !== 0) return {};
  const number = (what) => Number(execFileSync('id', [what, spawnSync('id', ['postgres']).status === 0 ? 'postgres' : 'nobody'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
})();

export async function startDatabase(t) {
  const database = new Database(fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-postgres-')), await freePort());
  t.after(() => database.remove());
  database.create();
  return database;
}

export class Database {
  constructor(folder, port) {
    this.folder = folder;
    this.port = port;
    if (user.uid !== undefined) fs.chownSync(folder, user.uid, user.gid);
  }

  run(program, ...words) {
    // pg_ctl's own output goes nowhere: the server would inherit a pipe, and hold it open.
    const ended = spawnSync(path.join(programs, program), words, { ...user, cwd: this.folder, stdio: ['ignore', 'ignore', 'ignore'], timeout: 60_000 });
    if (ended.status === 0) return;
    const log = path.join(this.folder, 'log');
    throw new Error(`${program} ${words.join(' ')}: exit code ${ended.status}\n${fs.existsSync(log) ? fs.readFileSync(log, 'utf8').slice(-2000) : ''}`);
  }

  create() {
    this.run('initdb', '--pgdata', 'data', '--username', 'taskgate', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C');
    this.start();
    this.run('createdb', '--host', '127.0.0.1', '--port', String(this.port), '--username', 'taskgate', 'taskgate');
  }

  start() {
    const options = `-c listen_addresses=127.0.0.1 -c port=${this.port} -c unix_socket_directories=''`;
    this.run('pg_ctl', '--pgdata', 'data', '--log', 'log', '--options', options, '--wait', '--silent', 'start');
  }

  /** 'immediate' is a crash: nothing is written any more. */
  stop(mode = 'fast') {
    this.run('pg_ctl', '--pgdata', 'data', '--mode', mode, '--wait', '--silent', 'stop');
  }

  /** As seen through `port`. */
  url(port = this.port) {
    return `postgres://taskgate@127.0.0.1:${port}/taskgate`;
  }

  remove() {
    try {
      this.stop('immediate');
    } catch {
      // It had stopped already.
    }
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
