/* The queue of waiting calls, walked by one person. */
#include "tasks_next.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "colour.h"
#include "tasks.h"
#include "tasks_confirm.h"
#include "tasks_pages.h"
#include "terminal.h"

#define QUEUE_MAX 10000
#define CONTROL_C 3
#define CONTROL_D 4

struct walk {
    struct admin_client *client;
    struct map *skipped; /* ids, to any pointer */
    bool is_over;
};

static const char keys[] = "[a]pprove  [r]eject  [s]kip  [q]uit   (A, R: with a reason) ";

/* ---- keys ---- */

/* One byte, or EOF. */
static int read_byte(void)
{
    unsigned char byte;
    return read(STDIN_FILENO, &byte, 1) == 1 ? byte : EOF;
}

/* A key at once, where there is a terminal. Keys that were pressed before the question are dropped:
 * they were meant for another task. Ctrl-C comes as a key, so that the terminal is set back. */
static int tasks_next_read_key(void)
{
    struct termios before, during;
    int key;
    if (tcgetattr(STDIN_FILENO, &before) != 0) {
        do
            key = read_byte();
        while (key == '\n');
        return key;
    }
    during = before;
    during.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    during.c_cc[VMIN] = 1;
    during.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &during);
    key = read_byte();
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return key == CONTROL_C || key == CONTROL_D ? EOF : key;
}

static void tasks_next_say(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/* ---- decisions ---- */

/* false when the endpoint is gone, or refuses the token. A decision that is refused otherwise was
 * told on stderr, and the queue is read again. */
static bool tasks_next_decide(struct walk *walk, struct str task, const char *verb,
                              bool asks_reason)
{
    struct buffer reason, decision, body, text, id;
    buffer_init(&id);
    json_decode_string(json_member(task, "id"), &id);
    buffer_init(&reason);
    buffer_init(&decision);
    buffer_init(&body);
    buffer_init(&text);
    if (asks_reason) {
        tasks_next_say("reason: ");
        tasks_read_line(&reason);
    }
    buffer_append_char(&decision, '{');
    if (reason.length > 0) {
        json_add_key(&decision, "reason");
        buffer_append_json_string(&decision, buffer_str(&reason));
    }
    tasks_add_digest(&decision, task);
    if (strcmp(verb, "approve") == 0 && !tasks_add_typed(&decision, task)) {
        buffer_finish(&decision);
        buffer_finish(&reason);
        buffer_finish(&id);
        return true;
    }
    buffer_append_char(&decision, '}');
    char *path = memory_format("/api/v1/tasks/%.*s/%s", STR_ARGS(buffer_str(&id)), verb);
    struct admin_request request = {.method = "POST", .path = path, .body = buffer_str(&decision)};
    int code = admin_client_send(walk->client, &request, &body);
    if (code == CLI_DONE) {
        tasks_append_change(&text, buffer_str(&body));
        terminal_write(&text);
    }
    free(path);
    buffer_finish(&id);
    buffer_finish(&text);
    buffer_finish(&body);
    buffer_finish(&decision);
    buffer_finish(&reason);
    long status = admin_client_status(walk->client);
    return code == CLI_DONE || (status != 0 && status != 401);
}

/* ---- one task ---- */

static void tasks_next_show(struct str task, size_t waiting)
{
    struct buffer text;
    int64_t deadline = tasks_time(task, "decideBy");
    buffer_init(&text);
    buffer_append_format(&text, "\n%s", colour_bold());
    tasks_append_member(&text, task, "tool");
    buffer_append_format(&text, "%s   %zu %s", colour_end(), waiting,
                         waiting == 1 ? "waits" : "wait");
    if (deadline) {
        buffer_append(&text, STR(", "));
        tasks_append_span(&text, deadline - clock_now_ms());
        buffer_append(&text, STR(" left"));
    }
    buffer_append(&text, STR("\n\n"));
    tasks_append_details(&text, task);
    buffer_append_char(&text, '\n');
    terminal_write(&text);
    buffer_finish(&text);
}

/* The action of a key. */
static const struct choice {
    const char *verb; /* NULL: none */
    char key;
    bool asks_reason, skips, leaves;
} choices[] = {
    {"approve", 'a', false, false, false}, {"approve", 'A', true, false, false},
    {"reject", 'r', false, false, false},  {"reject", 'R', true, false, false},
    {NULL, 's', false, true, false},       {NULL, 'q', false, false, true},
};

static const struct choice *tasks_next_ask(void)
{
    for (;;) {
        tasks_next_say(keys);
        int key = tasks_next_read_key();
        putchar('\n');
        for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
            if (choices[i].key == key)
                return &choices[i];
        }
        if (key == EOF)
            return NULL;
    }
}

static bool tasks_next_handle(struct walk *walk, struct str task, size_t waiting)
{
    struct buffer id;
    bool goes_on = true;
    buffer_init(&id);
    json_decode_string(json_member(task, "id"), &id);
    tasks_next_show(task, waiting);
    const struct choice *choice = tasks_next_ask();
    if (!choice || choice->leaves)
        walk->is_over = true;
    else if (choice->skips)
        map_put(walk->skipped, buffer_str(&id), walk);
    else
        goes_on = tasks_next_decide(walk, task, choice->verb, choice->asks_reason);
    buffer_finish(&id);
    return goes_on;
}

/* ---- the queue ---- */

/* Leaves out what was skipped. */
static void drop_skipped(struct tasks_pages *pages, const struct map *skipped)
{
    size_t kept = 0;
    for (size_t i = 0; i < pages->count; i++) {
        struct buffer id;
        buffer_init(&id);
        json_decode_string(json_member(pages->tasks[i], "id"), &id);
        if (!map_get(skipped, buffer_str(&id)))
            pages->tasks[kept++] = pages->tasks[i];
        buffer_finish(&id);
    }
    pages->count = kept;
}

/* The queue is read again for each task: others decide, too, and new calls come. */
static int tasks_next_step(struct walk *walk)
{
    struct tasks_pages pages = {0};
    int code = tasks_pages_read(&pages, walk->client, "state=pending&mine=true", QUEUE_MAX);
    if (code == CLI_DONE) {
        tasks_pages_sort(&pages);
        drop_skipped(&pages, walk->skipped);
        if (pages.count == 0) {
            tasks_next_say(map_count(walk->skipped) > 0 ? "Nothing else waits.\n"
                                                        : "Nothing waits.\n");
            walk->is_over = true;
        } else if (!tasks_next_handle(walk, pages.tasks[0], pages.count)) {
            code = CLI_REFUSED;
        }
    }
    tasks_pages_finish(&pages);
    return code;
}

int tasks_next(struct admin_client *client)
{
    struct walk walk = {client, map_create(), false};
    int code = CLI_DONE;
    while (code == CLI_DONE && !walk.is_over)
        code = tasks_next_step(&walk);
    map_destroy(walk.skipped, NULL);
    return code;
}
