// taskgate policy: the output and exit codes of its commands.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, temporaryFolder, withoutAdvice } from './lib/gateway.mjs';

const CONFIG = `schema: 1
sources:
  - {id: bank, kind: mcp, url: http://127.0.0.1:9/mcp}
governance:
  defaults: {action: deny}
  rules:
    - {match: "get_*", action: forward}
    - {match: "pay_*", action: policy, policy_id: payments}
cedar:
  policies: [payments.cedar]
`;
const POLICIES = `@id("payments") @name("small")
permit (principal, action == ThoughtGate::Action::"Forward", resource)
when { resource.arguments.amount < 100 };
@id("payments") @name("large")
permit (principal, action == ThoughtGate::Action::"Approve", resource)
when { resource.arguments.amount >= 100 };
`;
const CASES = `cases:
  - {name: reading, request: {tool: get_x}, expect: {decision: forward, rule: "get_*"}}
  - {name: little, request: {tool: pay_x, arguments: {amount: 1}}, expect: {decision: forward, policies: [small]}}
  - {name: much, request: {tool: pay_x, arguments: {amount: 100}}, expect: {decision: approve, workflow: default, policies: [large]}}
`;

/** A folder with these files, and the command in it; variables of the gateway are set to mislead. */
function bench(t, files) {
  const folder = temporaryFolder(t);
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  const env = { THOUGHTGATE_POLICIES: 'forbid(principal, action, resource);', THOUGHTGATE_CONFIG: '/nowhere' };
  return { folder, policy: (...args) => run(BINARY, ['policy', ...args], { cwd: folder, env }) };
}

const GOOD = { 'rules/config.yaml': CONFIG, 'rules/payments.cedar': POLICIES, 'rules/config.test.yaml': CASES };

test('--help of policy and of each of its commands: exit 0, on stdout', async (t) => {
  const { policy } = bench(t, {});
  const whole = await policy('--help');
  assert.deepEqual([whole.code, whole.stderr], [0, '']);
  for (const name of ['authorize', 'parse', 'test']) {
    assert.match(whole.stdout, new RegExp(`^  ${name} `, 'm'));
    const { code, stdout, stderr } = await policy(name, '--help');
    assert.deepEqual([code, stderr], [0, ''], name);
    assert.match(stdout, new RegExp(`^Usage: taskgate policy ${name} `), name);
  }
});

test('wrong usage is exit 2, on stderr', async (t) => {
  const { policy } = bench(t, GOOD);
  const wrong = [[], ['tset'], ['test'], ['test', 'rules', 'rules'], ['test', '--nope', 'rules'], ['parse'], ['authorize'], ['authorize', '--policies', 'rules/payments.cedar'], ['parse', 'nowhere.cedar'], ['test', 'nowhere']];
  for (const args of wrong) {
    const { code, stdout, stderr } = await policy(...args);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /^taskgate: |^Usage: /, args.join(' '));
  }
});

test('cases that hold are exit 0, from wherever the command is run', async (t) => {
  const { folder, policy } = bench(t, GOOD);
  for (const where of ['.', 'rules', 'rules/', 'rules/config.test.yaml', path.join(folder, 'rules')]) {
    const { code, stdout, stderr } = await policy('test', where);
    assert.deepEqual([code, stderr], [0, ''], where);
    assert.match(stdout, /^passed .*config\.test\.yaml: 3 cases of .*config\.yaml\n\n3 cases: 3 passed, 0 failed\. Every rule and policy was reached\.\n$/, where);
  }
});

test('a relative path of policies is seen from the folder of the configuration, in every command', async (t) => {
  const shadow = CONFIG.replace('payments.cedar', '../payments.cedar');
  const files = { ...GOOD, 'rules/config.yaml': CONFIG.replace('governance:', 'governance:\n  shadow: next/shadow.yaml'), 'rules/next/shadow.yaml': shadow };
  const { folder } = bench(t, { ...files, 'elsewhere/payments.cedar': 'broken', 'elsewhere/mine.cedar': `${POLICIES}forbid(principal, action, resource);` });
  const config = path.join(folder, 'rules/config.yaml');
  for (const [cwd, named] of [[folder, 'rules/config.yaml'], [path.join(folder, 'rules'), 'config.yaml'], [path.join(folder, 'elsewhere'), '../rules/config.yaml'], ['/', config]]) {
    const taskgate = (...args) => run(BINARY, args, { cwd });
    const check = await taskgate('check', '--strict', '--config', named);
    assert.deepEqual([check.code, withoutAdvice(check.stderr)], [0, ''], named);
    const explain = await taskgate('explain', '--json', '--config', named, '--args', '{"amount": 1}', 'pay_x');
    assert.equal(explain.code, 0, explain.stderr);
    assert.equal(JSON.parse(explain.stdout).decision, 'forward', named);
    assert.equal((await taskgate('policy', 'test', path.dirname(named))).code, 0, named);
  }
  // A variable belongs to the shell of the command, and so does its path.
  const forbidden = await run(BINARY, ['explain', '--json', '--config', config, '--args', '{"amount": 1}', 'pay_x'], { cwd: path.join(folder, 'elsewhere'), env: { THOUGHTGATE_POLICY_FILE: 'mine.cedar' } });
  assert.equal(JSON.parse(forbidden.stdout).decision, 'reject', forbidden.stderr);
  fs.rmSync(path.join(folder, 'rules/payments.cedar'));
  const gone = await run(BINARY, ['check', '--config', 'rules/config.yaml'], { cwd: folder });
  assert.deepEqual([gone.code, gone.stdout], [2, '']);
  assert.match(gone.stderr, /^rules\/config\.yaml:11:14: cedar\.policies\[0\]: V-013 the policy file rules\/payments\.cedar cannot be read: No such file/m);
  assert.match(gone.stderr, /^rules\/next\/shadow\.yaml:10:14: cedar\.policies\[0\]: V-013 the policy file rules\/next\/\.\.\/payments\.cedar cannot be read: /m);
});

test('the variables of a test are seen from its folder', async (t) => {
  const cases = `environment: {THOUGHTGATE_POLICY_FILE: other.cedar}\n${CASES.replace('decision: forward, policies: [small]', 'decision: approve, policies: [policy0]').replace('[large]', '[policy0]')}`;
  const { policy } = bench(t, { ...GOOD, 'rules/config.test.yaml': cases, 'rules/other.cedar': 'permit(principal, action == ThoughtGate::Action::"Approve", resource);', 'other.cedar': 'broken' });
  const { code, stdout, stderr } = await policy('test', 'rules');
  assert.deepEqual([code, stderr.split('\n').length], [0, 2], stderr);
  assert.match(stderr, /^rules\/config\.yaml:10:13: warning: cedar\.policies: the files are not read: THOUGHTGATE_POLICY_FILE is set and wins\n$/);
  assert.match(stdout, /\n3 cases: 3 passed, 0 failed\. Every rule and policy was reached\.\n$/);
});

test('a case that does not hold is exit 1, with both sides', async (t) => {
  const { policy } = bench(t, { ...GOOD, 'rules/payments.cedar': POLICIES.replace('< 100', '< 1') });
  const { code, stdout } = await policy('test', 'rules');
  assert.equal(code, 1);
  assert.match(stdout, /^FAILED rules\/config\.test\.yaml:3:5: little\n {4}call +pay_x \{"amount":1\} of bank\n {4}decision {2}- forward\n {14}\+ reject\n {4}policies {2}- small\n {14}\+ none\n/);
  assert.match(stdout, /\nNo case has reached:\n {2}rules\/payments\.cedar:1:1: policy small\n\n3 cases: 2 passed, 1 failed\. /);
  const json = await policy('test', '--json', 'rules');
  assert.equal(json.code, 1);
  const { files, cases, failed, unreached } = JSON.parse(json.stdout);
  assert.deepEqual([cases, failed, unreached], [3, 1, 1]);
  assert.deepEqual(files[0].cases.map((one) => one.passed), [true, false, true]);
  assert.deepEqual(files[0].cases[1].differences, [{ what: 'decision', expected: 'forward', actual: 'reject' }, { what: 'policies', expected: 'small', actual: 'none' }]);
  assert.deepEqual(files[0].unreached, [{ kind: 'policy', name: 'small', file: 'rules/payments.cedar', line: 1, column: 1 }]);
});

test('a rule that no case reaches is told, and is a failure with --strict', async (t) => {
  const { policy } = bench(t, { ...GOOD, 'rules/config.test.yaml': CASES.split('\n').slice(0, 2).join('\n') });
  const told = '  rules/config.yaml:8:7: rule pay_*\n  rules/payments.cedar:1:1: policy small\n  rules/payments.cedar:4:1: policy large\n';
  for (const [args, code] of [[['test', 'rules'], 0], [['test', '--strict', 'rules'], 1]]) {
    const result = await policy(...args);
    assert.equal(result.code, code);
    assert.ok(result.stdout.includes(`\nNo case has reached:\n${told}\n1 case: 1 passed`), result.stdout);
  }
});

test('a wrong file is exit 2 with every place and key, and no case is run', async (t) => {
  const cases = 'cases:\n  - nmae: a\n    request: {tool: get_x, at: noon}\n    expect: {decision: alow, rule: get}\n';
  const { policy } = bench(t, { ...GOOD, 'rules/config.test.yaml': cases, 'b/x.cedar': 'permit(principal);', 'b/x.test.yaml': CASES });
  const { code, stdout, stderr } = await policy('test', '.');
  assert.deepEqual([code, stdout], [2, '']);
  for (const line of [
    './b/x.cedar:1:17: unexpected ")"; expected ',
    './rules/config.test.yaml:2:5: cases[0].nmae: unknown key; did you mean "name"?',
    './rules/config.test.yaml:2:5: cases[0].name: the key is missing',
    './rules/config.test.yaml:3:32: cases[0].request.at: "noon" is not a time',
    './rules/config.test.yaml:4:24: cases[0].expect.decision: "alow" is not a decision; ',
    './rules/config.test.yaml:4:36: cases[0].expect.rule: "get" is not the pattern or number of a rule; ',
  ]) assert.ok(stderr.split('\n').some((other) => other.startsWith(line)), `${line}\n${stderr}`);
});

// Random bytes are refused, or are a valid file; the sanitizers watch.
test('damaged files are exit 0, 1 or 2 and nothing else', { timeout: 300_000 }, async (t) => {
  const entities = '[{"uid":{"type":"User","id":"a"},"attrs":{"n":{"__extn":{"fn":"ip","arg":"::1"}},"s":[1,{"k":"\\u0000"}]},"parents":[{"__entity":{"type":"G","id":"g"}}],"tags":{"t":-1}}]';
  const requests = '{"requests":[{"principal":"User::\\"a\\"","action":{"type":"Action","id":"x"},"resource":{"type":"D","id":"d"},"context":{"at":{"__extn":{"fn":"offset","args":[{"__extn":{"fn":"datetime","arg":"2026-01-01"}},{"__extn":{"fn":"duration","arg":"1d"}}]}}}}]}';
  const { folder, policy } = bench(t, { ...GOOD, 'e.json': entities, 'r.json': requests });
  let state = 20260105;
  const random = (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
  const damage = (text) => {
    const bytes = Buffer.from(text);
    const [at, length] = [random(bytes.length), random(12)];
    const piece = [Buffer.from([random(256)]), Buffer.from('[{"'), Buffer.from('}}]'), bytes.subarray(at, at + length), Buffer.alloc(0)][random(5)];
    return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + random(length + 1))]);
  };
  const texts = { ...GOOD, 'e.json': entities, 'r.json': requests };
  for (let round = 0; round < 60; round++) {
    const names = Object.keys(texts);
    const name = names[random(names.length)];
    fs.writeFileSync(path.join(folder, name), damage(texts[name]));
    const authorize = ['authorize', '--policies', 'rules/payments.cedar', '--entities', 'e.json', '--requests', 'r.json'];
    for (const args of [['test', 'rules'], authorize]) {
      const { code, stderr } = await policy(...args);
      assert.ok([0, 1, 2].includes(code), `${round}: ${name}: ${code} ${stderr}`);
      assert.doesNotMatch(stderr, /Sanitizer|runtime error/, `${round}: ${name}`);
      if (code === 2) assert.notEqual(stderr, '', `${round}: ${name}`);
    }
    fs.writeFileSync(path.join(folder, name), texts[name]);
  }
});

test('keys that only case or look tells apart: invalid, for test and explain alike, unless the rule allows them', async (t) => {
  const wide = CONFIG.replace('policy_id: payments}', 'policy_id: payments}\n    - {match: "wide_*", action: policy, policy_id: payments, case_variants: allow}');
  const cases = `cases:
  - {name: twins, request: {tool: pay_x, arguments: {amount: 1, Amount: 5000}}, expect: {decision: invalid, rule: "pay_*"}}
  - {name: variant, request: {tool: pay_x, arguments: {Amount: 5000}}, expect: {decision: reject, errors: [small, large]}}
  - {name: allowed, request: {tool: wide_x, arguments: {amount: 1, Amount: 5000}}, expect: {decision: reject, errors: [small, large]}}
  - {name: forwarded, request: {tool: get_x, arguments: {amount: 1, Amount: 5000}}, expect: {decision: forward}}
`;
  const { folder, policy } = bench(t, { ...GOOD, 'rules/config.yaml': wide, 'rules/config.test.yaml': cases });
  const { code, stdout } = await policy('test', 'rules');
  assert.equal(code, 0, stdout);
  const explain = (...more) => run(BINARY, ['explain', '--config', 'rules/config.yaml', '--args', '{"amount": 1, "Amount": 5000}', ...more], { cwd: folder });
  const { decision, gate, failure } = JSON.parse((await explain('--json', 'pay_x')).stdout);
  assert.deepEqual([decision, gate, failure], ['invalid', 'arguments', 'keys of the arguments differ only by case or look']);
  assert.match((await explain('pay_x')).stdout, /^Decision +invalid, by the gate arguments\n +keys of the arguments differ only by case or look$/m);
  assert.equal(JSON.parse((await explain('--json', 'wide_x')).stdout).decision, 'reject');
});
