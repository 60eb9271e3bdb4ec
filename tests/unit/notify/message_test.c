/* The requests: bodies, signatures against vectors of other programs, delays, origins. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../scaling.h"
#include "message.h"
#include "taskgate/core/memory.h"
#include "taskgate/notify/redact.h"

/* ---- signatures ---- */

static char long_secret[201];

static const struct vector {
    const char *secret, *timestamp;
    struct str body;
    const char *signature;
} vectors[] = {
    /* printf '%s' '1700000000.{"event":"created"}' | openssl dgst -sha256 -hmac "It's a …" */
    {"It's a Secret to Everybody", "1700000000", STR("{\"event\":\"created\"}"),
     "v1=66ba6993e5b7a10347861ddad61ec55c6f07b5191d39ebc4b65c3248d94739c7"},
    /* Python: hmac.new(b'key', b'1.', hashlib.sha256).hexdigest() */
    {"key", "1", STR(""), "v1=53123bc365c2fe4bee48bc5cc6cd6c19699147d43513154ed34277c7c063e80f"},
    /* A key that is longer than a block; bytes that are no text. */
    {long_secret, "1", STR("\0\xff"),
     "v1=c0d527f16a44ad208357992c205abbf78011a9634890e15f8313640504546893"},
};

START_TEST(signatures_are_those_of_other_programs)
{
    char signature[MESSAGE_SIGNATURE_BYTES];
    memset(long_secret, 'k', 200);
    message_sign(str_from(vectors[_i].secret), str_from(vectors[_i].timestamp), vectors[_i].body,
                 signature);
    ck_assert_str_eq(signature, vectors[_i].signature);
}
END_TEST

/* ---- bodies ---- */

static const char text[] = "schema: 1\n"
                           "sources:\n"
                           "  - {id: up, kind: mcp, url: 'http://h/'}\n"
                           "governance: {defaults: {action: approve}}\n"
                           "approval: {ops: {redact_fields: [password]}}\n";

static struct task *make_task(void)
{
    struct task *task = task_create(TASK_REJECTED);
    memcpy(task->id, "tg_1", 5);
    task_set_text(&task->source, STR("up"));
    task_set_text(&task->tool, STR("drop\"\n"));
    task_set_text(&task->principal, STR("agent"));
    task_set_text(&task->workflow, STR("ops"));
    task_set_text(&task->arguments, STR("{\"password\": \"x\", \"n\": 1.50}"));
    memcpy(task->arguments_digest, "d1", 3);
    task_set_text(&task->decided_by, STR("alice"));
    task_set_text(&task->status_message, STR("Rejected by alice"));
    task->created_ms = 1768257000000;
    task->decided_ms = 1768257060000;
    return task;
}

static char *body_of(struct task *task, bool include_arguments)
{
    struct config_problems problems = {0};
    struct config *config = config_parse(str_from(text), "t.yaml", NULL, &problems);
    ck_assert_ptr_nonnull(config);
    config_problems_finish(&problems);
    const struct store_delivery delivery = {
        .id = "0f", .event = NOTIFY_DECIDED, .at_ms = 1768257060000, .task = task};
    struct buffer out;
    buffer_init(&out);
    message_write(&out, &delivery, config, include_arguments);
    buffer_append_char(&out, '\0');
    config_unref(config);
    return buffer_take(&out, NULL);
}

/* HMAC-SHA-256 of "taskgate shown digest\nd1" with 32 bytes of zero: a value is hidden. */
#define KEYED "65ca27c40f86fd6ac01aa747ddf2cf920564724d6b368ae9fdd82fa3118cd6bd"
#define BODY(arguments)                                                                            \
    "{\"event\":\"decided\",\"delivery\":\"0f\",\"at\":\"2026-01-12T22:31:00.000Z\",\"task\":{"    \
    "\"id\":\"tg_1\",\"state\":\"rejected\",\"source\":\"up\",\"tool\":\"drop\\\"\\n\"," arguments \
    "\"argumentsDigest\":\"" KEYED                                                                 \
    "\",\"principal\":\"agent\",\"principalBy\":\"client\",\"workflow\":"                          \
    "\"ops\","                                                                                     \
    "\"createdAt\":\"2026-01-12T22:30:00.000Z\",\"decideBy\":null,"                                \
    "\"decidedAt\":\"2026-01-12T22:31:00.000Z\",\"decidedBy\":\"alice\",\"reason\":null,"          \
    "\"statusMessage\":\"Rejected by alice\"}}"

START_TEST(a_body_tells_the_task_and_arguments_on_demand)
{
    struct task *task = make_task();
    char *body = body_of(task, false);
    ck_assert_str_eq(body, BODY(""));
    free(body);
    body = body_of(task, true);
    ck_assert_str_eq(body, BODY("\"arguments\":{\"password\":\"[REDACTED]\",\"n\":1.50},"));
    free(body);
    task_set_text(&task->arguments, STR("")); /* noted for a target without arguments */
    body = body_of(task, true);
    ck_assert_str_eq(body, BODY(""));
    free(body);
    task_unref(task);
}
END_TEST

/* ---- hiding ---- */

#define HIDDEN "\"[REDACTED]\""

static const struct {
    const char *fields, *value, *shown;
} redactions[] = {
    {"", " { \"a\" : [ 1 , \"x y\" ] } ", "{\"a\":[1,\"x y\"]}"},
    {"a", "{\"a\":1,\"b\":2}", "{\"a\":" HIDDEN ",\"b\":2}"},
    {"a", "{\"b\": {\"a\": 1}, \"a\": [{\"x\": \"]}\"}], \"c\": true}",
     "{\"b\":{\"a\":1},\"a\":" HIDDEN ",\"c\":true}"},
    {"a.b", "{\"a\":[{\"b\":1,\"c\":2},[{\"b\":{}}],3]}",
     "{\"a\":[{\"b\":" HIDDEN ",\"c\":2},[{\"b\":" HIDDEN "}],3]}"},
    {"a.b, a", "{\"a\":{\"b\":1}}", "{\"a\":" HIDDEN "}"},
    {"a.b, a.c.d", "{\"a\":{\"b\":1,\"c\":{\"d\":2,\"e\":3},\"d\":4},\"b\":5}",
     "{\"a\":{\"b\":" HIDDEN ",\"c\":{\"d\":" HIDDEN ",\"e\":3},\"d\":4},\"b\":5}"},
    {"a", "{\"\\u0061\":1,\"\\u0061\\u0061\":2,\"a\\\"\":3}",
     "{\"\\u0061\":" HIDDEN ",\"\\u0061\\u0061\":2,\"a\\\"\":3}"},
    {"a.b", "{\"a.b\":1,\"a\":\"b\"}", "{\"a.b\":1,\"a\":\"b\"}"},
    {"a", "{ }", "{}"},
    {"a", "[ ]", "[]"},
    {"a", " -1.5e3 ", "-1.5e3"},
    {"a", "", ""},
};

/* A configuration with one workflow, "ops", that hides the fields. */
static struct config *hiding(const char *fields)
{
    struct config_problems problems = {0};
    struct buffer file = {0};
    buffer_append_format(&file,
                         "schema: 1\nsources:\n  - {id: up, kind: mcp, url: 'http://h/'}\n"
                         "governance: {defaults: {action: approve}}\n"
                         "approval: {ops: {redact_fields: [%s]}}\n",
                         fields);
    struct config *config = config_parse(buffer_str(&file), "t.yaml", NULL, &problems);
    ck_assert_ptr_nonnull(config);
    config_problems_finish(&problems);
    buffer_finish(&file);
    return config;
}

START_TEST(values_that_a_path_names_are_hidden)
{
    struct config *config = hiding(redactions[_i].fields);
    struct buffer out = {0};
    bool is_redacted = redact_write(&out, str_from(redactions[_i].value), config, "ops");
    ck_assert_int_eq(is_redacted, strstr(redactions[_i].shown, "[REDACTED]") != NULL);
    redact_write(&out, str_from(redactions[_i].value), config, "gone");
    buffer_append_char(&out, '\0');
    size_t length = strlen(redactions[_i].shown);
    ck_assert_uint_eq(out.length, 2 * length + 1);
    ck_assert_mem_eq(out.bytes, redactions[_i].shown, length);
    ck_assert_str_eq(out.bytes + length, redactions[_i].shown);
    buffer_finish(&out);
    config_unref(config);
}
END_TEST

struct rendering {
    struct config *config;
    struct buffer value;
};

static void render(void *input)
{
    const struct rendering *rendering = input;
    struct buffer out = {0};
    redact_write(&out, buffer_str(&rendering->value), rendering->config, "ops");
    buffer_finish(&out);
}

/* A long text below `depth` lists. */
static void append_deep(struct buffer *out, int depth)
{
    for (int i = 0; i < depth; i++)
        buffer_append_char(out, '[');
    buffer_append_format(out, "\"%0*d\"", 1 << 18, 0);
    for (int i = 0; i < depth; i++)
        buffer_append_char(out, ']');
}

START_TEST(hiding_deep_values_costs_what_it_does_for_high_ones)
{
    struct config *config = hiding("a.b");
    struct rendering high = {config, {0}}, deep = {config, {0}};
    append_deep(&high.value, 1);
    append_deep(&deep.value, 120);
    expect_scaling(render, &high, &deep, 4);
    buffer_finish(&high.value);
    buffer_finish(&deep.value);
    config_unref(config);
}
END_TEST

START_TEST(hiding_by_many_paths_costs_little_more_than_by_one)
{
    struct buffer fields = {0};
    for (int i = 0; i < 200; i++)
        buffer_append_format(&fields, "%sk%d.b", i == 0 ? "" : ",", i);
    buffer_append_char(&fields, '\0');
    struct rendering one = {hiding("k0.b"), {0}}, many = {hiding(fields.bytes), {0}};
    for (int i = 0; i < 20000; i++)
        buffer_append_format(&one.value, "%s{\"k1%d\":1}", i == 0 ? "[" : ",", i % 10);
    buffer_append_char(&one.value, ']');
    buffer_append(&many.value, buffer_str(&one.value));
    expect_scaling(render, &one, &many, 6);
    buffer_finish(&one.value);
    buffer_finish(&many.value);
    buffer_finish(&fields);
    config_unref(one.config);
    config_unref(many.config);
}
END_TEST

/* ---- delays and origins ---- */

START_TEST(delays_double_up_to_ten_minutes_and_differ_by_a_quarter)
{
    static const int64_t longest[] = {1000, 2000, 4000, 8000, 16000, 32000};
    for (int64_t failures = 1; failures <= 6; failures++) {
        int64_t delay_ms = longest[failures - 1];
        ck_assert_int_eq(message_retry_delay_ms(failures, 0), delay_ms);
        ck_assert_int_eq(message_retry_delay_ms(failures, (unsigned)(delay_ms / 4)),
                         delay_ms / 4 * 3);
        for (unsigned random = 0; random < 5000; random += 7) {
            ck_assert_int_le(message_retry_delay_ms(failures, random), delay_ms);
            ck_assert_int_ge(message_retry_delay_ms(failures, random), delay_ms / 4 * 3);
        }
    }
    ck_assert_int_eq(message_retry_delay_ms(11, 0), 600000);
    ck_assert_int_eq(message_retry_delay_ms(INT64_MAX, 0), 600000);
    ck_assert_int_ge(message_retry_delay_ms(100, UINT32_MAX), 450000);
}
END_TEST

START_TEST(of_a_url_only_its_origin_is_said)
{
    static const char *const urls[][2] = {
        {"https://h", "https://h"},
        {"https://hooks.example:8443/a/SECRET?key=SECRET", "https://hooks.example:8443"},
        {"http://user:pa@ss@[::1]:80?x", "http://[::1]:80"},
        {"http://h/@x", "http://h"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        char *origin = message_origin(str_from(urls[i][0]));
        ck_assert_str_eq(origin, urls[i][1]);
        free(origin);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("message");
    TCase *tests = tcase_create("message");
    tcase_add_loop_test(tests, signatures_are_those_of_other_programs, 0,
                        sizeof vectors / sizeof *vectors);
    tcase_add_test(tests, a_body_tells_the_task_and_arguments_on_demand);
    tcase_add_loop_test(tests, values_that_a_path_names_are_hidden, 0,
                        sizeof redactions / sizeof *redactions);
    tcase_add_test(tests, hiding_deep_values_costs_what_it_does_for_high_ones);
    tcase_add_test(tests, hiding_by_many_paths_costs_little_more_than_by_one);
    tcase_add_test(tests, delays_double_up_to_ten_minutes_and_differ_by_a_quarter);
    tcase_add_test(tests, of_a_url_only_its_origin_is_said);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
