/* Modern results that clients may keep: scope, time, and the answer to `server/discover`. */
#include "taskgate/mcp/cacheable.h"

#include <string.h>

#include "exact_integer.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/version.h"

static int64_t ttl_of(struct str value, int64_t most_ms)
{
    int64_t ttl_ms;
    if (json_type(value) != JSON_NUMBER || !exact_integer_read(value, true, &ttl_ms) || ttl_ms < 0)
        return 0;
    return ttl_ms < most_ms ? ttl_ms : most_ms;
}

static void cacheable_write(struct buffer *out, struct str result, int64_t most_ms, bool is_typed)
{
    static const char *const keys[] = {"cacheScope", "resultType", "ttlMs"};
    struct str old[3];
    OWNED_BUFFER(ttl);
    json_members(result, keys, 3, old);
    buffer_append_format(&ttl, "%lld", (long long)ttl_of(old[2], most_ms));
    const struct json_change scope = {keys[0], old[0], STR("\"private\"")},
                             type = {keys[1], old[1],
                                     old[1].length > 0 ? old[1] : STR("\"complete\"")},
                             time = {keys[2], old[2], buffer_str(&ttl)};
    if (is_typed)
        json_write_changed(out, result, (const struct json_change[]){scope, type, time}, 3);
    else
        json_write_changed(out, result, (const struct json_change[]){scope, time}, 2);
}

void mcp_cacheable_write(struct buffer *out, struct str result, int64_t most_ms)
{
    cacheable_write(out, result, most_ms, true);
}

void mcp_cacheable_write_untyped(struct buffer *out, struct str result, int64_t most_ms)
{
    cacheable_write(out, result, most_ms, false);
}

/* Nearly no server has them, and a search for the words costs less than a walk. */
static bool may_have(struct str text, const char *quoted)
{
    return memmem(text.bytes, text.length, quoted, strlen(quoted)) != NULL ||
           memmem(text.bytes, text.length, "\\u", 2) != NULL;
}

void mcp_cacheable_drop_tags(struct buffer *out, size_t start, struct str original)
{
    static const char *const keys[] = {"digest", "tag"};
    struct str written = str_slice(out->bytes + start, out->length - start), values[2];
    if (str_equal(written, original) ||
        !(may_have(written, "\"digest\"") || may_have(written, "\"tag\"")))
        return;
    json_members(written, keys, 2, values);
    for (size_t i = 0; i < 2; i++) {
        OWNED_BUFFER(without);
        if (values[i].length == 0)
            continue;
        json_write_without_member(&without, str_slice(out->bytes + start, out->length - start),
                                  keys[i]);
        out->length = start;
        buffer_append(out, buffer_str(&without));
    }
}

bool mcp_discover_lists(struct str result, struct str version)
{
    return json_has_text(json_member(result, "supportedVersions"), version);
}

bool mcp_discover_offers_tasks(struct str result)
{
    return json_type(json_path(result, "capabilities", "extensions", MODERN_TASKS_EXTENSION)) ==
           JSON_OBJECT;
}

static void cacheable_write_capabilities(struct buffer *out, struct str present, bool offers_tasks)
{
    OWNED_BUFFER(without);
    OWNED_BUFFER(told);
    json_write_without_member(&without, present, "tasks");
    struct str capabilities = json_type(present) == JSON_OBJECT ? buffer_str(&without) : STR("{}");
    if (json_type(json_member(capabilities, "tools")) == JSON_OBJECT) {
        json_write_with_inner(&told, capabilities, "tools", "listChanged", STR("true"));
        capabilities = buffer_str(&told);
    }
    if (offers_tasks)
        json_write_with_inner(out, capabilities, "extensions", MODERN_TASKS_EXTENSION, STR("{}"));
    else
        buffer_append(out, capabilities);
}

void mcp_discover_write(struct buffer *out, struct str result, bool offers_tasks, int64_t most_ms)
{
    static const char *const keys[] = {"capabilities", "supportedVersions"};
    struct str old[2];
    OWNED_BUFFER(capabilities);
    OWNED_BUFFER(changed);
    bool is_modern = mcp_discover_lists(result, STR(MCP_VERSION_MODERN));
    json_members(result, keys, 2, old);
    cacheable_write_capabilities(&capabilities, old[0], offers_tasks);
    const struct json_change changes[] = {
        {keys[0], old[0], buffer_str(&capabilities)},
        {keys[1], old[1], is_modern ? STR("[\"" MCP_VERSION_MODERN "\"]") : STR("[]")},
    };
    json_write_changed(&changed, result, changes, sizeof changes / sizeof *changes);
    mcp_cacheable_write(out, buffer_str(&changed), most_ms);
}
