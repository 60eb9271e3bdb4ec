#include "scene.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool is_by_libcurl(void)
{
    const char *value = getenv("THOUGHTGATE_UPSTREAM_CLIENT");
    return value != NULL && strcmp(value, "curl") == 0;
}

void start(struct scene *scene)
{
    struct error error = {""};
    scene->loop = loop_create(&error);
    ck_assert_msg(scene->loop != NULL, "%s", error.message);
    scene->client = upstream_client_create(scene->loop, 8, &error);
    ck_assert_msg(scene->client != NULL, "%s", error.message);
    origin_listen(&scene->origin, scene->loop);
}

void stop(struct scene *scene)
{
    upstream_client_destroy(scene->client);
    origin_close(&scene->origin);
    loop_destroy(scene->loop);
}

static void on_head(void *context, int status, const struct http_header *headers, size_t count)
{
    struct record *record = context;
    record->heads++;
    record->status = status;
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&record->headers, "%.*s: %.*s\n", STR_ARGS(headers[i].name),
                             STR_ARGS(headers[i].value));
    if (record->in_head != NULL)
        record->in_head(record);
}

static void on_body(void *context, struct str bytes)
{
    struct record *record = context;
    record->pieces++;
    buffer_append(&record->body, bytes);
    if (record->in_body != NULL)
        record->in_body(record);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct record *record = context;
    record->ends++;
    record->result = result;
    snprintf(record->detail, sizeof(record->detail), "%s", detail);
    if (record->in_end != NULL)
        record->in_end(record);
    record->call = NULL;
}

static const struct upstream_callbacks callbacks = {
    .head = on_head, .body = on_body, .end = on_end};

void call_with(struct scene *scene, struct record *record, struct upstream_request request)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp?a=b", scene->origin.port);
    if (request.url == NULL)
        request.url = url;
    record->scene = scene;
    record->heads = record->pieces = record->ends = 0;
    buffer_init(&record->headers);
    buffer_init(&record->body);
    record->call = upstream_call_start(scene->client, &request, &callbacks, record);
    ck_assert_int_eq(record->heads + record->pieces + record->ends, 0);
}

static const struct http_header json_headers[] = {
    {STR("Content-Type"), STR("application/json")},
    {STR("accept"), STR("text/event-stream")},
    {STR("X-Empty"), STR_EMPTY},
    {STR("Mcp-Session-Id"), STR("s 1")},
};

const struct upstream_request post = {
    .method = "POST", .headers = json_headers, .header_count = 4, .body = {"{\"a\":1}", 7}};
const struct upstream_request get = {.method = "GET"};

void post_to(struct scene *scene, struct record *record)
{
    call_with(scene, record, post);
}

void forget(struct record *record)
{
    buffer_finish(&record->headers);
    buffer_finish(&record->body);
}

void await_end(struct record *record, enum upstream_result result)
{
    run_until(record->scene->loop, &record->ends, 1);
    ck_assert_msg(record->result == result, "result %d: %s", (int)record->result, record->detail);
}

void expect_text(const struct buffer *buffer, const char *text)
{
    ck_assert_msg(str_equal(buffer_str(buffer), str_from(text)), "got: %.*s",
                  STR_ARGS(buffer_str(buffer)));
}

void pause_once(struct record *record)
{
    upstream_call_pause(record->call);
    record->in_head = record->in_body = NULL;
}
