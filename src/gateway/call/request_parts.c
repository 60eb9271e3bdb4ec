/* Reading what an approval covers out of a request. */
#include "request_parts.h"

#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"

struct request_parts {
    struct buffer meta;         /* JSON text of params._meta without progressToken, or {} */
    struct buffer other_params; /* JSON object */
    char digest[DIGEST_HEX_BYTES];
};

/* The progress token is the client's way to hear of progress: it changes nothing of the call. */
static void request_parts_read_meta(struct buffer *out, struct str meta)
{
    if (meta.length == 0 || json_type(meta) == JSON_OBJECT)
        json_write_without_member(out, meta, "progressToken");
    else
        buffer_append(out, meta); /* no object, and shown as it is */
}

/* The task field says how a legacy call is made, and not what it does. In a modern call it is a
 * member like any other, and goes up. */
static void read_other_params(struct buffer *out, const struct envelope *envelope)
{
    static const char *const known[] = {"name", "arguments", "_meta", "task"};
    size_t count = sizeof known / sizeof *known;
    bool task_says_how = envelope->reserved.version.length == 0;
    json_write_other_members(out, envelope->params, known, task_says_how ? count : count - 1);
}

static void digest(struct request_parts *parts, const struct envelope *envelope)
{
    struct str arguments = envelope->arguments.raw;
    OWNED_BUFFER(whole);
    buffer_append_text(&whole, "{\"name\":");
    buffer_append(&whole, envelope->name.raw);
    buffer_append_text(&whole, ",\"arguments\":");
    buffer_append(&whole, arguments.length > 0 ? arguments : STR("{}"));
    buffer_append_text(&whole, ",\"meta\":");
    buffer_append(&whole, buffer_str(&parts->meta));
    buffer_append_text(&whole, ",\"otherParams\":");
    buffer_append(&whole, buffer_str(&parts->other_params));
    buffer_append_char(&whole, '}');
    canonical_digest(buffer_str(&whole), parts->digest);
}

static void request_parts_read(struct request_parts *parts, const struct envelope *envelope)
{
    buffer_init(&parts->meta);
    buffer_init(&parts->other_params);
    request_parts_read_meta(&parts->meta, envelope->meta.raw);
    read_other_params(&parts->other_params, envelope);
    digest(parts, envelope);
}

static void request_parts_finish(struct request_parts *parts)
{
    buffer_finish(&parts->meta);
    buffer_finish(&parts->other_params);
}

void request_parts_bind(struct task *task, const struct envelope *envelope)
{
    struct request_parts parts;
    request_parts_read(&parts, envelope);
    task_set_text(&task->meta, buffer_str(&parts.meta));
    task_set_text(&task->other_params, buffer_str(&parts.other_params));
    memcpy(task->request_digest, parts.digest, sizeof task->request_digest);
    request_parts_finish(&parts);
}

void request_parts_digest(const struct envelope *envelope, char digest[DIGEST_HEX_BYTES])
{
    struct request_parts parts;
    request_parts_read(&parts, envelope);
    memcpy(digest, parts.digest, sizeof parts.digest);
    request_parts_finish(&parts);
}
