/* The chain of the audit trail, checked against itself and against anchors kept elsewhere. */
#include "audit_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"
#include "taskgate/store/trail.h"

#include "options.h"
#include "store_place.h"

struct anchors {
    struct store_anchor *items; /* by number, once they are read */
    size_t count, next;
};

struct check {
    struct anchors anchors;
    struct signature_key *key; /* or NULL: signatures are not looked at */
    struct store_chain place;
    int64_t rows;
    bool has_begun;
    struct error finding;
    struct buffer text;
};

/* ---- what stands beside the trail ---- */

static int compare_anchors(const void *left, const void *right)
{
    const struct store_anchor *a = left, *b = right;
    return (a->place.sequence > b->place.sequence) - (a->place.sequence < b->place.sequence);
}

static void add_anchor(struct anchors *anchors, const struct store_anchor *anchor)
{
    anchors->items = memory_grow_array(anchors->items, anchors->count + 1, sizeof *anchor);
    anchors->items[anchors->count++] = *anchor;
}

/* A log may be given as it is: lines that are no anchors are passed over. */
static bool read_anchors(struct anchors *anchors, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    if (!file) {
        options_complain("%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    while ((length = getline(&line, &capacity, file)) >= 0) {
        struct store_anchor anchor;
        struct str object = str_trim(str_slice(line, (size_t)length));
        if (json_type(object) == JSON_OBJECT && json_check(object, NULL) &&
            audit_read_anchor(object, &anchor))
            add_anchor(anchors, &anchor);
    }
    free(line);
    fclose(file);
    if (anchors->count == 0) {
        options_complain("%s has no anchor", path);
        return false;
    }
    qsort(anchors->items, anchors->count, sizeof *anchors->items, compare_anchors);
    return true;
}

static struct signature_key *audit_verify_read_key(const char *path)
{
    char text[4096];
    struct error error = {""};
    FILE *file = fopen(path, "re");
    if (!file) {
        options_complain("%s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    struct signature_key *key = signature_key_read(str_slice(text, length), &error);
    explicit_bzero(text, sizeof text);
    if (!key)
        options_complain("%s %s", path, error.message);
    return key;
}

/* ---- places ---- */

static bool check_signature(const struct check *check, const struct store_anchor *anchor,
                            struct error *finding)
{
    return !check->key || store_anchor_verify(anchor, check->key) ||
           error_set(finding, "the anchor of row %" PRId64 " is not signed by the key",
                     anchor->place.sequence);
}

static bool audit_verify_check_place(void *context, const struct store_chain *place,
                                     struct error *finding)
{
    struct check *check = context;
    struct anchors *anchors = &check->anchors;
    while (anchors->next < anchors->count &&
           anchors->items[anchors->next].place.sequence <= place->sequence) {
        const struct store_anchor *anchor = &anchors->items[anchors->next++];
        /* Those of rows that `keep` has removed stand before the start. */
        if (anchor->place.sequence == place->sequence &&
            strcmp(anchor->place.hash, place->hash) != 0)
            return error_set(finding, "row %" PRId64 " is not the one that the anchor names",
                             place->sequence);
        if (!check_signature(check, anchor, finding))
            return false;
    }
    return true;
}

static bool check_all_reached(const struct check *check, struct error *finding)
{
    const struct anchors *anchors = &check->anchors;
    return anchors->next == anchors->count ||
           error_set(finding, "row %" PRId64 " is missing, which an anchor names",
                     anchors->items[anchors->next].place.sequence);
}

/* ---- rows that are JSON ---- */

/* An anchor of the row before makes a part of the trail one that can be checked. */
static bool audit_verify_begin(struct check *check, int64_t sequence)
{
    check->has_begun = true;
    for (size_t i = 0; i < check->anchors.count && sequence > 1; i++) {
        if (check->anchors.items[i].place.sequence == sequence - 1)
            check->place = check->anchors.items[i].place;
    }
    if (check->place.sequence == sequence - 1)
        return audit_verify_check_place(check, &check->place, &check->finding);
    return error_set(&check->finding,
                     "row %" PRId64 " cannot be checked: the rows before it are missing; give an "
                     "anchor of row %" PRId64 " with --anchor",
                     sequence, sequence - 1);
}

static bool audit_verify_visit(struct check *check, struct str row)
{
    uint64_t sequence;
    struct buffer rest, hash;
    if (!str_to_u64(json_member(row, "sequence"), &sequence) || sequence == 0 ||
        sequence > INT64_MAX)
        return error_set(&check->finding, "the row behind row %" PRId64 " has no number",
                         check->place.sequence);
    if (!check->has_begun && !audit_verify_begin(check, (int64_t)sequence))
        return false;
    buffer_init(&rest);
    buffer_init(&hash);
    buffer_clear(&check->text);
    json_write_without_member(&rest, row, "hash");
    canonical_write(buffer_str(&rest), &check->text);
    json_decode_string(json_member(row, "hash"), &hash);
    bool good = store_chain_next(&check->place, (int64_t)sequence, buffer_str(&check->text),
                                 buffer_str(&hash), &check->finding) &&
                audit_verify_check_place(check, &check->place, &check->finding);
    check->rows += good;
    buffer_finish(&hash);
    buffer_finish(&rest);
    return good;
}

/* ---- the whole ---- */

/* The walk over rows of an endpoint, or of a file. */
struct rows {
    struct audit_source *source;
    struct check *check;
};

/* An endpoint tells with its first page that older rows were removed, so the walk begins there. */
static bool audit_verify_visit_row(void *context, struct str row)
{
    const struct rows *rows = context;
    if (!rows->check->has_begun && rows->source->has_start)
        rows->check->place = rows->source->start.place;
    return audit_verify_visit(rows->check, row);
}

static int verify_rows(struct audit_source *source, struct check *check)
{
    struct rows rows = {source, check};
    int code = audit_source_read(source, INT64_MIN, audit_verify_visit_row, &rows);
    if (code == CLI_DONE && !*check->finding.message && source->has_start)
        check_signature(check, &source->start, &check->finding);
    return code;
}

static int verify_store(struct audit_source *source, struct check *check)
{
    struct store_trail_report report = {.rows = 0};
    struct error error = {""};
    const struct store_site site = store_place_site(source->path);
    if (!store_trail_verify(&site, audit_verify_check_place, check, &report, &error)) {
        options_complain("%s", error.message);
        return CLI_USAGE;
    }
    check->rows = report.rows;
    check->place = report.end;
    check->finding = report.finding;
    if (report.is_good && report.has_start)
        check_signature(check, &report.start, &check->finding);
    return CLI_DONE;
}

/* Anchors prove nothing unsigned: one who can write a trail can write those that fit it. */
static int audit_verify_say(const struct check *check, bool may_be_unsigned)
{
    if (*check->finding.message) {
        fprintf(stderr, "taskgate: the audit trail is not whole: %s\n", check->finding.message);
        return CLI_FAILURE;
    }
    printf("%" PRId64 " rows, up to row %" PRId64 ", hash %s\n", check->rows, check->place.sequence,
           check->place.hash);
    if (check->anchors.count > 0)
        printf("%zu anchors fit%s\n", check->anchors.count,
               check->key ? ", their signatures too" : "; their signatures were not checked");
    if (check->anchors.count > 0 && !check->key && !may_be_unsigned) {
        options_complain("the signatures of the anchors cannot be checked: name their key with "
                         "--key, or say --unsigned");
        return CLI_FAILURE;
    }
    return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILURE;
}

int audit_verify(struct audit_source *source, const char *anchors, const char *key,
                 bool may_be_unsigned)
{
    struct check check = {.rows = 0};
    int code = CLI_USAGE;
    store_chain_init(&check.place);
    buffer_init(&check.text);
    if (anchors && !read_anchors(&check.anchors, anchors))
        goto done;
    check.key = key           ? audit_verify_read_key(key)
                : source->key ? signature_key_ref(source->key)
                              : NULL;
    if (key && !check.key)
        goto done;
    code = source->kind == AUDIT_SOURCE_STORE ? verify_store(source, &check)
                                              : verify_rows(source, &check);
    if (code == CLI_DONE && !*check.finding.message)
        check_all_reached(&check, &check.finding);
    if (code == CLI_DONE)
        code = audit_verify_say(&check, may_be_unsigned);

done:
    signature_key_unref(check.key);
    free(check.anchors.items);
    buffer_finish(&check.text);
    return code;
}
