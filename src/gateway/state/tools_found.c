/* A few answers of the catalogue for each thread, found by what was asked. */
#include "tools_found.h"

#include <stdatomic.h>
#include <string.h>

#include "taskgate/core/clock.h"

#define TOOL_SLOTS 64
#define TASKS_SLOTS 16
#define TEXT_BYTES 256
#define HOLDS_MS 1000

/* Of all catalogues, and never 0. */
static _Atomic(uint64_t) version = 1;

struct input_request {
    const struct catalog *catalog;
    uint64_t version; /* 0: the slot is free */
    size_t lengths[3];
    char text[TEXT_BYTES]; /* source, owner, name, one after the other */
};

static _Thread_local struct found_tool {
    struct input_request input;
    int64_t until_ms; /* monotonic */
    struct catalog_tool tool;
} found_tools[TOOL_SLOTS];

static _Thread_local struct found_tasks {
    struct input_request input;
    bool seen;
} found_tasks[TASKS_SLOTS];

void tools_found_renew(void)
{
    atomic_fetch_add_explicit(&version, 1, memory_order_release);
}

uint64_t tools_found_version(void)
{
    return atomic_load_explicit(&version, memory_order_acquire);
}

/* Names that share a slot only cost another look, so the hash need not be strong. */
static size_t mix(size_t mixed, struct str text)
{
    mixed = mixed * 31 + text.length;
    if (text.length > 0)
        mixed = mixed * 31 + (unsigned char)text.bytes[0] +
                (size_t)(unsigned char)text.bytes[text.length - 1] * 7 +
                (size_t)(unsigned char)text.bytes[text.length / 2] * 13;
    return mixed;
}

static bool is_asked(const struct input_request *input, const struct tools_asked *asked)
{
    const struct str texts[] = {asked->source, asked->owner, asked->name};
    const char *at = input->text;
    if (input->version != tools_found_version() || input->catalog != asked->catalog)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (!str_equal(texts[i], str_slice(at, input->lengths[i])))
            return false;
        at += input->lengths[i];
    }
    return true;
}

/* False when it is too long. */
static bool tools_found_write_question(struct input_request *input, const struct tools_asked *asked,
                                       uint64_t asked_version)
{
    const struct str texts[] = {asked->source, asked->owner, asked->name};
    size_t length = 0;
    input->version = 0;
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].length > TEXT_BYTES - length)
            return false;
        if (texts[i].length > 0)
            memcpy(input->text + length, texts[i].bytes, texts[i].length);
        input->lengths[i] = texts[i].length;
        length += texts[i].length;
    }
    input->catalog = asked->catalog;
    input->version = asked_version;
    return true;
}

static struct found_tool *tool_slot(const struct tools_asked *asked)
{
    size_t mixed = mix(mix(mix(0, asked->source), asked->owner), asked->name);
    return &found_tools[mixed % TOOL_SLOTS];
}

bool tools_found_get(const struct tools_asked *asked, struct catalog_tool *tool)
{
    const struct found_tool *found = tool_slot(asked);
    if (!is_asked(&found->input, asked) || found->until_ms <= clock_monotonic_ms())
        return false;
    *tool = found->tool;
    return true;
}

void tools_found_keep(const struct tools_asked *asked, uint64_t asked_version,
                      const struct catalog_tool *tool)
{
    struct found_tool *found = tool_slot(asked);
    if (!tools_found_write_question(&found->input, asked, asked_version))
        return;
    found->tool = *tool;
    found->until_ms = clock_monotonic_ms() + HOLDS_MS;
}

bool tools_found_get_tasks(const struct catalog *catalog, struct str source, bool *seen)
{
    const struct tools_asked asked = {.catalog = catalog, .source = source};
    const struct found_tasks *found = &found_tasks[mix(0, source) % TASKS_SLOTS];
    bool is_found = is_asked(&found->input, &asked);
    if (is_found)
        *seen = found->seen;
    return is_found;
}

void tools_found_keep_tasks(const struct catalog *catalog, struct str source,
                            uint64_t asked_version, bool seen)
{
    const struct tools_asked asked = {.catalog = catalog, .source = source};
    struct found_tasks *found = &found_tasks[mix(0, source) % TASKS_SLOTS];
    if (tools_found_write_question(&found->input, &asked, asked_version))
        found->seen = seen;
}
