// The command line as a person at a terminal has it: lists that fit, the queue by single keys, what is
// watched, colours, completion.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import http from 'node:http';
import { test } from 'node:test';
import { ADMIN_TOKEN, BINARY, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const skip = has('script') ? false : 'script is not here: apt-get install bsdutils';

const LONG = 'delete_everything_that_this_customer_has_ever_stored_anywhere';
const stage = (t, more = {}) => scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('pay'), tool(LONG)] }, ...more });

/** The command in a terminal of so many columns: `type()` presses keys once `prompt` has come anew. */
function inTerminal(t, gateway, words, { columns = 80, env = {}, after = ':' } = {}) {
  const command = `stty cols ${columns} rows 40; ${BINARY} ${words.join(' ')}; code=$?; ${after}; exit $code`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { ...process.env, NO_COLOR: '', TERM: 'xterm', THOUGHTGATE_ADMIN_URL: gateway.adminUrl, THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN, ...env },
  });
  defer(t, () => child.kill('SIGKILL'));
  const terminal = { output: '', seen: 0, code: null };
  child.stdout.on('data', (bytes) => (terminal.output += bytes));
  child.on('close', (code) => (terminal.code = code));
  terminal.type = async (keys, prompt) => {
    await until(() => terminal.output.includes(prompt, terminal.seen), `${prompt} in ${terminal.output}`);
    terminal.seen = terminal.output.length;
    child.stdin.write(keys);
  };
  terminal.ended = async () => {
    await until(() => terminal.code !== null, `the end of ${words.join(' ')}: ${terminal.output}`);
    return terminal.output.replaceAll('\r\n', '\n');
  };
  return terminal;
}

// eslint-disable-next-line no-control-regex
const plain = (text) => text.replaceAll(/\u001b\[\d*m/g, '');
const rows = (text) => plain(text).trimEnd().split('\n').slice(1);

test('tasks list fits the terminal; its short ids are enough for the other commands', { skip }, async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const ids = [];
  for (const name of ['pay', LONG, 'delete_user']) ids.push((await client.createTask(name, { user: 1 })).taskId);
  const output = await inTerminal(t, gateway, ['tasks', 'list']).ended();
  const lines = plain(output).trimEnd().split('\n');
  assert.equal(lines.length, 4, output);
  for (const line of lines) assert.ok([...line].length <= 80, `${[...line].length}: ${line}`);
  assert.match(lines[2], /delete_e\S*…/, 'a long name is cut');
  assert.match(lines[0], /TOOL +RISK +CALL +ASKED BY/);
  assert.match(lines[1], / pay +medium +user: 1 /);
  const short = lines.slice(1).map((line) => line.split(' ')[0]);
  assert.deepEqual(short, ids.map((id, i) => id.slice(0, short[i].length)));
  assert.ok(short.every((id) => id.length < 20));
  const shown = await gateway.cli(['tasks', 'show', short[0], '--json']);
  assert.equal(JSON.parse(shown.stdout).id, ids[0]);
  assert.equal((await gateway.cli(['tasks', 'reject', short[1]])).code, 0);
  assert.equal((await admin.task(ids[1])).state, 'rejected');
  const piped = await gateway.cli(['tasks', 'list']);
  for (const id of ids) assert.ok(piped.stdout.includes(id), 'a program gets whole ids');
});

test('tasks list has risk and call of each task, whole where no terminal cuts it and without what a terminal obeys', async (t) => {
  const show = { summary: 'Deletes {name} for good', risk: 'high' };
  const { gateway, connect } = await scene(t, {
    rules: [{ match: 'drop', action: 'approve', show }, ['*', 'approve']],
    approval: workflow('10m', { redact_fields: ['pin'] }),
    upstream: { tools: [tool('drop'), { ...tool('read'), annotations: { readOnlyHint: true } }] },
  });
  const client = await connect();
  await client.createTask('drop', { name: `${'é'.repeat(100)}\u001b[2J` });
  await client.createTask('read', { 'k\u202e': `a\u001b[31m${'\n'.repeat(60)}DROP`, n: 12, list: [1, 2], empty: {}, pin: 4711 });
  await client.createTask('read', { text: 'x'.repeat(500), more: 1 });
  const lines = rows((await gateway.cli(['tasks', 'list'])).stdout);
  assert.equal(lines.length, 3);
  assert.ok(lines.some((line) => / drop +high +/.test(line) && line.includes(`Deletes "${'é'.repeat(100)}\\u001b[2J" for good  `)), lines.join('\n'));
  assert.ok(lines.some((line) => / read +low +/.test(line) && line.includes('k\\u202e: a\\u001b[31m[60 line breaks]DROP · n: 12 · list: [2 items] · empty: {} · pin: [REDACTED]  ')), lines.join('\n'));
  assert.ok(lines.some((line) => line.includes(`text: ${'x'.repeat(154)}…  `)), lines.join('\n'));
});

test('an id that begins several others is refused, and decides nothing; one of no task is not found', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const first = new Map();
  let both;
  // Of 17 tasks two have the same first digit.
  for (let i = 0; i < 17 && !both; i++) {
    const { taskId } = await client.createTask('pay', { i });
    const beginning = taskId.slice(0, 4);
    if (first.has(beginning)) both = [first.get(beginning), taskId];
    first.set(beginning, taskId);
  }
  const refused = await gateway.cli(['tasks', 'approve', both[0].slice(0, 4)]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /begins the ids of 2 tasks; write more of it/);
  for (const id of both) assert.equal((await admin.task(id)).state, 'pending');
  assert.equal((await gateway.cli(['tasks', 'approve', 'tg_zzzz'])).code, 4);
  assert.equal((await gateway.cli(['tasks', 'approve', 'tg_'])).code, 4, 'too short for a beginning');
});

test('tasks list: what waits stands first, by the time left, then the newest of the others', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const make = async (ttl) => (await client.createTask('pay', { ttl }, ttl ? { ttl } : {})).taskId;
  const ended = [await make(), await make()];
  const [late, soon, between] = [await make(500_000), await make(100_000), await make(300_000)];
  for (const id of ended) await admin.reject(id, 'no');
  const { stdout } = await gateway.cli(['tasks', 'list']);
  assert.deepEqual(rows(stdout).map((line) => line.split(' ')[0]), [soon, between, late, ended[1], ended[0]]);
  assert.match(rows(stdout)[0], /pending +1m \d+s +pay/);
  assert.match(rows(stdout)[3], /rejected +- +pay/);
  const two = await gateway.cli(['tasks', 'list', '--limit', '2']);
  assert.deepEqual(rows(two.stdout.split('\n\n')[0]).map((line) => line.split(' ')[0]), [soon, between]);
  assert.match(two.stdout, /\n1 more wait: --limit 100\n$/);
  const waiting = await gateway.cli(['tasks', 'list', '--state', 'pending']);
  assert.equal(rows(waiting.stdout).length, 3);
  const json = JSON.parse((await gateway.cli(['tasks', 'list', '--json'])).stdout);
  assert.deepEqual(json.tasks.map(({ id }) => id), [between, soon, late, ended[1], ended[0]], 'as the endpoint gives them');
});

test('colours: on a terminal alone, and not with NO_COLOR or TERM=dumb', { skip }, async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect();
  await client.createTask('pay');
  assert.match(await inTerminal(t, gateway, ['tasks', 'list']).ended(), /\u001b\[33mpending\u001b\[0m/);
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) assert.doesNotMatch(await inTerminal(t, gateway, ['tasks', 'list'], { env }).ended(), /\u001b\[/);
  assert.doesNotMatch((await gateway.cli(['tasks', 'list'], { env: { TERM: 'xterm' } })).stdout, /\u001b/);
});

const PROMPT = '(A, R: with a reason)';

test('tasks approve and reject print the whole call on a terminal, and ask; --yes does not ask', { skip }, async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const call = async () => (await client.createTask('pay', { db: 'PRODUCTION', pad: 'x'.repeat(200) })).taskId;
  const [first, second, third] = [await call(), await call(), await call()];
  const no = inTerminal(t, gateway, ['tasks', 'approve', first]);
  await no.type('\n', 'Approve? [y/N] ');
  assert.match(await no.ended(), /"db": "PRODUCTION"[\s\S]*Nothing was decided\./);
  assert.deepEqual([no.code, (await admin.task(first)).state], [1, 'pending']);
  const yes = inTerminal(t, gateway, ['tasks', 'approve', first]);
  await yes.type('y\n', 'Approve? [y/N] ');
  await yes.ended();
  const rejected = inTerminal(t, gateway, ['tasks', 'reject', second]);
  await rejected.type('yes\n', 'Reject? [y/N] ');
  await rejected.ended();
  const unasked = inTerminal(t, gateway, ['tasks', 'approve', third, '--yes']);
  assert.ok(!(await unasked.ended()).includes('[y/N]'));
  for (const [id, state] of [[first, 'completed'], [second, 'rejected'], [third, 'completed']]) await admin.inState(id, state);
});

test('to approve a call of high risk a terminal asks for the value in place of y; to reject it, for y', { skip }, async (t) => {
  const other = 'dr\u043ep';
  const { gateway, admin, connect } = await stage(t, { rules: [{ match: '*', action: 'approve', show: { risk: 'high', confirm: 'db' } }], upstream: { tools: [tool('pay'), tool(other)] } });
  const client = await connect();
  const call = async (args, name = 'pay') => (await client.createTask(name, args)).taskId;
  const decide = async (id, words, ...lines) => {
    const terminal = inTerminal(t, gateway, ['tasks', ...words]);
    for (const [line, prompt] of lines) await terminal.type(line, prompt);
    const output = await terminal.ended();
    return [terminal.code, (await admin.task(id)).state !== 'pending', output];
  };
  const first = await call({ db: 'PRODUCTION' });
  const asks = 'Type the value of db to approve: ';
  for (const [line, code, words] of [['y', 1, /another value was typed/], ['PRODUCTI\u041eN', 1, /another value was typed/], ['', 1, /Nothing was decided\./]]) {
    const [own, isDecided, output] = await decide(first, ['approve', first], [`${line}\n`, asks]);
    assert.deepEqual([own, isDecided], [code, false], line);
    assert.match(output, words);
  }
  assert.deepEqual((await decide(first, ['reject', first], ['n\n', 'Reject? [y/N] '])).slice(0, 2), [1, false]);
  assert.deepEqual((await decide(first, ['approve', first], ['  PRODUCTION \n', asks])).slice(0, 2), [0, true]);
  const second = await call({ db: ['a', 'b'] });
  assert.deepEqual((await decide(second, ['next'], ['a', PROMPT], ['PAY\n', 'Type the name of the tool to approve: '], ['a', PROMPT], ['pay\n', 'Type the name of the tool to approve: '])).slice(0, 2), [0, true]);
  const third = await call({}, other);
  const { requestDigest } = await admin.task(third);
  assert.deepEqual((await decide(third, ['next'], ['A', PROMPT], ['agreed\n', 'reason: '], [`${requestDigest.slice(0, 8)}\n`, 'Type the first 8 digits of the line Request to approve: '])).slice(0, 2), [0, true]);
  assert.equal((await admin.task(third)).reason, 'agreed');
});

test('tasks approve --digest counts for that request alone', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('pay');
  const { requestDigest } = await admin.task(taskId);
  for (const verb of ['approve', 'reject']) assert.equal((await gateway.cli(['tasks', verb, taskId, '--digest', '0'.repeat(64)])).code, 5);
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.equal((await gateway.cli(['tasks', 'approve', taskId, '--digest', requestDigest])).code, 0);
});

/** A way to the gateway that keeps the bodies of what a command sends. */
async function recording(t, gateway) {
  const bodies = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const bytes of request) body += bytes;
    if (request.method === 'POST') bodies.push(JSON.parse(body));
    const { authorization, 'content-type': type = 'application/json' } = request.headers;
    const answer = await fetch(gateway.adminUrl + request.url, { method: request.method, headers: { authorization, 'content-type': type }, body: body || undefined });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(t, () => (server.closeAllConnections(), server.close()));
  return { bodies, env: { THOUGHTGATE_ADMIN_URL: `http://127.0.0.1:${server.address().port}` } };
}

test('a decision at a terminal is about the request that was printed there', { skip }, async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const { bodies, env } = await recording(t, gateway);
  for (const [words, lines] of [
    [['approve'], [['y\n', 'Approve? [y/N] ']]],
    [['reject'], [['y\n', 'Reject? [y/N] ']]],
    [['approve', '--yes'], []],
    [['next'], [['a', PROMPT]]],
    [['next'], [['r', PROMPT]]],
  ]) {
    const { taskId } = await client.createTask('pay', { n: bodies.length });
    const { requestDigest } = await admin.task(taskId);
    const terminal = inTerminal(t, gateway, ['tasks', words[0], ...(words[0] === 'next' ? [] : [taskId]), ...words.slice(1)], { env });
    for (const [line, prompt] of lines) await terminal.type(line, prompt);
    await terminal.ended();
    assert.equal(bodies.at(-1).requestDigest, requestDigest, words.join(' '));
    assert.notEqual((await admin.task(taskId)).state, 'pending', words.join(' '));
  }
  assert.equal(bodies.length, 5);
});

test('tasks next: the most urgent call with its arguments, decided by one key; a key too early decides nothing', { skip }, async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const make = async (name, ttl) => (await client.createTask(name, { of: name }, { ttl })).taskId;
  const last = await make('delete_user', 500_000), first = await make('pay', 100_000), middle = await make(LONG, 300_000);
  const terminal = inTerminal(t, gateway, ['tasks', 'next']);
  await terminal.type('aa', PROMPT);
  await admin.inState(first, 'completed');
  await terminal.type('x', PROMPT); // no such key: it asks again
  assert.match(plain(terminal.output), /pay +3 wait, 1m \d+s left[^]*"of": "pay"[^]*2 wait, 4m \d+s left/);
  assert.equal((await admin.task(middle)).state, 'pending', 'the second a came before its question');
  await terminal.type('R', PROMPT);
  await terminal.type('not this one\n', 'reason: ');
  await terminal.type('s', PROMPT);
  const output = await terminal.ended();
  assert.equal(terminal.code, 0);
  assert.match(output, /Nothing else waits\./);
  const rejected = await admin.task(middle);
  assert.deepEqual([rejected.state, rejected.reason], ['rejected', 'not this one']);
  assert.equal((await admin.task(last)).state, 'pending', 'skipped');
});

test('tasks next: Ctrl-C leaves the terminal as it was; without a terminal keys come from standard input', { skip }, async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('pay');
  const terminal = inTerminal(t, gateway, ['tasks', 'next'], { after: 'stty -a' });
  await terminal.type('\u0003', PROMPT);
  assert.match(await terminal.ended(), /[^-]isig [^-]*icanon[^]* echo /);
  assert.equal(terminal.code, 0);
  const piped = spawnSync(BINARY, ['tasks', 'next'], { input: 'q', encoding: 'utf8', env: { ...process.env, THOUGHTGATE_ADMIN_URL: gateway.adminUrl, THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN } });
  assert.deepEqual([piped.status, piped.stderr], [0, '']);
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('tasks watch: time, caller, tool, and why a call failed or was refused', async (t) => {
  const { gateway, admin, upstream, connect } = await stage(t);
  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ isError: true, content: [{ type: 'text', text: 'the account is closed' }] });
  const child = spawn(BINARY, ['tasks', 'watch'], { env: { ...process.env, THOUGHTGATE_ADMIN_URL: gateway.adminUrl, THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN } });
  defer(t, () => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (bytes) => (output += bytes));
  const client = await connect();
  const seen = async (id, pattern) => {
    await until(() => output.split('\n').some((line) => line.includes(id) && pattern.test(line)), `${pattern} in ${output}`);
    return output.split('\n').find((line) => line.includes(id) && pattern.test(line));
  };
  // The stream may begin after the first call.
  let refused;
  await until(async () => {
    refused = (await client.createTask('pay')).taskId;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return output.includes(refused);
  }, 'the stream');
  assert.match(await seen(refused, /pending/), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}tg_\S+ {2}pending {2}pay {2}for \S/);
  await admin.reject(refused, 'ask Ada first');
  assert.match(await seen(refused, /rejected/), / {2}rejected {2}pay {2}by admin {2}for .*: ask Ada first$/);
  const failing = (await client.createTask('delete_user')).taskId;
  await admin.approve(failing, 'fine');
  assert.match(await seen(failing, /failed/), / {2}failed {2}delete_user {2}approved by admin {2}for .*: the account is closed$/);
});

// ---- completion ----

const words = (...line) => spawnSync(BINARY, [...line, '--complete'], { encoding: 'utf8' });
const names = (stdout) => stdout.trimEnd().split('\n').map((line) => line.split('|')[0]).filter(Boolean);

test('completion offers the words of --help, for every command', () => {
  const commands = names(words().stdout);
  assert.ok(commands.includes('tasks') && commands.includes('completion'));
  const lines = commands.flatMap((command) => {
    const { stdout } = words(command);
    return stdout.includes('|') && !stdout.startsWith('--') ? names(stdout).filter((name) => !name.startsWith('--')).map((name) => [command, name]) : [[command]];
  });
  assert.ok(lines.length > 20, `${lines.length}`);
  for (const line of lines) {
    const { status, stdout, stderr } = words(...line);
    assert.deepEqual([status, stderr], [0, ''], line.join(' '));
    const help = spawnSync(BINARY, [...line, '--help'], { encoding: 'utf8' }).stdout;
    const options = [...help.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option).filter((option) => option !== '--version');
    assert.deepEqual(names(stdout).filter((name) => name.startsWith('--')), options, line.join(' '));
  }
});

const CASES = [
  [['ta'], ['tasks']],
  [['tasks', 'app'], ['approve']],
  [['tasks', 'list', '--s'], ['--state', '--source']],
  [['tasks', 'list', '--state', ''], []],
  [['check', '--config', 'package.'], ['package.json']],
  [['backup', 'package.'], ['package.json']],
];
const FOLDER = new URL('.', import.meta.url).pathname;

test('bash completes commands, options and files', () => {
  for (const [line, expected] of CASES) {
    const script = 'source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _taskgate; printf "%s\\n" "${COMPREPLY[@]}"';
    const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', BINARY, BINARY, ...line], { encoding: 'utf8', cwd: FOLDER });
    assert.equal(stderr, '');
    assert.deepEqual(stdout.trim().split('\n').filter(Boolean), expected, line.join(' '));
  }
});

test('fish completes commands, options and files', { skip: has('fish') ? false : 'fish is not here: apt-get install fish' }, () => {
  for (const [line, expected] of CASES) {
    const script = '$argv[1] completion fish | source; complete -C "$argv"';
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script, BINARY, ...line], { encoding: 'utf8', cwd: FOLDER });
    assert.equal(stderr, '');
    assert.deepEqual(stdout.split('\n').filter(Boolean).map((found) => found.split('\t')[0]).sort(), expected.toSorted(), line.join(' '));
  }
});

test('zsh completes commands, options and files', { skip: has('zsh') ? false : 'zsh is not here: apt-get install zsh' }, () => {
  for (const [line, expected] of CASES) {
    // Prints the words that zsh's own functions would be given.
    const script = `compdef() {}; _files() { print -l -- $words[CURRENT]*(N) }; _describe() { local -a all=("\${(@P)2}"); print -l -- \${(M)\${all%%:*}:#\${words[CURRENT]}*} }
source <("$1" completion zsh); shift; words=("$@"); CURRENT=$#; _taskgate`;
    const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', script, 'zsh', BINARY, BINARY, ...line], { encoding: 'utf8', cwd: FOLDER });
    assert.equal(stderr, '');
    assert.deepEqual(stdout.trim().split('\n').filter((text) => text && text !== line.at(-1) + '*'), expected, line.join(' '));
  }
});

test('another shell is refused', () => {
  const { status, stderr } = spawnSync(BINARY, ['completion', 'tcsh'], { encoding: 'utf8' });
  assert.equal(status, 2);
  assert.match(stderr, /no completion for tcsh; there is one for bash, zsh and fish/);
});
