// The engine and cedar-wasm over the same policies, in turn, round by round.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { kinds, makeSet } from './cedar_sets.mjs';

const { values: options } = parseArgs({
  options: { smoke: { type: 'boolean' }, rounds: { type: 'string' }, json: { type: 'string' }, keep: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
});
if (options.help) {
  console.log(`Usage: tests/bench/cedar [--rounds N] [--json FILE] [--keep FOLDER] [--smoke]

Measures parsing of 10, 100 and 1,000 policies and decisions by them in N rounds (5), one core, and
prints medians. cedar-wasm is measured beside when npm ci was run in tests/cedar; both must decide
alike. --keep leaves the policies, entities and requests in a folder; --smoke only shows that it works.`);
  process.exit(0);
}
const smoke = options.smoke === true;
const rounds = Number(options.rounds ?? (smoke ? 1 : 5));
const sizes = smoke ? [10, 100] : [10, 100, 1000];
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const folder = options.keep ?? fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-cedar-'));

/** undefined where the package is not installed. */
function loadWasm() {
  try {
    return createRequire(path.join(root, 'tests', 'cedar', 'package.json'))('@cedar-policy/cedar-wasm/nodejs');
  } catch {
    return undefined;
  }
}
const wasm = loadWasm();

// ---- one measurement of each

function engine(name) {
  const file = (end) => path.join(folder, `${name}${end}`);
  const program = path.join(root, 'build-bench', 'tests', 'bench', 'bench_policies');
  return JSON.parse(execFileSync(program, [file('.cedar'), file('.entities.json'), file('.json'), smoke ? '2' : '50'], { encoding: 'utf8' }));
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
function timed(count, act) {
  return Array.from({ length: count }, (_, i) => {
    const began = process.hrtime.bigint();
    act(i);
    return Number(process.hrtime.bigint() - began) / 1000;
  });
}

/** Policies are parsed once; entities and requests go over as JSON each time: there is no other way in. */
function oracle(set) {
  const parse = timed(smoke ? 1 : 5, () => wasm.checkParsePolicySet({ staticPolicies: set.policies }));
  wasm.preparsePolicySet('bench', { staticPolicies: set.policies });
  const ask = (request) => wasm.statefulIsAuthorized({ ...request, preparsedPolicySetId: 'bench', entities: set.entities });
  const decide = timed(smoke ? 2 : 16, (i) => ask(set.requests[i]));
  return { ask, parse: { p50: median(parse) }, decide: { p50: median(decide) } };
}

function compare(row, ours, ask) {
  const theirs = row.set.requests.map((request) => {
    const answer = ask(request);
    if (answer.type !== 'success') throw new Error(JSON.stringify(answer.errors));
    return `${answer.response.decision} ${answer.response.diagnostics.reason.length} ${answer.response.diagnostics.errors.length}`;
  });
  if (JSON.stringify(ours) !== JSON.stringify(theirs)) throw new Error(`${row.name}: they decide otherwise`);
}

// ---- all of them

const rows = [];
fs.mkdirSync(folder, { recursive: true });
for (const kind of Object.keys(kinds)) {
  for (const size of sizes) {
    const set = makeSet(kind, size);
    const name = `${kind.replaceAll(' ', '-')}-${size}`;
    fs.writeFileSync(path.join(folder, `${name}.cedar`), `${set.policies}\n`);
    fs.writeFileSync(path.join(folder, `${name}.entities.json`), JSON.stringify(set.entities));
    fs.writeFileSync(path.join(folder, `${name}.json`), JSON.stringify({ requests: set.requests }));
    rows.push({ kind, size, name, set, engine: [], wasm: [] });
  }
}
for (let round = 0; round < rounds; round++) {
  for (const row of rows) {
    const ours = engine(row.name);
    row.engine.push(ours);
    if (!wasm) continue;
    const theirs = oracle(row.set);
    row.wasm.push(theirs);
    if (round === 0) compare(row, ours.answers, theirs.ask);
  }
}
if (!options.keep) fs.rmSync(folder, { recursive: true });

// ---- results

const of = (list, what, which) => (list.length ? median(list.map((one) => one[what][which])) : undefined);
const numbers = rows.map(({ kind, size, engine: ours, wasm: theirs }) => ({
  kind, policies: size, parse_us: of(ours, 'parse', 'p50'), p50_us: of(ours, 'decide', 'p50'), p99_us: of(ours, 'decide', 'p99'),
  wasm_parse_us: of(theirs, 'parse', 'p50'), wasm_p50_us: of(theirs, 'decide', 'p50'),
}));
const shown = (value) => (value === undefined ? '' : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0));
console.log('| Policies | | parse µs | decide p50 µs | p99 µs | cedar-wasm: parse µs | decide p50 µs |\n|---|---|---|---|---|---|---|');
for (const row of numbers) {
  console.log(`| ${[row.policies, row.kind, ...[row.parse_us, row.p50_us, row.p99_us, row.wasm_parse_us, row.wasm_p50_us].map(shown)].join(' | ')} |`);
}
if (!wasm) console.log('\ncedar-wasm is not there: run npm ci in tests/cedar to measure it beside.');
const limits = { 10: 10, 100: 60, 1000: 500 };
const short = numbers.filter((row) => row.p50_us > (row.kind.startsWith('the scope') ? 5 : limits[row.policies]) || (row.policies === 1000 && row.parse_us > 20000));
console.log(`\nWanted: p50 of 10, 60 and 500 µs for 10, 100 and 1,000 policies, 5 µs where the scope excludes the others, 20 ms to parse 1,000. ${
  short.length ? `Short of it: ${short.map((row) => `${row.policies} (${row.kind})`).join(', ')}.` : 'All of it holds.'}`);
if (options.json) fs.writeFileSync(options.json, `${JSON.stringify({ rounds, cedar_wasm: wasm?.getCedarSDKVersion(), rows: numbers }, null, 2)}\n`);
