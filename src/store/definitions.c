/* Seeing, listing and accepting definitions. */
#include "taskgate/store/definitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "queue.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

/* Lines that one call writes; the others are summed up. */
#define MOST_LINES 20

/* ---- the lines that one text has alone ---- */

#define AROUND 40 /* bytes that are shown beside what changed */

struct difference {
    struct buffer *out;
    struct map *before, *after; /* line -> any pointer */
    struct str rest_before, rest_after;
};

/* The next line of `rest` that `others` lacks; empty: there is none. */
static struct str next_alone(struct str *rest, struct map *others)
{
    struct str line;
    while (rest->length > 0) {
        str_cut(*rest, '\n', &line, rest);
        if (line.length > 0 && !map_get(others, line))
            return line;
    }
    return STR_EMPTY;
}

static void difference_fill(struct map *map, struct str text)
{
    struct str line;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (line.length > 0)
            map_put(map, line, map);
    }
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static size_t common_start(struct str a, struct str b)
{
    size_t i = 0;
    while (i < a.length && i < b.length && a.bytes[i] == b.bytes[i])
        i++;
    return i;
}

static size_t common_end(struct str a, struct str b, size_t start)
{
    size_t i = 0;
    while (i < a.length - start && i < b.length - start &&
           a.bytes[a.length - 1 - i] == b.bytes[b.length - 1 - i])
        i++;
    return i;
}

static void difference_append_line(struct buffer *out, char sign, struct str line, size_t start,
                                   size_t end)
{
    size_t from = start > AROUND ? start - AROUND : 0;
    size_t to = end > AROUND ? line.length - end + AROUND : line.length;
    while (from > 0 && !begins_character(line.bytes[from]))
        from--;
    while (to < line.length && !begins_character(line.bytes[to]))
        to++;
    buffer_append_char(out, sign);
    buffer_append_text(out, from > 0 ? "…" : "");
    buffer_append(out, str_slice(line.bytes + from, to - from));
    buffer_append_text(out, to < line.length ? "…" : "");
    buffer_append_char(out, '\n');
}

/* The line that went beside the one that came. */
static bool append_pair(struct difference *difference)
{
    struct str gone = next_alone(&difference->rest_before, difference->after);
    struct str come = next_alone(&difference->rest_after, difference->before);
    size_t start = 0, end = 0;
    if (gone.length > 0 && come.length > 0) {
        start = common_start(gone, come);
        end = common_end(gone, come, start);
    }
    if (gone.length > 0)
        difference_append_line(difference->out, '-', gone, start, end);
    if (come.length > 0)
        difference_append_line(difference->out, '+', come, start, end);
    return gone.length > 0 || come.length > 0;
}

/* The difference of two texts for people: the lines that went ("-") and those that came ("+"). Of a
 * long line only what changed is written, with some of what is around it. Linear. Writes at most
 * `most` bytes. */
static void difference_write(struct buffer *out, struct str before, struct str after, size_t most)
{
    size_t begin = out->length;
    struct difference difference = {
        .out = out,
        .before = map_create(),
        .after = map_create(),
        .rest_before = before,
        .rest_after = after,
    };
    difference_fill(difference.before, before);
    difference_fill(difference.after, after);
    while (out->length - begin <= most && append_pair(&difference))
        ;
    if (out->length - begin > most) {
        static const char more[] = "…";
        struct str written = str_slice(out->bytes + begin, out->length - begin);
        out->length = begin + str_utf8_cut(written, most - (sizeof more - 1)).length;
        buffer_append_text(out, more);
    }
    ASSERT_NUMBERS(out->length - begin, <=, most);
    map_destroy(difference.before, NULL);
    map_destroy(difference.after, NULL);
}

/* ---- digests in a text ---- */

static bool has_digest(const char *digests, const char *digest)
{
    return *digest && strstr(digests, digest) != NULL; /* all are as long as one another */
}

/* Puts it behind the others, and forgets the oldest ones. */
static void add_digest(char **digests, const char *digest)
{
    OWNED char *all = memory_format("%s%s%s", *digests, **digests ? " " : "", digest);
    size_t most = STORE_DEFINITION_DIGESTS * (strlen(digest) + 1) - 1, length = strlen(all);
    free(*digests);
    *digests = memory_copy_text(length > most ? all + length - most : all);
}

static void definitions_set_text(char **text, struct str value)
{
    free(*text);
    *text = memory_copy_str(value);
}

/* ---- telling ---- */

static void count_flags(const struct store_definition *row, unsigned flags)
{
    for (unsigned i = 0; i < DEFINITION_FLAG_COUNT; i++) {
        if (flags & 1U << i)
            metrics_count(METRIC_DEFINITIONS_FLAGGED, str_from(row->source),
                          str_from(definition_flag_name((enum definition_flag)i)));
    }
}

static void write_flags(struct buffer *out, unsigned flags)
{
    for (unsigned i = 0; i < DEFINITION_FLAG_COUNT; i++) {
        if (flags & 1U << i)
            buffer_append_format(out, "%s%s", out->length > 0 ? "," : "",
                                 definition_flag_name((enum definition_flag)i));
    }
}

/* One call of store_definitions_see(). */
struct sight {
    struct batch *batch;
    int64_t kept; /* rows of the source; -1: not yet counted */
    size_t lines;
};

static void tell_flags(struct sight *sight, const struct store_definition *row, unsigned fresh)
{
    OWNED_BUFFER(reasons);
    if (!fresh)
        return;
    count_flags(row, fresh);
    write_flags(&reasons, fresh);
    if (sight->lines++ < MOST_LINES)
        log_warn("Definition flagged", LOG_TEXT("source", row->source), LOG_TEXT("kind", row->kind),
                 LOG_TEXT("name", row->name), LOG_TEXT("digest", row->digest),
                 LOG_STR("reasons", buffer_str(&reasons)));
}

static void tell_change(struct sight *sight, struct store_definition *row)
{
    if (has_digest(row->counted, row->digest))
        return;
    add_digest(&row->counted, row->digest);
    metrics_count(METRIC_DEFINITIONS_CHANGED, str_from(row->source), str_from(row->kind));
    if (sight->lines++ < MOST_LINES)
        log_warn("Definition changed", LOG_TEXT("source", row->source), LOG_TEXT("kind", row->kind),
                 LOG_TEXT("name", row->name), LOG_TEXT("digest", row->digest),
                 LOG_TEXT("difference", row->difference));
}

/* ---- seeing ---- */

static void write_difference(struct store_definition *row)
{
    OWNED_BUFFER(text);
    difference_write(&text, str_from(row->accepted_text), str_from(row->text),
                     STORE_DEFINITION_DIFFERENCE_BYTES);
    if (text.length == 0)
        buffer_append_text(&text, "(the change is not in the part of the texts that is kept)");
    definitions_set_text(&row->difference, buffer_str(&text));
}

/* Into the row what the server gives now. */
static void take_present(struct sight *sight, struct store_definition *row,
                         const struct store_definition *item)
{
    bool is_same = strcmp(row->digest, item->digest) == 0;
    unsigned fresh = is_same ? item->flags & ~row->flags : item->flags;
    row->flags = item->flags;
    definitions_set_text(&row->digest, str_from(item->digest));
    definitions_set_text(&row->text,
                         str_utf8_cut(str_from(item->text), STORE_DEFINITION_TEXT_BYTES));
    row->is_changed = !has_digest(row->accepted, row->digest);
    if (row->is_changed) {
        write_difference(row);
        tell_change(sight, row);
    } else {
        definitions_set_text(&row->difference, STR_EMPTY);
        definitions_set_text(&row->accepted_text, str_from(row->text));
    }
    tell_flags(sight, row, fresh);
}

/* Accepted, if there is room for it. */
static bool definitions_insert(struct sight *sight, struct store_definition *row,
                               const struct store_definition *item, const char *id)
{
    struct database *database = sight->batch->database;
    if (sight->kept < 0 && !rows_number(database, STATEMENT_DEFINITION_COUNT,
                                        VALUES(TEXT(item->source)), &sight->kept))
        return false;
    bool is_kept = sight->kept < DEFINITIONS_MOST;
    *row = (struct store_definition){
        .id = memory_copy_text(id),
        .source = memory_copy_text(item->source),
        .kind = memory_copy_text(item->kind),
        .name = memory_copy_text(item->name),
        .digest = memory_copy_text(item->digest),
        .accepted = memory_copy_text(is_kept ? item->digest : ""),
        .counted = memory_copy_text(""),
        .text = memory_copy_text(""),
        .accepted_text = memory_copy_text(""),
        .difference = memory_copy_text(""),
        .flags = item->flags,
        .at_ms = sight->batch->now_ms,
    };
    if (!is_kept)
        return true;
    sight->kept++;
    row->flags = 0; /* those of the item are fresh */
    take_present(sight, row, item);
    return rows_insert(database, STATEMENT_DEFINITION_INSERT, &definition_record, row);
}

/* All but source, kind and name. */
static bool update(struct batch *batch, const struct store_definition *row)
{
    return rows_write(batch->database, STATEMENT_DEFINITION_UPDATE,
                      VALUES(TEXT(row->id), TEXT(row->digest), TEXT(row->accepted),
                             TEXT(row->counted), TEXT(row->difference), NUMBER(row->flags),
                             NUMBER(row->is_changed), NUMBER(row->at_ms), TEXT(row->text),
                             TEXT(row->accepted_text)));
}

static bool definitions_get(struct batch *batch, const char *id, struct record_list *list)
{
    return rows_list(batch->database, STATEMENT_DEFINITION_GET, VALUES(TEXT(id)), list);
}

static bool definitions_is_news(const struct store_definition *row,
                                const struct store_definition *item)
{
    return strcmp(row->digest, item->digest) != 0 || row->flags != item->flags;
}

/* The row behind it is appended to the reply. */
static bool definitions_see(struct sight *sight, const struct store_definition *item,
                            struct record_list *reply)
{
    struct batch *batch = sight->batch;
    char id[STORE_DEFINITION_ID_BYTES];
    size_t before = reply->count;
    bool is_told = false, done;
    store_definition_id(str_from(item->source), str_from(item->kind), str_from(item->name), id);
    if (!definitions_get(batch, id, reply))
        return false;
    ASSERT_NUMBERS(reply->count, <=, before + 1);
    struct store_definition *found = (struct store_definition *)reply->items + before;
    if (reply->count == before) {
        done = definitions_insert(sight, record_list_add(reply), item, id);
    } else if (definitions_is_news(found, item)) {
        take_present(sight, found, item);
        found->at_ms = batch->now_ms;
        done = update(batch, found);
        is_told = true; /* a first one all replicas see for themselves */
    } else {
        done = true;
    }
    if (done && is_told)
        id_list_add(&batch->changed, str_from(id));
    return done;
}

/* Answers are for memory, which has no room for texts. */
static void drop_texts(struct record_list *list)
{
    struct store_definition *items = list->items;
    for (size_t i = 0; i < list->count; i++) {
        free(items[i].text);
        free(items[i].accepted_text);
        items[i].text = items[i].accepted_text = NULL;
    }
}

static void definitions_give(struct operation *operation, const struct record_list *list)
{
    operation->reply.definitions = list->items;
    operation->reply.definition_count = list->count;
}

static bool run_definitions_see(struct batch *batch, struct operation *operation)
{
    struct sight sight = {.batch = batch, .kept = -1};
    struct record_list list = {&definition_record};
    const struct store_definition *items = operation->definitions.items;
    bool done = true;
    for (size_t i = 0; done && i < operation->definitions.count; i++)
        done = definitions_see(&sight, &items[i], &list);
    drop_texts(&list);
    definitions_give(operation, &list);
    if (sight.lines > MOST_LINES)
        log_warn("Definitions changed or flagged beyond those named",
                 LOG_TEXT("source", items[0].source),
                 LOG_NUMBER("lines", (int64_t)(sight.lines - MOST_LINES)));
    return done;
}

/* ---- the others ---- */

static bool run_definitions_list(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&definition_list_record};
    bool is_watched =
        operation->definition_page.changed_only || operation->definition_page.flagged_only;
    bool done = rows_list(
        batch->database, is_watched ? STATEMENT_DEFINITION_PAGE_WATCHED : STATEMENT_DEFINITION_PAGE,
        VALUES(NUMBER(operation->definition_page.from), TEXT(operation->definition_page.source),
               TEXT(operation->definition_page.kind),
               NUMBER(operation->definition_page.changed_only),
               NUMBER(operation->definition_page.flagged_only),
               NUMBER((int64_t)operation->definition_page.limit + 1),
               TEXT(operation->definition_page.name)),
        &list);
    operation_end_page(operation, &list, operation->definition_page.limit);
    definitions_give(operation, &list);
    return done;
}

static bool definitions_load(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&definition_record};
    bool done = definitions_get(batch, operation->id, &list);
    definitions_give(operation, &list);
    if (list.count == 0)
        operation->reply.status = STORE_NOT_FOUND;
    return done;
}

static bool definition_accept(struct batch *batch, struct operation *operation,
                              struct store_definition *row)
{
    add_digest(&row->accepted, row->digest);
    definitions_set_text(&row->accepted_text, str_from(row->text));
    definitions_set_text(&row->difference, STR_EMPTY);
    row->is_changed = false;
    row->at_ms = batch->now_ms;
    id_list_add(&batch->changed, str_from(row->id));
    log_info("Definition accepted", LOG_TEXT("source", row->source), LOG_TEXT("kind", row->kind),
             LOG_TEXT("name", row->name), LOG_TEXT("digest", row->digest),
             LOG_TEXT("by", operation->accept.person));
    return update(batch, row) && audit_append_definition(batch, row, operation->accept.person);
}

static bool run_accept(struct batch *batch, struct operation *operation)
{
    if (!definitions_load(batch, operation) || operation->reply.status != STORE_OK)
        return operation->reply.status == STORE_NOT_FOUND;
    struct store_definition *row = (struct store_definition *)operation->reply.definitions;
    if (strcmp(row->digest, operation->accept.digest) != 0) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    return !row->is_changed || definition_accept(batch, operation, row);
}

/* ---- the calls ---- */

static void definitions_finish(struct operation *operation)
{
    record_list_finish(&operation->definitions);
}

static const struct operation_kind operation_definitions_see = {
    "definitions see", true, run_definitions_see, definitions_finish};
static const struct operation_kind operation_definition_list = {"definition list", false,
                                                                run_definitions_list, NULL};
static const struct operation_kind operation_definition_get = {"definition get", false,
                                                               definitions_load, NULL};
static const struct operation_kind operation_definition_accept = {"definition accept", true,
                                                                  run_accept, NULL};

void store_definitions_see(struct store *store, struct store_definition *items, size_t count,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_definitions_see, call);
    operation->definitions = (struct record_list){&definition_record, items, count, count};
    store_queue(store, operation);
}

void store_definition_list(struct store *store, const struct store_definition_query *query,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_list, call);
    operation->definition_page.source = operation_keep(operation, query->source);
    operation->definition_page.kind = operation_keep(operation, query->kind);
    operation->definition_page.name = operation_keep(operation, query->name);
    operation->definition_page.changed_only = query->changed_only;
    operation->definition_page.flagged_only = query->flagged_only;
    operation->definition_page.from = query->after_sequence;
    operation->definition_page.limit = query->limit;
    store_queue(store, operation);
}

void store_definition_get(struct store *store, struct str id, struct store_call call)
{
    store_queue_get(store, &operation_definition_get, id, call);
}

void store_definition_accept(struct store *store, struct str id, struct str digest,
                             const char *person, struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_accept, call);
    operation->id = operation_keep(operation, id);
    operation->accept.digest = operation_keep(operation, digest);
    operation->accept.person = operation_keep_text(operation, person);
    store_queue(store, operation);
}

void store_definition_id(struct str source, struct str kind, struct str name,
                         char id[STORE_DEFINITION_ID_BYTES])
{
    OWNED_BUFFER(text);
    char digest[DIGEST_HEX_BYTES];
    const struct str parts[] = {source, kind, name};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buffer_append(&text, parts[i]);
        buffer_append_char(&text, '\0');
    }
    digest_sha256_hex(buffer_str(&text), digest);
    snprintf(id, STORE_DEFINITION_ID_BYTES, STORE_DEFINITION_ID_PREFIX "%.32s", digest);
}
