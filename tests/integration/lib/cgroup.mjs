// Control groups with a memory limit, of version 1 or 2, for a process under test.
import fs from 'node:fs';
import path from 'node:path';
import { defer } from './lifetime.mjs';
import { until } from './wait.mjs';

const ROOT = '/sys/fs/cgroup';

const read = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '');

/** The folder for new groups, and the names of its files; undefined where no group can be made. */
function findPlace() {
  const own = /^\d+:(?:\w+,)*memory(?:,\w+)*:(.*)$/m.exec(read('/proc/self/cgroup'))?.[1];
  if (own !== undefined) return { folder: [path.join(ROOT, 'memory', own), path.join(ROOT, 'memory')].find((folder) => fs.existsSync(folder)), limit: 'memory.limit_in_bytes', kills: 'memory.oom_control' };
  try {
    fs.writeFileSync(path.join(ROOT, 'cgroup.subtree_control'), '+memory');
  } catch {
    return undefined;
  }
  return { folder: ROOT, limit: 'memory.max', kills: 'memory.events' };
}

function makeGroup(bytes) {
  const place = findPlace();
  if (place?.folder === undefined) return undefined;
  try {
    const folder = fs.mkdtempSync(path.join(place.folder, 'taskgate-'));
    if (!fs.existsSync(path.join(folder, place.limit))) return fs.rmdirSync(folder);
    fs.writeFileSync(path.join(folder, place.limit), String(bytes));
    return { ...place, folder };
  } catch {
    return undefined;
  }
}

/** The reason that no group can be made; false where one can. */
export function cgroupMissing() {
  const group = makeGroup(64 * 1024 * 1024);
  if (group) fs.rmdirSync(group.folder);
  return group ? false : 'no control group with a memory limit can be made: no root, or no memory controller';
}

/** A group of so many bytes. `wrapper` are words before a command that runs in it; it is gone after the test, as its processes must be. */
export function cgroup(t, bytes) {
  const group = makeGroup(bytes);
  const isEmpty = () => read(path.join(group.folder, 'cgroup.procs')) === '';
  defer(t, async () => (await until(isEmpty, 'the group to be empty'), fs.rmdirSync(group.folder)));
  return {
    wrapper: ['sh', '-c', `echo $$ > ${group.folder}/cgroup.procs && exec "$@"`, 'sh'],
    killed: () => Number(/^oom_kill (\d+)$/m.exec(read(path.join(group.folder, group.kills)))?.[1] ?? 0),
    peak: () => Number(read(path.join(group.folder, 'memory.max_usage_in_bytes')) || read(path.join(group.folder, 'memory.peak'))),
  };
}
