// Runs the suite against each server twice, directly and through the gateway, and compares check by check.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';
import { BINARY, Gateway, workflow } from '../integration/lib/gateway.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { compareAuth } from './auth.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const NODE_22 = path.join(here, 'node_modules/node/bin/node'); // the suite needs Node 22
const SUITE = path.join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const SPEC = '2025-11-25';
const LEGACY = [SUITE, 'server', '--suite', 'all', '--spec-version', SPEC];
// The suite's stable version does not know the modern revision; its next one does, and has the scenarios of the tasks extension.
const MODERN = [path.join(here, 'node_modules/conformance-modern/dist/index.js'), 'server', '--requirements', '2026-07-28'];
/** Scenarios of an extension are of no revision, so that the suite wants to be forced. */
const SKILLS = (version) => ['enumeration', 'manifest', 'directory'].map((name) => [MODERN[0], 'server', '--scenario', `sep-2640-skills-${name}`, '--spec-version', version, '--force']);
const skills = (version) => ({ command: (port) => [[path.join(here, 'skills_fixture.mjs'), String(port)], {}], mustPass: version === SPEC ? 43 : 45, suites: SKILLS(version) });
const RUN_LIMIT_MS = 120_000;

/** A call is approved before the server sees it, so the server's question comes after the task was made. */
const NOT_OF_A_GATEWAY = 'tasks-mrtr-composition';
const TASK_CHECKS = 38;

/** Worse is further right. */
const ORDER = ['SUCCESS', 'INFO', 'SKIPPED', 'WARNING', 'FAILURE', 'missing'];

const servers = {
  'server-everything': {
    command: (port) => [[path.join(here, '../integration/node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'streamableHttp'], { PORT: String(port) }],
    // A lack of this server itself is no fault of a gateway, so little of the suite passes; the fixture is for the rest.
    mustPass: 13,
    suite: LEGACY,
  },
  fixture: {
    command: (port) => [[path.join(here, 'fixture.mjs'), String(port)], {}],
    mustPass: 47,
    suite: LEGACY,
  },
  'modern fixture': {
    command: (port) => [[path.join(here, 'modern_fixture.mjs'), String(port), 'tasks'], {}],
    mustPass: 189,
    suite: MODERN,
  },
  'skills, modern': skills('2026-07-28'),
  'skills, legacy': skills(SPEC),
};

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-conformance-'));
const problems = [];

try {
  for (const [name, server] of Object.entries(servers)) await compare(name, server);
  await tasksOfTheGateway();
  problems.push(...(await compareAuth({ suite: SUITE, node: NODE_22, client: path.join(here, 'auth_client.mjs'), binary: BINARY, folder })));
} catch (error) {
  problems.push(error.message);
} finally {
  if (process.argv.includes('--keep')) console.log(`results are kept in ${folder}`);
  else fs.rmSync(folder, { recursive: true, force: true });
}

if (problems.length > 0) {
  console.log(`\nNot conformant:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  process.exit(1);
}
console.log('\nNo check is worse through the gateway.');

async function compare(name, server) {
  const port = await freePort();
  const [args, env] = server.command(port);
  const upstream = new Child(process.execPath, args, { env, name });
  let gateway;
  try {
    const url = `http://127.0.0.1:${port}/mcp`;
    await upstream.ready(() => answers(url), 'answering');
    const suites = server.suites ?? [server.suite];
    const direct = await suite(`${name}-direct`, url, ...suites);
    await assertAlive(url, upstream, name);

    gateway = new Gateway(fs.mkdtempSync(path.join(folder, 'gateway-')), { upstream: url });
    await gateway.start();
    const through = await suite(`${name}-through`, gateway.url, ...suites);
    await assertAlive(url, upstream, name);
    await assertAlive(gateway.url, gateway.child, 'the gateway');

    report(name, direct, through, server.mustPass);
  } finally {
    if (gateway) await gateway.stop();
    await upstream.stop('SIGINT');
  }
}

/**
 * The scenarios of the tasks extension before a server that makes no tasks: the gateway makes them of calls that a rule
 * lets wait for approval, and an operator approves each at once.
 */
async function tasksOfTheGateway() {
  const [port, stop] = [await freePort(), new AbortController()];
  const upstream = new Child(process.execPath, [path.join(here, 'modern_fixture.mjs'), String(port)], { name: 'modern fixture without tasks' });
  const url = `http://127.0.0.1:${port}/mcp`;
  let gateway, operator;
  try {
    await upstream.ready(() => answers(url), 'answering');
    const rules = [{ match: 'failing_job', action: 'approve', require_tasks: true }, ...['slow_compute', 'protocol_error_job', 'confirm_delete', 'multi_input', 'test_tool_with_task'].map((match) => ({ match, action: 'approve' }))];
    gateway = new Gateway(fs.mkdtempSync(path.join(folder, 'gateway-')), { upstream: url, rules, approval: workflow('10m') });
    await gateway.start();
    operator = approveAll(gateway.admin, stop.signal);
    const checks = await suite('tasks-of-the-gateway', gateway.url, MODERN);
    await assertAlive(gateway.url, gateway.child, 'the gateway');
    console.log('\ntasks that the gateway makes');
    for (const [check, { status, error }] of [...checks].filter(([name]) => name.startsWith('tasks-'))) {
      const isExcluded = check.startsWith(NOT_OF_A_GATEWAY);
      console.log(`${check.padEnd(84)} ${status}${isExcluded ? '   not of a gateway' : ''}`);
      if (!isExcluded && status !== 'SUCCESS' && status !== 'SKIPPED' && status !== 'INFO') problems.push(`tasks of the gateway: ${check}: ${status}: ${error}`);
    }
    const passed = new Set([...checks].filter(([name, { status }]) => name.startsWith('tasks-') && status === 'SUCCESS').map(([name]) => name));
    if (passed.size < TASK_CHECKS) problems.push(`tasks of the gateway: only ${passed.size} checks pass, at least ${TASK_CHECKS} are expected`);
  } finally {
    stop.abort();
    await operator;
    if (gateway) await gateway.stop();
    await upstream.stop('SIGINT');
  }
}

/** Approves whatever waits, until `signal`. */
async function approveAll(admin, signal) {
  while (!signal.aborted) {
    for (const { id } of (await admin.list({ state: 'pending' })).tasks) await admin.approve(id).catch(() => {}); // it may have been cancelled just now
    await pause(50);
  }
}

/** One run of the suite. */
async function run(label, url, output, words) {
  const child = new Child(NODE_22, [...words, '--url', url, '-o', output], { name: `the suite (${label})` });
  const limit = setTimeout(() => child.signal('SIGKILL'), RUN_LIMIT_MS);
  const exit = await child.exited;
  clearTimeout(limit);
  if (exit.signal) throw new Error(`the suite did not end within ${RUN_LIMIT_MS} ms against ${label}\n${child.output()}`);
  return child;
}

/** All of its runs: a map from "scenario / check" to its result. */
async function suite(label, url, ...runs) {
  const output = path.join(folder, label);
  let child;
  for (const words of runs) child = await run(label, url, output, words);
  if (!fs.existsSync(output)) throw new Error(`the suite wrote no results against ${label}\n${child.output()}`);
  const checks = new Map();
  for (const made of fs.readdirSync(output).sort()) {
    const scenario = made.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
    const seen = new Map();
    for (const check of JSON.parse(fs.readFileSync(path.join(output, made, 'checks.json'), 'utf8'))) {
      const times = (seen.get(check.id) ?? 0) + 1;
      seen.set(check.id, times);
      checks.set(`${scenario} / ${check.id}${times > 1 ? ` #${times}` : ''}`, { status: check.status, error: check.errorMessage });
    }
  }
  return checks;
}

function report(name, direct, through, mustPass) {
  console.log(`\n${name}\n${'check'.padEnd(84)} ${'direct'.padEnd(8)} through`);
  let passed = 0;
  for (const check of [...new Set([...direct.keys(), ...through.keys()])].sort()) {
    const [before, after] = [direct.get(check)?.status ?? 'missing', through.get(check)?.status ?? 'missing'];
    // A check that only the run through the gateway has can still be a new failure.
    const worse = direct.has(check) ? ORDER.indexOf(after) > ORDER.indexOf(before) : after === 'FAILURE';
    if (after === 'SUCCESS') passed += 1;
    console.log(`${check.padEnd(84)} ${before.padEnd(8)} ${after}${worse ? '   WORSE' : ''}`);
    if (worse) problems.push(`${name}: ${check}: ${before} directly, ${after} through the gateway: ${through.get(check)?.error ?? 'no such check'}`);
  }
  const directPassed = [...direct.values()].filter(({ status }) => status === 'SUCCESS').length;
  console.log(`${directPassed} checks pass directly, ${passed} through the gateway`);
  // A comparison of two runs that both fail proves nothing.
  if (directPassed < mustPass) problems.push(`${name}: only ${directPassed} checks pass directly, at least ${mustPass} are expected: the comparison would be empty`);
}

/** A dead server "passes" some scenarios: it has to be alive after each run. */
async function assertAlive(url, child, name) {
  if (child.exit || !(await answers(url))) throw new Error(`${name} has died\n${child.output()}`);
}

async function answers(url) {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: SPEC, capabilities: {}, clientInfo: { name: 'alive', version: '1' } } }),
      signal: AbortSignal.timeout(5_000),
    });
    return response.ok && (await response.text()).includes('protocolVersion');
  } catch {
    return false;
  }
}
