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

let reader;

/**
 * The objects of manifests, read strictly as the types of Kubernetes: the path of the program that
 * does so, or why there is none. It is built once, from modules of Go's proxy.
 */
export function manifestReader() {
  if (reader) return reader;
  const why = missing('go', 'manifests are not compared with the types of Kubernetes');
  if (why) return (reader = { why });
  const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-manifests-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const program = path.join(folder, 'reader');
  const built = run('go', ['build', '-o', program, '.'], { cwd: inRoot('tests/deploy/kubernetes'), env: { ...process.env, GOFLAGS: '-mod=readonly -p=2' } });
  if (built.status === 0) return (reader = { program });
  // The compiler's own mistakes begin with "# PACKAGE".
  const isFetch = /^go: /m.test(built.stderr) && !/^# |checksum|go\.sum|go\.mod/m.test(built.stderr);
  if (isFetch) return (reader = { why: `the types of Kubernetes cannot be fetched: ${built.stderr.split('\n')[0]}` });
  throw new Error(built.stderr);
}

/** The objects of a file of manifests by "Kind name". Throws if a field is unknown. */
export function objectsOf(file) {
  const { status, stdout, stderr } = run(manifestReader().program, [file]);
  if (status !== 0) throw new Error(stderr);
  const objects = stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  return new Map(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object]));
}
