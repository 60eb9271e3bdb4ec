/* Mappings of a file of cases, read along tables; unknown and missing keys. */
#include "policy_test_keys.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#include "distance.h"

static void policy_test_keys_refuse_unknown(struct reading *reading, const struct node *key,
                                            const char *path, const struct test_key *keys,
                                            size_t count)
{
    const char **words = memory_alloc_array(count, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = keys[i].name;
    char *full = document_join(path, key->text);
    char *hint = distance_suggest(key->text, words, count, "known here:");
    report_error(&reading->report, key, full, hint, "unknown key");
    free(hint);
    free(full);
    free((void *)words);
}

static bool has_key(const struct test_key *keys, size_t count, const char *name)
{
    bool is_there = false;
    for (size_t i = 0; i < count; i++)
        is_there = is_there || strcmp(keys[i].name, name) == 0;
    return is_there;
}

void test_keys_read(struct reading *reading, const struct node *node, const char *path,
                    const struct test_key *keys, size_t count)
{
    if (node->kind != NODE_MAPPING) {
        report_error(&reading->report, node, path, NULL, "must be a mapping");
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (!has_key(keys, count, node->keys[i]->text))
            policy_test_keys_refuse_unknown(reading, node->keys[i], path, keys, count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct node *value = node_get(node, keys[i].name);
        char *full = document_join(path, keys[i].name);
        if (!node_is_null(value))
            keys[i].read(reading, value, full);
        else if (keys[i].is_required)
            report_error(&reading->report, value ? value : node, full, NULL, "the key is missing");
        free(full);
    }
}

const char *test_text_of(struct reading *reading, const struct node *node, const char *path)
{
    if (node->kind == NODE_TEXT && *node->text)
        return node->text;
    report_error(&reading->report, node, path, NULL, "must be text");
    return NULL;
}

void test_refuse_word(struct reading *reading, const struct node *node, const char *path,
                      const char *what, const char **words, size_t count)
{
    char *quoted = report_quote(&reading->report, node);
    char *hint = count ? distance_suggest(node->text, words, count, "known are:") : NULL;
    report_error(&reading->report, node, path, hint, "%s is not %s", quoted, what);
    free(hint);
    free(quoted);
}
