/* The reader: one walk over tree and table together. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "config_private.h"
#include "distance.h"
#include "keys.h"
#include "taskgate/config/duration.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/error.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/str.h"
#include "validate.h"

/* Single values: from their text, checked as the key's row says, to where they are kept. */

static void *at(void *target, size_t offset)
{
    return (char *)target + offset;
}

/* A number or a choice, in the width of its field; not at all where the key has none. */
static void scalar_store_number(const struct key *key, void *target, int64_t value)
{
    int small = (int)value;
    bool truth = value != 0;
    if (key->size == sizeof value)
        memcpy(at(target, key->offset), &value, sizeof value);
    else if (key->size == sizeof small)
        memcpy(at(target, key->offset), &small, sizeof small);
    else if (key->size == sizeof truth)
        memcpy(at(target, key->offset), &truth, sizeof truth);
}

static bool check_range(const struct key *key, int64_t value, struct error *error)
{
    char low[64], high[64];
    ASSERT_NUMBERS(key->minimum, <=, key->maximum);
    if (value >= key->minimum && value <= key->maximum)
        return true;
    if (key->type == KEY_DURATION) {
        duration_format(key->minimum, low);
        duration_format(key->maximum, high);
    } else {
        snprintf(low, sizeof low, "%" PRId64, key->minimum);
        snprintf(high, sizeof high, "%" PRId64, key->maximum);
    }
    return value < key->minimum ? error_set(error, "the minimum is %s", low)
                                : error_set(error, "the maximum is %s", high);
}

static bool parse_real(const struct key *key, struct str text, struct error *error)
{
    char *copy = memory_copy_str(text), *end;
    double value = strtod(copy, &end);
    bool is_number = end != copy && *end == '\0' && isfinite(value);
    free(copy);
    if (!is_number)
        return error_set(error, "this is no number");
    if (value < (double)key->minimum || value > (double)key->maximum)
        return error_set(error, "must be from %" PRId64 " to %" PRId64, key->minimum, key->maximum);
    return true;
}

static bool read_parse_number(const struct key *key, struct str text, int64_t *value,
                              struct error *error)
{
    bool truth;
    switch (key->type) {
    case KEY_BOOL:
        if (!parse_bool(text, &truth))
            return error_set(error, "must be true or false");
        *value = truth;
        return true;
    case KEY_BYTES:
        return parse_bytes(text, value, error) && check_range(key, *value, error);
    case KEY_DURATION:
        return duration_parse(text, value, error) && check_range(key, *value, error);
    default:
        if (!parse_integer(text, value))
            return error_set(error, "must be a whole number");
        return check_range(key, *value, error);
    }
}

/* Any single value but a choice, from the file or from the table's default. `target` is the
 * struct of the mapping. false with `error` when the row does not allow it. */
static bool scalar_store(const struct key *key, struct str text, void *target, struct error *error)
{
    int64_t number = 0;
    if (key->type == KEY_REAL)
        return parse_real(key, text, error);
    if (key->type != KEY_TEXT) {
        if (!read_parse_number(key, text, &number, error))
            return false;
        scalar_store_number(key, target, number);
        return true;
    }
    if (key->check && !key->check(text, error))
        return false;
    if (key->size) {
        char *copy = memory_copy_str(text);
        ASSERT_NUMBERS(key->size, ==, sizeof copy);
        memcpy(at(target, key->offset), &copy, sizeof copy);
    }
    return true;
}

/* A key where it was found: its row, its full name and its value. */
struct entry {
    const struct report *report;
    const struct key *key;
    const struct node *node;
    const char *path; /* "governance.rules[2].action" */
};

static void read_mapping(const struct report *report, const struct node *node, const char *pattern,
                         const char *path, void *target);

static void read_refuse(const struct entry *entry, const struct node *node, const char *hint,
                        const char *message)
{
    const char *rule = entry->key->rule;
    report_error(entry->report, node, entry->path, hint, "%s%s%s", rule ? rule : "",
                 rule ? " " : "", message);
}

/* `"value": MESSAGE`, without the value if it may be a secret, as one may be that stands where the
 * name of its variable belongs. */
static void refuse_value(const struct entry *entry, const struct node *node, const char *what)
{
    if (entry->key->is_hidden || entry->key->check == check_variable_name) {
        read_refuse(entry, node, NULL, what);
        return;
    }
    OWNED char *quoted = report_quote(entry->report, node);
    OWNED char *message = memory_format("%s: %s", quoted, what);
    read_refuse(entry, node, NULL, message);
}

static void refuse_kind(const struct entry *entry, const struct node *node)
{
    static const char *const kinds[] = {
        [NODE_TEXT] = "a single value", [NODE_LIST] = "a list", [NODE_MAPPING] = "a mapping"};
    OWNED char *wanted = key_type_text(entry->key);
    OWNED char *message = memory_format("must be %s, but is %s", wanted, kinds[node->kind]);
    read_refuse(entry, node, NULL, message);
}

static const struct choice *find_choice(const struct choices *choices, const char *text)
{
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->items[i].name, text) == 0)
            return &choices->items[i];
    }
    return NULL;
}

/* In older YAML yes and no, on and off are truth values, so programs that rewrite a file make them
 * true and false. */
static const struct choice *find_answer(const struct choices *choices, const struct node *node)
{
    bool truth;
    if (!node->is_plain || !parse_bool(str_from(node->text), &truth))
        return NULL;
    const struct choice *answer = find_choice(choices, truth ? "yes" : "no");
    return answer ? answer : find_choice(choices, truth ? "on" : "off");
}

static bool read_choice(const struct entry *entry, const struct node *node, unsigned *value)
{
    const struct choices *choices = entry->key->choices;
    const struct choice *choice = NULL;
    if (node->kind != NODE_TEXT) {
        refuse_kind(entry, node);
        return false;
    }
    choice = find_choice(choices, node->text);
    if (!choice)
        choice = find_answer(choices, node);
    if (choice) {
        *value = choice->value;
        return true;
    }
    OWNED const char **words = memory_alloc_array(choices->count, sizeof *words);
    for (size_t i = 0; i < choices->count; i++)
        words[i] = choices->items[i].name;
    OWNED char *quoted = report_quote(entry->report, node);
    OWNED char *message = memory_format("%s is not %s", quoted, choices->noun);
    OWNED char *hint = distance_suggest(node->text, words, choices->count, "it may be");
    read_refuse(entry, node, hint, message);
    return false;
}

static void read_single(const struct entry *entry, void *target)
{
    struct error error;
    unsigned value;
    if (entry->key->type == KEY_CHOICE) {
        if (read_choice(entry, entry->node, &value))
            scalar_store_number(entry->key, target, value);
    } else if (entry->node->kind != NODE_TEXT) {
        refuse_kind(entry, entry->node);
    } else if (!scalar_store(entry->key, str_from(entry->node->text), target, &error)) {
        refuse_value(entry, entry->node, error.message);
    }
}

static void read_add_text(const struct entry *entry, const struct node *node, const char *path,
                          struct config_strings *strings)
{
    struct entry item = *entry;
    struct error error;
    item.path = path;
    if (node->kind != NODE_TEXT || node_is_null(node)) {
        read_refuse(&item, node, NULL, "must be text");
    } else if (entry->key->check && !entry->key->check(str_from(node->text), &error)) {
        refuse_value(&item, node, error.message);
    } else {
        config_strings_add(strings, str_from(node->text));
    }
}

static void read_texts(const struct entry *entry, void *target)
{
    const struct node *node = entry->node;
    struct config_strings strings = {0};
    if (node->kind == NODE_TEXT && entry->key->type == KEY_TEXT_OR_TEXTS) {
        read_add_text(entry, node, entry->path, &strings);
    } else if (node->kind != NODE_LIST) {
        refuse_kind(entry, node);
    } else {
        for (size_t i = 0; i < node->count; i++) {
            OWNED char *path = memory_format("%s[%zu]", entry->path, i);
            read_add_text(entry, node->values[i], path, &strings);
        }
    }
    if (entry->key->size) {
        ASSERT_NUMBERS(entry->key->size, ==, sizeof strings);
        memcpy(at(target, entry->key->offset), &strings, sizeof strings);
        return;
    }
    config_forget_texts(&strings);
}

/* A choice that means several others needs no list around it. */
static bool names_several(const struct key *key, const struct node *node, unsigned *bits)
{
    const struct choice *choice =
        node->kind == NODE_TEXT ? find_choice(key->choices, node->text) : NULL;
    *bits = choice ? (unsigned)choice->value : 0;
    return (*bits & (*bits - 1)) != 0;
}

static void read_choices(const struct entry *entry, void *target)
{
    const struct node *node = entry->node;
    unsigned bits = 0;
    if (names_several(entry->key, node, &bits)) {
        scalar_store_number(entry->key, target, bits);
        return;
    }
    if (node->kind != NODE_LIST) {
        refuse_kind(entry, node);
        return;
    }
    if (node->count == 0)
        read_refuse(entry, node, NULL, "the list is empty");
    for (size_t i = 0; i < node->count; i++) {
        unsigned bit = 0;
        struct entry item = *entry;
        OWNED char *path = memory_format("%s[%zu]", entry->path, i);
        item.path = path;
        if (read_choice(&item, node->values[i], &bit))
            bits |= bit;
    }
    scalar_store_number(entry->key, target, bits);
}

static void read_text_map(const struct entry *entry)
{
    if (entry->node->kind != NODE_MAPPING) {
        refuse_kind(entry, entry->node);
        return;
    }
    for (size_t i = 0; i < entry->node->count; i++) {
        if (entry->node->values[i]->kind != NODE_TEXT)
            read_refuse(entry, entry->node->values[i], NULL, "must be text");
    }
}

/* Items of a list of mappings, or of a mapping of names to mappings. */
static void read_items(const struct entry *entry, void *target)
{
    const struct key *key = entry->key;
    const struct node *node = entry->node;
    bool is_named = key->type == KEY_NAMED;
    if (node->kind != (is_named ? NODE_MAPPING : NODE_LIST)) {
        refuse_kind(entry, node);
        return;
    }
    ASSERT_NUMBERS(key->item, >, 0);
    char *items = memory_alloc_array(node->count, key->item);
    OWNED char *pattern = key_pattern(key);
    memcpy(at(target, key->offset), &items, sizeof items);
    memcpy(at(target, key->count), &node->count, sizeof node->count);
    for (size_t i = 0; i < node->count; i++) {
        void *item = items + i * key->item;
        OWNED char *path = is_named ? document_join(entry->path, node->keys[i]->text)
                                    : memory_format("%s[%zu]", entry->path, i);
        struct error error;
        struct entry place = {entry->report, key, node->values[i], path};
        if (is_named) {
            char *name = memory_copy_text(node->keys[i]->text);
            memcpy(item, &name, sizeof name);
        }
        if (is_named && key->check && !key->check(str_from(node->keys[i]->text), &error))
            refuse_value(&place, node->keys[i], error.message);
        read_mapping(entry->report, node->values[i], pattern, path, item);
    }
}

static void read_value(const struct entry *entry, void *target)
{
    const struct key *key = entry->key;
    char *pattern;
    if (key->has_flag)
        *(bool *)at(target, key->flag) = true;
    switch (key->type) {
    case KEY_TEXTS:
    case KEY_TEXT_OR_TEXTS:
        read_texts(entry, target);
        break;
    case KEY_CHOICES:
        read_choices(entry, target);
        break;
    case KEY_TEXT_MAP:
        read_text_map(entry);
        break;
    case KEY_QUORUM:
    case KEY_ANY:
        break;
    case KEY_MAPPING:
        if (key->is_hidden && entry->node->kind == NODE_TEXT) {
            read_refuse(entry, entry->node,
                        "put it into an environment variable and write {env: NAME}",
                        "must not stand in the file, because it may hold a password");
            break;
        }
        pattern = key_pattern(key);
        read_mapping(entry->report, entry->node, pattern, entry->path, target);
        free(pattern);
        break;
    case KEY_LIST:
    case KEY_NAMED:
        read_items(entry, target);
        break;
    default:
        read_single(entry, target);
    }
}

/* "one, two" */
static void store_default_choices(const struct key *key, void *target)
{
    char *names = memory_copy_text(key->default_text), *rest = names, *name;
    unsigned bits = 0;
    while ((name = strtok_r(rest, ", ", &rest)))
        bits |= (unsigned)find_choice(key->choices, name)->value;
    free(names);
    scalar_store_number(key, target, bits);
}

static void store_default(const struct report *report, const struct key *key, void *target)
{
    if (key->type == KEY_MAPPING) {
        OWNED char *pattern = key_pattern(key);
        read_mapping(report, NULL, pattern, "", target);
    } else if (key->default_text && key->size && key->type == KEY_CHOICE) {
        scalar_store_number(key, target, find_choice(key->choices, key->default_text)->value);
    } else if (key->default_text && key->size && key->type == KEY_CHOICES) {
        store_default_choices(key, target);
    } else if (key->default_text && key->size) {
        scalar_store(key, str_from(key->default_text), target, NULL);
    }
}

/* Gives a misspelt key the name that was meant, so that the mistakes inside its value are found,
 * too. With the mistake reported the document is refused in any case. */
static void correct(const struct node *mapping, struct node *key_node, const char *nearest)
{
    if (!nearest || node_get(mapping, nearest))
        return;
    free(key_node->text);
    key_node->text = memory_copy_text(nearest);
}

static void read_refuse_unknown(const struct report *report, const struct node *mapping,
                                struct node *key_node, const char *pattern, const char *path)
{
    OWNED const char **words = memory_alloc_array(config_key_count, sizeof *words);
    size_t count = 0;
    for (size_t i = 0; i < config_key_count; i++) {
        if (strcmp(config_keys[i].parent, pattern) == 0)
            words[count++] = config_keys[i].name;
    }
    OWNED char *full = document_join(path, key_node->text);
    OWNED char *hint = distance_suggest(key_node->text, words, count, "known here:");
    report_error(report, key_node, full, hint, "unknown key");
    correct(mapping, key_node, distance_nearest(key_node->text, words, count));
}

/* The keys of one mapping into `target`; without a node only the defaults. */
static void read_mapping(const struct report *report, const struct node *node, const char *pattern,
                         const char *path, void *target)
{
    if (node && node->kind != NODE_MAPPING && !node_is_null(node)) {
        report_error(report, node, path, NULL, "must be a mapping");
        return;
    }
    size_t count = node && node->kind == NODE_MAPPING ? node->count : 0;
    for (size_t i = 0; i < count; i++) {
        if (!key_find(pattern, node->keys[i]->text))
            read_refuse_unknown(report, node, node->keys[i], pattern, path);
    }
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (strcmp(key->parent, pattern) != 0)
            continue;
        const struct node *value = node_get(node, key->name);
        OWNED char *full = document_join(path, key->name);
        struct entry entry = {report, key, value, full};
        if (!node_is_null(value))
            read_value(&entry, target);
        else if (node && key->is_required)
            read_refuse(&entry, value ? value : node, NULL, "the key is missing");
        else
            store_default(report, key, target);
    }
}

void read_document(const struct report *report, const struct node *root, struct config *config)
{
    read_mapping(report, root, "", "", config);
}

/* ---- the end of the values ---- */

void config_strings_add(struct config_strings *strings, struct str text)
{
    strings->items = memory_grow_array(strings->items, strings->count + 1, sizeof *strings->items);
    strings->items[strings->count++] = memory_copy_str(text);
}

void config_forget_texts(struct config_strings *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        memory_forget_text(texts->items[i]);
    free(texts->items);
}

static void forget_items(const struct key *key, void *target)
{
    OWNED char *pattern = key_pattern(key);
    char *items = *(char **)at(target, key->offset);
    size_t count = *(size_t *)at(target, key->count);
    ASSERT(items || count == 0);
    for (size_t i = 0; i < count; i++) {
        void *item = items + i * key->item;
        if (key->type == KEY_NAMED)
            free(*(char **)item);
        read_forget(pattern, item);
    }
    free(items);
}

void read_forget(const char *pattern, void *target)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (strcmp(key->parent, pattern) != 0)
            continue;
        if (key->type == KEY_MAPPING) {
            OWNED char *inner = key_pattern(key);
            read_forget(inner, target);
        } else if (key->type == KEY_LIST || key->type == KEY_NAMED) {
            forget_items(key, target);
        } else if (key->type == KEY_TEXT && key->size) {
            memory_forget_text(*(char **)at(target, key->offset));
        } else if ((key->type == KEY_TEXTS || key->type == KEY_TEXT_OR_TEXTS) && key->size) {
            config_forget_texts(at(target, key->offset));
        }
    }
}
