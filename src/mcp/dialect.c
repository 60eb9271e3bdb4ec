/* The two tables of what the eras say differently. */
#include "taskgate/mcp/dialect.h"

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/dialect_modern.h"

/* ---- legacy ---- */

/* Its clients read errors only there. */
static struct dialect_error legacy_error(enum jsonrpc_error error)
{
    return (struct dialect_error){error, 200};
}

static void write_legacy_list(struct buffer *out, struct str result, int64_t most_ms)
{
    (void)most_ms; /* the era knows no such thing */
    buffer_append(out, result);
}

const struct dialect dialect_legacy = {
    .era = MCP_ERA_LEGACY,
    .has_sessions = true,
    .server_may_ask = true,
    .offers_all_tools = true,
    .announces_tasks = true,
    .error = legacy_error,
    .write_result = jsonrpc_write_result,
    .write_own_result = jsonrpc_write_result,
    .write_list = write_legacy_list,
    .write_create_result = dialect_write_create_result,
};

/* ---- modern ---- */

static struct dialect_error modern_error(enum jsonrpc_error error)
{
    static const struct dialect_error others[JSONRPC_ERROR_COUNT] = {
#define MODERN_ERROR_ROW(symbol, stands_in, status)                                                \
    [JSONRPC_##symbol] = {JSONRPC_##stands_in, status},
#include "taskgate/mcp/error_table.h"
#undef MODERN_ERROR_ROW
    };
    return others[error].status ? others[error] : (struct dialect_error){error, 200};
}

/* Each result names its type; one that has none is complete. */
static void write_modern_result(struct buffer *out, struct str id, struct str result)
{
    OWNED_BUFFER(typed);
    if (json_member(result, "resultType").length > 0)
        buffer_append(&typed, result);
    else
        json_write_with_member(&typed, result, "resultType", STR("\"complete\""));
    jsonrpc_write_result(out, id, buffer_str(&typed));
}

#define SERVER_INFO "io.modelcontextprotocol/serverInfo"

/* Each result should say which server made it (basic, "Per-response metadata"). One that has been
 * made of a server's keeps what that server says. */
static void write_modern_own_result(struct buffer *out, struct str id, struct str result)
{
    struct str meta = json_member(result, "_meta");
    OWNED_BUFFER(marked);
    OWNED_BUFFER(whole);
    json_write_with_member(&marked, meta, SERVER_INFO,
                           STR("{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION "\"}"));
    if (json_member(meta, SERVER_INFO).length > 0)
        buffer_append(&whole, result);
    else
        json_write_with_member(&whole, result, "_meta", buffer_str(&marked));
    write_modern_result(out, id, buffer_str(&whole));
}

/* Its shape tells the model nothing. */
static void write_modern_create_result(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view, struct str immediate)
{
    dialect_modern_write_create_result(out, task, view);
}

const struct dialect dialect_modern = {
    .era = MCP_ERA_MODERN,
    .error = modern_error,
    .write_result = write_modern_result,
    .write_own_result = write_modern_own_result,
    .write_list = mcp_cacheable_write,
    .write_create_result = write_modern_create_result,
};

void dialect_write_error(const struct dialect *dialect, struct buffer *out, struct str id,
                         enum jsonrpc_error error, struct str message,
                         const struct jsonrpc_error_data *data)
{
    jsonrpc_write_error(out, id, dialect->error(error).error, message, data);
}
