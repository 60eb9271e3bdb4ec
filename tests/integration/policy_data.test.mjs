// taskgate policy authorize, parse and parse --print, over test data of the policy language: ours, and where it is there the language's own.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from './lib/child.mjs';
import { BINARY, temporaryFolder } from './lib/gateway.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const OURS = path.join(here, '../unit/cedar/supplement');
const SHARED = process.env.TASKGATE_CEDAR_DATA ?? path.join(here, '../../../shared/cedar');
const skip = fs.existsSync(path.join(SHARED, 'corpus-public.tar.gz')) ? false : `there is no test data in ${SHARED}`;
const AT_ONCE = 3, BATCH = 50;
const LONG = { timeout: 1_200_000 };

const json = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));

/** Every file below `folder` that holds a `member`. */
function filesWith(folder, member) {
  const names = fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.json') && !name.endsWith('entities.json'));
  return names.sort().map((name) => path.join(folder, name)).filter((file) => json(file)[member]);
}

// One process for each file; a shell starts them several times as fast as node does.
const AUTHORIZE = 'bin=$1; shift; while [ $# -gt 0 ]; do "$bin" policy authorize --policies "$1" --entities "$2" --requests "$3" 2>&1; printf "\\n%d\\0" $?; shift 3; done';
const PARSE = 'bin=$1; shift; while [ $# -gt 0 ]; do "$bin" policy parse "$1" 2>&1; printf "\\n%d\\0" $?; shift; done';

/** Runs the script over lists of files; for each list {code, output}, in their order. */
async function runEach(script, lists) {
  const results = [];
  const waiting = Array.from({ length: Math.ceil(lists.length / BATCH) }, (_, at) => at);
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (waiting.length) {
      const at = waiting.shift();
      const batch = lists.slice(at * BATCH, (at + 1) * BATCH);
      const { code, stdout, stderr } = await run('/bin/sh', ['-c', script, 'sh', path.resolve(BINARY), ...batch.flat()], { deadline: 300_000 });
      const parts = stdout.split('\0').slice(0, -1);
      assert.deepEqual([code, stderr, parts.length], [0, '', batch.length]);
      results[at] = parts.map((part) => {
        const [, output, exit] = /^([^]*)\n(\d+)$/.exec(part);
        return { code: Number(exit), output };
      });
    }
  }));
  return results.flat();
}

/** Decides all requests of files of tests; their policies and entities stand beside each or below `root`. */
async function authorizeAll(root, requests) {
  const files = filesWith(root, 'requests');
  const lists = files.map((file) => {
    const { policies, entities } = json(file);
    const named = (name) => [path.join(path.dirname(file), name), path.join(root, name)].find((one) => fs.existsSync(one));
    return [named(policies), named(entities), file];
  });
  let count = 0;
  for (const [index, { code, output }] of (await runEach(AUTHORIZE, lists)).entries()) {
    assert.equal(code, 0, `${files[index]}: ${output}`);
    const lines = output.split('\n').slice(0, -1).map((line) => JSON.parse(line));
    assert.deepEqual(lines, json(files[index]).requests.map(({ decision, reason, errors }) => ({ decision, reason, errors })), files[index]);
    count += lines.length;
  }
  assert.equal(count, requests);
}

async function parseAll(t, file) {
  const folder = temporaryFolder(t);
  const { cases } = json(file);
  const files = cases.map(({ text }, index) => {
    const policies = path.join(folder, `${index}.cedar`);
    fs.writeFileSync(policies, text);
    return [policies];
  });
  for (const [index, { code, output }] of (await runEach(PARSE, files)).entries()) {
    const { text, accept } = cases[index];
    assert.equal(code, accept ? 0 : 2, text);
    if (accept) assert.equal(output, '', text);
    else for (const line of output.trimEnd().split('\n')) assert.match(line, /^\S+\/\d+\.cedar:\d+:\d+: \S/, text);
  }
}

test('policy parse --print: one layout, read again as the same', async (t) => {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'a.cedar');
  fs.writeFileSync(file, '@id("a")permit(principal,action==Action::"\\u{62}",resource)when{((1+2)*3==9)&&"\u202e"!=""}; // gone\n');
  const printed = await run(BINARY, ['policy', 'parse', '--print', file]);
  const expected = '@id("a")\npermit(principal, action == Action::"b", resource)\nwhen { (1 + 2) * 3 == 9 && "\\u{202e}" != "" };\n';
  assert.deepEqual([printed.code, printed.stdout, printed.stderr], [0, expected, '']);
  fs.writeFileSync(file, printed.stdout);
  assert.equal((await run(BINARY, ['policy', 'parse', file, '--print'])).stdout, expected);
  fs.writeFileSync(file, 'permit(principal, action, resource) when { 1 < 2 < 3 };\n');
  const refused = await run(BINARY, ['policy', 'parse', '--print', file]);
  assert.deepEqual([refused.code, refused.stdout], [2, '']);
  assert.match(refused.stderr, /a\.cedar:1:50: \S/);
});
test('policy parse --print: what is printed decides all requests alike', LONG, async (t) => {
  const folder = temporaryFolder(t);
  const files = filesWith(OURS, 'requests');
  for (const name of fs.readdirSync(OURS)) fs.copyFileSync(path.join(OURS, name), path.join(folder, name));
  for (const file of files) {
    const policies = path.join(folder, json(file).policies);
    const { code, stdout } = await run(BINARY, ['policy', 'parse', '--print', policies]);
    assert.equal(code, 0, policies);
    fs.writeFileSync(policies, stdout);
  }
  await authorizeAll(folder, 45);
});
test('our own requests: decision, reasons and errors', LONG, () => authorizeAll(OURS, 45));
test('our own texts: whether they are policies', LONG, (t) => parseAll(t, path.join(OURS, 'parse.json')));

test('the hand-written requests', { skip, ...LONG }, () => authorizeAll(path.join(SHARED, 'explicit'), 74));
test('the requests that go with the benchmark', { skip, ...LONG }, () => authorizeAll(path.join(SHARED, 'bench'), 192));
test('the requests and texts that were added', { skip, ...LONG }, async (t) => {
  await authorizeAll(path.join(SHARED, 'supplement'), 45);
  await parseAll(t, path.join(SHARED, 'supplement', 'parse.json'));
});
test('the generated requests', { skip, ...LONG }, async (t) => {
  const folder = temporaryFolder(t);
  execFileSync('tar', ['-xzf', path.join(SHARED, 'corpus-public.tar.gz'), '-C', folder]);
  await authorizeAll(folder, 3851);
});
