/* The task as a value: creation, references, copies, names. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/task/recorded_name.h"
#include "taskgate/task/task.h"

/* Cuts a long name between two characters, and adds a digest that makes it differ from others. */

struct str recorded_name(struct str name, char out[RECORDED_NAME_BYTES])
{
    char digest[DIGEST_HEX_BYTES];
    size_t end = RECORDED_NAME_BYTES_MAX;
    if (name.length <= RECORDED_NAME_BYTES_MAX)
        return name;
    while (end > 0 && ((unsigned char)name.bytes[end] & 0xC0) == 0x80)
        end--;
    digest_sha256_hex(name, digest);
    int length = snprintf(out, RECORDED_NAME_BYTES, "%.*s... (%zu bytes, sha256 %s)", (int)end,
                          name.bytes, name.length, digest);
    ASSERT_NUMBERS(length, <, RECORDED_NAME_BYTES);
    return str_slice(out, (size_t)length);
}

/* The count lives beside the value, so that the header shows nothing a caller may not touch. */
struct counted_task {
    atomic_uint references;
    struct task task;
};

/* Every text a task owns, but for request and outcome_text, which have lengths. */
static const size_t texts[] = {
    offsetof(struct task, source),
    offsetof(struct task, owner),
    offsetof(struct task, maker),
    offsetof(struct task, session),
    offsetof(struct task, principal),
    offsetof(struct task, tool),
    offsetof(struct task, workflow),
    offsetof(struct task, action),
    offsetof(struct task, arguments),
    offsetof(struct task, original_arguments),
    offsetof(struct task, progress_token),
    offsetof(struct task, decided_by),
    offsetof(struct task, reason),
    offsetof(struct task, status_message),
    offsetof(struct task, upstream_task),
    offsetof(struct task, client_name),
    offsetof(struct task, client_version),
    offsetof(struct task, decision),
    offsetof(struct task, rule),
    offsetof(struct task, terms),
    offsetof(struct task, votes),
    offsetof(struct task, grant),
    offsetof(struct task, meta),
    offsetof(struct task, other_params),
    offsetof(struct task, refused_credentials),
    offsetof(struct task, mirrored_headers),
    offsetof(struct task, trace),
    offsetof(struct task, shown),
    offsetof(struct task, brief),
};
#define TEXT_COUNT (sizeof texts / sizeof *texts)

static const char *const state_names[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "pending",     [TASK_APPROVED] = "approved", [TASK_EXECUTING] = "executing",
    [TASK_COMPLETED] = "completed", [TASK_FAILED] = "failed",     [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "rejected",   [TASK_EXPIRED] = "expired",
};

/* Most texts of a task are empty, and thousands of tasks may wait: these share one byte, which is
 * never written. */
static char no_text[1];

static char *task_copy_text(struct str text)
{
    return text.length > 0 ? memory_copy_str(text) : no_text;
}

static void free_text(char *text)
{
    if (text != no_text)
        free(text);
}

static char **task_text_at(struct task *task, size_t i)
{
    return (char **)(void *)((char *)task + texts[i]);
}

static struct counted_task *counted(struct task *task)
{
    return (struct counted_task *)(void *)((char *)task - offsetof(struct counted_task, task));
}

static struct task *task_allocate(void)
{
    struct counted_task *holder = memory_alloc(sizeof *holder);
    atomic_init(&holder->references, 1);
    return &holder->task;
}

static struct task *task_in(enum task_state state)
{
    struct task *task = task_allocate();
    task->state = state;
    for (size_t i = 0; i < TEXT_COUNT; i++)
        *task_text_at(task, i) = no_text;
    task->request = no_text;
    return task;
}

struct task *task_create(enum task_state state)
{
    struct task *task = task_in(state);
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    snprintf(task->id, sizeof task->id, "tg_%s", uuid);
    return task;
}

struct task *task_create_promoted(void)
{
    struct task *task = task_in(TASK_EXECUTING);
    random_ulid(task->id);
    task->promoted = true;
    return task;
}

struct task *task_ref(struct task *task)
{
    unsigned before =
        atomic_fetch_add_explicit(&counted(task)->references, 1, memory_order_relaxed);
    ASSERT_NUMBERS(before, >, 0); /* the last reference is gone, and so is the task */
    return task;
}

void task_unref(struct task *task)
{
    if (!task)
        return;
    unsigned before =
        atomic_fetch_sub_explicit(&counted(task)->references, 1, memory_order_acq_rel);
    ASSERT_NUMBERS(before, >, 0);
    if (before > 1)
        return;
    for (size_t i = 0; i < TEXT_COUNT; i++)
        free_text(*task_text_at(task, i));
    free_text(task->request);
    free(task->outcome_text);
    free(counted(task));
}

struct task *task_copy(const struct task *task)
{
    struct task *copy = task_allocate();
    *copy = *task;
    for (size_t i = 0; i < TEXT_COUNT; i++)
        *task_text_at(copy, i) = task_copy_text(str_from(*task_text_at(copy, i)));
    copy->request = task_copy_text(str_slice(task->request, task->request_length));
    if (task->outcome_text)
        copy->outcome_text = memory_copy_str(str_slice(task->outcome_text, task->outcome_length));
    return copy;
}

void task_set_text(char **field, struct str text)
{
    char *copy = task_copy_text(text);
    free_text(*field);
    *field = copy;
}

void task_set_request(struct task *task, struct str body)
{
    task_set_text(&task->request, body);
    task->request_length = body.length;
}

const char *task_state_name(enum task_state state)
{
    return (unsigned)state < TASK_STATE_COUNT ? state_names[state] : "unknown";
}

bool task_is_answer(const struct task *task)
{
    return strcmp(task->action, TASK_ACTION_ANSWER) == 0;
}

const char *task_kind_name(const struct task *task)
{
    if (task_is_answer(task))
        return TASK_ACTION_ANSWER;
    if (task->promoted)
        return "promoted";
    return task->accelerated ? "accelerated" : "approval";
}

bool task_state_parse(struct str name, enum task_state *state)
{
    for (unsigned i = 0; i < TASK_STATE_COUNT; i++) {
        if (str_equal(name, str_from(state_names[i]))) {
            *state = (enum task_state)i;
            return true;
        }
    }
    return false;
}

bool task_id_is_ours(struct str id)
{
    return str_starts_with(id, STR("tg_"));
}

bool task_id_is_ulid(struct str id)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    if (id.length != RANDOM_ULID_BYTES - 1)
        return false;
    for (size_t i = 0; i < id.length; i++) {
        if (!memchr(alphabet, id.bytes[i], sizeof alphabet - 1))
            return false;
    }
    return true;
}
