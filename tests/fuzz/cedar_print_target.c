/*
 * Policies printed and read again decide as before: same decision, same reasons, same errors,
 * over entities and requests that are made of the words and strings of the text itself. And
 * printing a printed text changes nothing.
 */
#include <string.h>

#include "fuzz.h"
#include "parser.h"
#include "taskgate/core/buffer.h"
#include "taskgate/policy/cedar.h"

#define MOST 12

/* The words and strings of the text. */
struct words {
    struct str names[MOST]; /* attributes, types, ids */
    size_t name_count;
    struct cedar_uid uids[MOST];
    size_t uid_count;
};

static void add_name(struct words *words, struct str name)
{
    for (size_t i = 0; i < words->name_count; i++)
        if (str_equal(words->names[i], name))
            return;
    if (words->name_count < MOST)
        words->names[words->name_count++] = name;
}

static void add_uid(struct words *words, struct str type, struct str id)
{
    if (words->uid_count < MOST && cedar_type_is_valid(type))
        words->uids[words->uid_count++] = cedar_uid(type, id);
}

static void collect(struct words *words, struct str text)
{
    struct lexer lexer = {.text = text};
    struct token token, last = {.kind = TOKEN_END}, before = {.kind = TOKEN_END};
    add_uid(words, STR("User"), STR("a"));
    add_uid(words, STR("Action"), STR("view"));
    do {
        token = lexer_next(&lexer);
        if (token.kind == TOKEN_STRING) {
            struct str inner = str_slice(token.text.bytes + 1, token.text.length - 2);
            add_name(words, inner);
            if (last.kind == TOKEN_COLONS && before.kind == TOKEN_WORD)
                add_uid(words, before.text, inner);
        } else if (token.kind == TOKEN_WORD) {
            add_name(words, token.text);
        }
        before = last;
        last = token;
    } while (token.kind != TOKEN_END);
}

/* ---- The universe ---------------------------------------------------------------------- */

static struct cedar_value extension_value(struct cedar_heap *heap, unsigned which)
{
    static const struct {
        const char *function, *text;
    } calls[] = {{"ip", "10.0.0.0/8"},
                 {"decimal", "1.5"},
                 {"datetime", "2024-02-29"},
                 {"duration", "-1d2h"}};
    struct cedar_value text = cedar_string(str_from(calls[which % 4].text)), value;
    FUZZ_EXPECT(cedar_call(heap, str_from(calls[which % 4].function), &text, 1, &value, NULL));
    return value;
}

static struct cedar_value record_value(struct cedar_heap *heap, const struct words *words,
                                       unsigned salt, unsigned depth);

static struct cedar_value some_value(struct cedar_heap *heap, const struct words *words,
                                     unsigned salt, unsigned depth)
{
    struct cedar_value value, elements[3];
    switch (salt % 8) {
    case 0:
        return cedar_bool(salt / 8 % 2);
    case 1:
        return cedar_long((int64_t)(salt / 8 % 5) - 2);
    case 2:
        return cedar_string(words->names[salt / 8 % words->name_count]);
    case 3:
        return cedar_entity(heap, &words->uids[salt / 8 % words->uid_count]);
    case 4:
        return extension_value(heap, salt / 8);
    case 5:
        for (unsigned i = 0; i < 3; i++)
            elements[i] = depth ? some_value(heap, words, salt / 8 + i, 0) : cedar_long(i);
        FUZZ_EXPECT(cedar_set(heap, elements, 3, &value));
        return value;
    default:
        return record_value(heap, words, salt / 8, depth);
    }
}

static struct cedar_value record_value(struct cedar_heap *heap, const struct words *words,
                                       unsigned salt, unsigned depth)
{
    struct cedar_member members[MOST];
    struct cedar_value record;
    size_t count = 0;
    for (size_t i = 0; depth && i < words->name_count; i++) {
        unsigned own = (salt + (unsigned)i * 7) * 2654435761u >> 8;
        if (own % 8)
            members[count++] =
                (struct cedar_member){words->names[i], some_value(heap, words, own / 8, depth - 1)};
    }
    FUZZ_EXPECT(cedar_record(heap, members, count, &record));
    return record;
}

/* Entity i may be in those behind it; some of those named are not there. */
static struct cedar_entities *make_entities(const struct words *words)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct cedar_heap *heap = cedar_entities_heap(entities);
    for (size_t i = 0; i < words->uid_count; i++) {
        if (i % 4 == 3)
            continue;
        size_t parents = words->uid_count - i - 1 < 2 ? words->uid_count - i - 1 : 2;
        unsigned salt = (unsigned)i * 31 + (unsigned)words->name_count;
        /* Twice with other content, or an action among other entities, is refused. */
        (void)cedar_entities_add(
            entities, &words->uids[i], record_value(heap, words, salt, 2).record,
            record_value(heap, words, salt + 1, 1).record, words->uids + i + 1, parents, NULL);
    }
    return entities;
}

/* ---- The comparison -------------------------------------------------------------------- */

static void compare(const struct cedar_response *a, const struct cedar_response *b)
{
    FUZZ_EXPECT(a->decision == b->decision && a->reason_count == b->reason_count &&
                a->failure_count == b->failure_count);
    for (size_t i = 0; i < a->reason_count; i++)
        FUZZ_EXPECT(str_equal(cedar_policy_name(a->reasons[i]), cedar_policy_name(b->reasons[i])));
    for (size_t i = 0; i < a->failure_count; i++) {
        const struct cedar_failure *one = &a->failures[i], *other = &b->failures[i];
        FUZZ_EXPECT(str_equal(cedar_policy_name(one->policy), cedar_policy_name(other->policy)));
        FUZZ_EXPECT(one->code == other->code && one->expected == other->expected &&
                    one->found == other->found && str_equal(one->name, other->name));
    }
}

static void decide_with_both(const struct cedar_policies *before,
                             const struct cedar_policies *after, const struct words *words)
{
    struct cedar_entities *entities = make_entities(words);
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_response one, other;
    cedar_response_init(&one);
    cedar_response_init(&other);
    /* Without the names of the text a hierarchy may have a circle; then none is asked. */
    bool sealed = cedar_entities_seal(entities, NULL);
    for (unsigned i = 0; sealed && i < 4; i++) {
        struct cedar_request request = {
            .principal = words->uids[i % words->uid_count],
            .action = words->uids[(i + 1) % words->uid_count],
            .resource = words->uids[i * 5 % words->uid_count],
            .context = record_value(heap, words, i * 17, 3).record,
        };
        cedar_authorize(before, entities, &request, &one);
        cedar_authorize(after, entities, &request, &other);
        /* A shorter text of the same meaning takes fewer steps. */
        if (!one.exhausted && !other.exhausted)
            compare(&one, &other);
    }
    cedar_response_finish(&other);
    cedar_response_finish(&one);
    cedar_heap_destroy(heap);
    cedar_entities_destroy(entities);
}

static struct cedar_policies *parse(struct str text, struct buffer *problems)
{
    struct cedar_source source = {.name = "fuzz", .text = text};
    return cedar_policies_parse(&source, 1, problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size);
    struct buffer problems, printed, again;
    buffer_init(&problems);
    buffer_init(&printed);
    buffer_init(&again);
    struct cedar_policies *before = parse(text, &problems);
    if (before) {
        struct words words = {.name_count = 0};
        cedar_policies_print(before, &printed);
        struct cedar_policies *after = parse(buffer_str(&printed), &problems);
        FUZZ_EXPECT(after && cedar_policies_count(after) == cedar_policies_count(before));
        cedar_policies_print(after, &again);
        FUZZ_EXPECT(str_equal(buffer_str(&printed), buffer_str(&again)));
        collect(&words, text);
        if (words.name_count > 0)
            decide_with_both(before, after, &words);
        cedar_policies_destroy(after);
    }
    cedar_policies_destroy(before);
    buffer_finish(&again);
    buffer_finish(&printed);
    buffer_finish(&problems);
    return 0;
}
