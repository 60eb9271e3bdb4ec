/* One JSON-RPC message: spans of its protocol members, and every refusal of behaviour 3.3. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "scanner.h"
#include "taskgate/core/str.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/fold.h"
#include "taskgate/json/text.h"
#include "unescape.h"
#include "walk.h"

_Static_assert(ENVELOPE_MAX_DEPTH == SCANNER_MAX_DEPTH, "both are the bound of one reader");

#define META_SCALARS 4
#define META_MEMBERS 8

/* Strings and numbers of the object itself that may differ the next time, in their order. */
struct meta_scalars {
    size_t count;
    struct str values[META_SCALARS];
};

/* A value that the envelope has taken. */
struct meta_member {
    size_t offset; /* of its struct str in the envelope */
    struct str span;
};

/* The last objects that were read, each as the pieces between the values that may differ. */

#define META_BYTES 512
#define META_KEPT 4

struct kept_member {
    size_t offset;        /* in the envelope */
    size_t piece;         /* the one that it stands in, or that it follows */
    bool is_scalar;       /* it is one of those that may differ */
    size_t start, length; /* in the piece */
};

struct kept_meta {
    size_t pieces; /* 0: none */
    struct str piece[META_SCALARS + 1];
    size_t count;
    struct kept_member members[META_MEMBERS];
    char text[META_BYTES];
};

static _Thread_local struct {
    struct kept_meta metas[META_KEPT];
    size_t next;
} kept;

/* Whether a value that begins like this is a string or a number. */
static bool meta_is_scalar(char first)
{
    return first == '"' || first == '-' || (first >= '0' && first <= '9');
}

/* Takes note of a value, unless there are enough. */
static void meta_scalars_add(struct meta_scalars *scalars, struct str value)
{
    if (scalars->count < META_SCALARS)
        scalars->values[scalars->count++] = value;
}

/* ---- recall ---- */

enum envelope_match { UNLIKE, LIKE, UNREADABLE };

/* The places of the pieces and of the values between them in a body. */
struct places {
    const char *piece[META_SCALARS + 1];
    struct str value[META_SCALARS];
};

/* Reading a string or a number leaves nothing behind in the scanner unless it is unreadable: then
 * a strict reading would end at the same byte, because all before it is known. */
static enum envelope_match envelope_match(const struct kept_meta *meta, struct scanner *scanner,
                                          const char *at, struct places *places, const char **end)
{
    const char *p = at;
    for (size_t i = 0;; i++) {
        struct str piece = meta->piece[i];
        if ((size_t)(scanner->end - p) < piece.length || memcmp(p, piece.bytes, piece.length) != 0)
            return UNLIKE;
        places->piece[i] = p;
        p += piece.length;
        if (i + 1 == meta->pieces)
            break;
        if (p == scanner->end || !meta_is_scalar(*p))
            return UNLIKE;
        const char *value = p;
        p = scan_value(scanner, value);
        if (!p)
            return UNREADABLE;
        places->value[i] = str_slice(value, (size_t)(p - value));
    }
    *end = p;
    return LIKE;
}

static void envelope_hand_over(const struct kept_meta *meta, const struct places *places,
                               struct envelope *envelope)
{
    for (size_t i = 0; i < meta->count; i++) {
        const struct kept_member *member = &meta->members[i];
        struct str *taken = (struct str *)(void *)((char *)envelope + member->offset);
        if (member->is_scalar)
            *taken = places->value[member->piece];
        else
            *taken = str_slice(places->piece[member->piece] + member->start, member->length);
    }
}

/* Whether the object at `at` is known. Then the envelope has its members, and `*end` is behind it,
 * or NULL where a value is unreadable, which the scanner has said. */
static bool known_meta_recall(struct scanner *scanner, const char *at, struct envelope *envelope,
                              const char **end)
{
    struct places places;
    *end = NULL;
    for (size_t i = 0; i < META_KEPT; i++) {
        const struct kept_meta *meta = &kept.metas[i];
        enum envelope_match found =
            meta->pieces > 0 ? envelope_match(meta, scanner, at, &places, end) : UNLIKE;
        if (found == UNLIKE)
            continue;
        if (found == LIKE)
            envelope_hand_over(meta, &places, envelope);
        return true;
    }
    return false;
}

/* ---- keep ---- */

static void cut_pieces(struct kept_meta *meta, struct str text, const struct meta_scalars *scalars)
{
    const char *from = text.bytes, *end = text.bytes + text.length;
    memcpy(meta->text, text.bytes, text.length);
    meta->pieces = scalars->count + 1;
    for (size_t i = 0; i < meta->pieces; i++) {
        const struct str *value = i < scalars->count ? &scalars->values[i] : NULL;
        const char *to = value ? value->bytes : end;
        meta->piece[i] = str_slice(meta->text + (from - text.bytes), (size_t)(to - from));
        from = value ? to + value->length : to;
    }
}

static struct kept_member place_member(const struct kept_meta *meta, struct str text,
                                       const struct meta_scalars *scalars,
                                       const struct meta_member *member)
{
    struct kept_member placed = {.offset = member->offset, .length = member->span.length};
    const char *bytes = meta->text + str_offset(text, member->span);
    while (placed.piece < scalars->count &&
           scalars->values[placed.piece].bytes < member->span.bytes)
        placed.piece++;
    placed.is_scalar =
        placed.piece < scalars->count && scalars->values[placed.piece].bytes == member->span.bytes;
    if (!placed.is_scalar)
        placed.start = (size_t)(bytes - meta->piece[placed.piece].bytes);
    return placed;
}

/* Remembers an object that was read without a fault, in place of the oldest. `members` are at most
 * META_MEMBERS parts of `text`. */
static void known_meta_keep(struct str text, const struct meta_scalars *scalars,
                            const struct meta_member *members, size_t count)
{
    if (text.length > META_BYTES)
        return;
    struct kept_meta *meta = &kept.metas[kept.next];
    kept.next = (kept.next + 1) % META_KEPT;
    cut_pieces(meta, text, scalars);
    meta->count = count;
    for (size_t i = 0; i < count; i++)
        meta->members[i] = place_member(meta, text, scalars, &members[i]);
}

/* Look-alikes by the folding that judges all names. */

/* Whether `key` folds to what `name` (ASCII) folds to. */
static bool lookalike(struct str key, struct str name)
{
    while (key.length) {
        struct str folded = fold_next(&key);
        if (folded.length > name.length ||
            !str_equal_ignore_case(folded, str_slice(name.bytes, folded.length)))
            return false;
        name = str_slice(name.bytes + folded.length, name.length - folded.length);
    }
    return name.length == 0;
}

/* Keys beside one another that fold together: a scan that takes folded keys for the keys. */

bool fold_finds_variants(struct str json, struct error *error)
{
    struct scanner scanner;
    scanner_init(&scanner, json, error);
    scanner_fold_keys(&scanner);
    bool found = scan_document(&scanner, NULL, NULL, NULL) == SCAN_REFUSED;
    scanner_finish(&scanner);
    return found;
}

#define KNOWN_KEY_BYTES 48

/* A protocol key of one level; keys that only look like it are refused. */
struct known_key {
    char name[KNOWN_KEY_BYTES]; /* zero-padded */
    size_t length;
    size_t value;              /* offset of the struct str that takes the value, or NOWHERE */
    size_t member;             /* the same for the whole member */
    const struct level *level; /* the known keys inside, when the value is an object */
};

struct level {
    const struct known_key *keys;
    size_t count;
    const char *refusal;
};

#define NOWHERE SIZE_MAX
#define LEVEL(table, text)                                                                         \
    {                                                                                              \
        .keys = (table), .count = sizeof(table) / sizeof(table)[0], .refusal = (text)              \
    }
#define NAME(key) key, sizeof(key) - 1
#define TAKEN(key, field)                                                                          \
    {                                                                                              \
        NAME(key), offsetof(struct envelope, field), NOWHERE, NULL                                 \
    }
#define GUARDED(key)                                                                               \
    {                                                                                              \
        NAME(key), NOWHERE, NOWHERE, NULL                                                          \
    }

static const struct known_key task_keys[] = {TAKEN("ttl", task_ttl), GUARDED("taskId")};
static const struct level task_level = LEVEL(task_keys, "look-alike of a protocol key in task");

static const struct known_key meta_keys[] = {
    TAKEN("progressToken", progress_token),
    TAKEN("io.modelcontextprotocol/protocolVersion", reserved.version),
    TAKEN("io.modelcontextprotocol/clientInfo", reserved.client_info),
    TAKEN("io.modelcontextprotocol/clientCapabilities", reserved.client_capabilities),
    TAKEN("io.modelcontextprotocol/logLevel", reserved.log_level),
    GUARDED("io.modelcontextprotocol/subscriptionId"),
    GUARDED("io.modelcontextprotocol/related-task"),
};
static const struct level meta_level = LEVEL(meta_keys, "look-alike of a protocol key in _meta");

static const struct known_key ref_keys[] = {
    TAKEN("type", ref_type.raw),
    TAKEN("name", ref_name.raw),
    TAKEN("uri", ref_uri.raw),
};
static const struct level ref_level = LEVEL(ref_keys, "look-alike of a protocol key in ref");

/* The params of requests and notifications in the published schemas up to 2026-07-28. */
static const struct known_key params_keys[] = {
    TAKEN("name", name.raw),
    TAKEN("arguments", arguments.raw),
    {NAME("_meta"), offsetof(struct envelope, meta.raw), NOWHERE, &meta_level},
    {NAME("task"), offsetof(struct envelope, task.raw), offsetof(struct envelope, task_member),
     &task_level},
    TAKEN("taskId", task_id.raw),
    TAKEN("cursor", cursor.raw),
    TAKEN("uri", uri.raw),
    GUARDED("protocolVersion"),
    GUARDED("capabilities"),
    GUARDED("clientInfo"),
    GUARDED("level"),
    {NAME("ref"), offsetof(struct envelope, ref.raw), NOWHERE, &ref_level},
    GUARDED("argument"),
    GUARDED("context"),
    GUARDED("requestId"),
    GUARDED("reason"),
    GUARDED("progressToken"),
    GUARDED("progress"),
    GUARDED("total"),
    GUARDED("message"),
    TAKEN("notifications", notifications),
    TAKEN("inputResponses", input_responses),
    TAKEN("requestState", request_state),
};
static const struct level params_level =
    LEVEL(params_keys, "look-alike of a protocol key in params");

static const struct known_key envelope_keys[] = {
    TAKEN("jsonrpc", jsonrpc),
    TAKEN("id", id),
    TAKEN("method", method),
    {NAME("params"), offsetof(struct envelope, params), NOWHERE, &params_level},
    TAKEN("result", result),
    TAKEN("error", error),
};
static const struct level envelope_level = LEVEL(envelope_keys, "look-alike of a protocol key");

static const struct known_key *envelope_find(const struct level *level, const struct key *key)
{
    for (const struct known_key *known = level->keys; known < level->keys + level->count; known++) {
        if (load_word(known->name) == key->head && known->length == key->length &&
            (key->length <= 8 || memcmp(known->name + 8, key->bytes + 8, key->length - 8) == 0))
            return known;
    }
    return NULL;
}

static bool is_lookalike(const struct level *level, const struct key *key)
{
    unsigned char first = key->length ? (unsigned char)key->bytes[0] : 0;
    for (size_t i = 0; i < level->count; i++) {
        struct str name = str_slice(level->keys[i].name, level->keys[i].length);
        /* An ASCII letter folds to nothing but its own other case. */
        if (first < 0x80 && (first | 0x20) != (name.bytes[0] | 0x20))
            continue;
        if (lookalike(str_slice(key->bytes, key->length), name))
            return true;
    }
    return false;
}

struct place {
    struct envelope *envelope;
    const struct level *level;
    struct meta_scalars scalars; /* of the last `_meta`: those that may differ the next time */
};

static struct str *span_at(struct envelope *envelope, size_t offset)
{
    return (struct str *)(void *)((char *)envelope + offset);
}

static void envelope_take(struct envelope *envelope, size_t offset, const char *from,
                          const char *to)
{
    if (offset != NOWHERE)
        *span_at(envelope, offset) = (struct str){from, (size_t)(to - from)};
}

static const char *visit_member(struct scanner *scanner, const char *at, const struct key *key,
                                void *context);

/* Modern clients send nearly the same `_meta` in each request. */
static void keep_meta(struct envelope *envelope, struct str text,
                      const struct meta_scalars *scalars)
{
    struct meta_member members[sizeof meta_keys / sizeof *meta_keys];
    _Static_assert(sizeof members / sizeof *members <= META_MEMBERS, "a kept one has room for all");
    size_t count = 0;
    for (size_t key = 0; key < meta_level.count; key++) {
        size_t value = meta_keys[key].value;
        struct str span = value == NOWHERE ? STR_EMPTY : *span_at(envelope, value);
        if (span.length > 0)
            members[count++] = (struct meta_member){value, span};
    }
    known_meta_keep(text, scalars, members, count);
}

/* Out of the way of the other objects. */
static __attribute__((noinline)) const char *scan_meta(struct scanner *scanner, const char *at,
                                                       struct place *place)
{
    const char *end;
    if (known_meta_recall(scanner, at, place->envelope, &end))
        return end;
    place->scalars.count = 0;
    end = scan_members(scanner, at, visit_member, place);
    if (end && scanner->verdict == SCAN_ACCEPTED)
        keep_meta(place->envelope, str_slice(at, (size_t)(end - at)), &place->scalars);
    return end;
}

/* `at` is the brace of an object in which keys are known. */
static const char *scan_level(struct scanner *scanner, const char *at, struct place *place,
                              const struct level *level)
{
    const struct level *around = place->level;
    place->level = level;
    const char *end = level == &meta_level ? scan_meta(scanner, at, place)
                                           : scan_members(scanner, at, visit_member, place);
    place->level = around;
    return end;
}

/* A member of a `_meta` whose value says nothing of the client: a token, a trace. */
static void note_scalar(struct place *place, const char *at, const char *end)
{
    if (place->level == &meta_level && meta_is_scalar(*at))
        meta_scalars_add(&place->scalars, str_slice(at, (size_t)(end - at)));
}

static __attribute__((noinline)) const char *
visit_unknown(struct scanner *scanner, const char *at, const struct key *key, struct place *place)
{
    const char *quote = key->at;
    if (is_lookalike(place->level, key))
        scan_refuse(scanner, key->at, place->level->refusal);
    const char *behind = scan_value(scanner, at);
    if (behind && place->level == &envelope_level && !place->envelope->unknown_member.length)
        envelope_take(place->envelope, offsetof(struct envelope, unknown_member), quote, behind);
    if (behind)
        note_scalar(place, at, behind);
    return behind;
}

static const char *visit_member(struct scanner *scanner, const char *at, const struct key *key,
                                void *context)
{
    struct place *place = context;
    const struct known_key *known = envelope_find(place->level, key);
    const char *quote = key->at; /* the key itself does not outlast the walk through its value */
    if (!known)
        return visit_unknown(scanner, at, key, place);
    const char *end = known->level && at < scanner->end && *at == '{'
                          ? scan_level(scanner, at, place, known->level)
                          : scan_value(scanner, at);
    if (end) {
        envelope_take(place->envelope, known->value, at, end);
        envelope_take(place->envelope, known->member, quote, end);
        if (known->value == offsetof(struct envelope, progress_token))
            note_scalar(place, at, end);
    }
    return end;
}

/* A value that was scanned, without space around it. */
static bool envelope_value_begins(struct str value, char first)
{
    return value.length > 0 && value.bytes[0] == first;
}

/* The text of a JSON string, taken from the body itself unless it has escapes. */
static struct str envelope_decode(struct envelope *envelope, struct str raw)
{
    if (!envelope_value_begins(raw, '"'))
        return STR_EMPTY;
    struct str inner = str_slice(raw.bytes + 1, raw.length - 2);
    if (!inner.length || !memchr(inner.bytes, '\\', inner.length))
        return inner;
    /* All that is ever decoded fits, so what was decoded before does not move. */
    if (envelope->decoded.capacity == 0)
        buffer_reserve(&envelope->decoded, envelope->body.length);
    size_t start = envelope->decoded.length;
    unescape_append(&envelope->decoded, inner);
    return str_slice(envelope->decoded.bytes + start, envelope->decoded.length - start);
}

/* Only an escape can be one: without any, nothing was decoded. */
static bool envelope_has_nul(const struct envelope *envelope, struct str text)
{
    return envelope->decoded.length && text.length && memchr(text.bytes, '\0', text.length);
}

/* A string or an integer of any size: numbers with a fraction or an exponent would not come
 * back as they went. */
static bool is_id(struct str raw)
{
    bool is_number = raw.bytes[0] != '"';
    for (size_t i = 0; is_number && i < raw.length; i++) {
        if (raw.bytes[i] == '.' || (raw.bytes[i] | 0x20) == 'e')
            return false;
    }
    return meta_is_scalar(raw.bytes[0]);
}

/* `where` is the span of the body that is wrong. */
static void envelope_describe(const struct envelope *envelope, struct error *error,
                              struct str where, const char *what)
{
    error_set(error, "%s at byte %zu", what, str_offset(envelope->body, where));
}

/* Keeps the id: an answer can carry it. */
static enum envelope_status invalid_request(const struct envelope *envelope, struct error *error,
                                            struct str where, const char *what)
{
    envelope_describe(envelope, error, where, what);
    return ENVELOPE_INVALID_REQUEST;
}

static enum envelope_status invalid_params(const struct envelope *envelope, struct error *error,
                                           struct str where, const char *what)
{
    envelope_describe(envelope, error, where, what);
    return ENVELOPE_INVALID_PARAMS;
}

static enum envelope_status judge_response(struct envelope *envelope, struct str document,
                                           struct error *error)
{
    if (!envelope->id.length)
        return invalid_request(envelope, error, document, "neither a method nor an id");
    if (!envelope->result.length == !envelope->error.length)
        return invalid_request(envelope, error, document,
                               "neither a method nor exactly one of result and error");
    envelope->kind = ENVELOPE_RESPONSE;
    return ENVELOPE_OK;
}

static enum envelope_status judge_call(struct envelope *envelope, struct str document,
                                       struct error *error)
{
    struct str method = envelope->method;
    if (!envelope_value_begins(method, '"'))
        return invalid_request(envelope, error, method, "method is not a string");
    if (envelope->result.length || envelope->error.length)
        return invalid_request(envelope, error, document, "a method beside a result or an error");
    envelope->method = envelope_decode(envelope, method);
    if (envelope_has_nul(envelope, envelope->method))
        return invalid_request(envelope, error, method, "a NUL in method");
    envelope->kind = envelope->id.length ? ENVELOPE_REQUEST : ENVELOPE_NOTIFICATION;
    if (envelope->params.length && !envelope_value_begins(envelope->params, '{'))
        return invalid_params(envelope, error, envelope->params, "params is not an object");
    struct envelope_member *texts[] = {&envelope->name,   &envelope->uri,      &envelope->task_id,
                                       &envelope->cursor, &envelope->ref_type, &envelope->ref_name,
                                       &envelope->ref_uri};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i]->raw.length)
            texts[i]->text = envelope_decode(envelope, texts[i]->raw);
    if (envelope_has_nul(envelope, envelope->name.text))
        return invalid_params(envelope, error, envelope->name.raw, "a NUL in params.name");
    if (envelope_has_nul(envelope, envelope->uri.text))
        return invalid_params(envelope, error, envelope->uri.raw, "a NUL in params.uri");
    if (envelope_has_nul(envelope, envelope->ref_name.text) ||
        envelope_has_nul(envelope, envelope->ref_uri.text))
        return invalid_params(envelope, error, envelope->ref.raw, "a NUL in params.ref");
    return ENVELOPE_OK;
}

static enum envelope_status envelope_judge(struct envelope *envelope, struct str document,
                                           struct error *error)
{
    if (envelope_value_begins(document, '['))
        return invalid_request(envelope, error, document, "a batch");
    if (!envelope_value_begins(document, '{'))
        return invalid_request(envelope, error, document, "not an object");
    if (envelope->id.length && !is_id(envelope->id)) {
        struct str unusable = envelope->id;
        envelope->id = STR_EMPTY;
        return invalid_request(envelope, error, unusable, "id is neither a string nor an integer");
    }
    if (!str_equal(envelope->jsonrpc, STR("\"2.0\"")) &&
        !json_string_equals(envelope->jsonrpc, STR("2.0")))
        return invalid_request(envelope, error,
                               envelope->jsonrpc.length ? envelope->jsonrpc : document,
                               "jsonrpc is not \"2.0\"");
    return envelope->method.length ? judge_call(envelope, document, error)
                                   : judge_response(envelope, document, error);
}

static void envelope_forget(struct envelope *envelope, struct str id)
{
    envelope_finish(envelope);
    *envelope = (struct envelope){.body = envelope->body, .id = id};
}

enum envelope_status envelope_read(struct envelope *envelope, struct str body, struct error *error)
{
    *envelope = (struct envelope){.body = body};
    struct scanner scanner;
    struct place top = {envelope, &envelope_level, {.count = 0}};
    struct str document = STR_EMPTY;
    scanner_init(&scanner, body, error);
    scanner.refuses_nul = true;
    enum scan_verdict verdict = scan_document(&scanner, visit_member, &top, &document);
    scanner_finish(&scanner);
    enum envelope_status status = ENVELOPE_INVALID_REQUEST;
    if (verdict == SCAN_ACCEPTED)
        status = envelope_judge(envelope, document, error);
    else if (verdict == SCAN_UNREADABLE)
        status = ENVELOPE_PARSE_ERROR;
    /* A caller finds no part of a refused message to act on. */
    if (status == ENVELOPE_PARSE_ERROR || status == ENVELOPE_INVALID_REQUEST)
        envelope_forget(envelope, verdict == SCAN_ACCEPTED ? envelope->id : STR_EMPTY);
    return status;
}

enum envelope_status envelope_read_own(struct envelope *envelope, struct buffer *body,
                                       struct error *error)
{
    size_t length;
    char *own = buffer_take(body, &length);
    enum envelope_status status = envelope_read(envelope, str_slice(own, length), error);
    envelope->own_body = own;
    return status;
}

void envelope_finish(struct envelope *envelope)
{
    buffer_finish(&envelope->decoded);
    free(envelope->own_body);
    envelope->own_body = NULL;
}

void envelope_write_replaced(const struct envelope *envelope, struct str span, struct str text,
                             struct buffer *out)
{
    buffer_append_replaced(out, envelope->body, span, text);
}

void envelope_write_executable(const struct envelope *envelope, struct str id, bool keep_task,
                               struct buffer *out)
{
    struct str cut = STR_EMPTY;
    if (!keep_task && envelope->task_member.length)
        cut = splice_member(envelope->body, envelope->task_member);
    const char *copied = envelope->body.bytes;
    const char *end = copied + envelope->body.length;
    buffer_reserve(out, envelope->body.length + id.length + 2);
    for (int step = 0; step < 2; step++) {
        /* The id stands before params or behind it: the nearer of what is left comes next. */
        bool cut_left = cut.length && cut.bytes >= copied;
        bool id_left = envelope->id.length && envelope->id.bytes >= copied;
        bool do_cut = cut_left && (!id_left || cut.bytes < envelope->id.bytes);
        if (!do_cut && !id_left)
            break;
        struct str span = do_cut ? cut : envelope->id;
        buffer_append(
            out, str_slice(copied, str_offset(str_slice(copied, (size_t)(end - copied)), span)));
        if (!do_cut)
            buffer_append_json_string(out, id);
        copied = span.bytes + span.length;
    }
    buffer_append(out, str_slice(copied, (size_t)(end - copied)));
}
