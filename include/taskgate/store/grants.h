/*
 * Grants: an approver lets the same call of the same owner run again, for a while and so often,
 * without being asked. A grant is bound to owner, source, tool, its definition, the rule, the
 * workflow with its terms, and the request but for what may vary. store_task_create() uses it: the
 * task is created approved by "grant:ID", and the grant is counted down, in one transaction.
 *
 * The calls here only queue, as those of store.h. Behaviour 9.10, 9.11.
 */
#pragma once

#include "taskgate/store/store.h"

/* The people and terms that grants are judged by from now on (taken over). Without it none is ever
 * used. Those that the configuration does not allow any more end at once. */
void store_grants_configure(struct store *store, const struct store_electorate *electorate);
/* Newest first, in reply->grants; `before_sequence` 0: from the newest. Ended ones are kept for a
 * week. */
void store_grant_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call);
/* One grant, in reply->grants, as it is now. */
void store_grant_get(struct store *store, struct str id, struct store_call call);
/* STORE_CONFLICT when it has ended before. The reply has the grant as it is. */
void store_grant_revoke(struct store *store, struct str id, const char *person, const char *reason,
                        struct store_call call);
