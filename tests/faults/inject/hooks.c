/* Failures inside SQLite and libcurl, through their hooks. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "inject.h"

/* ---- memory inside SQLite ---- */

static sqlite3_mem_methods memory;

static void *sqlite_malloc(int size)
{
    return fault_is_due(FAULT_SQLITE_MEMORY, "malloc of SQLite") ? NULL : memory.xMalloc(size);
}

static void *sqlite_realloc(void *old, int size)
{
    return fault_is_due(FAULT_SQLITE_MEMORY, "realloc of SQLite") ? NULL
                                                                  : memory.xRealloc(old, size);
}

static void hook_memory(void)
{
    sqlite3_mem_methods failing;
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);
    failing = memory;
    failing.xMalloc = sqlite_malloc;
    failing.xRealloc = sqlite_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
}

/* ---- system calls inside SQLite ---- */

#define SYSTEM_CALL(type, name, parameters, arguments, number)                                     \
    static __typeof__(type(*) parameters) real_##name; /* NOLINT(bugprone-macro-parentheses) */    \
    static type sqlite_##name parameters                                                           \
    {                                                                                              \
        if (!fault_is_due(FAULT_SQLITE_SYSTEM, #name " of SQLite"))                                \
            return real_##name arguments;                                                          \
        errno = number;                                                                            \
        return -1;                                                                                 \
    }

SYSTEM_CALL(int, open, (const char *path, int flags, int mode), (path, flags, mode), EMFILE)
SYSTEM_CALL(int, fstat, (int fd, void *is), (fd, is), EIO)
SYSTEM_CALL(int, ftruncate, (int fd, off_t size), (fd, size), ENOSPC)
SYSTEM_CALL(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), EIO)
SYSTEM_CALL(ssize_t, pread64, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), EIO)
SYSTEM_CALL(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at),
            (fd, from, size, at), ENOSPC)
SYSTEM_CALL(ssize_t, pwrite64, (int fd, const void *from, size_t size, off_t at),
            (fd, from, size, at), ENOSPC)
SYSTEM_CALL(int, fallocate, (int fd, off_t at, off_t size), (fd, at, size), ENOSPC)
SYSTEM_CALL(int, unlink, (const char *path), (path), EIO)
SYSTEM_CALL(int, openDirectory, (const char *path, int *fd), (path, fd), EMFILE)

static void hook_system_calls(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
#define HOOK(name)                                                                                 \
    real_##name = (__typeof__(real_##name))vfs->xGetSystemCall(vfs, #name);                        \
    if (real_##name)                                                                               \
        vfs->xSetSystemCall(vfs, #name, (sqlite3_syscall_ptr)sqlite_##name);
    HOOK(open)
    HOOK(fstat)
    HOOK(ftruncate)
    HOOK(pread)
    HOOK(pread64)
    HOOK(pwrite)
    HOOK(pwrite64)
    HOOK(fallocate)
    HOOK(unlink)
    HOOK(openDirectory)
#undef HOOK
}

/* ---- memory inside libcurl, which is loaded when it is first needed ---- */

/* Not those that calls.c lets fail. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);

static void *curl_malloc(size_t size)
{
    return fault_is_due(FAULT_CURL_MEMORY, "malloc of libcurl") ? NULL : __real_malloc(size);
}

static void *curl_calloc(size_t count, size_t size)
{
    return fault_is_due(FAULT_CURL_MEMORY, "calloc of libcurl") ? NULL : __real_calloc(count, size);
}

static void *curl_realloc(void *old, size_t size)
{
    return fault_is_due(FAULT_CURL_MEMORY, "realloc of libcurl") ? NULL : __real_realloc(old, size);
}

static char *curl_strdup(const char *text)
{
    return fault_is_due(FAULT_CURL_MEMORY, "strdup of libcurl") ? NULL : strdup(text);
}

static CURLcode (*init_memory)(long flags, curl_malloc_callback, curl_free_callback,
                               curl_realloc_callback, curl_strdup_callback, curl_calloc_callback);

static CURLcode init_curl(long flags)
{
    return init_memory(flags, curl_malloc, free, curl_realloc, curl_strdup, curl_calloc);
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    if (strcmp(name, "curl_global_init") != 0)
        return __real_dlsym(library, name);
    *(void **)&init_memory = __real_dlsym(library, "curl_global_init_mem");
    void *made;
    *(CURLcode(**)(long)) & made = init_curl;
    return made;
}

void fault_install_hooks(void)
{
    hook_memory();
    hook_system_calls();
}
