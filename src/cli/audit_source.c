/* Three places, one walk over rows. */
#include "audit_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/store/trail.h"

#include "admin_client.h"
#include "consultation.h"
#include "judgement.h"
#include "options.h"
#include "store_place.h"

#define PAGE_ROWS 1000

/* ---- which place ---- */

static bool find_by_configuration(struct audit_source *source, const char *path)
{
    source->kind = AUDIT_SOURCE_STORE;
    source->path = store_place_without_configuration(path);
    if (source->path)
        return true;
    struct snapshot *snapshot = judgement_load(path, NULL);
    if (!snapshot)
        return false;
    source->path = store_place_of_configuration(snapshot->config);
    if (snapshot->config->audit.key)
        source->key = signature_key_ref(snapshot->config->audit.key);
    snapshot_unref(snapshot);
    return source->path != NULL;
}

bool audit_source_find_store(struct audit_source *source, const struct audit_place *place)
{
    *source = (struct audit_source){.path = NULL};
    if (place->config && place->store) {
        options_complain("name one of --config and --store");
        return false;
    }
    if (!place->store)
        return find_by_configuration(source, place->config);
    source->kind = AUDIT_SOURCE_STORE;
    source->path = store_place_given("store", place->store, "--store '{env: NAME}'");
    return source->path != NULL;
}

bool audit_source_find(struct audit_source *source, const struct audit_place *place)
{
    const char *token = getenv("TASKGATE_TOKEN");
    *source = (struct audit_source){.path = NULL};
    if ((place->config != NULL) + (place->store != NULL) + (place->file != NULL) > 1) {
        options_complain("name one of --config, --store and a file");
        return false;
    }
    if (place->file) {
        source->kind = AUDIT_SOURCE_FILE;
        source->path = memory_copy_text(place->file);
        return true;
    }
    if (!place->config && !place->store && token && *token) {
        source->kind = AUDIT_SOURCE_ENDPOINT;
        return true;
    }
    return audit_source_find_store(source, place);
}

void audit_source_finish(struct audit_source *source)
{
    memory_forget_text(source->path);
    signature_key_unref(source->key);
}

/* ---- values ---- */

static bool audit_source_read_time(struct str value, int64_t *at_ms)
{
    OWNED char *text = json_string_text(value, NULL);
    return text && consultation_read_time(text, at_ms);
}

static bool read_fixed(struct str value, char *out, size_t size)
{
    size_t length = 0;
    OWNED char *text = json_string_text(value, &length);
    bool good = text && length == size - 1;
    if (good)
        memcpy(out, text, size);
    return good;
}

bool audit_read_anchor(struct str object, struct store_anchor *anchor)
{
    uint64_t sequence;
    struct str signature = json_member(object, "signature");
    *anchor = (struct store_anchor){.at_ms = 0};
    if (!str_to_u64(json_member(object, "sequence"), &sequence) || sequence > INT64_MAX ||
        !read_fixed(json_member(object, "hash"), anchor->place.hash, sizeof anchor->place.hash) ||
        !audit_source_read_time(json_member(object, "time"), &anchor->at_ms))
        return false;
    anchor->place.sequence = (int64_t)sequence;
    bool is_signed = json_type(signature) == JSON_STRING && !str_equal(signature, STR("\"\""));
    return !is_signed || read_fixed(signature, anchor->signature, sizeof anchor->signature);
}

/* ---- rows ---- */

static bool is_new_enough(struct str row, int64_t since_ms)
{
    int64_t at_ms;
    return since_ms == INT64_MIN || !audit_source_read_time(json_member(row, "at"), &at_ms) ||
           at_ms >= since_ms;
}

/* One page; `*after` is -1 behind the last one. */
static bool visit_page(struct audit_source *source, struct str page, int64_t since_ms,
                       audit_visitor visitor, void *context, int64_t *after)
{
    struct str entries = json_member(page, "entries"), row;
    struct str start = json_member(page, "start");
    uint64_t next;
    size_t position = 0;
    source->kept = json_member(page, "arguments");
    if (json_type(start) == JSON_OBJECT && !source->has_start)
        source->has_start = audit_read_anchor(start, &source->start);
    while (json_next_element(entries, &position, &row)) {
        if (is_new_enough(row, since_ms) && !visitor(context, row))
            return false;
    }
    *after = str_to_u64(json_member(page, "nextAfter"), &next) ? (int64_t)next : -1;
    return true;
}

static int audit_source_read_endpoint(struct audit_source *source, int64_t since_ms,
                                      audit_visitor visitor, void *context)
{
    struct admin_client *client = admin_client_create();
    int code = client ? CLI_DONE : CLI_USAGE;
    int64_t after = 0;
    OWNED_BUFFER(body);
    while (code == CLI_DONE && after >= 0) {
        char *path = memory_format("/api/v1/audit?after=%" PRId64 "&limit=%d%s", after, PAGE_ROWS,
                                   source->with_arguments ? "&arguments=true" : "");
        const struct admin_request request = {.method = "GET", .path = path};
        buffer_clear(&body);
        code = admin_client_send(client, &request, &body);
        free(path);
        if (code == CLI_DONE &&
            !visit_page(source, buffer_str(&body), since_ms, visitor, context, &after))
            break;
    }
    admin_client_destroy(client);
    return code;
}

static int audit_source_read_file(const struct audit_source *source, int64_t since_ms,
                                  audit_visitor visitor, void *context)
{
    bool is_input = strcmp(source->path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(source->path, "re");
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t length = 0;
    int code = CLI_DONE;
    if (!file) {
        options_complain("%s cannot be read: %s", source->path, strerror(errno));
        return CLI_USAGE;
    }
    while (code == CLI_DONE && (length = getline(&line, &capacity, file)) >= 0) {
        struct str row = str_trim(str_slice(line, (size_t)length));
        number++;
        if (row.length > 0 && (json_type(row) != JSON_OBJECT || !json_check(row, NULL))) {
            options_complain("%s:%zu: this line is no row of the audit trail", source->path,
                             number);
            code = CLI_USAGE;
        } else if (row.length > 0 && is_new_enough(row, since_ms) && !visitor(context, row)) {
            break;
        }
    }
    if (ferror(file)) {
        options_complain("%s cannot be read", source->path);
        code = CLI_USAGE;
    }
    free(line);
    if (!is_input)
        fclose(file);
    return code;
}

int audit_source_read(struct audit_source *source, int64_t since_ms, audit_visitor visitor,
                      void *context)
{
    struct error error = {""};
    struct store_site site;
    switch (source->kind) {
    case AUDIT_SOURCE_ENDPOINT:
        return audit_source_read_endpoint(source, since_ms, visitor, context);
    case AUDIT_SOURCE_FILE:
        return audit_source_read_file(source, since_ms, visitor, context);
    case AUDIT_SOURCE_STORE:
        break;
    }
    site = store_place_site(source->path);
    if (store_trail_read(&site, since_ms, visitor, context, &error))
        return CLI_DONE;
    options_complain("%s", error.message);
    return CLI_USAGE;
}
