/* Prints a task's result, or the reason why there is none. */
#include "tasks_result.h"
#include "tasks_show.h"

#include <inttypes.h>
#include <stdio.h>

#include "taskgate/cli/cli.h"
#include "taskgate/config/duration.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "options.h"
#include "terminal.h"

#define OUTCOME_BYTES ((size_t)1024)

bool tasks_read_duration(const char *option, const char *text, int64_t *ms)
{
    struct error error = {""};
    *ms = 0;
    if (!text || duration_parse(str_from(text), ms, &error))
        return true;
    options_complain("--%s: %s", option, error.message);
    return false;
}

static void tasks_result_write_line(FILE *out, struct buffer *line)
{
    buffer_append_char(line, '\n');
    fwrite(line->bytes, 1, line->length, out);
    buffer_finish(line);
}

static void complain_of_error(struct str answer)
{
    struct buffer line;
    struct str error = json_member(answer, "error");
    buffer_init(&line);
    buffer_append(&line, STR("taskgate: the task is "));
    tasks_append_member(&line, answer, "state");
    buffer_append(&line, STR(": "));
    tasks_append_member(&line, error, "message");
    buffer_append(&line, STR(" ("));
    visible_append(&line, json_member(error, "code"));
    buffer_append_char(&line, ')');
    tasks_result_write_line(stderr, &line);
}

static void say_open(struct str answer, const char *id)
{
    struct buffer line;
    buffer_init(&line);
    buffer_append(&line, STR("taskgate: there is no result yet, the task is "));
    tasks_append_member(&line, answer, "state");
    buffer_append(&line, STR("; ask again: taskgate tasks result "));
    visible_append(&line, str_from(id));
    buffer_append(&line, STR(" --wait 5m"));
    tasks_result_write_line(stderr, &line);
}

/* With 200 the task has ended, with 202 not yet. */
static int tasks_result_show(struct str answer, const char *id, bool has_ended, bool json)
{
    struct str result = json_member(answer, "result");
    OWNED_BUFFER(text);
    if (json) {
        visible_append_json(&text, answer);
    } else if (result.length > 0) {
        terminal_append_pretty(&text, result, STR_EMPTY);
    } else if (has_ended) {
        complain_of_error(answer);
    }
    if (!has_ended && !json)
        say_open(answer, id);
    if (text.length > 0)
        buffer_append_char(&text, '\n');
    bool written = terminal_write(&text);
    if (!has_ended)
        return CLI_CONFLICT;
    return written && json_string_equals(json_member(answer, "state"), STR("completed"))
               ? CLI_DONE
               : CLI_FAILURE;
}

/* Asks once; *is_open when there may be a result later, and it is worth asking again. */
static int tasks_result_ask(struct admin_client *client, const char *encoded_id, int64_t wait_ms,
                            struct buffer *body, bool *is_open)
{
    OWNED char *path =
        memory_format("/api/v1/tasks/%s/result?wait=%" PRId64 "ms", encoded_id, wait_ms);
    struct admin_request request = {.method = "GET", .path = path, .wait_ms = wait_ms};
    int64_t asked_ms = clock_monotonic_ms();
    int code = admin_client_send(client, &request, body);
    /* An answer before the wait is over means that the gateway stops, so it is not asked again. */
    *is_open = code == CLI_DONE && admin_client_status(client) == 202 &&
               clock_monotonic_ms() - asked_ms >= wait_ms;
    return code;
}

/* The first text of a result, or else all of it as JSON. */
static void read_words(struct buffer *words, struct str result)
{
    size_t position = 0;
    struct str element;
    while (json_next_element(json_member(result, "content"), &position, &element)) {
        if (json_string_equals(json_member(element, "type"), STR("text"))) {
            json_decode_string(json_member(element, "text"), words);
            return;
        }
    }
    buffer_append(words, result);
}

int tasks_append_outcome(struct buffer *out, struct admin_client *client, const char *id,
                         struct str task)
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(words);
    bool is_open;
    if (!json_string_equals(json_member(task, "state"), STR("completed")))
        return CLI_DONE;
    OWNED char *encoded = admin_client_encode(client, id);
    int code = tasks_result_ask(client, encoded, 0, &body, &is_open);
    if (code == CLI_DONE) {
        read_words(&words, json_member(buffer_str(&body), "result"));
        struct str first = str_utf8_cut(buffer_str(&words), OUTCOME_BYTES);
        buffer_append_format(out, "%-11s", "Result");
        visible_append(out, first);
        buffer_append_text(out, first.length < words.length ? "…\n" : "\n");
    }
    return code;
}

int tasks_result(struct admin_client *client, const char *id, int64_t wait_ms, bool json)
{
    int64_t left_ms = wait_ms;
    OWNED char *encoded = admin_client_encode(client, id);
    OWNED_BUFFER(body);
    bool is_open;
    int code;
    do {
        int64_t piece_ms = left_ms < TASKS_WAIT_MAX_MS ? left_ms : TASKS_WAIT_MAX_MS;
        code = tasks_result_ask(client, encoded, piece_ms, &body, &is_open);
        left_ms -= piece_ms;
    } while (is_open && left_ms > 0);
    if (code == CLI_DONE)
        code = tasks_result_show(buffer_str(&body), id, admin_client_status(client) != 202, json);
    return code;
}
