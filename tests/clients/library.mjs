// A client made with one of the libraries of libraries.json, as a process that makes the calls it is given.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

/** Libraries that are tried before a release alone are installed here: install_libraries says how. */
export const CACHE = process.env.TASKGATE_LIBRARIES ?? path.join(os.homedir(), '.cache/taskgate/clients');

export const LONG = Boolean(process.env.TASKGATE_LONG_APPROVALS);

export const libraries = JSON.parse(fs.readFileSync(path.join(here, 'libraries.json'), 'utf8'));

/** The place of the parts of a library, and the command that makes calls. */
const kinds = {
  python: (row) => {
    const folder = row.in ? path.join(here, row.in) : path.join(CACHE, row.library);
    return { done: path.join(folder, 'done'), command: [path.join(folder, 'bin/python'), path.join(here, 'library_client.py'), row.library] };
  },
  node: (row) => {
    const folder = row.in ? path.join(here, row.in) : path.join(CACHE, 'node');
    return { done: path.join(folder, 'node_modules', row.package), command: [process.execPath, path.join(here, 'library_client.mjs'), row.library], env: { LIBRARY_MODULES: folder } };
  },
  java: (row) => {
    const folder = path.join(CACHE, 'java');
    return { done: path.join(folder, 'classes/LibraryClient.class'), command: ['java', '-cp', `${folder}/jars/*:${folder}/classes`, 'LibraryClient', row.library] };
  },
  go: () => sdk('go-client', 'auto'),
  rust: () => sdk('rust-client', 'legacy'),
};

function sdk(program, mode) {
  const command = path.join(here, 'build', program);
  return { done: command, command: [command], mode };
}

/** Libraries that cost a test run little: each run tries them. */
export const isCheap = (row) => Boolean(row.in) || row.by === 'go' || row.by === 'rust';

export function skipped(row) {
  const parts = kinds[row.by](row);
  return fs.existsSync(parts.done) ? false : `${row.package} was not installed: tests/clients/run says why`;
}

/**
 * Starts the client on `calls`, each [tool, arguments, again]. `again` is how a model acts: it repeats a call that failed
 * or has not run yet.
 */
export function start(row, url, calls, more = {}) {
  const { command: [program, ...words], env, mode } = kinds[row.by](row);
  const steps = mode ? [mode, JSON.stringify(calls.flatMap(([tool, args, again]) => Array(again || 1).fill(['call', tool, args])))] : [JSON.stringify(calls)];
  const child = new Child(program, [...words, url, ...steps], { name: row.library, env: { ...env, ...more, CREWAI_TRACING_ENABLED: 'false', CREWAI_DISABLE_TELEMETRY: 'true', MCP_USE_ANONYMIZED_TELEMETRY: 'false' } });
  /** Of each call: {text} or {error}. Some libraries write to the standard output themselves. */
  const outcomes = () => child.stdout.split('\n').filter((line) => /^\{"(text|error|failure|isError)/.test(line)).map((line) => JSON.parse(line));
  return { child, outcomes };
}
