/* taskgate tasks: list, next, show, result, approve, reject, cancel, watch, over the admin
 * endpoint. */
#include "tasks_result.h"
#include "tasks_show.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"
#include "taskgate/mcp/sse.h"

#include "admin_client.h"
#include "colour.h"
#include "listing.h"
#include "options.h"
#include "subcommands.h"
#include "tasks_pages.h"
#include "terminal.h"

/* ---- the look at a call before a decision ---- */

struct tasks_confirmation {
    const char *digest; /* of the request that the person has seen; NULL: not told */
    const char *typed;  /* the value that an approval of high risk needs, or NULL */
    bool yes;           /* nothing is asked */
};

#define LINE_MAX_BYTES 2000

/* The rest of a line of standard input, without its end. */
static void tasks_read_line(struct buffer *line)
{
    unsigned char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') {
        if (line->length < LINE_MAX_BYTES)
            buffer_append_char(line, (char)byte);
    }
}

/* Adds the requestDigest of the task that was shown, if it has one. */
static void tasks_add_digest(struct buffer *decision, struct str task)
{
    struct str digest = json_member(task, "requestDigest");
    if (json_type(digest) != JSON_STRING)
        return;
    json_add_value(decision, "requestDigest", digest);
}

/* "y" and "yes" are the only words that go on. */
static bool wants(const char *verb)
{
    OWNED_BUFFER(line);
    printf("%c%s? [y/N] ", toupper((unsigned char)*verb), verb + 1);
    fflush(stdout);
    tasks_read_line(&line);
    struct str word = str_trim(buffer_str(&line));
    bool is_yes = str_equal_ignore_case(word, STR("y")) || str_equal_ignore_case(word, STR("yes"));
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

/* If an approval of the task needs a typed value, asks for it and adds it. False when nothing was
 * typed. */
static bool tasks_add_typed(struct buffer *decision, struct str task)
{
    struct str raw = json_member(json_member(task, "typed"), "path");
    OWNED_BUFFER(path);
    OWNED_BUFFER(text);
    OWNED_BUFFER(line);
    if (json_type(raw) != JSON_STRING)
        return true;
    json_decode_string(raw, &path);
    write_typed_question(&text, buffer_str(&path));
    terminal_write(&text);
    tasks_read_line(&line);
    struct str typed = str_trim(buffer_str(&line));
    if (typed.length > 0) {
        json_add_str(decision, "typed", typed);
    } else {
        fputs("Nothing was decided.\n", stderr);
    }
    return typed.length > 0;
}

static bool is_typed(struct str task, const char *verb)
{
    return strcmp(verb, "approve") == 0 && json_type(json_member(task, "typed")) == JSON_OBJECT;
}

static int tasks_confirm_look(struct admin_client *client, const char *id, struct buffer *task)
{
    OWNED_BUFFER(text);
    OWNED char *encoded = admin_client_encode(client, id);
    OWNED char *path = memory_format("/api/v1/tasks/%s", encoded);
    const struct admin_request request = {.method = "GET", .path = path};
    int code = admin_client_send(client, &request, task);
    if (code == CLI_DONE) {
        tasks_append_details(&text, buffer_str(task));
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    return code;
}

/* On a terminal, prints the call and asks whether to `verb` it. A value that must be typed
 * is asked for instead. Adds it and requestDigest to the body of the decision: the one that
 * was told, or on a terminal that of the call. Returns an exit code: CLI_DONE to go on, CLI_FAILURE
 * when the person does not want to. */
static int tasks_confirm(struct admin_client *client, const char *id, const char *verb,
                         const struct tasks_confirmation *confirmation, struct buffer *decision)
{
    OWNED_BUFFER(task);
    bool has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
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
    return code;
}

/* ---- tasks list ---- */

/* taskgate tasks list. Lists of tasks, for people and for programs. */

/* As they stand on the command line; NULL where one is not given. */
struct tasks_filters {
    const char *state, *source, *tool, *cursor, *limit;
    bool json;
};

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 100
/* Every state but pending. */
#define OTHER_STATES "approved,executing,completed,failed,cancelled,rejected,expired"
/* All that wait are read, or else the most urgent one may be on a later page. */
#define WAITING_MAX 100000

/* The query of the filters, with this state; for a page of the endpoint with `limit` and `cursor`.
 * The caller frees. */
static char *build_query(struct admin_client *client, const struct tasks_filters *filters,
                         const char *state, bool is_page)
{
    const struct {
        const char *name, *value;
    } parts[] = {
        {"state", state},
        {"source", filters->source},
        {"tool", filters->tool},
        {"limit", is_page ? filters->limit : NULL},
        {"cursor", is_page ? filters->cursor : NULL},
    };
    OWNED_BUFFER(query);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].value)
            continue;
        OWNED char *value = admin_client_encode(client, parts[i].value);
        buffer_append_format(&query, "%s%s=%s", query.length > 0 ? "&" : "", parts[i].name, value);
    }
    return query.length > 0 ? buffer_take(&query, NULL) : memory_copy_text("");
}

static int tasks_list_print_page(struct admin_client *client, const struct tasks_filters *filters)
{
    OWNED char *query = build_query(client, filters, filters->state, true);
    OWNED char *path = memory_format("/api/v1/tasks%s%s", *query ? "?" : "", query);
    const struct admin_request request = {.method = "GET", .path = path};
    return listing_ask(client, &request, true, NULL);
}

static int tasks_list_read_state(struct tasks_pages *pages, struct admin_client *client,
                                 const struct tasks_filters *filters, const char *state,
                                 size_t limit)
{
    OWNED char *query = build_query(client, filters, state, false);
    return tasks_pages_read(pages, client, query, limit);
}

/* Up to `limit` tasks to show. Without a filter by state those that wait come first, all of them.
 */
static int tasks_list_read_tasks(struct tasks_pages *pages, struct admin_client *client,
                                 const struct tasks_filters *filters, size_t limit)
{
    int code;
    if (filters->cursor) {
        pages->cursor = memory_copy_text(filters->cursor);
        return tasks_list_read_state(pages, client, filters,
                                     filters->state ? filters->state : OTHER_STATES, limit);
    }
    if (filters->state && strcmp(filters->state, "pending") != 0)
        code = tasks_list_read_state(pages, client, filters, filters->state, limit);
    else
        code = tasks_list_read_state(pages, client, filters, "pending", WAITING_MAX);
    if (code == CLI_DONE && !filters->state && pages->count < limit)
        code = tasks_list_read_state(pages, client, filters, OTHER_STATES, limit - pages->count);
    tasks_pages_sort(pages);
    return code;
}

static int print_table(const struct tasks_pages *pages, size_t limit)
{
    OWNED_BUFFER(text);
    size_t shown = pages->count < limit ? pages->count : limit;
    const struct tasks_table table = {pages->tasks, shown, clock_now_ms(), isatty(STDOUT_FILENO)};
    if (shown > 0)
        tasks_append_table(&text, &table);
    else
        buffer_append(&text, STR("No tasks.\n"));
    if (pages->count > shown)
        buffer_append_format(&text, "\n%zu more wait: --limit %d\n", pages->count - shown,
                             LIMIT_MAX);
    else if (pages->cursor)
        buffer_append_format(&text, "\nThere are older ones: --cursor %s\n", pages->cursor);
    return terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
}

static bool read_limit(const char *text, size_t *limit)
{
    uint64_t number = LIMIT_DEFAULT;
    bool good =
        !text || (str_to_u64(str_from(text), &number) && number >= 1 && number <= LIMIT_MAX);
    if (!good)
        options_complain("--limit must be a number from 1 to %d", LIMIT_MAX);
    *limit = (size_t)number;
    return good;
}

/* Prints tasks. For people those that wait stand first, the most urgent one before the others, and
 * then the newest of the rest; as JSON, or from a cursor on, they are as the endpoint gives them.
 * Returns an exit code. */
static int tasks_print_list(struct admin_client *client, const struct tasks_filters *filters)
{
    struct tasks_pages pages = {0};
    size_t limit;
    if (filters->json)
        return tasks_list_print_page(client, filters);
    if (!read_limit(filters->limit, &limit))
        return CLI_USAGE;
    int code = tasks_list_read_tasks(&pages, client, filters, limit);
    if (code == CLI_DONE)
        code = print_table(&pages, limit);
    tasks_pages_finish(&pages);
    return code;
}

/* ---- tasks next ---- */

/* taskgate tasks next: the waiting calls one after the other, decided by single keys. The queue
 * of waiting calls, walked by one person. */

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
 * reported on stderr, and the queue is read again. */
static bool tasks_next_decide(struct walk *walk, struct str task, const char *verb,
                              bool asks_reason)
{
    OWNED_BUFFER(reason);
    OWNED_BUFFER(decision);
    OWNED_BUFFER(id);
    json_decode_string(json_member(task, "id"), &id);
    if (asks_reason) {
        tasks_next_say("reason: ");
        tasks_read_line(&reason);
    }
    buffer_append_char(&decision, '{');
    if (reason.length > 0) {
        json_add_str(&decision, "reason", buffer_str(&reason));
    }
    tasks_add_digest(&decision, task);
    if (strcmp(verb, "approve") == 0 && !tasks_add_typed(&decision, task))
        return true;
    buffer_append_char(&decision, '}');
    OWNED char *path = memory_format("/api/v1/tasks/%.*s/%s", STR_ARGS(buffer_str(&id)), verb);
    struct admin_request request = {.method = "POST", .path = path, .body = buffer_str(&decision)};
    int code = listing_ask(walk->client, &request, false, tasks_append_change);
    long status = admin_client_status(walk->client);
    return code == CLI_DONE || (status != 0 && status != 401);
}

/* ---- one task ---- */

static void tasks_next_show(struct str task, size_t waiting)
{
    OWNED_BUFFER(text);
    int64_t deadline = tasks_time(task, "decideBy");
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
    OWNED_BUFFER(id);
    bool goes_on = true;
    json_decode_string(json_member(task, "id"), &id);
    tasks_next_show(task, waiting);
    const struct choice *choice = tasks_next_ask();
    if (!choice || choice->leaves)
        walk->is_over = true;
    else if (choice->skips)
        map_put(walk->skipped, buffer_str(&id), walk);
    else
        goes_on = tasks_next_decide(walk, task, choice->verb, choice->asks_reason);
    return goes_on;
}

/* ---- the queue ---- */

/* Leaves out what was skipped. */
static void drop_skipped(struct tasks_pages *pages, const struct map *skipped)
{
    size_t kept = 0;
    for (size_t i = 0; i < pages->count; i++) {
        OWNED_BUFFER(id);
        json_decode_string(json_member(pages->tasks[i], "id"), &id);
        if (!map_get(skipped, buffer_str(&id)))
            pages->tasks[kept++] = pages->tasks[i];
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

/* Shows the most urgent task and waits for a key, until nothing waits that was not skipped, or the
 * person leaves. Keys come from standard input, a terminal or not. Returns an exit code. */
static int tasks_next(struct admin_client *client)
{
    struct walk walk = {client, map_create(), false};
    int code = CLI_DONE;
    while (code == CLI_DONE && !walk.is_over)
        code = tasks_next_step(&walk);
    map_destroy(walk.skipped, NULL);
    return code;
}

/* ---- tasks watch ---- */

/* taskgate tasks watch: the event stream, resumed where it broke. */

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
    OWNED_BUFFER(text);
    sse_event_read(&event, raw);
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

/* Prints changes as they come, until it is interrupted or refused. Returns an exit code. */
static int tasks_watch(struct admin_client *client, bool json)
{
    struct watch watch = {.json = json};
    OWNED_BUFFER(body);
    int code;
    bool has_been_open = false;
    long retry_ms = RETRY_FIRST_MS;
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
    return watch.output_failed ? CLI_FAILURE : code;
}

/* ---- options ---- */

#define ARGUMENTS_MAX_BYTES ((size_t)4 * 1024 * 1024) /* as the endpoint takes at most */

/* The options of all subcommands, once read. */
struct arguments {
    const char *id;
    const char *state, *source, *tool, *limit, *cursor;
    const char *reason, *wait;
    const char *grant_for, *grant_calls;
    const char *file; /* with other arguments for the call */
    struct tasks_confirmation confirmation;
    bool emergency;
    bool json;
};

struct subcommand {
    struct subcommand_text text;
    int (*run)(struct admin_client *client, const struct subcommand *self,
               const struct arguments *arguments);
    enum {
        WITH_NO_OPTION,
        WITH_NOTHING,
        WITH_FILTERS,
        WITH_ID,
        WITH_DECISION,
        WITH_REJECTION,
        WITH_APPROVAL,
        WITH_WAIT
    } with;
};

static bool tasks_read_file(const char *path, struct buffer *text, struct error *error)
{
    FILE *file = fopen(path, "re");
    char part[4096];
    size_t count = 0;
    while (file && text->length <= ARGUMENTS_MAX_BYTES &&
           (count = fread(part, 1, sizeof part, file)) > 0)
        buffer_append(text, str_slice(part, count));
    bool is_good = file && !ferror(file) && text->length <= ARGUMENTS_MAX_BYTES;
    if (!is_good)
        error_set(error, "%s",
                  text->length > ARGUMENTS_MAX_BYTES ? "is larger than 4 MiB" : strerror(errno));
    if (file)
        fclose(file);
    return is_good;
}

/* The endpoint judges the content; what is no JSON at all would make a body that is none. */
static bool append_file(struct buffer *decision, const char *path)
{
    OWNED_BUFFER(text);
    struct error error = {""};
    if (!path)
        return true;
    bool is_good = tasks_read_file(path, &text, &error) && json_check(buffer_str(&text), &error);
    if (is_good) {
        json_add_value(decision, "arguments", str_trim(buffer_str(&text)));
    } else {
        options_complain("--arguments %s: %s", path, error.message);
    }
    return is_good;
}

/* ---- the subcommands ---- */

static int tasks_run_list(struct admin_client *client, const struct subcommand *self,
                          const struct arguments *arguments)
{
    const struct tasks_filters filters = {arguments->state,  arguments->source, arguments->tool,
                                          arguments->cursor, arguments->limit,  arguments->json};
    return tasks_print_list(client, &filters);
}

static int run_next(struct admin_client *client, const struct subcommand *self,
                    const struct arguments *arguments)
{
    return tasks_next(client);
}

static int tasks_run_show(struct admin_client *client, const struct subcommand *self,
                          const struct arguments *arguments)
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(text);
    OWNED char *id = admin_client_encode(client, arguments->id);
    OWNED char *path = memory_format("/api/v1/tasks/%s", id);
    const struct admin_request request = {.method = "GET", .path = path};
    int code = admin_client_send(client, &request, &body);
    if (code != CLI_DONE)
        return code;
    if (arguments->json)
        return listing_print(buffer_str(&body), true, NULL);
    tasks_append_details(&text, buffer_str(&body));
    code = tasks_append_outcome(&text, client, arguments->id, buffer_str(&body));
    bool written = terminal_write(&text);
    return code == CLI_DONE && !written ? CLI_FAILURE : code;
}

/* The endpoint judges the duration and the number. */
static bool tasks_append_grant(struct buffer *decision, const struct arguments *arguments)
{
    uint64_t calls;
    if (!arguments->grant_for && !arguments->grant_calls)
        return true;
    if (!arguments->grant_for || !arguments->grant_calls) {
        options_complain("--grant-for and --grant-calls go together");
        return false;
    }
    if (!str_to_u64(str_from(arguments->grant_calls), &calls) || calls == 0) {
        options_complain("--grant-calls wants a whole number from 1 on");
        return false;
    }
    json_add_key(decision, "grant");
    buffer_append_char(decision, '{');
    json_add_text(decision, "for", arguments->grant_for);
    buffer_append_format(decision, ",\"calls\":%s}", arguments->grant_calls);
    return true;
}

static int run_decision(struct admin_client *client, const struct subcommand *self,
                        const struct arguments *arguments)
{
    OWNED_BUFFER(decision);
    buffer_append(&decision, STR("{"));
    if (arguments->reason)
        json_add_text(&decision, "reason", arguments->reason);
    if (arguments->emergency) {
        json_add_key(&decision, "emergency");
        buffer_append_text(&decision, "true");
    }
    bool is_good =
        tasks_append_grant(&decision, arguments) && append_file(&decision, arguments->file);
    int code = is_good ? CLI_DONE : CLI_USAGE;
    if (is_good && (self->with == WITH_APPROVAL || self->with == WITH_REJECTION))
        code = tasks_confirm(client, arguments->id, self->text.name, &arguments->confirmation,
                             &decision);
    if (code != CLI_DONE)
        return code;
    buffer_append(&decision, STR("}"));
    OWNED char *id = admin_client_encode(client, arguments->id);
    OWNED char *path = memory_format("/api/v1/tasks/%s/%s", id, self->text.name);
    struct admin_request request = {.method = "POST", .path = path, .body = buffer_str(&decision)};
    return listing_ask(client, &request, arguments->json, tasks_append_change);
}

static int run_watch(struct admin_client *client, const struct subcommand *self,
                     const struct arguments *arguments)
{
    return tasks_watch(client, arguments->json);
}

static int run_result(struct admin_client *client, const struct subcommand *self,
                      const struct arguments *arguments)
{
    int64_t wait_ms;
    if (!tasks_read_duration("wait", arguments->wait, &wait_ms))
        return CLI_USAGE;
    return tasks_result(client, arguments->id, wait_ms, arguments->json);
}

/* ---- which one ---- */

static const struct subcommand subcommands[] = {
    {{"list", "[FILTERS]", "list tasks, the most urgent ones first"}, tasks_run_list, WITH_FILTERS},
    {{"next", "", "decide what waits, one by one, by single keys"}, run_next, WITH_NO_OPTION},
    {{"show", "ID", "show one task with its arguments"}, tasks_run_show, WITH_ID},
    {{"result", "ID [--wait D]", "print the result of the call"}, run_result, WITH_WAIT},
    {{"approve", "ID [OPTIONS]", "vote for the call; the last vote lets it run"},
     run_decision,
     WITH_APPROVAL},
    {{"reject", "ID [OPTIONS]", "refuse the call; the agent gets the reason"},
     run_decision,
     WITH_REJECTION},
    {{"withdraw", "ID [--reason TEXT]", "take your vote back"}, run_decision, WITH_DECISION},
    {{"cancel", "ID [--reason TEXT]", "cancel a task that has not ended"},
     run_decision,
     WITH_DECISION},
    {{"watch", "", "print changes as they happen"}, run_watch, WITH_NOTHING},
};

/* An id may be cut to what begins no other. */
static int run_with_id(struct admin_client *client, const struct subcommand *self,
                       const struct arguments *arguments)
{
    struct arguments whole = *arguments;
    OWNED char *id = NULL;
    int code = arguments->id ? tasks_find(client, arguments->id, &id) : CLI_DONE;
    whole.id = id;
    if (code == CLI_DONE)
        code = self->run(client, self, &whole);
    return code;
}

static int tasks_run_subcommand(const void *row, int argc, char **argv)
{
    const struct subcommand *self = row;
    struct arguments arguments = {0};
    struct tasks_confirmation *confirmation = &arguments.confirmation;
    enum {
        FILTERS = 1U << WITH_FILTERS,
        DECISION = 1U << WITH_DECISION,
        REJECTION = 1U << WITH_REJECTION,
        APPROVAL = 1U << WITH_APPROVAL,
        WAIT = 1U << WITH_WAIT,
        NOT_NEXT = ~(1U << WITH_NO_OPTION),
    };
    const struct option options[] = {
        {"state", "STATE", "only tasks in this state (or several: pending,approved)",
         &arguments.state, .of = FILTERS},
        {"source", "ID", "only tasks of this server", &arguments.source, .of = FILTERS},
        {"tool", "NAME", "only tasks of this tool", &arguments.tool, .of = FILTERS},
        {"limit", "N", "at most N tasks, 1 to 100 (20)", &arguments.limit, .of = FILTERS},
        {"cursor", "CURSOR", "continue the last list", &arguments.cursor, .of = FILTERS},
        {"reason", "TEXT", "stored with the decision", &arguments.reason,
         .of = DECISION | REJECTION | APPROVAL},
        {"digest", "HEX", "only if the request has this digest", &confirmation->digest,
         .of = REJECTION | APPROVAL},
        {"typed", "TEXT", "the value that an approval of high risk needs", &confirmation->typed,
         .of = APPROVAL},
        {"yes", NULL, "do not ask on a terminal", .flag = &confirmation->yes,
         .of = REJECTION | APPROVAL},
        {"emergency", NULL, "decide alone; needs --reason", .flag = &arguments.emergency,
         .of = APPROVAL},
        {"grant-for", "DURATION", "let the same call run again, so long, such as 1h",
         &arguments.grant_for, .of = APPROVAL},
        {"grant-calls", "N", "and so often", &arguments.grant_calls, .of = APPROVAL},
        {"arguments", "FILE", "run the call with the JSON object in this file", &arguments.file,
         .of = APPROVAL},
        {"wait", "DURATION", "wait at most so long, such as 30s", &arguments.wait, .of = WAIT},
        {"json", NULL, "print JSON", .flag = &arguments.json, .of = NOT_NEXT},
    };
    bool has_id = self->with > WITH_FILTERS;
    OWNED char *usage = memory_format("taskgate tasks %s %s%s%s", self->text.name,
                                      self->text.operands, *self->text.operands ? " " : "",
                                      self->with == WITH_NO_OPTION ? "" : "[--json]");
    OWNED char *synopsis =
        memory_format("%c%s.", toupper((unsigned char)*self->text.help), self->text.help + 1);
    const struct command command = {
        .usage = usage,
        .synopsis = synopsis,
        COMMAND_OPTIONS(options),
        .self = 1U << self->with,
        .insecure = &admin_client_is_insecure,
        .operands_min = has_id,
        .operands_max = has_id,
        .operand_name = "ID",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &arguments.id);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (has_id && !*arguments.id)
        return options_complain("the task's ID is empty");
    OWNED_ADMIN_CLIENT(client);
    return client ? run_with_id(client, self, &arguments) : CLI_USAGE;
}

int cli_tasks(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "tasks",
        .head = "Usage: taskgate tasks SUBCOMMAND [OPTIONS]\n\n"
                "Lists, shows and decides calls that wait for a human, over the admin\n"
                "endpoint of a running gateway.\n\n",
        .foot = "\nAn ID may be cut to what begins no other. Each but next has --json. Variables:\n"
                "  THOUGHTGATE_ADMIN_URL      default http://127.0.0.1:7469\n"
                "  TASKGATE_TOKEN             the operator's token, else\n"
                "  THOUGHTGATE_ADMIN_TOKEN\n"
                "  TASKGATE_CA                for https: the authority to believe, a file\n"
                "  TASKGATE_CERT, TASKGATE_KEY  the certificate to show, files\n",
        SUBCOMMAND_ROWS(subcommands),
        .run = tasks_run_subcommand,
    };
    return subcommands_run(&set, argc, argv);
}
