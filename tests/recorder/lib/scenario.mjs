// A scenario: scripted clients, the gateway and a scripted server, with taps between them; the transcript is compared with its recording.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AdminClient } from '../../integration/lib/admin.mjs';
import { RawClient, rawClient } from '../../integration/lib/client.mjs';
import { BRIEF_DRAIN, startGateway, temporaryFolder } from '../../integration/lib/gateway.mjs';
import { ModernClient, modernClient } from '../../integration/lib/modern_client.mjs';
import { startUpstream } from '../../integration/lib/upstream.mjs';
import { Journal, startTap } from './tap.mjs';
import { transcript } from './transcript.mjs';

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), '../recordings');
const isWriting = process.env.TASKGATE_RECORDINGS === 'write';

/**
 * A test that plays `script(stage)` and compares both ends' bytes with recordings/`name`.txt. Options: `title` (what the
 * recording shows), `upstream` (of the scripted server), `order` and `own` (see transcript()), `prepare(t)` (returns more
 * options, and `names` of the ports of its servers); all others are the gateway's.
 * Everything until the gateway has ended is part of the recording.
 */
export function scenario(name, { title, upstream: upstreamOptions, order, own = false, skip, ...gatewayOptions }, script) {
  test(`${name}: ${title}`, { skip }, async (t) => {
    const stage = await stageOf(t, upstreamOptions, gatewayOptions);
    const text = () => transcript(stage.journal, { title, order, own, ports: stage.ports, notes: stage.notes });
    try {
      await script(stage);
    } catch (error) {
      error.message += `\nSo far:\n${text()}`;
      throw error;
    }
    stage.journal.mark();
    await stage.gateway.stop();
    await stage.journal.settle();
    compare(t, name, text());
  });
}

async function stageOf(t, upstreamOptions, { prepare, ...given }) {
  const { names = {}, ...more } = (await prepare?.(t)) ?? {};
  const { env, source, ...options } = { ...given, ...more };
  const journal = new Journal();
  const ports = { ...names };
  const upstream = await startUpstream(t, upstreamOptions);
  const before = async (lane, name, port) => {
    const tap = await startTap(t, journal, lane, port);
    ports[tap.port] = name;
    return tap;
  };
  const serverTap = await before('server', 'server', () => upstream.port);
  const gateway = await startGateway(t, { upstream: `http://127.0.0.1:${serverTap.port}/mcp`, source, env: { ...BRIEF_DRAIN, ...env }, ...options });
  const url = async (lane) => `http://127.0.0.1:${(await before(lane, 'gateway', () => gateway.port)).port}/mcp`;
  const stage = { t, journal, ports, upstream, serverTap, gateway, admin: gateway.admin, notes: [] };
  /** A legacy client before its handshake; `connect`: after it. */
  stage.legacy = async (name = 'client', more) => rawClient(t, await url(name), { name, ...more });
  stage.connect = async (name = 'client', more) => {
    const client = await stage.legacy(name, more);
    await client.connect();
    return client;
  };
  stage.modern = async (name = 'client', more) => modernClient(t, await url(name), { info: { name, version: '1.0.0' }, ...more });
  /** The same client past its tap: nothing of it is recorded. */
  stage.twin = (client) => {
    const twin = client instanceof ModernClient ? new ModernClient(gateway.url, { ...client, keepAlive: false }) : new RawClient(gateway.url, { ...client, keepAlive: false });
    return Object.assign(twin, { session: client.session, initialized: client.initialized, headers: client.headers, lastId: 1000 });
  };
  /** A recorded caller of the operators' API. */
  stage.operator = async (name, token) => new AdminClient(`http://127.0.0.1:${(await before(name, 'admin', () => gateway.adminPort)).port}`, token);
  stage.note = (text) => stage.notes.push(text);
  return stage;
}

function compare(t, name, text) {
  const file = path.join(folder, `${name}.txt`);
  if (isWriting) {
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(file, text);
    return;
  }
  assert.ok(fs.existsSync(file), `there is no recording ${name}: tests/recorder/run --write ${name}`);
  if (fs.readFileSync(file, 'utf8') === text) return;
  const seen = path.join(temporaryFolder(t), 'seen.txt');
  fs.writeFileSync(seen, text);
  const { stdout } = spawnSync('diff', ['-u', '--label', `recordings/${name}.txt`, '--label', 'this gateway', file, seen], { encoding: 'utf8' });
  assert.fail(`other bytes than recorded:\n${stdout.slice(0, 20_000)}`);
}
