// Installs the libraries of libraries.json that are tried before a release alone, each once, outside of the tree.
// A library that cannot be installed here is named, and its tests are skipped.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CACHE, isCheap, libraries } from './library.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const LIMIT_MS = 600_000;
const run = (command, args, cwd = CACHE) => execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'], timeout: LIMIT_MS });

/** Does `install` in a new `folder`, unless it was done for the same `wanted`. */
function once(folder, wanted, install) {
  const done = path.join(folder, 'done');
  if (fs.existsSync(done) && fs.readFileSync(done, 'utf8') === wanted) return;
  try {
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder, { recursive: true });
    install();
    fs.writeFileSync(done, wanted);
  } catch (error) {
    fs.rmSync(folder, { recursive: true, force: true });
    console.error(`clients: ${path.basename(folder)} was not installed: ${error.message}`);
  }
}

const long = libraries.filter((row) => !isCheap(row));

for (const row of long.filter(({ by }) => by === 'python')) {
  const folder = path.join(CACHE, row.library);
  const wanted = [`${row.package}${row.extra ? `[${row.extra}]` : ''}==${row.version}`, ...(row.with ?? [])];
  once(folder, wanted.join(' '), () => {
    run(`python${row.python ?? '3'}`, ['-m', 'venv', folder]);
    run(path.join(folder, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', ...wanted]);
  });
}

const packages = long.filter(({ by }) => by === 'node').flatMap((row) => [`${row.package}@${row.version}`, ...(row.with ?? [])]);
once(path.join(CACHE, 'node'), packages.join(' '), () => {
  fs.writeFileSync(path.join(CACHE, 'node/package.json'), '{"private": true}\n');
  run('npm', ['install', '--silent', '--no-fund', '--no-audit', ...packages], path.join(CACHE, 'node'));
});

/** The public servers of servers.json, and what serves those that speak over pipes alone. */
const servers = JSON.parse(fs.readFileSync(path.join(here, 'servers.json'), 'utf8'));
const WRAPPERS = ['supergateway@4.0.0', 'mcp-proxy@6.7.19'];
const ofNpm = [...servers.filter(({ from }) => from === 'npm').map((row) => `${row.package}@${row.version}`), ...WRAPPERS];
const ofPyPi = servers.filter(({ from }) => from === 'PyPI').map((row) => `${row.package}==${row.version}`);
const served = path.join(CACHE, 'servers');
once(served, [...ofNpm, ...ofPyPi].join(' '), () => {
  fs.writeFileSync(path.join(served, 'package.json'), '{"private": true}\n');
  run('npm', ['install', '--silent', '--no-fund', '--no-audit', ...ofNpm], served);
  run('python3', ['-m', 'venv', path.join(served, 'python')]);
  run(path.join(served, 'python/bin/pip'), ['install', '--quiet', '--disable-pip-version-check', ...ofPyPi]);
});

const java = path.join(CACHE, 'java');
const source = path.join(here, 'java/LibraryClient.java');
once(java, fs.readFileSync(path.join(here, 'java/pom.xml'), 'utf8') + fs.readFileSync(source, 'utf8'), () => {
  run('mvn', ['--quiet', '--batch-mode', '--file', path.join(here, 'java/pom.xml'), 'dependency:copy-dependencies', `-DoutputDirectory=${java}/jars`, `-DbuildDirectory=${java}/target`], java);
  run('javac', ['-classpath', `${java}/jars/*`, '-d', `${java}/classes`, source], java);
});
