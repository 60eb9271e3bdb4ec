// Manifests as objects.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inRoot, missing, run } from '../../deploy/lib/tools.mjs';

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
  const built = run('go', ['build', '-o', program, '.'], { cwd: inRoot('tests/kubernetes/reader'), env: { ...process.env, GOFLAGS: '-mod=readonly -p=2' } });
  if (built.status === 0) return (reader = { program });
  // Debian 12's Go is older than the modules need, and one before 1.21 does not read their version.
  const tooOld = /invalid go version .*|requires go >= .*|toolchain not available.*/.exec(built.stderr);
  if (tooOld) return (reader = { why: `manifests are not compared with the types of Kubernetes: ${tooOld[0]}` });
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
