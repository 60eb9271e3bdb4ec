/*
 * The audit trail for other processes: of a database that a gateway may be using at the same time,
 * or of a copy. Reads only, takes no lock that anybody waits for. Blocks; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/store/chain.h"
#include "taskgate/store/site.h"

/* `row` is a row's canonical JSON, valid during the callback only. False ends the reading. */
typedef bool (*store_trail_visitor)(void *context, struct str row);

/* Every row from `since_ms` on, oldest first. False with an error when the site is no database of
 * this version of the gateway's, or cannot be read. */
bool store_trail_read(const struct store_site *site, int64_t since_ms, store_trail_visitor visitor,
                      void *context, struct error *error);

struct store_trail_report {
    int64_t rows;           /* that were checked */
    struct store_chain end; /* behind the last one */
    bool is_good;
    struct error finding;      /* the fault of the first bad row */
    bool has_start;            /* older rows were removed by `audit.keep`: */
    struct store_anchor start; /* the chain begins here */
};
/* Sees each place of the chain, from the start on. False with a finding ends the walk. */
typedef bool (*store_trail_check)(void *context, const struct store_chain *place,
                                  struct error *finding);
/* Walks the chain: numbers without a gap, hashes, the digests of kept arguments, and the end, which
 * an older copy or a cut trail does not reach. `check` may be NULL. False with an error when the
 * database cannot be read; what is wrong with the trail stands in the report. */
bool store_trail_verify(const struct store_site *site, store_trail_check check, void *context,
                        struct store_trail_report *report, struct error *error);

/* The kept arguments of the call that a row created; false: there are none any more. The caller
 * frees `*arguments`. */
bool store_trail_arguments(const struct store_site *site, int64_t sequence, char **arguments,
                           struct error *error);
