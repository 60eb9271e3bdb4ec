/* decimal, datetime, duration and ipaddr: their grammars and their functions. */
#include <stdio.h>

#include "cedar_test.h"

#define GOOD true
#define BAD false

/* A text, whether it is taken, and the number it stands for. */
struct text_case {
    const char *text;
    bool good;
    int64_t number;
};

static void expect_texts(const char *function, enum cedar_kind kind, const struct text_case *cases,
                         size_t count)
{
    struct cedar_heap *heap = cedar_heap_create();
    for (size_t i = 0; i < count; i++) {
        struct cedar_value text = cedar_string(str_from(cases[i].text)), value;
        struct error error;
        bool good = cedar_call(heap, str_from(function), &text, 1, &value, &error);
        ck_assert_msg(good == cases[i].good, "%s(\"%s\")", function, cases[i].text);
        if (good) {
            ck_assert_int_eq(value.kind, kind);
            ck_assert_msg(value.number == cases[i].number, "%s(\"%s\") is %lld", function,
                          cases[i].text, (long long)value.number);
        }
    }
    cedar_heap_destroy(heap);
}
#define EXPECT_TEXTS(function, kind, cases)                                                        \
    expect_texts(function, kind, cases, sizeof(cases) / sizeof *(cases))

START_TEST(decimal_reads_four_places)
{
    static const struct text_case cases[] = {
        {"1.0", GOOD, 10000},
        {"12.3456", GOOD, 123456},
        {"0.5", GOOD, 5000},
        {"-0.0001", GOOD, -1},
        {"-0.0", GOOD, 0},
        {"-1.5", GOOD, -15000},
        {"00001.10", GOOD, 11000},
        {"000000000000000000000000000001.0", GOOD, 10000},
        {"922337203685477.5807", GOOD, INT64_MAX},
        {"-922337203685477.5808", GOOD, INT64_MIN},
        {"922337203685477.5808", BAD, 0},
        {"-922337203685477.5809", BAD, 0},
        {"99999999999999999999.0", BAD, 0},
        {"1.00000", BAD, 0},
        {"1.", BAD, 0},
        {".1", BAD, 0},
        {"-.1", BAD, 0},
        {"1", BAD, 0},
        {"", BAD, 0},
        {"-", BAD, 0},
        {"+1.0", BAD, 0},
        {"--1.0", BAD, 0},
        {" 1.0", BAD, 0},
        {"1.0 ", BAD, 0},
        {"1.0.0", BAD, 0},
        {"1e1.0", BAD, 0},
        {"1.-5", BAD, 0},
        {"1,0", BAD, 0},
        {"\xd9\xa1.0", BAD, 0},
    };
    EXPECT_TEXTS("decimal", CEDAR_DECIMAL, cases);
}
END_TEST

START_TEST(datetime_reads_dates_and_times)
{
    static const struct text_case cases[] = {
        {"1970-01-01", GOOD, 0},
        {"1969-12-31", GOOD, -86400000},
        {"2000-02-29", GOOD, INT64_C(951782400000)},
        {"2024-02-29T12:30:45.678Z", GOOD, INT64_C(1709209845678)},
        {"0000-01-01", GOOD, INT64_C(-62167219200000)},
        {"9999-12-31T23:59:59.999Z", GOOD, INT64_C(253402300799999)},
        {"1970-01-01T00:00:00+0100", GOOD, -3600000},
        {"1970-01-01T00:00:00-0130", GOOD, 5400000},
        {"1970-01-01T00:00:00.001+2359", GOOD, -86339999},
        {"1970-01-01T00:00:00-0000", GOOD, 0},
        {"1600-02-29", GOOD, INT64_C(-11670998400000)},
        {"1900-02-29", BAD, 0},
        {"2100-02-29", BAD, 0},
        {"2023-02-29", BAD, 0},
        {"2024-04-31", BAD, 0},
        {"2024-00-01", BAD, 0},
        {"2024-13-01", BAD, 0},
        {"2024-01-00", BAD, 0},
        {"2024-01-32", BAD, 0},
        {"10000-01-01", BAD, 0},
        {"-0001-01-01", BAD, 0},
        {"2024-1-01", BAD, 0},
        {"2024-01-01T24:00:00Z", BAD, 0},
        {"2024-01-01T23:60:00Z", BAD, 0},
        {"2024-01-01T23:59:60Z", BAD, 0},
        {"2024-01-01T00:00:00", BAD, 0},
        {"2024-01-01T00:00Z", BAD, 0},
        {"2024-01-01 00:00:00Z", BAD, 0},
        {"2024-01-01t00:00:00z", BAD, 0},
        {"2024-01-01T00:00:00.5Z", BAD, 0},
        {"2024-01-01T00:00:00.5000Z", BAD, 0},
        {"2024-01-01T00:00:00.Z", BAD, 0},
        {"2024-01-01T00:00:00+2400", BAD, 0},
        {"2024-01-01T00:00:00+0060", BAD, 0},
        {"2024-01-01T00:00:00+01:00", BAD, 0},
        {"2024-01-01T00:00:00ZZ", BAD, 0},
        {"2024-01-01Z", BAD, 0},
        {" 2024-01-01", BAD, 0},
        {"2024-01-01T", BAD, 0},
        {"", BAD, 0},
    };
    EXPECT_TEXTS("datetime", CEDAR_DATETIME, cases);
}
END_TEST

START_TEST(duration_reads_units_in_order)
{
    static const struct text_case cases[] = {
        {"1d", GOOD, 86400000},
        {"1d2h3m4s5ms", GOOD, 93784005},
        {"-90s", GOOD, -90000},
        {"5m3ms", GOOD, 300003},
        {"3ms", GOOD, 3},
        {"0ms", GOOD, 0},
        {"00001d", GOOD, 86400000},
        {"9223372036854775807ms", GOOD, INT64_MAX},
        {"-9223372036854775808ms", GOOD, INT64_MIN},
        {"-106751991167d7h12m55s808ms", GOOD, INT64_MIN},
        {"106751991167d7h12m55s807ms", GOOD, INT64_MAX},
        {"106751991167d7h12m55s808ms", BAD, 0},
        {"9223372036854775808ms", BAD, 0},
        {"-9223372036854775809ms", BAD, 0},
        {"18446744073709551616ms", BAD, 0},
        {"106751991168d", BAD, 0},
        {"-9223372036854775808s", BAD, 0},
        {"", BAD, 0},
        {"-", BAD, 0},
        {"d", BAD, 0},
        {"1", BAD, 0},
        {"1s1s", BAD, 0},
        {"1s1m", BAD, 0},
        {"1ms1s", BAD, 0},
        {"+1d", BAD, 0},
        {"1D", BAD, 0},
        {"1d 2h", BAD, 0},
        {"1.5h", BAD, 0},
        {"1d-2h", BAD, 0},
        {"1w", BAD, 0},
    };
    EXPECT_TEXTS("duration", CEDAR_DURATION, cases);
}
END_TEST

START_TEST(ip_reads_its_own_grammar)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"0.0.0.0", true},
        {"255.255.255.255", true},
        {"1.2.3.4/0", true},
        {"1.2.3.4/32", true},
        {"::", true},
        {"::1", true},
        {"1::", true},
        {"1:2:3:4:5:6:7:8", true},
        {"1:2:3:4:5:6:7::", true},
        {"::2:3:4:5:6:7:8", true},
        {"ABCD::ef01/128", true},
        {"::/0", true},
        {"::ffff:102:304", true},
        {"0001::", true},
        {"256.0.0.1", false},
        {"1.2.3", false},
        {"1.2.3.4.5", false},
        {"01.2.3.4", false},
        {"1.2.3.04", false},
        {"1.2.3.4/33", false},
        {"1.2.3.4/", false},
        {"1.2.3.4/08", false},
        {"1.2.3.4/+1", false},
        {"1.2.3.4/1/1", false},
        {" 1.2.3.4", false},
        {"1.2.3.4 ", false},
        {"", false},
        {"/8", false},
        {":", false},
        {":::", false},
        {"1:", false},
        {":1", false},
        {"1::2::3", false},
        {"12345::", false},
        {"g::", false},
        {"1:2:3:4:5:6:7", false},
        {"1:2:3:4:5:6:7:8:9", false},
        {"1:2:3:4::5:6:7:8", false},
        {"::1/129", false},
        {"::1/0128", false},
        {"::ffff:1.2.3.4", false},
        {"::1.2.3.4", false},
        {"[::1]", false},
        {"fe80::1%eth0", false},
        {"1234:1234:1234:1234:1234:1234:1234:1234/1288", false},
    };
    struct cedar_heap *heap = cedar_heap_create();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cedar_value text = cedar_string(str_from(cases[i].text)), value;
        bool good = cedar_call(heap, STR("ip"), &text, 1, &value, NULL);
        ck_assert_msg(good == cases[i].good, "ip(\"%s\")", cases[i].text);
    }
    cedar_heap_destroy(heap);
}
END_TEST

START_TEST(ip_methods_look_at_ranges)
{
    static const struct expression_case cases[] = {
        {"context.ip.isIpv4()", TRUE_},
        {"ip(\"::1\").isIpv4()", FALSE_},
        {"ip(\"::1\").isIpv6()", TRUE_},
        {"ip(\"127.0.0.1\").isLoopback()", TRUE_},
        {"ip(\"127.0.0.1/8\").isLoopback()", TRUE_},
        {"ip(\"127.0.0.1/7\").isLoopback()", FALSE_},
        {"ip(\"::1\").isLoopback()", TRUE_},
        {"ip(\"::1/127\").isLoopback()", FALSE_},
        {"ip(\"224.0.0.1\").isMulticast()", TRUE_},
        {"ip(\"239.255.255.255/4\").isMulticast()", TRUE_},
        {"ip(\"224.0.0.1/3\").isMulticast()", FALSE_},
        {"ip(\"240.0.0.1\").isMulticast()", FALSE_},
        {"ip(\"ff00::1/8\").isMulticast()", TRUE_},
        {"ip(\"ff00::1/7\").isMulticast()", FALSE_},
        {"context.ip.isInRange(ip(\"10.0.0.0/8\"))", TRUE_},
        {"context.ip.isInRange(ip(\"10.1.2.3\"))", TRUE_},
        {"context.ip.isInRange(ip(\"10.1.0.0/23\"))", FALSE_},
        {"context.ip.isInRange(ip(\"10.1.2.0/23\"))", TRUE_},
        {"ip(\"10.0.0.0/8\").isInRange(ip(\"10.1.0.0/16\"))", FALSE_},
        {"ip(\"1.2.3.4\").isInRange(ip(\"0.0.0.0/0\"))", TRUE_},
        {"ip(\"1.2.3.4\").isInRange(ip(\"::/0\"))", FALSE_},
        {"ip(\"2001:db8::1\").isInRange(ip(\"2001:db8::/32\"))", TRUE_},
        {"ip(\"2001:db9::1\").isInRange(ip(\"2001:db8::/32\"))", FALSE_},
        {"context.ip.isInRange(\"10.0.0.0/8\")", TYPE_},
        {"\"10.0.0.1\".isIpv4()", TYPE_},
        {"User::\"a\".isIpv4()", TYPE_},
        {"ip(1).isIpv4()", TYPE_},
        {"ip(\"nowhere\").isIpv4()", CALL_},
        {"ip(context.s).isIpv4()", CALL_},
        {"ip(\"1.2.3.4\", \"x\").isIpv4()", ARITY_},
        {"ip().isIpv4()", ARITY_},
        {"context.ip.isIpv4(1)", ARITY_},
        {"context.ip.isInRange()", ARITY_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(times_are_reckoned)
{
    static const struct expression_case cases[] = {
        {"datetime(\"2024-03-01\").offset(duration(\"-1d\")) == datetime(\"2024-02-29\")", TRUE_},
        {"datetime(\"1970-01-02\").offset(duration(\"9223372036854775807ms\")).toTime() =="
         " duration(\"0ms\")",
         CALL_},
        {"datetime(\"2024-01-01\").durationSince(datetime(\"2024-01-02\")) == duration(\"-1d\")",
         TRUE_},
        {"datetime(\"1970-01-01\").offset(duration(\"-9223372036854775808ms\"))"
         ".durationSince(datetime(\"1970-01-01T00:00:00.001Z\")) == duration(\"1d\")",
         CALL_},
        {"datetime(\"2024-02-29T12:30:45.678Z\").toDate() == datetime(\"2024-02-29\")", TRUE_},
        {"datetime(\"1969-12-31T23:00:00Z\").toDate() == datetime(\"1969-12-31\")", TRUE_},
        {"datetime(\"1970-01-01\").offset(duration(\"-9223372036854775808ms\")).toDate() =="
         " datetime(\"1970-01-01\")",
         CALL_},
        {"datetime(\"1969-12-31T23:00:00Z\").toTime() == duration(\"23h\")", TRUE_},
        {"datetime(\"1969-12-31\").toTime() == duration(\"0ms\")", TRUE_},
        {"duration(\"1d\").toHours() == 24", TRUE_},
        {"duration(\"-90s\").toMinutes() == -1", TRUE_},
        {"duration(\"-36h\").toDays() == -1", TRUE_},
        {"duration(\"1999ms\").toSeconds() == 1", TRUE_},
        {"duration(\"-1ms\").toMilliseconds() == -1", TRUE_},
        {"datetime(\"2024-01-01\").offset(1) == 1", TYPE_},
        {"duration(\"1d\").offset(duration(\"1d\")) == 1", TYPE_},
        {"decimal(\"1.5\").lessThan(decimal(\"1.51\"))", TRUE_},
        {"decimal(\"1.5\").lessThanOrEqual(decimal(\"1.5\"))", TRUE_},
        {"decimal(\"-0.0001\").greaterThan(decimal(\"0.0\"))", FALSE_},
        {"decimal(\"1.5\").greaterThanOrEqual(decimal(\"1.5\"))", TRUE_},
        {"decimal(\"1.5\").lessThan(2)", TYPE_},
        {"decimal(\"1.5\") + decimal(\"1.5\") == decimal(\"3.0\")", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

Suite *extension_suite(void)
{
    Suite *suite = suite_create("extensions");
    TCase *tests = tcase_create("extensions");
    tcase_add_test(tests, decimal_reads_four_places);
    tcase_add_test(tests, datetime_reads_dates_and_times);
    tcase_add_test(tests, duration_reads_units_in_order);
    tcase_add_test(tests, ip_reads_its_own_grammar);
    tcase_add_test(tests, ip_methods_look_at_ranges);
    tcase_add_test(tests, times_are_reckoned);
    suite_add_tcase(suite, tests);
    return suite;
}
