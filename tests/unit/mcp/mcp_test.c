/* Runs the suites of the mcp layer; their shared functions. */
#include "mcp_test.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define UUID_LENGTH 36

void expect_str(struct str actual, const char *expected)
{
    ck_assert_msg(str_equal(actual, str_from(expected)), "got\n%.*s\nwant\n%s", STR_ARGS(actual),
                  expected);
}

static bool is_uuid(const char *text)
{
    for (size_t i = 0; i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
            return false;
    }
    return true;
}

void expect_written(struct buffer *actual, const char *expected)
{
    const char key[] = "\"correlation_id\":\"";
    char *text = buffer_take(actual, NULL);
    struct buffer masked;
    buffer_init(&masked);
    const char *rest = text;
    for (const char *found; (found = strstr(rest, key)) != NULL; rest = found) {
        found += sizeof key - 1;
        buffer_append(&masked, str_slice(rest, (size_t)(found - rest)));
        ck_assert_msg(strlen(found) > UUID_LENGTH && is_uuid(found), "no UUID in %s", found);
        buffer_append_text(&masked, CORRELATION);
        found += UUID_LENGTH;
    }
    buffer_append_text(&masked, rest);
    expect_str(buffer_str(&masked), expected);
    buffer_finish(&masked);
    free(text);
}

size_t chance_below(struct chance *chance, size_t limit)
{
    chance->state = chance->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(chance->state >> 33) % limit;
}

void chance_mutate(struct chance *chance, struct buffer *text)
{
    static const char alphabet[] = "{}[]\",:\\ntruefalse0-9.e \r\n\xEF\xBB\xBF\x01";
    char c = alphabet[chance_below(chance, sizeof alphabet - 1)];
    size_t at = text->length ? chance_below(chance, text->length) : 0;
    switch (text->length ? chance_below(chance, 3) : 1) {
    case 0:
        text->bytes[at] = c;
        break;
    case 1:
        buffer_append_char(text, c);
        memmove(text->bytes + at + 1, text->bytes + at, text->length - 1 - at);
        text->bytes[at] = c;
        break;
    default:
        memmove(text->bytes + at, text->bytes + at + 1, text->length - 1 - at);
        text->length--;
    }
}

int main(void)
{
    SRunner *runner = srunner_create(method_suite());
    srunner_add_suite(runner, input_schema_suite());
    srunner_add_suite(runner, jsonrpc_suite());
    srunner_add_suite(runner, mirrored_header_suite());
    srunner_add_suite(runner, subscription_suite());
    srunner_add_suite(runner, parameter_headers_suite());
    srunner_add_suite(runner, reason_property_suite());
    srunner_add_suite(runner, reply_check_suite());
    srunner_add_suite(runner, sse_suite());
    srunner_add_suite(runner, capabilities_suite());
    srunner_add_suite(runner, texts_suite());
    srunner_add_suite(runner, lists_suite());
    srunner_add_suite(runner, dialect_suite());
    srunner_add_suite(runner, dialect_modern_suite());
    srunner_add_suite(runner, clients_suite());
    srunner_add_suite(runner, elicitation_suite());
    srunner_add_suite(runner, era_suite());
    srunner_add_suite(runner, definition_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
