/* The other replicas, as the last heartbeat has found them. */
#pragma once

#include "replica_rows.h"
#include "taskgate/store/replicas.h"

/* The texts of the items are owned. */
struct peers {
    struct store_peer *items;
    size_t count;
};

void peers_add(struct peers *peers, const struct replica_row *row, enum store_peer_state state);
void peers_finish(struct peers *peers);
