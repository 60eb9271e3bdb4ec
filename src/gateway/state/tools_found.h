/*
 * The tools that each thread has found in the catalogue lately, so that calls of known tools take
 * no lock. An entry holds until a catalogue of the process changes, and for a second at most,
 * because the catalogue must see now and then that an owner is still there. Any thread; nothing is
 * owned.
 */
#pragma once

#include "tool_catalog.h"

struct tools_asked {
    const struct catalog *catalog;
    struct str source, owner, name;
};

/* The catalogue has changed. Under its lock. */
void tools_found_renew(void);
/* Changes with each tools_found_renew(). */
uint64_t tools_found_version(void);

/* False when this thread must look into the catalogue. */
bool tools_found_get(const struct tools_asked *asked, struct catalog_tool *tool);
/* `version` is the one under the lock while `tool` was read. A name that is too long is not
 * kept. */
void tools_found_keep(const struct tools_asked *asked, uint64_t version,
                      const struct catalog_tool *tool);

/* The same for what is known of a source alone. */
bool tools_found_get_tasks(const struct catalog *catalog, struct str source, bool *seen);
void tools_found_keep_tasks(const struct catalog *catalog, struct str source, uint64_t version,
                            bool seen);
