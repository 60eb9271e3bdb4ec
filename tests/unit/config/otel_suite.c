/* OpenTelemetry's variables: their targets, which spelling wins, and the messages for bad values.
 */
#include <check.h>
#include <stdlib.h>

#include "suites.h"
#include "support.h"

#define FILE_TELEMETRY                                                                             \
    "telemetry:\n"                                                                                 \
    "  enabled: true\n"                                                                            \
    "  otlp: {endpoint: 'http://file:4318', headers: {x-from: file}}\n"                            \
    "  resource: {team: file, kept: 'yes'}\n"

/* Loads a file that switches telemetry on, in an environment of up to three pairs. */
static struct config *load_in(const char *first, const char *second, const char *third,
                              const char *problems)
{
    const char *pairs[] = {first, second, third, NULL};
    char *text = with(FILE_TELEMETRY);
    test_environment(pairs);
    struct config *config = expect_load(text, problems);
    test_environment(NULL);
    free(text);
    return config;
}

static const struct {
    const char *first, *second, *problems;
    bool is_on;
} switches[] = {
    {NULL, NULL, "", true},
    {"OTEL_SDK_DISABLED=true", NULL, "", false},
    {"OTEL_SDK_DISABLED=TRUE", "THOUGHTGATE_TELEMETRY_ENABLED=true", "", false},
    {"OTEL_SDK_DISABLED=False", NULL, "", true},
    {"OTEL_SDK_DISABLED=", NULL, "", true},
    {"OTEL_SDK_DISABLED=1", NULL,
     "OTEL_SDK_DISABLED: warning: this is no truth value, the variable is ignored; write true or "
     "false\n",
     true},
    {"OTEL_TRACES_EXPORTER=none", NULL, "", false},
    {"OTEL_TRACES_EXPORTER=otlp", NULL, "", true},
    {"OTEL_TRACES_EXPORTER=otlp, none", NULL, "", true},
    {"OTEL_TRACES_EXPORTER=otlp,console", NULL,
     "OTEL_TRACES_EXPORTER: warning: this exporter does not exist, it is left out; it may be otlp, "
     "none\n",
     true},
    /* without telemetry those of other programs are nobody's business */
    {"THOUGHTGATE_TELEMETRY_ENABLED=false", "OTEL_TRACES_EXPORTER=zipkin", "", false},
    {"THOUGHTGATE_TELEMETRY_ENABLED=false", "OTEL_BSP_MAX_QUEUE_SIZE=many", "", false},
    {"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_TIMEOUT=soon", "", false},
};

START_TEST(the_switches_of_all_programs_count)
{
    struct config *config =
        load_in(switches[_i].first, switches[_i].second, NULL, switches[_i].problems);
    ck_assert_int_eq(config->telemetry.is_on, switches[_i].is_on);
    config_unref(config);
}
END_TEST

static const struct {
    const char *first, *second, *url, *origin;
} urls[] = {
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1", NULL, "http://c:1/v1/traces", "http://c:1"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1/x/", NULL, "http://c:1/x/v1/traces", "http://c:1"},
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://t:2/own", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1",
     "http://t:2/own", "http://t:2"},
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1",
     "http://c:1/v1/traces", "http://c:1"},
};

START_TEST(the_endpoint_of_traces_is_used_as_it_is)
{
    struct config *config = load_in(urls[_i].first, urls[_i].second, NULL, "");
    ck_assert_str_eq(config->telemetry.url, urls[_i].url);
    ck_assert_str_eq(config->telemetry.origin, urls[_i].origin);
    config_unref(config);
}
END_TEST

#define FIELD(member) offsetof(struct config_telemetry, member)

static const struct {
    const char *first, *second;
    size_t offset;
    int64_t value;
    const char *problems;
} numbers[] = {
    {"OTEL_EXPORTER_OTLP_TIMEOUT=1500", NULL, FIELD(export_timeout_ms), 1500, ""},
    {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=700", "OTEL_EXPORTER_OTLP_TIMEOUT=1500",
     FIELD(export_timeout_ms), 700, ""},
    {"OTEL_BSP_SCHEDULE_DELAY= 250 ", NULL, FIELD(scheduled_delay_ms), 250, ""},
    {"OTEL_BSP_MAX_QUEUE_SIZE=900", NULL, FIELD(max_queue_size), 900, ""},
    {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=9", NULL, FIELD(max_export_batch_size), 9, ""},
    {"OTEL_EXPORTER_OTLP_TIMEOUT=10s", NULL, FIELD(export_timeout_ms), 30000,
     "OTEL_EXPORTER_OTLP_TIMEOUT: warning: this number is out of range, the variable is ignored; "
     "write a number of milliseconds, from 100 on\n"},
    {"OTEL_BSP_MAX_QUEUE_SIZE=-1", NULL, FIELD(max_queue_size), 2048,
     "OTEL_BSP_MAX_QUEUE_SIZE: warning: this number is out of range, the variable is ignored; "
     "write a number of spans, from 1 on\n"},
};

START_TEST(numbers_of_the_batches)
{
    struct config *config =
        load_in(numbers[_i].first, numbers[_i].second, NULL, numbers[_i].problems);
    const char *telemetry = (const char *)&config->telemetry;
    ck_assert_int_eq(*(const int64_t *)(const void *)(telemetry + numbers[_i].offset),
                     numbers[_i].value);
    config_unref(config);
}
END_TEST

static void expect_pair(const struct config_pair *pairs, size_t count, const char *name,
                        const char *value)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(str_from(pairs[i].name), str_from(name))) {
            ck_assert_str_eq(pairs[i].value, value);
            return;
        }
    }
    ck_abort_msg("%s is missing", name);
}

START_TEST(resource_attributes_are_laid_over_those_of_the_file)
{
    struct config *config = load_in(
        "OTEL_RESOURCE_ATTRIBUTES=team=a%20b%2Cc, deployment.environment=test", NULL, NULL, "");
    const struct config_telemetry *telemetry = &config->telemetry;
    ck_assert_uint_eq(telemetry->resource_count, 3);
    expect_pair(telemetry->resource, 3, "team", "a b,c");
    expect_pair(telemetry->resource, 3, "kept", "yes");
    expect_pair(telemetry->resource, 3, "deployment.environment", "test");
    config_unref(config);

    config = load_in("OTEL_RESOURCE_ATTRIBUTES=team=new,broken", NULL, NULL,
                     "OTEL_RESOURCE_ATTRIBUTES: warning: an attribute cannot be read, the variable "
                     "is ignored; write NAME=VALUE,NAME=VALUE, with the values percent-encoded\n");
    ck_assert_uint_eq(config->telemetry.resource_count, 2);
    expect_pair(config->telemetry.resource, 2, "team", "file");
    config_unref(config);
}
END_TEST

START_TEST(a_variable_of_traces_alone_wins)
{
    struct config *config =
        load_in("OTEL_EXPORTER_OTLP_TRACES_HEADERS=x-a=1", "OTEL_EXPORTER_OTLP_HEADERS=x-b=2",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "");
    ck_assert_uint_eq(config->telemetry.header_count, 1);
    expect_pair(config->telemetry.headers, 1, "x-a", "1");
    ck_assert_int_eq(config->telemetry.protocol, OTLP_JSON);
    config_unref(config);
}
END_TEST

START_TEST(compression_is_not_spoken)
{
    config_unref(load_in("OTEL_EXPORTER_OTLP_COMPRESSION=none", NULL, NULL, ""));
    config_unref(load_in("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=gzip", NULL, NULL,
                         "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: warning: requests are not "
                         "compressed, the variable is ignored; it may be none\n"));
}
END_TEST

START_TEST(a_certificate_is_for_a_collector_with_tls)
{
    config_unref(load_in("OTEL_EXPORTER_OTLP_CERTIFICATE=/nonexistent/ca.pem", NULL, NULL, ""));
    const char *pairs[] = {"OTEL_EXPORTER_OTLP_CERTIFICATE=/nonexistent/ca.pem",
                           "OTEL_EXPORTER_OTLP_ENDPOINT=https://c:4318", NULL};
    char *text = with(FILE_TELEMETRY);
    test_environment(pairs);
    expect_problems(text, "OTEL_EXPORTER_OTLP_CERTIFICATE: telemetry.otlp.tls.ca: "
                          "/nonexistent/ca.pem cannot be read: No "
                          "such file or directory\n");
    test_environment(NULL);
    free(text);
}
END_TEST

TCase *otel_case(void)
{
    TCase *tests = tcase_create("otel");
    tcase_add_loop_test(tests, the_switches_of_all_programs_count, 0,
                        sizeof switches / sizeof *switches);
    tcase_add_loop_test(tests, the_endpoint_of_traces_is_used_as_it_is, 0,
                        sizeof urls / sizeof *urls);
    tcase_add_loop_test(tests, numbers_of_the_batches, 0, sizeof numbers / sizeof *numbers);
    tcase_add_test(tests, resource_attributes_are_laid_over_those_of_the_file);
    tcase_add_test(tests, a_variable_of_traces_alone_wins);
    tcase_add_test(tests, compression_is_not_spoken);
    tcase_add_test(tests, a_certificate_is_for_a_collector_with_tls);
    return tests;
}
