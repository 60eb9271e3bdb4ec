// Another program that holds the database.
import { spawn, spawnSync } from 'node:child_process';
import { defer } from '../../integration/lib/lifetime.mjs';
import { until } from '../../integration/lib/wait.mjs';

/** Why no other program can hold it here, or false. */
export const sqliteMissing = spawnSync('sqlite3', ['--version']).status === 0 ? false : 'the command sqlite3 is not installed';

/** Holds `file` as the only writer; `release()` lets go. */
export async function holdLock(t, file) {
  const sqlite = spawn('sqlite3', [file], { stdio: ['pipe', 'pipe', 'inherit'] });
  defer(t, () => sqlite.kill('SIGKILL'));
  let said = '';
  sqlite.stdout.on('data', (data) => (said += data));
  sqlite.stdin.write(".timeout 5000\nBEGIN EXCLUSIVE;\nSELECT 'held';\n");
  await until(() => /held/.test(said), 'the lock');
  return {
    async release() {
      const gone = new Promise((resolve) => sqlite.once('close', resolve));
      sqlite.stdin.end('ROLLBACK;\n');
      await gone;
    },
  };
}
