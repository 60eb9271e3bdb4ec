/* Single values: durations, sizes, words that are nearly right. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "distance.h"
#include "suites.h"
#include "taskgate/config/duration.h"

START_TEST(durations_are_read_in_both_spellings)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"10m", 600000},       {"1h 30m", 5400000}, {"1h30m", 5400000},   {"2d", 172800000},
        {"500ms", 500},        {"0s", 0},           {"2 min", 120000},    {" 5s ", 5000},
        {"1week", 604800000},  {"1M", 2630016000},  {"1y", 31557600000},  {"1s 1ms", 1001},
        {"1000us", 1},         {"999999ns 1ns", 1}, {"3minutes", 180000}, {"PT10M", 600000},
        {"P1DT2H", 93600000},  {"PT0.5S", 500},     {"PT1,25S", 1250},    {"P2W", 1209600000},
        {"PT1H2M3S", 3723000}, {"P1D", 86400000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = -1;
        struct error error = {""};
        ck_assert_msg(duration_parse(str_from(rows[i].text), &ms, &error), "%s: %s", rows[i].text,
                      error.message);
        ck_assert_msg(ms == rows[i].ms, "%s is %lld", rows[i].text, (long long)ms);
    }
}
END_TEST

START_TEST(a_bad_duration_is_refused_with_its_reason)
{
    static const char human[] = "a duration is numbers with units, such as 10m or 1h 30m";
    static const char iso[] = "an ISO-8601 duration looks like PT10M or P1DT2H";
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"", "the duration is empty"},
        {"  ", "the duration is empty"},
        {"10", "the number has no unit, such as the m of 10m"},
        {"m", human},
        {"-5s", human},
        {"1.5h", "the number has no unit, such as the m of 10m"},
        {"1h,", human},
        {"5 parsecs", "the unit is none of ms, s, m, h, d, w, M, y"},
        {"1ns", "the duration is finer than a millisecond"},
        {"1500us", "the duration is finer than a millisecond"},
        {"99999999999999999999s", "the duration is too long"},
        {"9223372036854775807s", "the duration is too long"},
        {"9223372036854775807ms 1ms", "the duration is too long"},
        {"P", iso},
        {"PT", iso},
        {"P1DT", iso},
        {"P1H", iso},
        {"PT1D", iso},
        {"P1Y", iso},
        {"P1M", iso},
        {"PT1M1H", iso},
        {"PT1S1S", iso},
        {"PTS", iso},
        {"PT1", iso},
        {"PT1.5M", iso},
        {"PT1.S", iso},
        {"PT0.0001S", "the duration is finer than a millisecond"},
        {"PT9999999999999999999S", "the duration is too long"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms;
        struct error error = {""};
        ck_assert_msg(!duration_parse(str_from(rows[i].text), &ms, &error), "%s", rows[i].text);
        ck_assert_str_eq(error.message, rows[i].reason);
    }
}
END_TEST

START_TEST(durations_are_written_as_they_are_read)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {500, "500ms"},
        {600000, "10m"},
        {5400000, "1h 30m"},
        {90061001, "1d 1h 1m 1s 1ms"},
        {-1000, "-1s"},
        {INT64_MAX, "106751991167d 7h 12m 55s 807ms"},
        {INT64_MIN, "-106751991167d 7h 12m 55s 808ms"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        int64_t ms;
        duration_format(rows[i].ms, text);
        ck_assert_str_eq(text, rows[i].text);
        if (rows[i].ms < 0)
            continue;
        ck_assert(duration_parse(str_from(text), &ms, NULL));
        ck_assert_int_eq(ms, rows[i].ms);
    }
}
END_TEST

START_TEST(sizes_have_decimal_and_binary_units)
{
    static const struct {
        const char *text;
        int64_t bytes; /* -1: refused */
    } rows[] = {
        {"1048576", 1048576},
        {"4MiB", 4194304},
        {"4 MiB", 4194304},
        {"4Mi", 4194304},
        {"1kB", 1000},
        {"1KiB", 1024},
        {"2MB", 2000000},
        {"1GiB", 1073741824},
        {"1g", 1000000000},
        {"7b", 7},
        {"0", 0},
        {"", -1},
        {"MiB", -1},
        {"-1", -1},
        {"1.5MiB", -1},
        {"1TiB", -1},
        {"1e6", -1},
        {"9223372036854775807kB", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bytes = -1;
        struct error error;
        bool is_size = parse_bytes(str_from(rows[i].text), &bytes, &error);
        ck_assert_msg(is_size == (rows[i].bytes >= 0), "%s", rows[i].text);
        if (is_size)
            ck_assert_int_eq(bytes, rows[i].bytes);
    }
}
END_TEST

START_TEST(distance_counts_slips)
{
    ck_assert_uint_eq(distance_between("approve", "approve", 3), 0);
    ck_assert_uint_eq(distance_between("aprove", "approve", 3), 1);
    ck_assert_uint_eq(distance_between("appvore", "approve", 3), 2);
    ck_assert_uint_eq(distance_between("aprpove", "approve", 3), 1); /* neighbours swapped */
    ck_assert_uint_eq(distance_between("", "abc", 5), 3);
    ck_assert_uint_eq(distance_between("kitten", "sitting", 5), 3);
    ck_assert_uint_eq(distance_between("abc", "xyz", 1), 2); /* beyond the limit */
}
END_TEST

START_TEST(the_nearest_word_is_one_that_may_be_meant)
{
    static const char *const words[] = {"forward", "approve", "deny", "policy"};
    char endless[300];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    ck_assert_str_eq(distance_nearest("aprove", words, 4), "approve");
    ck_assert_str_eq(distance_nearest("foward", words, 4), "forward");
    ck_assert_str_eq(distance_nearest("dney", words, 4), "deny");
    ck_assert_str_eq(distance_nearest("deny", words, 4), "deny");
    ck_assert_ptr_null(distance_nearest("block", words, 4));
    ck_assert_ptr_null(distance_nearest("", words, 4));
    ck_assert_ptr_null(distance_nearest(endless, words, 4));
}
END_TEST

START_TEST(header_names_and_values_cannot_break_a_request)
{
    static const struct {
        const char *name;
        bool is_valid;
    } names[] = {{"Authorization", true},  {"x-api-key", true},
                 {"X_Key.1~", true},       {"", false},
                 {"X Key", false},         {"X-Key:", false},
                 {"X\r\nY", false},        {"\xC3\xA9", false},
                 {"host", false},          {"Content-Length", false},
                 {"mcp-session-id", false}};
    static const struct {
        const char *value;
        bool is_valid;
    } values[] = {{"Bearer abc", true}, {"a\tb", true},  {"", false},       {" a", false},
                  {"a ", false},        {"a\nb", false}, {"a\r\nb", false}, {"a\x7F", false}};
    struct error error;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(check_header_name(str_from(names[i].name), &error) == names[i].is_valid, "%s",
                      names[i].name);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ck_assert_msg(check_header_value(str_from(values[i].value), &error) == values[i].is_valid,
                      "%s", values[i].value);
}
END_TEST

START_TEST(hosts_and_origins_have_the_form_clients_send)
{
    static const struct {
        const char *text;
        bool is_host, is_origin;
    } rows[] = {
        {"gw.example", true, false},
        {"gw.example:7467", true, false},
        {"[::1]:7467", true, false},
        {"[::1]", true, false},
        {"[::1", false, false},
        {"[x]", false, false},
        {"[::1]x", false, false},
        {"gw.example:0", false, false},
        {"gw.example:65536", false, false},
        {"gw.example:", false, false},
        {"gw.example/", false, false},
        {"*", false, false},
        {"", false, false},
        {"https://app.example", false, true},
        {"http://[::1]:80", false, true},
        {"vscode-webview://x", false, true},
        {"https://", false, false},
        {"https://app.example/", false, false},
    };
    struct error error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str text = str_from(rows[i].text);
        ck_assert_msg(check_host(text, &error) == rows[i].is_host, "%s", rows[i].text);
        ck_assert_msg(check_origin(text, &error) == rows[i].is_origin, "%s", rows[i].text);
    }
}
END_TEST

TCase *values_case(void)
{
    TCase *tests = tcase_create("values");
    tcase_add_test(tests, durations_are_read_in_both_spellings);
    tcase_add_test(tests, a_bad_duration_is_refused_with_its_reason);
    tcase_add_test(tests, durations_are_written_as_they_are_read);
    tcase_add_test(tests, sizes_have_decimal_and_binary_units);
    tcase_add_test(tests, distance_counts_slips);
    tcase_add_test(tests, the_nearest_word_is_one_that_may_be_meant);
    tcase_add_test(tests, header_names_and_values_cannot_break_a_request);
    tcase_add_test(tests, hosts_and_origins_have_the_form_clients_send);
    return tests;
}
