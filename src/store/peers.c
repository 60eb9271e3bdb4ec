/* The list of the other replicas. */
#include "peers.h"

#include <stdlib.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

const char *store_peer_state_name(enum store_peer_state state)
{
    static const char *const names[STORE_PEER_COUNT] = {
#define STORE_PEER_ROW(symbol, name) [STORE_PEER_##symbol] = (name),
        STORE_PEER_TABLE(STORE_PEER_ROW)
#undef STORE_PEER_ROW
    };
    ASSERT_NUMBERS(state, <, STORE_PEER_COUNT);
    return names[state];
}

void peers_add(struct peers *peers, const struct replica_row *row, enum store_peer_state state)
{
    peers->items = memory_grow_array(peers->items, peers->count + 1, sizeof *peers->items);
    peers->items[peers->count++] = (struct store_peer){
        .id = memory_copy_str(row->id),
        .epoch = row->epoch,
        .address = memory_copy_str(row->address),
        .state = state,
    };
}

void peers_finish(struct peers *peers)
{
    for (size_t i = 0; i < peers->count; i++) {
        free((char *)peers->items[i].id);
        free((char *)peers->items[i].address);
    }
    free(peers->items);
    *peers = (struct peers){NULL, 0};
}
