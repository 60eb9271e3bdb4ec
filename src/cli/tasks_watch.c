/* taskgate tasks watch: the event stream, resumed where it broke. */
#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"
#include "taskgate/mcp/sse.h"

#include "terminal.h"

#define RETRY_FIRST_MS 500
#define RETRY_MAX_MS 15000

struct watch {
    struct sse_splitter splitter;
    struct buffer waiting; /* the beginning of an event */
    char *last_id;         /* or NULL */
    bool json;
    bool was_open;      /* bytes have come since the last connect */
    bool output_failed; /* the reader of our output has left */
};

static void print_event(struct watch *watch, struct str raw)
{
    struct sse_event event;
    struct error ignored;
    struct buffer text;
    sse_event_read(&event, raw);
    buffer_init(&text);
    if (event.id.bytes) {
        free(watch->last_id);
        watch->last_id = memory_copy_str(event.id);
    }
    struct str task = buffer_str(&event.data);
    if (str_equal(event.name, STR("task")) && json_check(task, &ignored)) {
        if (watch->json) {
            visible_append_json(&text, task);
            buffer_append_char(&text, '\n');
        } else {
            tasks_append_event(&text, task, clock_now_ms());
        }
        watch->output_failed = !terminal_write(&text);
    }
    buffer_finish(&text);
    sse_event_finish(&event);
}

static bool tasks_watch_receive(void *context, struct str bytes)
{
    struct watch *watch = context;
    watch->was_open = true;
    while (bytes.length > 0 && !watch->output_failed) {
        size_t end = 0;
        struct sse_splitter splitter = watch->splitter;
        if (sse_splitter_feed(&splitter, bytes, &end) == 0) {
            watch->splitter = splitter;
            buffer_append(&watch->waiting, bytes);
            break;
        }
        sse_splitter_feed(&watch->splitter, str_slice(bytes.bytes, end), NULL);
        buffer_append(&watch->waiting, str_slice(bytes.bytes, end));
        print_event(watch, buffer_str(&watch->waiting));
        buffer_clear(&watch->waiting);
        bytes = str_slice(bytes.bytes + end, bytes.length - end);
    }
    return !watch->output_failed;
}

static void tasks_watch_pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int tasks_watch(struct admin_client *client, bool json)
{
    struct watch watch = {.json = json};
    struct buffer body;
    int code;
    bool has_been_open = false;
    long retry_ms = RETRY_FIRST_MS;
    buffer_init(&body);
    buffer_init(&watch.waiting);
    for (;;) {
        sse_splitter_init(&watch.splitter);
        buffer_clear(&watch.waiting);
        watch.was_open = false;
        struct admin_request request = {.method = "GET",
                                        .path = "/api/v1/events",
                                        .last_event_id = watch.last_id,
                                        .received = tasks_watch_receive,
                                        .context = &watch};
        code = admin_client_send(client, &request, &body);
        has_been_open |= watch.was_open;
        /* A server that answered before may come back. A refusal, or a server that never
         * answered, is final. */
        bool is_refused = code != CLI_DONE && admin_client_status(client) != 0;
        if (watch.output_failed || !has_been_open || is_refused)
            break;
        if (code == CLI_DONE)
            fputs("taskgate: the connection was lost; trying again\n", stderr);
        retry_ms = watch.was_open ? RETRY_FIRST_MS : 2 * retry_ms;
        tasks_watch_pause_ms(retry_ms > RETRY_MAX_MS ? RETRY_MAX_MS : retry_ms);
    }
    free(watch.last_id);
    buffer_finish(&watch.waiting);
    buffer_finish(&body);
    return watch.output_failed ? CLI_FAILURE : code;
}
