/*
 * One call of a chosen kind fails: which, and the how-manieth from now, stands in a file that the
 * test writes and the gateway has mapped (TASKGATE_FAULTS names it). Built for tests only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* FAULT(symbol, name) */
#define FAULT_KINDS(FAULT)                                                                         \
    FAULT(MEMORY, "memory of our own")                                                             \
    FAULT(FILE, "files")                                                                           \
    FAULT(SOCKET, "sockets")                                                                       \
    FAULT(SQLITE, "calls of SQLite")                                                               \
    FAULT(THREAD, "threads")                                                                       \
    FAULT(SQLITE_MEMORY, "memory inside SQLite")                                                   \
    FAULT(SQLITE_SYSTEM, "system calls inside SQLite")                                             \
    FAULT(CURL_MEMORY, "memory inside libcurl")

enum fault_kind {
#define FAULT(symbol, name) FAULT_##symbol,
    FAULT_KINDS(FAULT)
#undef FAULT
        FAULT_KIND_COUNT
};

/* The file; all numbers are 64 bits wide, little-endian. */
struct fault_plan {
    atomic_int_fast64_t kind;      /* of enum fault_kind, plus one; 0: nothing fails */
    atomic_int_fast64_t countdown; /* 1: the next call of this kind */
    atomic_int_fast64_t fired;     /* how many have failed */
    atomic_int_fast64_t calls[FAULT_KIND_COUNT];
    char where[64]; /* the name of the function that failed */
};

/* Whether this call is the one. */
bool fault_is_due(enum fault_kind kind, const char *function);

/* Puts the hooks of the libraries in place; before anything uses them. */
void fault_install_hooks(void);
