/* Names of values, and whom blocks are about. */
#include "taskgate/store/records.h"

#include "taskgate/core/assert.h"

static const char *const scopes[STORE_BLOCK_SCOPES] = {"owner", "client", "source"};

const char *store_block_scope_name(enum store_block_scope scope)
{
    ASSERT_NUMBERS(scope, <, STORE_BLOCK_SCOPES);
    return scopes[scope];
}

enum store_block_scope store_block_scope_of(struct str name)
{
    size_t i = 0;
    while (i < STORE_BLOCK_SCOPES && !str_equal(name, str_from(scopes[i])))
        i++;
    return (enum store_block_scope)i;
}

bool store_block_fits(const struct store_block *block, const struct store_block_caller *caller)
{
    bool is_source = str_equal(caller->source, str_from(block->source));
    switch (store_block_scope_of(str_from(block->scope))) {
    case STORE_BLOCK_OWNER:
        return str_equal(caller->owner, str_from(block->owner));
    case STORE_BLOCK_CLIENT:
        return is_source && str_equal(caller->client, str_from(block->client));
    case STORE_BLOCK_SOURCE:
    case STORE_BLOCK_SCOPES: /* of a later version */
        break;
    }
    return is_source;
}

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
