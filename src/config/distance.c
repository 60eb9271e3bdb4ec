/* Edit distance (optimal string alignment) over short words. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "distance.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define MAX_LENGTH 63

static size_t least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

size_t distance_between(const char *a, const char *b, size_t limit)
{
    size_t a_length = strnlen(a, MAX_LENGTH + 1), b_length = strnlen(b, MAX_LENGTH + 1);
    if (a_length > MAX_LENGTH || b_length > MAX_LENGTH)
        return limit + 1;
    /* Three rows of the table are enough: a swap looks two rows back. */
    size_t rows[3][MAX_LENGTH + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *before = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = before[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(change, before[j] + 1, row[j - 1] + 1);
            bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap && rows[(i - 2) % 3][j - 2] + 1 < row[j])
                row[j] = rows[(i - 2) % 3][j - 2] + 1;
        }
    }
    size_t distance = rows[a_length % 3][b_length];
    return distance > limit ? limit + 1 : distance;
}

const char *distance_nearest(const char *word, const char *const *words, size_t count)
{
    /* One slip in three letters is a slip; more is another word. */
    size_t limit = strnlen(word, MAX_LENGTH) / 3;
    limit = limit < 1 ? 1 : limit > 3 ? 3 : limit;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = distance_between(word, words[i], limit);
        if (distance > limit)
            continue;
        nearest = words[i];
        limit = distance ? distance - 1 : 0;
        if (distance == 0)
            break;
    }
    return nearest;
}

char *distance_suggest(const char *word, const char *const *words, size_t count, const char *others)
{
    const char *nearest = distance_nearest(word, words, count);
    if (nearest)
        return memory_format("did you mean \"%s\"?", nearest);
    OWNED_BUFFER(text);
    buffer_append_text(&text, others);
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&text, "%s%s", i ? ", " : " ", words[i]);
    return buffer_take(&text, NULL);
}

/* The second way to write an exchange of tokens. */

static struct node *child(const struct node *mapping, const char *key)
{
    for (size_t i = 0; mapping && mapping->kind == NODE_MAPPING && i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->text, key) == 0)
            return mapping->values[i];
    }
    return NULL;
}

static void distance_append(struct node *mapping, struct node *key, struct node *value)
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
    distance_append(auth, upstream->keys[0], upstream->values[0]);
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
