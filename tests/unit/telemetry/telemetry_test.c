/* Spans in OTLP's bytes, trace context, sampling, back-off, and the queue. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exporter.h"
#include "otlp.h"
#include "span_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/telemetry/task_trace.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static struct trace_context context_of(const char *text)
{
    struct trace_context context;
    ck_assert(trace_context_parse(&context, str_from(text)));
    return context;
}

/* ---- trace context ---- */

static const struct {
    const char *text;
    bool is_good;
} traceparents[] = {
    {"00-" TRACE "-" PARENT "-01", true},
    {"00-" TRACE "-" PARENT "-00", true},
    {"00-" TRACE "-" PARENT "-ff", true},
    {"01-" TRACE "-" PARENT "-01", true},
    {"cc-" TRACE "-" PARENT "-01-more", true},
    {"00-" TRACE "-" PARENT "-01-more", false},
    {"01-" TRACE "-" PARENT "-01more", false},
    {"ff-" TRACE "-" PARENT "-01", false},
    {"0G-" TRACE "-" PARENT "-01", false},
    {"00-" TRACE "-" PARENT "-0", false},
    {"00-" TRACE "-" PARENT "-0x", false},
    {"00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01", false},
    {"00-00000000000000000000000000000000-" PARENT "-01", false},
    {"00-" TRACE "-0000000000000000-01", false},
    {"00_" TRACE "-" PARENT "-01", false},
    {"00-" TRACE "_" PARENT "-01", false},
    {"00-" TRACE "-" PARENT "_01", false},
    {" 00-" TRACE "-" PARENT "-01", false},
    {"", false},
};

START_TEST(a_traceparent_is_one_or_not)
{
    struct trace_context context = {.flags = 77};
    struct str text = str_from(traceparents[_i].text);
    ck_assert_int_eq(trace_context_parse(&context, text), traceparents[_i].is_good);
    if (!traceparents[_i].is_good)
        ck_assert_uint_eq(context.flags, 77);
    /* None of its beginnings is one, and none is read beyond its end. */
    for (size_t length = 0; length < text.length && length < TRACEPARENT_LENGTH; length++) {
        char *exact = malloc(length ? length : 1);
        memcpy(exact, text.bytes, length);
        ck_assert(!trace_context_parse(&context, str_slice(exact, length)));
        free(exact);
    }
}
END_TEST

START_TEST(a_written_context_can_be_read)
{
    char text[TRACEPARENT_BYTES];
    struct trace_context context = context_of("cc-" TRACE "-" PARENT "-ff-more");
    trace_context_write(&context, text);
    ck_assert_str_eq(text, "00-" TRACE "-" PARENT "-01");
    ck_assert(tracestate_is_fit(STR("a=1,b=2")));
    ck_assert(!tracestate_is_fit(STR("")));
    ck_assert(!tracestate_is_fit(STR("a=\n")));
    ck_assert(!tracestate_is_fit(STR("a=\xc3\xa9")));
    char *longest = memory_alloc(TRACESTATE_MOST_BYTES + 1);
    memset(longest, 'x', TRACESTATE_MOST_BYTES + 1);
    ck_assert(tracestate_is_fit(str_slice(longest, TRACESTATE_MOST_BYTES)));
    ck_assert(!tracestate_is_fit(str_slice(longest, TRACESTATE_MOST_BYTES + 1)));
    free(longest);
}
END_TEST

/* ---- the encoders ---- */

static char long_value[201];
static struct config_pair resource_items[] = {{(char[]){"service.name"}, (char[]){"gate"}},
                                              {(char[]){"\xc3\xa9"}, long_value}};
static const struct resource resource = {resource_items, 2};

static void make_spans(struct list *spans)
{
    const struct trace_context parent = context_of("00-" TRACE "-00f067aa0ba902b7-01");
    const struct trace_context link =
        context_of("00-11111111111111111111111111111111-2222222222222222-01");
    const struct span_parent remote = {&parent, STR("a=1"), true},
                             local = {&parent, STR_EMPTY, false};
    const struct trace_context own = context_of("00-" TRACE "-" PARENT "-01");
    struct span *span = span_start(SPAN_SERVER, STR("tools/call read"), &remote);
    memset(long_value, 'x', 200);
    span_set_id(span, own.span_id);
    span->start_ns = UINT64_C(1700000000123456789);
    span->end_ns = UINT64_C(1700000001000000001);
    span_set_text(span, ATTRIBUTE_METHOD, STR("tools/call"));
    span_set_number(span, ATTRIBUTE_SERVER_PORT, 8080);
    span_set_number(span, ATTRIBUTE_HTTP_STATUS, -1);
    span_set_text(span, ATTRIBUTE_TASK, STR_EMPTY); /* is left out */
    span_add_link(span, &link);
    span_fail(span, STR("-32014"), STR("no"));
    struct span *second = span_start(SPAN_INTERNAL, STR("x"), &local);
    span_set_id(second, (const unsigned char[SPAN_ID_BYTES]){0, 0, 0, 0, 0, 0, 0, 1});
    second->has_parent = false;
    second->start_ns = 1;
    second->end_ns = 2;
    list_init(spans);
    list_append(spans, &span->node);
    list_append(spans, &second->node);
}

static void finish_spans(struct list *spans)
{
    LIST_FOR_EACH_SAFE (node, next, spans)
        span_destroy(LIST_ENTRY(node, struct span, node));
}

/* Of the same request, written by protobufjs and the definitions of opentelemetry-proto (npm's
 * @opentelemetry/otlp-transformer 0.208.0). */
static const char official[] =
    "0abc040aed010a160a0c736572766963652e6e616d6512060a04676174650ad2010a02c3a912cb01"
    "0ac80178787878787878787878787878787878787878787878787878787878787878787878787878"
    "78787878787878787878787878787878787878787878787878787878787878787878787878787878"
    "78787878787878787878787878787878787878787878787878787878787878787878787878787878"
    "78787878787878787878787878787878787878787878787878787878787878787878787878787878"
    "78787878787878787878787878787878787878787878787878787878787878787878787878787878"
    "78787812c9020a110a087461736b676174651205302e312e3012f8010a100af7651916cd43dd8448"
    "eb211c80319c1208b7ad6b71692033311a03613d31220800f067aa0ba902b72a0f746f6f6c732f63"
    "616c6c207265616430023915cd853dfe9c97174101cac471fe9c97174a1f0a0f6d63702e6d657468"
    "6f642e6e616d65120c0a0a746f6f6c732f63616c6c4a120a0b7365727665722e706f727412031890"
    "3f4a280a19687474702e726573706f6e73652e7374617475735f636f6465120b18ffffffffffffff"
    "ffff014a160a0a6572726f722e7479706512080a062d33323031346a210a10111111111111111111"
    "111111111111111208222222222222222235010000007a0612026e6f180285010103000012390a10"
    "0af7651916cd43dd8448eb211c80319c120800000000000000012a01783001390100000000000000"
    "410200000000000000850101010000";

START_TEST(protobuf_is_to_the_byte_that_of_the_official_definitions)
{
    struct list spans;
    struct buffer out = {0};
    sampler_configure(SAMPLER_PARENT_ON, 1);
    make_spans(&spans);
    otlp_write_protobuf(&out, &resource, &spans);
    char *hex = memory_alloc(2 * out.length + 1);
    str_write_hex((const unsigned char *)out.bytes, out.length, hex);
    ck_assert_str_eq(hex, official);
    free(hex);
    buffer_finish(&out);
    finish_spans(&spans);
}
END_TEST

START_TEST(json_has_ids_in_hexadecimal_and_numbers_as_texts)
{
    struct list spans;
    struct buffer out = {0};
    sampler_configure(SAMPLER_PARENT_ON, 1);
    make_spans(&spans);
    long_value[2] = '\0';
    otlp_write_json(&out, &resource, &spans);
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(
        out.bytes,
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
        "\"stringValue\":\"gate\"}},{\"key\":\"\xc3\xa9\",\"value\":{\"stringValue\":\"xx\"}}]},"
        "\"scopeSpans\":[{\"scope\":{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION
        "\"},\"spans\":[{\"traceId\":\"" TRACE "\",\"spanId\":\"" PARENT
        "\",\"traceState\":\"a=1\",\"parentSpanId\":\"00f067aa0ba902b7\",\"name\":\"tools/call "
        "read\",\"kind\":2,\"startTimeUnixNano\":\"1700000000123456789\",\"endTimeUnixNano\":"
        "\"1700000001000000001\",\"attributes\":[{\"key\":\"mcp.method.name\",\"value\":{"
        "\"stringValue\":\"tools/call\"}},{\"key\":\"server.port\",\"value\":{\"intValue\":"
        "\"8080\"}},{\"key\":\"http.response.status_code\",\"value\":{\"intValue\":\"-1\"}},{"
        "\"key\":\"error.type\",\"value\":{\"stringValue\":\"-32014\"}}],\"links\":[{\"traceId\":"
        "\"11111111111111111111111111111111\",\"spanId\":\"2222222222222222\",\"flags\":1}],"
        "\"status\":{\"code\":2,\"message\":\"no\"},\"flags\":769},{\"traceId\":\"" TRACE
        "\",\"spanId\":\"0000000000000001\",\"name\":\"x\",\"kind\":1,\"startTimeUnixNano\":\"1\","
        "\"endTimeUnixNano\":\"2\",\"attributes\":[],\"flags\":257}]}]}]}");
    buffer_finish(&out);
    finish_spans(&spans);
}
END_TEST

static const struct {
    struct str body;
    bool is_json;
    int64_t rejected;
    const char *why;
} responses[] = {
    /* By the same encoder. */
    {STR("\x0a\x0c\x08\xac\x02\x12\x07too old"), false, 300, "too old"},
    {STR(""), false, 0, ""},
    {STR("\x0a\x0c\x08\xac\x02\x12\x07too ol"), false, 0, ""}, /* cut short */
    {STR("\x0a\x02\x08\xff"), false, 0, ""},                   /* a number without its end */
    {STR("<html>"), false, 0, ""},
    {STR("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), false, 0, ""}, /* below 0 */
    {STR("{\"partialSuccess\":{\"rejectedSpans\":\"300\",\"errorMessage\":\"too old\"}}"), true,
     300, "too old"},
    {STR("{\"partialSuccess\":{\"rejectedSpans\":2}}"), true, 2, ""},
    {STR("{\"partialSuccess\":{\"rejectedSpans\":\"\"}}"), true, 0, ""},
    {STR("{\"partialSuccess\":{\"rejectedSpans\":-2}}"), true, 0, ""},
    {STR("{}"), true, 0, ""},
    {STR("{"), true, 0, ""},
};

START_TEST(a_response_may_reject_spans)
{
    struct buffer why = {0};
    struct str body = responses[_i].body;
    char *exact = malloc(body.length ? body.length : 1);
    memcpy(exact, body.bytes, body.length);
    ck_assert_int_eq(otlp_read_rejected(str_slice(exact, body.length), responses[_i].is_json, &why),
                     responses[_i].rejected);
    ck_assert(str_equal(buffer_str(&why), str_from(responses[_i].why)));
    buffer_finish(&why);
    free(exact);
}
END_TEST

/* ---- spans ---- */

START_TEST(texts_are_cut_between_characters_and_are_utf8)
{
    const struct span_parent none = {0};
    char text[SPAN_TEXT_MOST_BYTES + 2];
    sampler_configure(SAMPLER_ON, 1);
    struct span *span = span_start(SPAN_CLIENT,
                                   STR("a\xff"
                                       "b"),
                                   &none);
    ck_assert_str_eq(span->name, "a");
    memset(text, 'a', sizeof text);
    text[SPAN_TEXT_MOST_BYTES - 1] = '\xc3';
    text[SPAN_TEXT_MOST_BYTES] = '\xa9';
    span_set_text(span, ATTRIBUTE_TOOL, str_slice(text, sizeof text));
    ck_assert_uint_eq(span->values[ATTRIBUTE_TOOL].length, SPAN_TEXT_MOST_BYTES - 1);
    span_set_number(span, ATTRIBUTE_TOOL, 3);
    ck_assert_ptr_null(span->values[ATTRIBUTE_TOOL].text);
    for (int i = 0; i < SPAN_MOST_LINKS + 2; i++)
        span_add_link(span, span_context(span));
    ck_assert_uint_eq(span->link_count, SPAN_MOST_LINKS);
    span_drop(span);
}
END_TEST

START_TEST(a_span_that_is_not_sampled_keeps_its_trace_alone)
{
    const struct trace_context parent = context_of("00-" TRACE "-" PARENT "-00");
    const struct span_parent remote = {&parent, STR("a=1"), true};
    sampler_configure(SAMPLER_PARENT_ON, 1);
    struct span *span = span_start(SPAN_SERVER, STR("x"), &remote);
    ck_assert(!span_is_sampled(span));
    ck_assert_mem_eq(span_context(span)->trace_id, parent.trace_id, TRACE_ID_BYTES);
    ck_assert_mem_ne(span_context(span)->span_id, parent.span_id, SPAN_ID_BYTES);
    ck_assert(str_equal(span_state(span), STR("a=1")));
    span_set_text(span, ATTRIBUTE_TOOL, STR("x"));
    span_fail(span, STR("x"), STR("y"));
    ck_assert_ptr_null(span->values[ATTRIBUTE_TOOL].text);
    struct span *child = span_start_child(SPAN_CLIENT, STR("y"), span);
    ck_assert(!span_is_sampled(child));
    span_end(child);
    span_end(span);
    span_end(NULL);
    span_set_text(NULL, ATTRIBUTE_TOOL, STR("x"));
    span_fail(NULL, STR("x"), STR_EMPTY);
    ck_assert(!span_is_sampled(NULL));
    ck_assert_ptr_null(span_context(NULL));
}
END_TEST

/* ---- sampling ---- */

static const struct {
    double ratio;
    const char *parent; /* NULL: none */
    const char *trace;
    enum config_sampler sampler;
    bool is_taken;
} samplings[] = {
    {0, NULL, TRACE, SAMPLER_ON, true},
    {0, "00-" TRACE "-" PARENT "-00", TRACE, SAMPLER_ON, true},
    {1, "00-" TRACE "-" PARENT "-01", TRACE, SAMPLER_OFF, false},
    {0, "00-" TRACE "-" PARENT "-00", TRACE, SAMPLER_PARENT_ON, false},
    {0, NULL, TRACE, SAMPLER_PARENT_ON, true},
    {1, "00-" TRACE "-" PARENT "-01", TRACE, SAMPLER_PARENT_OFF, true},
    {1, NULL, TRACE, SAMPLER_PARENT_OFF, false},
    {0, "00-" TRACE "-" PARENT "-01", TRACE, SAMPLER_PARENT_RATIO, true},
    {1, "00-" TRACE "-" PARENT "-00", TRACE, SAMPLER_PARENT_RATIO, false},
    {1, NULL, "ffffffffffffffffffffffffffffffff", SAMPLER_PARENT_RATIO, true},
    {0, NULL, "00000000000000010000000000000000", SAMPLER_PARENT_RATIO, false},
    {0.5, NULL, "00000000000000007fffffffffffffff", SAMPLER_RATIO, true},
    {0.5, NULL, "00000000000000008000000000000000", SAMPLER_RATIO, false},
    {0.5, "00-" TRACE "-" PARENT "-01", "ffffffffffffffff8000000000000000", SAMPLER_RATIO, false},
};

START_TEST(a_sampler_takes_a_trace_or_not)
{
    struct trace_context parent = {0};
    struct span_parent of = {.is_remote = true};
    char *text = memory_format("00-%s-" PARENT "-01", samplings[_i].trace);
    struct trace_context own = context_of(text);
    if (samplings[_i].parent) {
        parent = context_of(samplings[_i].parent);
        of.context = &parent;
    }
    sampler_configure(samplings[_i].sampler, samplings[_i].ratio);
    ck_assert_int_eq(sampler_takes(own.trace_id, &of), samplings[_i].is_taken);
    free(text);
}
END_TEST

/* ---- what the store keeps ---- */

START_TEST(the_trace_of_a_task_survives_the_process)
{
    const struct trace_context parent = context_of("00-" TRACE "-" PARENT "-01");
    const struct span_parent remote = {&parent, STR("a=1,b=2"), true};
    struct buffer text = {0}, none = {0};
    struct task_trace trace;
    sampler_configure(SAMPLER_PARENT_ON, 1);
    struct span *span = span_start(SPAN_SERVER, STR("x"), &remote);
    task_trace_write(&text, span);
    ck_assert(task_trace_read(&trace, buffer_str(&text)));
    ck_assert(trace_context_equal(&trace.create, span_context(span)));
    ck_assert_mem_eq(trace.wait.trace_id, parent.trace_id, TRACE_ID_BYTES);
    ck_assert_mem_ne(trace.wait.span_id, trace.create.span_id, SPAN_ID_BYTES);
    ck_assert_str_eq(trace.state, "a=1,b=2");
    for (size_t length = 0; length < text.length - 7; length++)
        ck_assert(!task_trace_read(&trace, str_slice(text.bytes, length)));
    task_trace_write(&none, NULL);
    ck_assert_uint_eq(none.length, 0);
    span_drop(span);
    buffer_finish(&text);
}
END_TEST

/* ---- back-off ---- */

START_TEST(the_pause_doubles_up_to_a_bound_or_is_what_was_asked)
{
    static const int useful[] = {0, 429, 502, 503, 504}, useless[] = {200, 400, 401, 404, 413, 500};
    for (unsigned failures = 1; failures < 40; failures++) {
        int64_t most_ms = INT64_C(500) << (failures - 1 < 6 ? failures - 1 : 6);
        int64_t pause_ms = retry_pause_ms(failures, 0);
        ck_assert_int_le(pause_ms, most_ms);
        ck_assert_int_ge(pause_ms, most_ms * 3 / 4);
    }
    ck_assert_int_eq(retry_pause_ms(9, 7000), 7000);
    for (size_t i = 0; i < sizeof useful / sizeof *useful; i++)
        ck_assert(retry_is_useful(useful[i]));
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
        ck_assert(!retry_is_useful(useless[i]));
}
END_TEST

/* ---- the queue ---- */

#define THREADS 4
#define SPANS_EACH 500L

static void *end_spans(void *context)
{
    const struct span_parent none = {0};
    for (long i = 0; i < SPANS_EACH; i++)
        span_end(span_start(SPAN_INTERNAL, STR("x"), &none));
    return NULL;
}

static long long dropped(void)
{
    static const char series[] = "telemetry_dropped_total{signal=\"traces\"} ";
    struct buffer text = {0};
    metrics_write(&text, false);
    buffer_append_char(&text, '\0');
    const char *found = strstr(text.bytes, series);
    long long count = found ? strtoll(found + strlen(series), NULL, 10) : -1;
    buffer_finish(&text);
    return count;
}

/* Nobody listens there: the count must be of every span, none may be there twice or not at all. */
START_TEST(every_span_of_many_threads_is_counted_when_it_is_lost)
{
    const struct config_telemetry telemetry = {
        .url = (char[]){"http://127.0.0.1:1/v1/traces"},
        .origin = (char[]){"http://127.0.0.1:1"},
        .max_queue_size = 64,
        .max_export_batch_size = 16,
        .scheduled_delay_ms = 100,
        .export_timeout_ms = 1000,
    };
    struct error error;
    pthread_t threads[THREADS];
    sampler_configure(SAMPLER_ON, 1);
    struct exporter *exporter = exporter_create(&telemetry, &error);
    ck_assert_ptr_nonnull(exporter);
    ck_assert_int_eq(dropped(), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, end_spans, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    exporter_destroy(exporter, clock_monotonic_ms() + 5000);
    ck_assert_int_eq(dropped(), THREADS * SPANS_EACH);
    exporter_destroy(NULL, 0);
    metrics_finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("telemetry");
    TCase *tests = tcase_create("telemetry");
    tcase_set_timeout(tests, 30);
    tcase_add_loop_test(tests, a_traceparent_is_one_or_not, 0,
                        sizeof traceparents / sizeof *traceparents);
    tcase_add_test(tests, a_written_context_can_be_read);
    tcase_add_test(tests, protobuf_is_to_the_byte_that_of_the_official_definitions);
    tcase_add_test(tests, json_has_ids_in_hexadecimal_and_numbers_as_texts);
    tcase_add_loop_test(tests, a_response_may_reject_spans, 0,
                        sizeof responses / sizeof *responses);
    tcase_add_test(tests, texts_are_cut_between_characters_and_are_utf8);
    tcase_add_test(tests, a_span_that_is_not_sampled_keeps_its_trace_alone);
    tcase_add_loop_test(tests, a_sampler_takes_a_trace_or_not, 0,
                        sizeof samplings / sizeof *samplings);
    tcase_add_test(tests, the_trace_of_a_task_survives_the_process);
    tcase_add_test(tests, the_pause_doubles_up_to_a_bound_or_is_what_was_asked);
    tcase_add_test(tests, every_span_of_many_threads_is_counted_when_it_is_lost);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
