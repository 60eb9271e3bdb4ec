/* Random text: every answer is a configuration or at least one error. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"
#include "taskgate/core/memory.h"

/* A fixed sequence, so that a failure can be seen again. */
static unsigned next_random(uint32_t *state)
{
    *state ^= *state << 13; /* xorshift, Marsaglia 2003 */
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static const char seed[] =
    "schema: 1\n"
    "sources:\n"
    "  - {id: up, kind: mcp, url: 'http://h:1/', expose: {mode: allowlist, tools: ['a*']},\n"
    "     headers: {X-Key: {env: SET}}}\n"
    "governance:\n"
    "  defaults: {action: forward}\n"
    "  rules:\n"
    "    - {match: '[a-z]*/**', action: approve, source: [up], approval: ops}\n"
    "approval: {ops: {timeout: ${T:-1h 5m}, destination: {type: slack, channel: '#x'}}}\n"
    "admin: {tokens: [{name: a, token_env: SET, roles: [viewer]}]}\n"
    "clients: [{match: '*', tasks: no}]\n"
    "limits: {body_bytes: 4MiB}\n"
    "telemetry: {batch: {max_queue_size: 600}}\n";

static unsigned loaded;

/* Loads a copy without a byte to spare, so that a read beyond the end is caught. */
static void load(const char *text, size_t length)
{
    char *exact = malloc(length ? length : 1);
    memcpy(exact, text, length);
    struct config_problems problems = {0};
    struct config *config = config_parse(str_slice(exact, length), "t", test_getenv, &problems);
    loaded += config != NULL;
    ck_assert((config == NULL) == (problems.errors > 0));
    struct buffer out;
    buffer_init(&out);
    config_problems_write(&problems, &out);
    ck_assert(str_is_utf8(buffer_str(&out)));
    buffer_finish(&out);
    config_problems_finish(&problems);
    config_unref(config);
    free(exact);
}

START_TEST(mutated_files_never_hurt)
{
    static const char bytes[] = "{}[],:-#&*!|>'\"%@`?~ \n\t\\$\xC3\xA9\x01"
                                "0aA";
    const char *pairs[] = {"SET=x", "T=5s", NULL};
    uint32_t random = 3;
    char text[2 * sizeof seed];
    test_environment(pairs);
    loaded = 0;
    for (int round = 0; round < 6000; round++) {
        size_t length = sizeof seed - 1;
        memcpy(text, seed, length);
        for (unsigned changes = 1 + next_random(&random) % 4; changes > 0; changes--) {
            size_t at = next_random(&random) % length;
            size_t span = 1 + next_random(&random) % 8;
            switch (next_random(&random) % 4) {
            case 0: /* change a byte */
                text[at] = bytes[next_random(&random) % (sizeof bytes - 1)];
                break;
            case 1: /* remove a few */
                span = at + span > length ? length - at : span;
                memmove(text + at, text + at + span, length - at - span);
                length -= span;
                break;
            case 2: /* repeat a few */
                span = at + span > length ? length - at : span;
                memmove(text + at + span, text + at, length - at);
                length += span;
                break;
            default: /* cut the end */
                if (round % 5 == 0)
                    length = at + 1;
            }
            if (length == 0)
                break;
        }
        load(text, length);
    }
    test_environment(NULL);
    ck_assert_uint_gt(loaded, 100); /* some mutations only touch a comment or a name */
}
END_TEST

START_TEST(noise_never_hurts)
{
    uint32_t random = 11;
    char text[256];
    for (int round = 0; round < 3000; round++) {
        size_t length = next_random(&random) % sizeof text;
        for (size_t i = 0; i < length; i++)
            text[i] = (char)(next_random(&random) % (round % 2 ? 256 : 128));
        load(text, length);
    }
}
END_TEST

START_TEST(a_thousand_rules_keep_their_lines)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, minimal);
    buffer_append_text(&text, "  rules:\n");
    for (int i = 0; i < 1000; i++)
        buffer_append_format(&text, "    - {match: 'tool_%d_*', action: deny, source: up}\n", i);
    struct config_problems problems = {0};
    struct config *config = config_parse(buffer_str(&text), "t", test_getenv, &problems);
    ck_assert_ptr_nonnull(config);
    ck_assert_uint_eq(config->rule_count, 1000);
    ck_assert_int_eq(config->rules[999].line, 1009);
    ck_assert_uint_eq(problems.count, 0);
    config_unref(config);
    buffer_finish(&text);
}
END_TEST

TCase *robustness_case(void)
{
    TCase *tests = tcase_create("robustness");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, mutated_files_never_hurt);
    tcase_add_test(tests, noise_never_hurts);
    tcase_add_test(tests, a_thousand_rules_keep_their_lines);
    return tests;
}
