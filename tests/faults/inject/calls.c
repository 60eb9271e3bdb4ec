/*
 * Calls of the gateway's own that may fail: the linker puts each __wrap_ in the place of the
 * function (meson.build has the same list), in our objects and not in the libraries.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject.h"

#define CALL(kind, type, name, parameters, arguments, failure, number)                             \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        if (!fault_is_due(FAULT_##kind, #name))                                                    \
            return __real_##name arguments;                                                        \
        errno = number;                                                                            \
        return failure;                                                                            \
    }

/* clang-format off */
/* ---- memory ---- */
CALL(MEMORY, void *, malloc, (size_t size), (size), NULL, ENOMEM)
CALL(MEMORY, void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM)
CALL(MEMORY, void *, realloc, (void *old, size_t size), (old, size), NULL, ENOMEM)
CALL(MEMORY, int, vasprintf, (char **text, const char *format, va_list list), (text, format, list), -1, ENOMEM)

/* ---- files, pipes and the like ---- */
CALL(FILE, ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size), -1, EIO)
CALL(FILE, ssize_t, pread, (int fd, void *bytes, size_t size, off_t at), (fd, bytes, size, at), -1, EIO)
CALL(FILE, ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at), -1, ENOSPC)
CALL(FILE, int, access, (const char *path, int mode), (path, mode), -1, EACCES)
CALL(FILE, int, stat, (const char *path, struct stat *is), (path, is), -1, EIO)
CALL(FILE, int, fstat, (int fd, struct stat *is), (fd, is), -1, EIO)
CALL(FILE, int, ftruncate, (int fd, off_t size), (fd, size), -1, EIO)
CALL(FILE, int, fsync, (int fd), (fd), -1, EIO)
CALL(FILE, int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EPERM)
CALL(FILE, int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
CALL(FILE, int, flock, (int fd, int how), (fd, how), -1, ENOLCK)
CALL(FILE, char *, realpath, (const char *path, char *to), (path, to), NULL, EIO)
CALL(FILE, FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
CALL(FILE, size_t, fread, (void *to, size_t size, size_t count, FILE *file), (to, size, count, file), 0, EIO)

/* ---- sockets and epoll ---- */
CALL(SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
CALL(SOCKET, int, bind, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), -1, EADDRINUSE)
CALL(SOCKET, int, listen, (int fd, int most), (fd, most), -1, EADDRINUSE)
CALL(SOCKET, int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), -1, ENETUNREACH)
CALL(SOCKET, ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags), -1, ECONNRESET)
CALL(SOCKET, ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags), -1, ECONNRESET)
CALL(SOCKET, ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), -1, ECONNRESET)
CALL(SOCKET, int, shutdown, (int fd, int how), (fd, how), -1, ENOTCONN)
CALL(SOCKET, int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size), (fd, level, name, value, size), -1, ENOBUFS)
CALL(SOCKET, int, getsockopt, (int fd, int level, int name, void *value, socklen_t *size), (fd, level, name, value, size), -1, ENOBUFS)
CALL(SOCKET, int, getsockname, (int fd, struct sockaddr *name, socklen_t *size), (fd, name, size), -1, ENOBUFS)
CALL(SOCKET, int, getpeername, (int fd, struct sockaddr *name, socklen_t *size), (fd, name, size), -1, ENOTCONN)
CALL(SOCKET, int, epoll_create1, (int flags), (flags), -1, EMFILE)
CALL(SOCKET, int, epoll_ctl, (int epoll, int how, int fd, struct epoll_event *event), (epoll, how, fd, event), -1, ENOMEM)
CALL(SOCKET, int, epoll_wait, (int epoll, struct epoll_event *events, int most, int time), (epoll, events, most, time), -1, EINTR)
CALL(SOCKET, int, eventfd, (unsigned count, int flags), (count, flags), -1, EMFILE)
CALL(SOCKET, int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), -1, EMFILE)
CALL(SOCKET, int, getaddrinfo, (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found), (node, service, hints, found), EAI_MEMORY, ENOMEM)

/* ---- threads ---- */
CALL(THREAD, int, pthread_create, (pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with), (thread, how, run, with), EAGAIN, EAGAIN)

/* ---- SQLite; a call without allocation, such as the binding of a number, cannot fail ---- */
CALL(SQLITE, int, sqlite3_step, (sqlite3_stmt *statement), (statement), SQLITE_IOERR, EIO)
CALL(SQLITE, int, sqlite3_exec, (sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *with, char **error), (db, sql, row, with, error), SQLITE_IOERR, EIO)
CALL(SQLITE, int, sqlite3_prepare_v2, (sqlite3 *db, const char *sql, int size, sqlite3_stmt **statement, const char **rest), (db, sql, size, statement, rest), (*statement = NULL, SQLITE_NOMEM), ENOMEM)
CALL(SQLITE, int, sqlite3_prepare_v3, (sqlite3 *db, const char *sql, int size, unsigned flags, sqlite3_stmt **statement, const char **rest), (db, sql, size, flags, statement, rest), (*statement = NULL, SQLITE_NOMEM), ENOMEM)
CALL(SQLITE, int, sqlite3_bind_text64, (sqlite3_stmt *statement, int at, const char *text, sqlite3_uint64 size, void (*end)(void *), unsigned char code), (statement, at, text, size, end, code), SQLITE_NOMEM, ENOMEM)
CALL(SQLITE, int, sqlite3_bind_blob64, (sqlite3_stmt *statement, int at, const void *bytes, sqlite3_uint64 size, void (*end)(void *)), (statement, at, bytes, size, end), SQLITE_NOMEM, ENOMEM)
CALL(SQLITE, const unsigned char *, sqlite3_column_text, (sqlite3_stmt *statement, int at), (statement, at), NULL, ENOMEM)
CALL(SQLITE, const void *, sqlite3_column_blob, (sqlite3_stmt *statement, int at), (statement, at), NULL, ENOMEM)
CALL(SQLITE, int, sqlite3_wal_checkpoint_v2, (sqlite3 *db, const char *name, int mode, int *pages, int *done), (db, name, mode, pages, done), SQLITE_BUSY, EIO)
CALL(SQLITE, int, sqlite3_open_v2, (const char *path, sqlite3 **db, int flags, const char *vfs), (path, db, flags, vfs), (*db = NULL, SQLITE_CANTOPEN), EIO)
/* clang-format on */

/* Eight bytes into an eventfd wake a loop. This write can be interrupted, and fails in no other
 * way. */
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (!fault_is_due(FAULT_FILE, "write"))
        return __real_write(fd, bytes, size);
    errno = size == sizeof(uint64_t) ? EINTR : ENOSPC;
    return -1;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (!fault_is_due(FAULT_FILE, "open"))
        return __real_open(path, flags, mode);
    errno = EMFILE;
    return -1;
}
