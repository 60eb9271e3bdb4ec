/* The facts of a call for its row in a list. */
#include "taskgate/notify/brief.h"

#include "taskgate/core/digest.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"

static void brief_add_summary(struct buffer *out, const struct task *task, struct str arguments)
{
    OWNED_BUFFER(summary);
    bool has_summary = shown_write_summary(&summary, task, arguments);
    json_add_key(out, "summary");
    if (has_summary)
        buffer_append_json_string(out, buffer_str(&summary));
    else
        buffer_append_text(out, "null");
}

static void brief_add_agent_reason(struct buffer *out, const struct task *task,
                                   const struct config *config)
{
    OWNED_BUFFER(reason);
    json_add_key(out, "reasonOfAgent");
    if (shown_write_agent_reason(&reason, task, config))
        buffer_append_json_string(out, buffer_str(&reason));
    else
        buffer_append_text(out, "null");
}

static void add_word(struct buffer *out, const char *key, struct str word)
{
    json_add_str(out, key, word);
}

static void add_typed(struct buffer *out, const struct task *task, struct str arguments)
{
    struct typed_value asked;
    json_add_key(out, "typed");
    if (!typed_is_asked(task)) {
        buffer_append_text(out, "null");
        return;
    }
    typed_find(&asked, task, arguments);
    buffer_append_char(out, '{');
    add_word(out, "path", buffer_str(&asked.path));
    buffer_append_char(out, '}');
    typed_finish(&asked);
}

static void brief_add_marks(struct buffer *out, const struct task *task,
                            const struct config *config)
{
    OWNED_BUFFER(where);
    enum mark mark;
    json_add_key(out, "marks");
    buffer_append_char(out, '[');
    for (size_t position = 0, count = 0; shown_next_mark(task, config, &position, &where, &mark);
         count++) {
        buffer_append_text(out, count > 0 ? ",{" : "{");
        add_word(out, "where", buffer_str(&where));
        json_add_text(out, "what", mark_name(mark));
        buffer_append_char(out, '}');
        buffer_clear(&where);
    }
    buffer_append_char(out, ']');
}

void brief_add_facts(struct buffer *out, const struct task *task, const struct config *config,
                     struct str arguments)
{
    const struct typed_risk risk = typed_risk_of(task);
    brief_add_summary(out, task, arguments);
    add_word(out, "risk", risk.risk);
    add_word(out, "riskBy", risk.by);
    add_typed(out, task, arguments);
    brief_add_marks(out, task, config);
    brief_add_agent_reason(out, task, config);
}

/* ---- the text of a task ---- */

/* Of the paths that are hidden: those of the workflow, or of all when there is no such one. */
static void write_paths_digest(const struct config *config, const char *name,
                               char digest[DIGEST_HEX_BYTES])
{
    const struct config_workflow *found = config_workflow_find(config, str_from(name));
    OWNED_BUFFER(paths);
    for (size_t i = 0; i < config->workflow_count; i++) {
        const struct config_workflow *workflow = &config->workflows[i];
        for (size_t j = 0; (!found || workflow == found) && j < workflow->redact_fields.count;
             j++) {
            buffer_append_text(&paths, workflow->redact_fields.items[j]);
            buffer_append_char(&paths, '\n');
        }
    }
    digest_sha256_hex(buffer_str(&paths), digest);
}

static bool has_hidden(const struct task *task, const struct config *config)
{
    const char *const parts[] = {task->arguments, task->meta, task->other_params};
    bool hides = false;
    if (!redact_may_hide(config, task->workflow))
        return false;
    for (size_t i = 0; !hides && i < sizeof parts / sizeof *parts; i++) {
        OWNED_BUFFER(text);
        hides = *parts[i] && redact_write(&text, str_from(parts[i]), config, task->workflow);
    }
    return hides;
}

void brief_write(struct buffer *out, const struct task *task, const struct config *config)
{
    char digest[DIGEST_HEX_BYTES];
    OWNED_BUFFER(arguments);
    redact_write(&arguments, str_from(*task->arguments ? task->arguments : "{}"), config,
                 task->workflow);
    write_paths_digest(config, task->workflow, digest);
    buffer_append_char(out, '{');
    json_add_text(out, "of", digest);
    json_add_bool(out, "hidden", has_hidden(task, config));
    brief_add_facts(out, task, config, buffer_str(&arguments));
    json_add_key(out, "argumentsBytes");
    buffer_append_format(out, "%zu", arguments.length);
    json_add_key(out, "arguments");
    buffer_append(out,
                  arguments.length <= BRIEF_ARGUMENTS_MAX ? buffer_str(&arguments) : STR("null"));
    buffer_append_char(out, '}');
}

bool brief_is_current(const struct task *task, const struct config *config)
{
    char digest[DIGEST_HEX_BYTES];
    if (!*task->brief)
        return false;
    write_paths_digest(config, task->workflow, digest);
    return json_string_equals(json_member(str_from(task->brief), "of"), str_from(digest));
}

void brief_read(struct brief *brief, struct str text)
{
    static const char *const names[] = {"of", "hidden", "summary", "arguments"};
    struct str values[4];
    json_members(text, names, 4, values);
    brief->has_hidden = str_equal(values[1], STR("true"));
    brief->summary = values[2];
    brief->arguments = values[3];
    /* The row's members are those behind "hidden". */
    const char *start = values[1].bytes + values[1].length + 1;
    brief->members = str_slice(start, (size_t)(text.bytes + text.length - 1 - start));
}

static struct str word(struct str raw)
{
    return raw.length > 2 ? str_slice(raw.bytes + 1, raw.length - 2) : STR_EMPTY;
}

struct typed_risk brief_risk(const struct task *task)
{
    static const char *const names[] = {"risk", "riskBy"};
    struct str values[2];
    if (!*task->brief)
        return typed_risk_of(task);
    json_members(str_from(task->brief), names, 2, values);
    return (struct typed_risk){word(values[0]), word(values[1])};
}
