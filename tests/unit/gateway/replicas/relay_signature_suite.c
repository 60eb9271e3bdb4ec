/* The parts that a signature between replicas covers, and its refusals. */
#include "replicas/relay_signature.h"

#include <string.h>

#include "suites.h"
#include "taskgate/core/random.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define NOW INT64_C(1700000000000)

static const struct http_header headers[] = {
    {.name = {"authorization", 13}, .value = {"Bearer a", 8}},
    {.name = {"mcp-session-id", 14}, .value = {"s-1", 3}},
};

static struct relay_signed request(void)
{
    return (struct relay_signed){
        .from = STR("b"),
        .to = STR("a"),
        .epoch = 7,
        .time_ms = NOW,
        .nonce = STR(NONCE),
        .method = STR("POST"),
        .target = STR("/mcp?x=1"),
        .body = STR("{\"id\":1}"),
        .headers = headers,
        .header_count = 2,
    };
}

static const struct http_header other_token[] = {
    {.name = {"authorization", 13}, .value = {"Bearer b", 8}},
    {.name = {"mcp-session-id", 14}, .value = {"s-1", 3}},
};
/* The same characters, with the border between name and value elsewhere. */
static const struct http_header other_border[] = {
    {.name = {"authorizationB", 14}, .value = {"earer a", 7}},
    {.name = {"mcp-session-id", 14}, .value = {"s-1", 3}},
};

static void sign(const struct relay_signed *as, struct str key, struct buffer *value)
{
    buffer_init(value);
    relay_signature_write(key, as, value);
}

/* Whether a request that was signed as `signed_as` is taken as `sent`. */
static bool is_taken(const struct relay_signed *signed_as, const struct relay_signed *sent)
{
    struct buffer value;
    struct relay_signed read = *sent;
    struct str signature;
    sign(signed_as, STR("key"), &value);
    ck_assert(relay_signature_read(buffer_str(&value), &read, &signature));
    /* The header's values may be changed on the way as well. */
    read.from = sent->from;
    read.to = sent->to;
    read.epoch = sent->epoch;
    read.time_ms = sent->time_ms;
    read.nonce = sent->nonce;
    bool is_good = relay_signature_is_good(STR("key"), &read, signature);
    buffer_finish(&value);
    return is_good;
}

START_TEST(a_signed_request_is_taken)
{
    struct relay_signed sent = request(), read = request();
    struct buffer value;
    struct str signature;
    sign(&sent, STR("key"), &value);
    read.from = read.to = read.nonce = STR_EMPTY;
    read.epoch = read.time_ms = 0;
    ck_assert(relay_signature_read(buffer_str(&value), &read, &signature));
    ck_assert(str_equal(read.from, STR("b")) && str_equal(read.to, STR("a")));
    ck_assert_int_eq(read.epoch, 7);
    ck_assert_int_eq(read.time_ms, NOW);
    ck_assert(str_equal(read.nonce, STR(NONCE)));
    ck_assert(relay_signature_is_good(STR("key"), &read, signature));
    ck_assert(!relay_signature_is_good(STR("other key"), &read, signature));
    ck_assert(!relay_signature_is_good(STR("key"), &read, STR_EMPTY));
    buffer_finish(&value);
}
END_TEST

START_TEST(each_part_is_signed)
{
    const struct relay_signed good = request();
    struct relay_signed changed[] = {good, good, good, good, good, good, good, good,
                                     good, good, good, good, good, good, good};
    size_t i = 0;
    changed[i++].from = STR("c");
    changed[i++].to = STR("c");
    changed[i++].epoch = 8;
    changed[i++].time_ms = NOW + 1;
    changed[i++].nonce = STR("0123456789abcdef0123456789abcdee");
    changed[i++].method = STR("GET");
    changed[i++].body = STR("{\"id\":2}");
    changed[i++].body = STR_EMPTY;
    changed[i++].headers = other_token;
    changed[i++].headers = other_border;
    changed[i++].header_count = 1;
    /* Targets that a lax reader takes for the same. */
    changed[i++].target = STR("/mcp");
    changed[i++].target = STR("/mcp?x=1&");
    changed[i++].target = STR("//mcp?x=1");
    changed[i++].target = STR("/%6dcp?x=1");
    ck_assert_uint_eq(i, sizeof changed / sizeof *changed);
    ck_assert(is_taken(&good, &good));
    for (i = 0; i < sizeof changed / sizeof *changed; i++)
        ck_assert_msg(!is_taken(&good, &changed[i]), "change %zu was taken", i);
}
END_TEST

/* A part may not flow into the next one. */
START_TEST(parts_have_borders)
{
    struct relay_signed first = request(), second = request();
    first.method = STR("POST");
    first.target = STR("/a\n2:/b");
    second.method = STR("POST\n7:/a");
    second.target = STR("/b");
    ck_assert(!is_taken(&first, &second));
    first = second = request();
    first.from = STR("ab"), first.to = STR("c");
    second.from = STR("a"), second.to = STR("bc");
    ck_assert(!is_taken(&first, &second));
}
END_TEST

START_TEST(other_forms_are_refused)
{
    static const char *const values[] = {
        "",
        "v1",
        "v1 b a 7 1700000000000 " NONCE,
        "v1 b a 7 1700000000000 " NONCE " ff ff",
        "v1 b a 7 1700000000000 " NONCE " ",
        "v2 b a 7 1700000000000 " NONCE " ff",
        "v1  a 7 1700000000000 " NONCE " ff",
        "v1 b a -7 1700000000000 " NONCE " ff",
        "v1 b a 7 99999999999999999999 " NONCE " ff",
        "v1 b a 7 9223372036854775808 " NONCE " ff",
        "v1 b a 7 1700000000000 short ff",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct relay_signed read = request();
        struct str signature;
        ck_assert_msg(!relay_signature_read(str_from(values[i]), &read, &signature), "%s",
                      values[i]);
    }
}
END_TEST

START_TEST(the_window_is_thirty_seconds_each_way)
{
    struct relay_signed sent = request();
    ck_assert(relay_signature_is_in_time(&sent, NOW));
    ck_assert(relay_signature_is_in_time(&sent, NOW + 30000));
    ck_assert(relay_signature_is_in_time(&sent, NOW - 30000));
    ck_assert(!relay_signature_is_in_time(&sent, NOW + 30001));
    ck_assert(!relay_signature_is_in_time(&sent, NOW - 30001));
    sent.time_ms = INT64_MAX;
    ck_assert(!relay_signature_is_in_time(&sent, NOW));
}
END_TEST

/* Signed when it came. */
static bool take(struct nonce_cache *cache, struct str nonce, int64_t now_ms)
{
    return nonce_cache_take(cache, nonce, NOW + now_ms, now_ms);
}

START_TEST(a_nonce_is_taken_once)
{
    struct nonce_cache *cache = nonce_cache_create(60000, 3);
    ck_assert(take(cache, STR("a"), 1000));
    ck_assert(!take(cache, STR("a"), 1001));
    ck_assert(!take(cache, STR("a"), 60999));
    ck_assert(take(cache, STR("b"), 62000)); /* another generation */
    ck_assert(!take(cache, STR("b"), 121999));
    ck_assert(take(cache, STR("b"), 300000)); /* forgotten, and signed anew */
    nonce_cache_destroy(cache);
}
END_TEST

START_TEST(a_nonce_without_room_is_refused)
{
    struct nonce_cache *cache = nonce_cache_create(60000, 2);
    ck_assert(take(cache, STR("a"), 100000));
    ck_assert(take(cache, STR("b"), 100000));
    ck_assert(!take(cache, STR("c"), 100000));
    ck_assert(!take(cache, STR("a"), 100000));
    ck_assert(take(cache, STR("c"), 170000));
    ck_assert(!take(cache, STR("a"), 170000));
    nonce_cache_destroy(cache);
}
END_TEST

START_TEST(a_clock_that_is_set_back_opens_nothing_that_was_taken)
{
    struct nonce_cache *cache = nonce_cache_create(60000, 3);
    int64_t captured_ms = NOW + 1000;
    ck_assert(nonce_cache_take(cache, STR("a"), captured_ms, 1000));
    ck_assert(nonce_cache_take(cache, STR("b"), captured_ms - 1, 1000));
    ck_assert(take(cache, STR("c"), 61001));
    ck_assert(take(cache, STR("d"), 121002)); /* a and b are forgotten */
    ck_assert(!nonce_cache_take(cache, STR("a"), captured_ms, 121003));
    ck_assert(!nonce_cache_take(cache, STR("b"), captured_ms - 1, 121003));
    /* A signature of the slowest clock in time is half a window old. */
    ck_assert(nonce_cache_take(cache, STR("e"), NOW + 121003 - 30000, 121003));
    nonce_cache_destroy(cache);
}
END_TEST

START_TEST(nonces_differ)
{
    char first[RELAY_NONCE_BYTES], second[RELAY_NONCE_BYTES];
    random_hex(first, RELAY_NONCE_BYTES - 1);
    random_hex(second, RELAY_NONCE_BYTES - 1);
    ck_assert_uint_eq(strlen(first), RELAY_NONCE_BYTES - 1);
    ck_assert_str_ne(first, second);
}
END_TEST

TCase *relay_signature_tests(void)
{
    TCase *tests = tcase_create("relay signature");
    tcase_add_test(tests, a_signed_request_is_taken);
    tcase_add_test(tests, each_part_is_signed);
    tcase_add_test(tests, parts_have_borders);
    tcase_add_test(tests, other_forms_are_refused);
    tcase_add_test(tests, the_window_is_thirty_seconds_each_way);
    tcase_add_test(tests, a_nonce_is_taken_once);
    tcase_add_test(tests, a_nonce_without_room_is_refused);
    tcase_add_test(tests, a_clock_that_is_set_back_opens_nothing_that_was_taken);
    tcase_add_test(tests, nonces_differ);
    return tests;
}
