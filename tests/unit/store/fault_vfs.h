/*
 * A file system for SQLite that fails when told to: every write, or every sync, from the n-th
 * on. It becomes the default one, so that the store opens its files through it unknowingly.
 */
#pragma once

enum fault {
    FAULT_NONE,
    FAULT_DISK_FULL,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_ONE_SYNC, /* the next one alone */
    FAULT_READ,
    FAULT_HOLD_READ, /* as FAULT_HOLD_SYNC, for reads */
    FAULT_HOLD_SYNC, /* syncs wait until the fault is set to something else, then work */
};

void fault_vfs_install(void);
/* From now on the calls of that kind after the next `spare` fail. Any thread. */
void fault_vfs_set(enum fault fault, int spare);
/* How many calls have failed or been held since the last setting. */
int fault_vfs_failures(void);
/* How many syncs were asked for since the last setting. */
int fault_vfs_syncs(void);
