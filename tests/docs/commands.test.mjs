// Runs the commands of the documents, in their order, beside one scripts/run on free ports.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { blocks, exists, files, read, root } from './lib/documents.mjs';

const skip = exists('build/taskgate') ? false : 'build/taskgate is not built';
const COMMAND_MS = 60_000;
const START_MS = 150_000;

const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-docs-'));
const running = []; // commands in the background
let environment;
let substitutions;

/** Below the ports that the kernel gives to outgoing connections. */
async function freePort() {
  for (;;) {
    const port = 10_240 + Math.floor(Math.random() * 22_000);
    const probe = net.createServer();
    const free = await new Promise((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    return String(port);
  }
}

before(async () => {
  const ports = { THOUGHTGATE_OUTBOUND_PORT: await freePort(), THOUGHTGATE_ADMIN_PORT: await freePort(), TASKGATE_EXAMPLE_PORT: await freePort() };
  const { THOUGHTGATE_ADMIN_TOKEN, ...own } = process.env;
  const admin = `http://127.0.0.1:${ports.THOUGHTGATE_ADMIN_PORT}`;
  environment = { ...own, ...ports, TASKGATE_RUN_DIR: folder, THOUGHTGATE_ADMIN_URL: admin };
  // The texts of the documents, and the values of this run for them.
  substitutions = [
    ['http://127.0.0.1:7469', admin],
    ['http://127.0.0.1:7467', `http://127.0.0.1:${ports.THOUGHTGATE_OUTBOUND_PORT}`],
    ['http://127.0.0.1:7470', `http://127.0.0.1:${ports.TASKGATE_EXAMPLE_PORT}`],
    ['run/last-task', path.join(folder, 'last-task')],
    ['run/taskgate.', path.join(folder, 'taskgate.')],
  ];
});

after(async () => {
  for (const command of running) {
    command.child.kill('SIGTERM');
    await command.ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

const filled = (text) => substitutions.reduce((result, [from, to]) => result.replaceAll(from, to), text);

function start(text) {
  const script = `set -euo pipefail\n${text.replace(/\bTOKEN\b/g, () => environment.token ?? 'TOKEN')}`;
  const child = spawn('bash', ['-c', `exec 2>&1\n${script}`], { cwd: root, env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  const command = { child, output: '' };
  child.stdout.on('data', (bytes) => (command.output += bytes));
  command.ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
  return command;
}

async function runToItsEnd(text, expected) {
  const command = start(text);
  const timer = setTimeout(() => command.child.kill('SIGKILL'), COMMAND_MS);
  const status = await command.ended;
  clearTimeout(timer);
  assert.equal(status, expected, `${text}\n${command.output}`);
}

/** Leaves the command running once it has said `word`; the token it prints is the reader's from now on. */
async function runUntil(text, word) {
  const command = start(`exec ${text}`);
  running.push(command);
  const deadline = Date.now() + START_MS;
  let over = false;
  command.ended.then(() => (over = true));
  while (!command.output.includes(word)) {
    assert.ok(!over && Date.now() < deadline, command.output);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  environment.token = /#token=(\S+)/.exec(command.output)?.[1];
  return command;
}

const labels = (text) => text.split('\n').filter((line) => line.startsWith('  ')).map((line) => line.trim().split(/\s{2,}/)[0]);

const documents = ['README.md', ...files('.md').filter((name) => name.startsWith('docs/'))];
for (const document of documents) {
  const found = blocks(read(document));
  const runnable = found.filter((block) => block.runnable !== null);
  if (runnable.length === 0) continue;
  test(`${document}: its commands do what it says`, { skip, timeout: 300_000 }, async (t) => {
    for (const block of runnable) {
      const until = /^until "(.*)"$/.exec(block.runnable)?.[1];
      const expected = Number(/^exit (\d+)$/.exec(block.runnable)?.[1] ?? 0);
      await t.test(`line ${block.line}`, async () => {
        if (until) {
          const command = await runUntil(filled(block.text), until);
          const shown = found.find((other) => other.language === 'text' && other.line > block.line);
          for (const label of labels(shown.text)) assert.ok(labels(command.output).includes(label), `${label} is not printed`);
        } else {
          await runToItsEnd(filled(block.text), expected);
        }
      });
    }
  });
}

for (const document of documents) {
  const configurations = blocks(read(document)).filter((block) => block.language === 'yaml' && block.text.startsWith('schema: 1'));
  for (const block of configurations) {
    test(`${document}: the configuration on line ${block.line} is valid`, { skip }, async () => {
      const file = path.join(folder, 'example.yaml');
      writeFileSync(file, block.text);
      const secrets = 'export OPERATOR_TOKEN=a DASHBOARD_TOKEN=b SERVER_TOKEN=c\n';
      await runToItsEnd(`${secrets}! build/taskgate check --config '${file}' | grep warning | grep -v 'a task outlives its owner' && build/taskgate check --config '${file}'`, 0);
    });
  }
}
