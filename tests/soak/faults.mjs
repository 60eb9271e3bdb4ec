// The faults of a soak, one at a time: each begins, lasts a moment, and is taken back.
import { spawnSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { RawClient } from '../integration/lib/client.mjs';
import { socketTo } from '../integration/lib/http.mjs';
import { limitFiles } from '../faults/lib/disk.mjs';
import { holdLock, sqliteMissing } from '../faults/lib/lock.mjs';

const limitsMissing = spawnSync('prlimit', ['--version']).status !== 0;

/** Lets the upstream answer calls in `mode` for a while. */
const upstreamBehaves = (mode) => async (place, moment) => {
  place.mode = mode;
  await pause(moment);
  place.mode = 'honest';
};

export const RULES = [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }, ['drop_*', 'deny']];

export const FAULTS = {
  async 'upstream is gone'({ upstream }, moment) {
    await upstream.stop();
    await pause(moment);
    await upstream.listen();
  },
  'upstream is silent': upstreamBehaves('silent'),
  'upstream leaves in the middle': upstreamBehaves('leaves'),
  'upstream answers garbage': upstreamBehaves('garbage'),
  'upstream dribbles': upstreamBehaves('dribbles'),

  async 'the database is held'({ t, gateway }, moment) {
    if (sqliteMissing) return;
    const lock = await holdLock(t, gateway.storePath);
    await pause(moment);
    await lock.release();
  },
  async 'no file may grow'({ gateway }, moment) {
    if (limitsMissing) return;
    limitFiles(gateway.child.pid, 0);
    await pause(moment);
    limitFiles(gateway.child.pid, 'unlimited');
  },
  async 'other rules'({ gateway }, moment) {
    gateway.writeConfig({ rules: [['delete_*', 'deny'], ...RULES.slice(1)] });
    gateway.hangUp();
    await pause(moment);
    gateway.writeConfig({ rules: RULES });
    gateway.hangUp();
  },
  async 'a file that cannot be read'({ gateway }, moment) {
    gateway.replaceConfig('schema: 1\nsources: [');
    gateway.hangUp();
    await pause(moment);
    gateway.writeConfig();
    gateway.hangUp();
  },
  async 'the operators’ endpoint is gone'({ receiver }, moment) {
    await receiver.stop();
    await pause(moment);
    await receiver.listen();
  },
  async 'clients leave in the middle'({ gateway }, moment) {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => socketTo(gateway.port)));
    for (const [i, socket] of sockets.entries()) socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"jsonrpc":"2.0"'.slice(0, 10 + 8 * i));
    await pause(moment / 4);
    for (const socket of sockets) socket.resetAndDestroy();
  },
  async 'sessions come and go'({ gateway }) {
    for (let i = 0; i < 20; i++) {
      const client = new RawClient(gateway.url, { token: `passer-by-${i}` });
      try {
        await client.connect();
        const stream = await client.listen();
        stream.response.abort();
        await client.delete();
      } finally {
        client.close();
      }
    }
  },
};
