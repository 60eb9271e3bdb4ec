/*
 * A file system for SQLite that fails when told to: every write, or every sync, from the n-th
 * on. It becomes the default one, so that the store opens its files through it unknowingly.
 */
#pragma once

enum fault { FAULT_NONE, FAULT_DISK_FULL, FAULT_WRITE, FAULT_SYNC, FAULT_READ };

void fault_vfs_install(void);
/* From now on the calls of that kind after the next `spare` fail. Any thread. */
void fault_vfs_set(enum fault fault, int spare);
/* How many calls have failed since the last setting. */
int fault_vfs_failures(void);
