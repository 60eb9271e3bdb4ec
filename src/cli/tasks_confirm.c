/* Asking, and the members that come of it. */
#include "tasks_confirm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "tasks_show.h"
#include "terminal.h"

#define LINE_MAX_BYTES 2000

void tasks_read_line(struct buffer *line)
{
    unsigned char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') {
        if (line->length < LINE_MAX_BYTES)
            buffer_append_char(line, (char)byte);
    }
}

void tasks_add_digest(struct buffer *decision, struct str task)
{
    struct str digest = json_member(task, "requestDigest");
    if (json_type(digest) != JSON_STRING)
        return;
    json_add_key(decision, "requestDigest");
    buffer_append(decision, digest);
}

/* "y" and "yes" are the only words that go on. */
static bool wants(const char *verb)
{
    struct buffer line;
    buffer_init(&line);
    printf("%c%s? [y/N] ", toupper((unsigned char)*verb), verb + 1);
    fflush(stdout);
    tasks_read_line(&line);
    struct str word = str_trim(buffer_str(&line));
    bool is_yes = str_equal_ignore_case(word, STR("y")) || str_equal_ignore_case(word, STR("yes"));
    buffer_finish(&line);
    if (!is_yes)
        fputs("Nothing was decided.\n", stderr);
    return is_yes;
}

/* "$tool" and "$digest" are no paths. */
static void write_typed_question(struct buffer *out, struct str path)
{
    buffer_append_text(out, "Type ");
    if (str_equal(path, STR("$tool"))) {
        buffer_append_text(out, "the name of the tool");
    } else if (str_equal(path, STR("$digest"))) {
        buffer_append_text(out, "the first 8 digits of the line Request");
    } else {
        buffer_append_text(out, "the value of ");
        visible_append(out, path);
    }
    buffer_append_text(out, " to approve: ");
}

bool tasks_add_typed(struct buffer *decision, struct str task)
{
    struct str raw = json_member(json_member(task, "typed"), "path");
    struct buffer path, text, line;
    if (json_type(raw) != JSON_STRING)
        return true;
    buffer_init(&path);
    buffer_init(&text);
    buffer_init(&line);
    json_decode_string(raw, &path);
    write_typed_question(&text, buffer_str(&path));
    terminal_write(&text);
    tasks_read_line(&line);
    struct str typed = str_trim(buffer_str(&line));
    if (typed.length > 0) {
        json_add_key(decision, "typed");
        buffer_append_json_string(decision, typed);
    } else {
        fputs("Nothing was decided.\n", stderr);
    }
    buffer_finish(&line);
    buffer_finish(&text);
    buffer_finish(&path);
    return typed.length > 0;
}

static bool is_typed(struct str task, const char *verb)
{
    return strcmp(verb, "approve") == 0 && json_type(json_member(task, "typed")) == JSON_OBJECT;
}

static int tasks_confirm_look(struct admin_client *client, const char *id, struct buffer *task)
{
    struct buffer text;
    char *encoded = admin_client_encode(client, id);
    char *path = memory_format("/api/v1/tasks/%s", encoded);
    const struct admin_request request = {.method = "GET", .path = path};
    int code = admin_client_send(client, &request, task);
    buffer_init(&text);
    if (code == CLI_DONE) {
        tasks_append_details(&text, buffer_str(task));
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    buffer_finish(&text);
    free(path);
    free(encoded);
    return code;
}

int tasks_confirm(struct admin_client *client, const char *id, const char *verb,
                  const struct tasks_confirmation *confirmation, struct buffer *decision)
{
    struct buffer task;
    bool has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    buffer_init(&task);
    int code = has_terminal ? tasks_confirm_look(client, id, &task) : CLI_DONE;
    bool asks = code == CLI_DONE && has_terminal && !confirmation->yes;
    bool asks_typed = asks && !confirmation->typed && is_typed(buffer_str(&task), verb);
    if (asks && !(asks_typed ? tasks_add_typed(decision, buffer_str(&task)) : wants(verb)))
        code = CLI_FAILURE;
    if (confirmation->typed)
        json_add_text(decision, "typed", confirmation->typed);
    if (confirmation->digest)
        json_add_text(decision, "requestDigest", confirmation->digest);
    else if (has_terminal)
        tasks_add_digest(decision, buffer_str(&task));
    buffer_finish(&task);
    return code;
}
