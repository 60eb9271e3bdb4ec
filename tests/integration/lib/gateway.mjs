// The real gateway binary, started with a generated configuration, watched and stopped.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AdminClient } from './admin.mjs';
import { Child, run } from './child.mjs';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';
import { until } from './wait.mjs';
import { toYaml } from './yaml.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

export const BINARY = path.resolve(process.env.TASKGATE_BIN ?? path.join(here, '../../../build/taskgate'));

/** The default number of workers; more than one for the thread sanitizer. */
const WORKERS = Number(process.env.TASKGATE_TEST_WORKERS ?? 1);

export const ADMIN_TOKEN = 'integration-admin-token-000000000001';

/** A fresh folder that is gone after the test. */
export function temporaryFolder(t, name = 'taskgate-') {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), name));
  defer(t, () => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * A configuration as an object. `upstream` is one URL (source "up") or {id: URL}; `rules` are
 * ["glob", "action"] or whole objects; `config` is laid over the rest, key by key.
 */
export function configuration({ upstream, store, defaultAction = 'forward', rules = [], approval, expose, source = {}, forceRequired, config = {} }) {
  const urls = typeof upstream === 'string' ? { up: upstream } : upstream;
  return {
    schema: 1,
    sources: Object.entries(urls).map(([id, url]) => ({ id, kind: 'mcp', url, ...(expose ? { expose } : {}), ...source })),
    governance: {
      defaults: { action: defaultAction },
      rules: rules.map((rule) => (Array.isArray(rule) ? { match: rule[0], action: rule[1] } : rule)),
    },
    ...(approval ? { approval } : {}),
    ...(forceRequired ? { task_annotation_overrides: { force_required: forceRequired } } : {}),
    store: { path: store },
    ...(WORKERS > 1 ? { workers: WORKERS } : {}),
    ...config,
  };
}

/** One workflow `default` with the given timeout. */
export const workflow = (timeout, more = {}) => ({ default: { destination: { type: 'admin' }, timeout, ...more } });

/** The problems that `check` prints, without the advice about each source that says nothing of its owners. */
export const withoutAdvice = (stderr) => stderr.replace(/^.*: warning: sources\[\d+\]: a task outlives its owner's token, .*\n/gm, '');

/** The environment of a gateway whose test leaves a call open: it waits for that call no longer than this at its end. */
export const BRIEF_DRAIN = { THOUGHTGATE_DRAIN_TIMEOUT_SECS: '1' };

/**
 * Starts the gateway. Options: those of `configuration`, `yaml` (text instead), `env`, `args`, `adminToken` (null for none),
 * `awaitUpstream` (false: do not wait for the start-up fetch), `wrapper` (a command, as words, that executes the gateway),
 * `host` (its address, where that is not this machine's loopback), `binary` (another program than BINARY).
 * It is stopped with SIGTERM after the test; another exit code than 0 or a sanitizer report fails the test.
 */
export async function startGateway(t, options) {
  const gateway = new Gateway(temporaryFolder(t), options);
  defer(t, () => gateway.stop());
  await gateway.start();
  return gateway;
}

export class Gateway {
  constructor(folder, options) {
    this.folder = folder;
    this.options = options;
    this.configPath = path.join(folder, 'config.yaml');
    this.storePath = path.join(folder, 'taskgate.db');
    this.child = null;
    this.writeConfig();
  }

  /** Writes the configuration file anew; `options` are laid over those of the start. */
  writeConfig(options = {}) {
    this.options = { ...this.options, ...options };
    // Never the default place: its content belongs to the machine, not to the test.
    const text = this.options.yaml ? `${this.options.yaml}store: {path: ${this.storePath}}\n` : toYaml(configuration({ store: this.storePath, ...this.options }));
    this.replaceConfig(text);
  }

  /** Puts `text` in place of the configuration file by rename, as editors and ConfigMaps do. */
  replaceConfig(text) {
    const fresh = `${this.configPath}.new`;
    fs.writeFileSync(fresh, text);
    fs.renameSync(fresh, this.configPath);
  }

  environment() {
    return {
      THOUGHTGATE_OUTBOUND_PORT: String(this.port),
      THOUGHTGATE_ADMIN_PORT: String(this.adminPort),
      ...(this.options.adminToken === null ? {} : { THOUGHTGATE_ADMIN_TOKEN: this.options.adminToken ?? ADMIN_TOKEN }),
      ...this.options.env,
    };
  }

  async start() {
    for (let tries = 0; ; tries++) {
      this.port = this.options.port ?? (await freePort());
      this.adminPort = await freePort();
      try {
        await this.launch();
        return;
      } catch (error) {
        // Another process may have taken the port between the look and the use.
        if (tries < 2 && /address.{0,10}in use/i.test(this.child?.stderr ?? '')) continue;
        throw error;
      }
    }
  }

  async launch() {
    const { binary = BINARY, wrapper = [] } = this.options;
    assert.ok(fs.existsSync(binary), `the gateway's binary ${binary} is missing: build it, or set TASKGATE_BIN`);
    const [command, ...args] = [...wrapper, binary, 'serve', '--config', this.configPath, ...(this.options.args ?? [])];
    this.child = new Child(command, args, {
      env: this.environment(),
      cwd: this.folder,
      name: 'taskgate',
    });
    const scheme = (side) => (this.options.config?.[side]?.tls ? 'https' : 'http');
    const host = this.options.host ?? '127.0.0.1';
    this.origin = `${scheme('proxy')}://${host}:${this.port}`;
    this.url = `${this.origin}/mcp`;
    this.adminUrl = `${scheme('admin')}://${host}:${this.adminPort}`;
    this.admin = new AdminClient(this.adminUrl, this.options.adminToken === null ? undefined : (this.options.adminToken ?? ADMIN_TOKEN));
    // Its own word first: on a port that another process took in between, that one would answer for it.
    const saysIt = () => this.options.env?.RUST_LOG || this.child.stderr.includes('"Admin listening"');
    await this.child.ready(async () => saysIt() && (await this.admin.get('/health')).status === 200 && accepts(host, this.port), 'answering on both ports');
    if (this.options.awaitUpstream !== false) {
      await this.child.ready(async () => (await this.admin.get('/ready')).status === 200, 'being ready');
    }
  }

  /** SIGTERM; asserts exit code 0, and a clean stderr. */
  async stop() {
    if (!this.child || this.child.checked) return;
    this.child.checked = true;
    const exit = await this.child.stop('SIGTERM');
    this.child.assertNoSanitizerReport();
    assert.deepEqual(exit, { code: 0, signal: null }, `taskgate ended with ${this.child.ending()}\n${this.child.output()}`);
  }

  /** The power goes. */
  async kill9() {
    this.child.checked = true;
    await this.child.stop('SIGKILL');
    this.child.assertNoSanitizerReport();
  }

  /** Starts again on the same ports, with the same store and configuration. Stops first if it still runs. */
  async restart() {
    await this.stop();
    await this.launch();
  }

  hangUp() {
    this.child.signal('SIGHUP');
  }

  /** Every complete log line as an object. */
  get logs() {
    const lines = this.child.stderr.split('\n').slice(0, -1);
    return lines.filter((line) => line.length > 0).map((line) => {
      try {
        return JSON.parse(line);
      } catch {
        throw new Error(`not a JSON log line: ${line}`);
      }
    });
  }

  /** The first log entry that `matches` (a regular expression on `msg`, or a predicate), awaited. */
  async logged(matches, deadline = 10_000) {
    const fits = matches instanceof RegExp ? (entry) => matches.test(entry.msg) : matches;
    return until(() => this.logs.find(fits), () => `a log line ${matches}\n${this.child.output()}`, { deadline });
  }

  /** `taskgate ARGS…` with this gateway's admin endpoint in the environment. */
  async cli(args, { env = {}, ...options } = {}) {
    return run(BINARY, args, {
      cwd: this.folder,
      env: { THOUGHTGATE_ADMIN_URL: this.adminUrl, THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN, ...env },
      ...options,
    });
  }
}

function accepts(host, port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, host);
    socket.once('connect', () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
  });
}
