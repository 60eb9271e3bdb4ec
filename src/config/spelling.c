/* The second way to write an exchange of tokens. */
#include "spelling.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

static struct node *child(const struct node *mapping, const char *key)
{
    for (size_t i = 0; mapping && mapping->kind == NODE_MAPPING && i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->text, key) == 0)
            return mapping->values[i];
    }
    return NULL;
}

static void append(struct node *mapping, struct node *key, struct node *value)
{
    size_t count = mapping->count + 1;
    mapping->keys = memory_grow_array(mapping->keys, count, sizeof(struct node *));
    mapping->values = memory_grow_array(mapping->values, count, sizeof(struct node *));
    mapping->keys[mapping->count] = key;
    mapping->values[mapping->count] = value;
    mapping->count = count;
}

static void normalize_auth(struct node *auth)
{
    struct node *upstream = child(auth, "upstream");
    if (child(auth, "exchange") || !upstream || upstream->kind != NODE_MAPPING ||
        upstream->count != 1 || strcmp(upstream->keys[0]->text, "exchange") != 0)
        return;
    append(auth, upstream->keys[0], upstream->values[0]);
    free(upstream->keys);
    free(upstream->values);
    upstream->keys = upstream->values = NULL;
    upstream->count = 0;
    upstream->kind = NODE_TEXT;
    upstream->text = memory_copy_text("exchange");
    upstream->is_plain = true;
}

void spelling_normalize(struct node *root)
{
    struct node *sources = child(root, "sources");
    for (size_t i = 0; sources && sources->kind == NODE_LIST && i < sources->count; i++) {
        struct node *auth = child(sources->values[i], "auth");
        if (auth && auth->kind == NODE_MAPPING)
            normalize_auth(auth);
    }
}
