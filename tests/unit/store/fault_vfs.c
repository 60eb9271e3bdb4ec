/* A shim over SQLite's default file system. */
#include "fault_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* in the memory after this struct */
};

static sqlite3_vfs shim;
static sqlite3_vfs *real_vfs;
static atomic_int active_fault = FAULT_NONE;
static atomic_int spare_calls;
static atomic_int failures;
static atomic_int syncs;
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct faulty_file *)(void *)file)->real;
}

static bool fails(enum fault fault)
{
    if (atomic_load(&active_fault) != (int)fault || atomic_fetch_sub(&spare_calls, 1) > 0)
        return false;
    atomic_fetch_add(&failures, 1);
    return true;
}

static int file_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static void hold(enum fault fault)
{
    pthread_mutex_lock(&hold_lock);
    while (atomic_load(&active_fault) == (int)fault)
        pthread_cond_wait(&released, &hold_lock);
    pthread_mutex_unlock(&hold_lock);
}

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset)
{
    if (fails(FAULT_READ))
        return SQLITE_IOERR_READ;
    if (fails(FAULT_HOLD_READ))
        hold(FAULT_HOLD_READ);
    return real_of(file)->pMethods->xRead(real_of(file), bytes, count, offset);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
    if (fails(FAULT_DISK_FULL))
        return SQLITE_FULL;
    if (fails(FAULT_WRITE))
        return SQLITE_IOERR_WRITE;
    return real_of(file)->pMethods->xWrite(real_of(file), bytes, count, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int file_sync(sqlite3_file *file, int flags)
{
    atomic_fetch_add(&syncs, 1);
    if (fails(FAULT_HOLD_SYNC))
        hold(FAULT_HOLD_SYNC);
    if (fails(FAULT_SYNC) || (fails(FAULT_ONE_SYNC) && fault_vfs_failures() == 1))
        return SQLITE_IOERR_FSYNC;
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int file_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int file_check_lock(sqlite3_file *file, int *held)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), held);
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static int file_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int file_characteristics(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int file_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **map)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, map);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int file_shm_unmap(sqlite3_file *file, int delete_it)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), delete_it);
}

/* Version 2: without memory mapping, which would go past xWrite. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *flags_out)
{
    struct faulty_file *faulty = (struct faulty_file *)(void *)file;
    (void)vfs;
    faulty->real = (sqlite3_file *)(void *)(faulty + 1);
    int code = real_vfs->xOpen(real_vfs, name, faulty->real, flags, flags_out);
    faulty->base.pMethods = code == SQLITE_OK ? &methods : NULL;
    return code;
}

void fault_vfs_install(void)
{
    if (real_vfs)
        return;
    real_vfs = sqlite3_vfs_find(NULL);
    shim = *real_vfs;
    shim.zName = "taskgate-faults";
    shim.szOsFile = (int)sizeof(struct faulty_file) + real_vfs->szOsFile;
    shim.xOpen = open_file;
    sqlite3_vfs_register(&shim, 1);
}

void fault_vfs_set(enum fault fault, int spare)
{
    pthread_mutex_lock(&hold_lock);
    atomic_store(&spare_calls, spare);
    atomic_store(&failures, 0);
    atomic_store(&syncs, 0);
    atomic_store(&active_fault, (int)fault);
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&hold_lock);
}

int fault_vfs_syncs(void)
{
    return atomic_load(&syncs);
}

int fault_vfs_failures(void)
{
    return atomic_load(&failures);
}
