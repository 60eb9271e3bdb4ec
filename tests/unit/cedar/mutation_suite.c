/* Changed texts: each is accepted, or refused with a position, and an accepted one can be
 * evaluated. Made for the sanitizers. */
#include "cedar_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#define MUTANTS 4000

static const char operators[] =
    "@id(\"a\") @b permit(principal == A::B::\"x\\u{61}\", action in [Action::\"a\", "
    "Action::\"b\"],"
    " resource is Doc in F::\"f\") when { context.a.b[\"c d\"] like \"a*\\*b\\n*\" && -5 * 3 - 1 < "
    "2 }"
    " unless { if principal has a.b.c then [1, {a: 2, \"b\": [\"x\"]}].contains(1) else !!true };";

static const char extensions[] =
    "forbid(principal in G::\"g\", action == Action::\"v\", resource) when { ip(\"10.0.0.0/8\")"
    ".isInRange(ip(\"::ffff:1/64\")) || decimal(\"-1.25\").lessThan(decimal(\"3.0\")) ||"
    " datetime(\"2024-02-29T12:30:45.678+0100\").offset(duration(\"-1d2h3m4s5ms\")) >"
    " datetime(\"1969-12-31\") };";

static const char values[] =
    "permit(principal, action, resource) when { principal.hasTag(\"a\") && principal.getTag(\"a\")"
    " == [context, {x: 9223372036854775807}] && [1,2,3,4,5,6,7,8,9].containsAny(context.s) }; // e";

static const char *const seeds[] = {operators, extensions, values};

static const char entity[] =
    "[{\"uid\": {\"type\": \"A::B\", \"id\": \"x\"}, \"attrs\": {\"a\": {\"__entity\": {\"type\":"
    " \"A\", \"id\": \"y\"}}, \"i\": {\"__extn\": {\"fn\": \"ip\", \"arg\": \"::1/64\"}}, \"n\":"
    " [-12, true, \"\\u0041\"]}, \"parents\": [\"A::\\\"p\\\"\"], \"tags\": {\"a\": {\"b\": 1}}}]";

static const char calling_entity[] =
    "[{\"uid\": \"A::\\\"p\\\"\", \"attrs\": {\"d\": {\"__extn\": {\"fn\": \"offset\", \"args\":"
    " [{\"__extn\": {\"fn\": \"datetime\", \"arg\": \"1970-01-01\"}}, {\"__extn\": {\"fn\":"
    " \"duration\", \"arg\": \"1d\"}}]}}}, \"parents\": []}]";

static const char *const json_seeds[] = {entity, calling_entity};

static uint32_t state = 1;

static unsigned pick(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
}

static char some_byte(void)
{
    static const char likely[] = "\"\\{}[]().,;:=<>!&|+-*/%@? \n\r\0\xc3\xa9\xff\x80"
                                 "0129azAZ_u";
    if (pick(4) == 0)
        return (char)(unsigned char)pick(256);
    return likely[pick(sizeof likely - 1)];
}

/* Changes one to four places of `text`; its length stays below `capacity`. */
static void mutate(struct buffer *text)
{
    for (unsigned i = pick(4) + 1; i > 0 && text->length > 1; i--) {
        unsigned place = pick((unsigned)text->length - 1);
        unsigned length = pick((unsigned)text->length - place) % 20 + 1;
        if (length > text->length - place)
            length = (unsigned)text->length - place;
        switch (pick(4)) {
        case 0:
            text->bytes[place] = some_byte();
            break;
        case 1: /* cut something out */
            memmove(text->bytes + place, text->bytes + place + length,
                    text->length - place - length);
            text->length -= length;
            break;
        case 2: { /* say something twice */
            char *piece = memory_copy_str(str_slice(text->bytes + place, length));
            buffer_append(text, str_slice(piece, length));
            free(piece);
            break;
        }
        default: { /* put something elsewhere */
            unsigned target = pick((unsigned)text->length - length + 1);
            memmove(text->bytes + target, text->bytes + place, length);
        }
        }
    }
}

/* Exactly as long as its content, so that reading behind it is seen. */
static char *mutant(const char *seed, size_t *length)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, seed);
    mutate(&text);
    *length = text.length;
    char *copy = memory_alloc(text.length ? text.length : 1);
    if (text.length)
        memcpy(copy, text.bytes, text.length);
    buffer_finish(&text);
    return copy;
}

START_TEST(changed_policies_do_no_harm)
{
    struct cedar_entities *entities = must_read_entities(json_seeds[0]);
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request =
        must_make_request(heap, "{\"a\": {\"b\": {\"c d\": \"axb\"}}, \"s\": [9]}");
    request.principal = cedar_uid(STR("A::B"), STR("x"));
    struct cedar_response response;
    cedar_response_init(&response);
    unsigned accepted = 0;
    for (unsigned i = 0; i < MUTANTS; i++) {
        size_t length;
        char *text = mutant(seeds[i % (sizeof seeds / sizeof *seeds)], &length);
        struct cedar_source source = {.name = "t", .text = str_slice(text, length)};
        struct buffer problems;
        buffer_init(&problems);
        struct cedar_policies *policies = cedar_policies_parse(&source, 1, &problems);
        ck_assert_int_eq(policies != NULL, problems.length == 0);
        ck_assert(policies || str_starts_with(buffer_str(&problems), STR("t:")));
        free(text); /* the policies have their own */
        if (policies) {
            accepted++;
            cedar_authorize(policies, entities, &request, &response);
        }
        cedar_policies_destroy(policies);
        buffer_finish(&problems);
    }
    ck_assert_uint_gt(accepted, MUTANTS / 100);
    ck_assert_uint_lt(accepted, MUTANTS / 2);
    cedar_response_finish(&response);
    cedar_heap_destroy(heap);
    cedar_entities_destroy(entities);
}
END_TEST

START_TEST(changed_entities_do_no_harm)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < MUTANTS; i++) {
        size_t length;
        char *text = mutant(json_seeds[i % (sizeof json_seeds / sizeof *json_seeds)], &length);
        struct cedar_entities *entities = cedar_entities_create();
        struct error error = {.message = ""};
        bool good = cedar_entities_read_json(entities, str_slice(text, length), &error) &&
                    cedar_entities_seal(entities, &error);
        ck_assert_int_eq(good, error.message[0] == '\0');
        accepted += good;
        cedar_entities_destroy(entities);
        free(text);
    }
    ck_assert_uint_gt(accepted, MUTANTS / 100);
    ck_assert_uint_lt(accepted, MUTANTS / 2);
}
END_TEST

Suite *mutation_suite(void)
{
    Suite *suite = suite_create("mutations");
    TCase *tests = tcase_create("mutations");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, changed_policies_do_no_harm);
    tcase_add_test(tests, changed_entities_do_no_harm);
    suite_add_tcase(suite, tests);
    return suite;
}
