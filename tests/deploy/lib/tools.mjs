// The tools that these tests need beside node, and files for them.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url)))));
export const inRoot = (...parts) => path.join(root, ...parts);
export const read = (name) => readFileSync(inRoot(name), 'utf8');

export const gateway = process.env.TASKGATE_BIN ? path.resolve(process.env.TASKGATE_BIN) : inRoot('build/taskgate');
export const withoutGateway = existsSync(gateway) ? false : `${gateway} is not built`;

export function run(command, words, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, words, { encoding: 'utf8', timeout: 400_000, maxBuffer: 64 << 20, ...options });
  return { status: error ? -1 : status, stdout: stdout ?? '', stderr: error ? String(error) : stderr };
}

/** false, or why tests that need the program are skipped. */
export function missing(program, why) {
  return run('sh', ['-c', `command -v ${program}`]).status === 0 ? false : `${program} is not here: ${why}`;
}

export function temporaryFolder(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-deploy-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
