/* Sealed texts. */
#include <check.h>
#include <string.h>

#include "suites.h"
#include "taskgate/core/state_seal.h"

#define PREFIX STR("tg1.")
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define ONES "1111111111111111111111111111111111111111111111111111111111111111"

static struct state_keys read_keys(const char *text)
{
    struct state_keys keys;
    struct error error = {""};
    ck_assert_msg(state_keys_read(&keys, str_from(text), &error), "%s", error.message);
    return keys;
}

static bool opens(const struct state_keys *keys, struct str bound, struct str text)
{
    struct buffer payload;
    buffer_init(&payload);
    bool good = state_unseal(keys, PREFIX, bound, text, &payload);
    ck_assert(good ? str_equal(buffer_str(&payload), STR("pay\0load")) : payload.length == 0);
    buffer_finish(&payload);
    return good;
}

static void seal(const struct state_keys *keys, struct buffer *out)
{
    buffer_init(out);
    ck_assert(state_seal(keys, PREFIX, STR("source"), STR("pay\0load"), out));
}

START_TEST(a_text_opens_as_it_was_sealed)
{
    struct state_keys keys = read_keys(ZEROS);
    struct buffer one, other;
    seal(&keys, &one);
    seal(&keys, &other);
    ck_assert(opens(&keys, STR("source"), buffer_str(&one)));
    ck_assert(!str_equal(buffer_str(&one), buffer_str(&other)));
    ck_assert(!opens(&keys, STR("sourc"), buffer_str(&one)));
    ck_assert(!opens(&keys, STR_EMPTY, buffer_str(&one)));
    buffer_finish(&one);
    buffer_finish(&other);
}
END_TEST

START_TEST(no_other_text_opens)
{
    struct state_keys keys = read_keys(ZEROS);
    struct buffer text, payload;
    seal(&keys, &text);
    buffer_init(&payload);
    for (size_t i = 0; i < text.length; i++) {
        char kept = text.bytes[i];
        for (int c = 1; c < 256; c++) {
            text.bytes[i] = (char)c;
            ck_assert(text.bytes[i] == kept || !opens(&keys, STR("source"), buffer_str(&text)));
        }
        text.bytes[i] = kept;
        ck_assert(!opens(&keys, STR("source"), str_slice(text.bytes, i)));
    }
    ck_assert(!state_unseal(&keys, STR("tg2."), STR("source"), buffer_str(&text), &payload));
    buffer_append_char(&text, 'A');
    ck_assert(!opens(&keys, STR("source"), buffer_str(&text)));
    buffer_finish(&text);
    buffer_finish(&payload);
}
END_TEST

START_TEST(the_first_key_seals_and_both_open)
{
    struct state_keys old = read_keys(ONES), both = read_keys(ZEROS ",\n" ONES "\n"),
                      new = read_keys(ZEROS);
    struct buffer by_old, by_both;
    seal(&old, &by_old);
    seal(&both, &by_both);
    ck_assert(opens(&both, STR("source"), buffer_str(&by_old)));
    ck_assert(opens(&new, STR("source"), buffer_str(&by_both)));
    ck_assert(!opens(&new, STR("source"), buffer_str(&by_old)));
    ck_assert(!opens(&old, STR("source"), buffer_str(&by_both)));
    buffer_finish(&by_old);
    buffer_finish(&by_both);
    state_keys_clear(&old);
    ck_assert_int_eq(old.count, 0);
}
END_TEST

START_TEST(a_long_payload_is_not_sealed)
{
    struct state_keys keys = read_keys(ZEROS);
    static char bytes[STATE_MOST_BYTES];
    struct buffer out;
    size_t fits = 0;
    for (size_t length = 0; length <= sizeof bytes; length++) {
        buffer_init(&out);
        if (state_seal(&keys, PREFIX, STR_EMPTY, str_slice(bytes, length), &out)) {
            ck_assert_uint_le(out.length, STATE_MOST_BYTES);
            fits = length;
        }
        buffer_finish(&out);
    }
    ck_assert_uint_eq(fits, 1505);
}
END_TEST

static const struct {
    const char *text, *error;
} bad_keys[] = {
    {"", "there is no key"},
    {" \n", "there is no key"},
    {"00", "a key must have 64 hex digits"},
    {ZEROS "0", "a key must have 64 hex digits"},
    {"g" ZEROS, "a key must have 64 hex digits"},
    {ZEROS " x", "a key must have 64 hex digits"},
    {ZEROS " " ONES " " ZEROS, "there are more than two keys"},
};

START_TEST(keys_are_read_strictly)
{
    struct state_keys keys;
    struct error error = {""};
    ck_assert(!state_keys_read(&keys, str_from(bad_keys[_i].text), &error));
    ck_assert_str_eq(error.message, bad_keys[_i].error);
}
END_TEST

TCase *state_seal_case(void)
{
    TCase *tests = tcase_create("state_seal");
    tcase_add_test(tests, a_text_opens_as_it_was_sealed);
    tcase_add_test(tests, no_other_text_opens);
    tcase_add_test(tests, the_first_key_seals_and_both_open);
    tcase_add_test(tests, a_long_payload_is_not_sealed);
    tcase_add_loop_test(tests, keys_are_read_strictly, 0,
                        (int)(sizeof bad_keys / sizeof bad_keys[0]));
    return tests;
}
