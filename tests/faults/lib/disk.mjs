// Disks that are full, read-only or small, for one gateway alone: in a mount namespace of its own.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** Why there are no mounts of our own here, or false. */
export const mountsMissing = (() => {
  const tried = spawnSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs none /mnt && mount -o remount,bind,ro /mnt'], { stdio: 'ignore' });
  return tried.status === 0 ? false : 'mounting needs root, and a container that allows it';
})();

/** A wrapper that gives the gateway a disk of `size` bytes at `folder`. */
export const smallDisk = (folder, size) => ['unshare', '-m', 'sh', '-c', `mount -t tmpfs -o size=${size} none '${folder}' && exec "$@"`, 'sh'];

/** A wrapper that makes `folder` read-only for the gateway. */
export const readOnly = (folder) => ['unshare', '-m', 'sh', '-c', `mount --bind '${folder}' '${folder}' && mount -o remount,bind,ro '${folder}' && exec "$@"`, 'sh'];

/** `file` as the process `pid` sees it. */
export const seenBy = (pid, file) => path.join('/proc', String(pid), 'root', file);

/** Fills the disk on which `file` is made, to the last byte. */
export function fill(file) {
  const descriptor = fs.openSync(file, 'w');
  for (const size of [65_536, 4_096, 1]) {
    const part = Buffer.alloc(size);
    try {
      for (;;) fs.writeSync(descriptor, part);
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error;
    }
  }
  fs.closeSync(descriptor);
}

/** No file of the running process `pid` may be written at or after `bytes`; 'unlimited' ends that. */
export const limitFiles = (pid, bytes) => execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);

/** More room on a small disk of the process `pid`, as when a volume is enlarged. */
export const enlarge = (pid, folder, size) => execFileSync('nsenter', ['-t', String(pid), '-m', '-r', 'mount', '-o', `remount,size=${size}`, folder]);
