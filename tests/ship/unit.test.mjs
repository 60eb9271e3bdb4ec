// The unit in a systemd of its own: ready, confined, stopped, started again after a crash and a hang, not after a mistake.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, missing, read, run, temporaryFolder, withoutGateway } from '../deploy/lib/tools.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';

const SYSTEMD = '/lib/systemd/systemd';
const lacking = ['systemctl', 'unshare', 'nsenter', 'setpriv'].map((program) => missing(program, 'apt-get install systemd util-linux')).find(Boolean);
const skip = withoutGateway || (process.getuid() !== 0 && 'root alone starts a systemd') || lacking || (existsSync(SYSTEMD) ? false : `${SYSTEMD} is not here: apt-get install systemd`);
const GROUPS = existsSync('/sys/fs/cgroup/systemd') ? '/sys/fs/cgroup/systemd' : '/sys/fs/cgroup';
const WAIT = { deadline: 60_000, every: 200 };

function removeGroup(group) {
  for (const entry of readdirSync(group, { withFileTypes: true })) if (entry.isDirectory()) removeGroup(path.join(group, entry.name));
  rmdirSync(group);
}

/** Starts systemd on this machine's files with those below folder/changed; what runs a command there. */
async function boot(t, folder) {
  const group = path.join(GROUPS, `taskgate-test-${process.pid}`);
  mkdirSync(group);
  const script = 'echo $$ >"$1/cgroup.procs" && exec setpriv --pdeathsig=KILL unshare --mount --pid --uts --ipc --cgroup --fork --kill-child=SIGKILL "$2" "$3"';
  const child = spawn('sh', ['-c', script, 'sh', group, inRoot('tests/ship/lib/boot.sh'), folder], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '', over = false;
  child.stderr.on('data', (bytes) => (log += bytes));
  const ended = new Promise((resolve) => child.on('close', () => resolve((over = true))));
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    await until(() => readFileSync(path.join(group, 'cgroup.procs'), 'utf8') === '', 'the processes to be gone', WAIT);
    removeGroup(group);
  });
  const first = await until(() => over || readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim(), 'the first process', WAIT);
  const within = (...words) => run('nsenter', [`--target=${first}`, '--mount', '--pid', '--uts', '--ipc', '--cgroup', '--root', '--wd', ...words]);
  await until(() => over || within('systemctl', 'is-active', 'basic.target').stdout.trim() === 'active', () => `systemd to be up: ${log}`, WAIT);
  assert.equal(over, false, log);
  return within;
}

test('the unit in a systemd: a call, a reload, a crash, a hang, a mistake, a stop', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const changed = (name, text) => {
    const file = path.join(folder, 'changed', name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  const upstream = await startUpstream(t, { sessions: false, tools: [tool('get_time')] });
  const [port, adminPort] = [await freePort(), await freePort()];
  const config = (action) => `schema: 1\nsources: [{id: up, kind: mcp, url: "${upstream.url}"}]\ngovernance: {defaults: {action: ${action}}}\n`;
  changed('etc/thoughtgate/config.yaml', config('forward'));
  changed('etc/thoughtgate/environment', `THOUGHTGATE_OUTBOUND_PORT=${port}\nTHOUGHTGATE_ADMIN_PORT=${adminPort}\n`);
  changed('etc/systemd/system/taskgate.service', read('deploy/taskgate.service'));
  // Sooner than in the unit; everything else is the unit's.
  changed('etc/systemd/system/taskgate.service.d/sooner.conf', '[Service]\nWatchdogSec=2\nRestartSec=100ms\n');
  cpSync(gateway, changed('usr/local/bin/taskgate', ''));
  run('chmod', ['755', path.join(folder, 'changed/usr/local/bin/taskgate')]);
  const within = await boot(t, folder);

  const show = (name) => within('systemctl', 'show', '--value', `--property=${name}`, 'taskgate').stdout.trim();
  const journal = () => within('journalctl', '--no-pager', '--output=cat').stdout;
  const good = (...words) => {
    const { status, stderr } = within(...words);
    assert.equal(status, 0, `${words.join(' ')}: ${stderr}${journal().slice(-4000)}`);
  };
  const call = async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_time', arguments: {} } });
    const answer = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers: { connection: 'close', 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body });
    return answer.json();
  };

  good('systemctl', 'start', 'taskgate');
  assert.equal(show('SubState'), 'running', 'started is ready');
  assert.ok((await call()).result.content, journal());
  const pid = show('MainPID');
  const status = within('cat', `/proc/${pid}/status`).stdout;
  for (const line of [/^Uid:\t[1-9]\d+\t/m, /^CapEff:\t0+$/m, /^CapBnd:\t0+$/m, /^NoNewPrivs:\t1$/m, /^Seccomp:\t2$/m]) assert.match(status, line);
  assert.deepEqual(within('ls', '/var/lib/taskgate/').stdout.split('\n').slice(0, 3), ['admin-token', 'state.key', 'taskgate.db']);

  within('sh', '-c', `cat >/etc/thoughtgate/config.yaml <<'END'\n${config('deny')}END`);
  good('systemctl', 'reload', 'taskgate');
  await until(async () => (await call()).result.isError === true, 'the new rules', WAIT);

  const restarted = (count) => until(() => show('NRestarts') === String(count) && show('SubState') === 'running', () => `start ${count}\n${journal().slice(-4000)}`, WAIT);
  within('kill', '-KILL', pid);
  await restarted(1);
  assert.notEqual(show('MainPID'), pid);
  within('kill', '-STOP', show('MainPID'));
  await restarted(2);
  assert.match(journal(), /Watchdog timeout/);
  good('systemctl', 'stop', 'taskgate');
  assert.deepEqual([show('Result'), show('ActiveState'), show('ExecMainStatus')], ['success', 'inactive', '0']);

  within('sh', '-c', 'echo "shema: 1" >/etc/thoughtgate/config.yaml');
  assert.notEqual(within('systemctl', 'start', 'taskgate').status, 0);
  assert.deepEqual([show('ActiveState'), show('ExecMainStatus'), show('NRestarts')], ['failed', '2', '0'], 'it is not tried again');
});
