/* The call of a case: tool, source, arguments, caller, time, and the server's hints on the tool. */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#include "policy_test_keys.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static char *json_of(const struct node *node)
{
    struct buffer json;
    buffer_init(&json);
    test_value_write(&json, node);
    return buffer_take(&json, NULL);
}

static void read_tool(struct reading *reading, const struct node *node, const char *path)
{
    reading->one->tool = memory_copy_text(test_text_of(reading, node, path));
}

static void read_source(struct reading *reading, const struct node *node, const char *path)
{
    const struct config *config = reading->file->snapshot->config;
    const char *id = test_text_of(reading, node, path);
    if (!id)
        return;
    reading->one->source = config_source_find(config, str_from(id));
    if (reading->one->source)
        return;
    const char **ids = memory_alloc_array(config->source_count, sizeof *ids);
    for (size_t i = 0; i < config->source_count; i++)
        ids[i] = config->sources[i].id;
    test_refuse_word(reading, node, path, "a source", ids, config->source_count);
    free((void *)ids);
}

/* A mapping, or the very JSON in quotes. */
static void policy_test_request_read_arguments(struct reading *reading, const struct node *node,
                                               const char *path)
{
    struct error error = {""};
    char *json = node->kind == NODE_TEXT ? memory_copy_text(node->text) : json_of(node);
    reading->one->arguments = json;
    if (!json_check(str_from(json), &error) && node->kind == NODE_TEXT)
        report_error(&reading->report, node, path, NULL, "must be a mapping or JSON: %s",
                     error.message);
    else if (json_type(str_from(json)) != JSON_OBJECT)
        report_error(&reading->report, node, path, NULL, "must be a mapping, or a JSON object");
}

static void check_list(struct reading *reading, const struct node *list, const char *path)
{
    if (list->kind != NODE_LIST)
        report_error(&reading->report, list, path, NULL, "must be a list of texts");
    for (size_t i = 0; list->kind == NODE_LIST && i < list->count; i++)
        test_text_of(reading, list->values[i], path);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* A member of a principal: a text, or a list of them. */
static void policy_test_request_add_member(struct reading *reading, const struct node *key,
                                           const struct node *value, const char *path,
                                           struct buffer *json)
{
    static const char *names[] = {"name",   "client_name", "client_version", "subject",
                                  "issuer", "groups",      "scopes"};
    char *full = document_join(path, key->text);
    bool is_list = is_one_of(key->text, &names[COUNT_OF(names) - 2], 2);
    if (!is_one_of(key->text, names, COUNT_OF(names)))
        test_refuse_word(reading, key, path, "a key", names, COUNT_OF(names));
    buffer_append_text(json, json->length ? "," : "{");
    buffer_append_json_string(json, str_from(key->text));
    buffer_append_char(json, ':');
    if (is_list) {
        char *list = json_of(value);
        check_list(reading, value, full);
        buffer_append_text(json, list);
        free(list);
    } else {
        buffer_append_json_string(json, str_from(test_text_of(reading, value, full)));
    }
    free(full);
}

static void policy_test_request_read_principal(struct reading *reading, const struct node *node,
                                               const char *path)
{
    struct buffer json;
    bool is_owner = node->kind == NODE_TEXT && node->text[0] != '{';
    if (is_owner || node->kind != NODE_MAPPING) {
        if (is_owner)
            reading->one->principal = memory_copy_text(test_text_of(reading, node, path));
        else
            report_error(&reading->report, node, path, NULL, "must be text or a mapping");
        return;
    }
    buffer_init(&json);
    for (size_t i = 0; i < node->count; i++)
        policy_test_request_add_member(reading, node->keys[i], node->values[i], path, &json);
    bool is_verified =
        node_get(node, "issuer") || node_get(node, "groups") || node_get(node, "scopes");
    if (is_verified && !node_get(node, "subject"))
        report_error(&reading->report, node, path, "add subject",
                     "issuer, groups and scopes are those of a token, which has a subject");
    buffer_append_text(&json, json.length ? "}" : "{}");
    reading->one->principal = buffer_take(&json, NULL);
}

static void read_at(struct reading *reading, const struct node *node, const char *path)
{
    int64_t ms;
    const char *text = test_text_of(reading, node, path);
    if (text && !consultation_read_time(text, &ms))
        test_refuse_word(reading, node, path, "a time such as " CONSULTATION_TIMES, NULL, 0);
    reading->one->at = memory_copy_text(text);
}

static void policy_test_request_read_annotations(struct reading *reading, const struct node *node,
                                                 const char *path)
{
    const char *names[HINT_COUNT];
    for (unsigned i = 0; i < HINT_COUNT; i++)
        names[i] = policy_hint_name((enum policy_hint)i);
    if (node->kind != NODE_MAPPING) {
        report_error(&reading->report, node, path, NULL, "must be a mapping");
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct node *value = node->values[i];
        bool is_known = false, is_truth;
        for (size_t k = 0; k < HINT_COUNT; k++)
            is_known = is_known || strcmp(names[k], node->keys[i]->text) == 0;
        is_truth = value->kind == NODE_TEXT && value->is_plain &&
                   (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0);
        if (!is_known)
            test_refuse_word(reading, node->keys[i], path, "an annotation", names, HINT_COUNT);
        else if (!is_truth)
            report_error(&reading->report, value, path, NULL, "must be true or false");
    }
    reading->one->annotations = json_of(node);
}

static const struct test_key request_keys[] = {
    {"tool", true, read_tool},
    {"source", false, read_source},
    {"arguments", false, policy_test_request_read_arguments},
    {"principal", false, policy_test_request_read_principal},
    {"at", false, read_at},
    {"annotations", false, policy_test_request_read_annotations},
};

void test_read_request(struct reading *reading, const struct node *node, const char *path)
{
    const struct config *config = reading->file->snapshot->config;
    if (node->kind == NODE_MAPPING && !node_get(node, "source")) {
        reading->one->source = &config->sources[0];
        if (reading->file->has_rules && config->source_count > 1)
            report_error(&reading->report, node, path, "say which by the key source",
                         "there are several sources");
    }
    test_keys_read(reading, node, path, request_keys, COUNT_OF(request_keys));
}
