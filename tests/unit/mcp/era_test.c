/* The era of a request, and the demands on a modern one. */
#include "mcp_test.h"

#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/method.h"

#define KEY "\"io.modelcontextprotocol/"
#define VERSIONED(version) KEY "protocolVersion\":" version
#define META(version) "\"_meta\":{" VERSIONED(version) "," KEY "clientCapabilities\":{}}"
#define CALL(params)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" params "}}"
#define GOOD CALL("\"name\":\"read\"," META("\"2026-07-28\""))

static void read_envelope(struct envelope *envelope, const char *body)
{
    struct error error = {""};
    ck_assert_msg(envelope_read(envelope, str_from(body), &error) == ENVELOPE_OK, "%s: %s", body,
                  error.message);
}

static const struct {
    const char *body, *header;
    enum mcp_claim claim;
} claims[] = {
    {GOOD, "", MCP_CLAIM_MODERN},
    {GOOD, "2025-11-25", MCP_CLAIM_MODERN},
    {CALL(META("5")), "", MCP_CLAIM_MODERN},
    {CALL(META("null")), "", MCP_CLAIM_MODERN},
    {CALL(META("\"2025-11-25\"")), "", MCP_CLAIM_MODERN},
    {CALL("\"name\":\"read\""), "", MCP_CLAIM_LEGACY},
    {CALL("\"name\":\"read\""), "2025-11-25", MCP_CLAIM_LEGACY},
    {CALL("\"name\":\"read\""), "2026-07-27", MCP_CLAIM_LEGACY},
    {CALL("\"name\":\"read\""), "2026-07-28", MCP_CLAIM_HALF},
    {CALL("\"name\":\"read\""), "2999-01-01", MCP_CLAIM_HALF},
    {CALL("\"name\":\"read\""), "v999.0.0", MCP_CLAIM_LEGACY},
    {CALL("\"name\":\"read\""), "2026-07-280", MCP_CLAIM_LEGACY},
    {CALL("\"_meta\":{" KEY "clientInfo\":{}," KEY "clientCapabilities\":{}}"), "",
     MCP_CLAIM_LEGACY},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", "2026-07-28",
     MCP_CLAIM_MODERN},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "2026-07-28", MCP_CLAIM_LEGACY},
};

START_TEST(the_body_says_the_era)
{
    struct envelope envelope;
    read_envelope(&envelope, claims[_i].body);
    ck_assert_msg(mcp_era_claim(&envelope, str_from(claims[_i].header)) == claims[_i].claim,
                  "%s, header %s", claims[_i].body, claims[_i].header);
    envelope_finish(&envelope);
}
END_TEST

#define HEADERS(version_, method_, name_)                                                          \
    {                                                                                              \
        .version = version_, .method = method_, .name = name_                                      \
    }
#define ONE(text)                                                                                  \
    {                                                                                              \
        STR(text), 1                                                                               \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .count = 0                                                                                 \
    }
#define TWO(text)                                                                                  \
    {                                                                                              \
        STR(text), 2                                                                               \
    }
#define NO_ERROR JSONRPC_ERROR_COUNT
/* A good call with one more member of `_meta`. */
#define WITH(member)                                                                               \
    CALL("\"name\":\"read\",\"_meta\":{" member                                                    \
         "," VERSIONED("\"2026-07-28\"") "," KEY "clientCapabilities\":{}}")
#define RIGHT HEADERS(ONE("2026-07-28"), ONE("tools/call"), ONE("read"))

static const struct {
    const char *body;
    struct mcp_mirrored_headers headers;
    enum jsonrpc_error error;
    const char *header;
} checks[] = {
    {GOOD, HEADERS(ONE("2026-07-28"), ONE("tools/call"), ONE("read")), NO_ERROR, NULL},
    {GOOD, HEADERS(ONE(" 2026-07-28 "), ONE("tools/call"), ONE("=?base64?cmVhZA==?=")), NO_ERROR,
     NULL},
    /* The envelope comes first, then a version that differs, then one that is not served. */
    {CALL(META("5")), HEADERS(ONE("x"), NONE, NONE), JSONRPC_INCOMPLETE_ENVELOPE, NULL},
    {CALL("\"_meta\":{" VERSIONED("\"x\"") "}"), HEADERS(ONE("y"), NONE, NONE),
     JSONRPC_INCOMPLETE_ENVELOPE, NULL},
    {CALL(META("\"x\"")), HEADERS(ONE("y"), NONE, NONE), JSONRPC_HEADER_MISMATCH,
     "MCP-Protocol-Version"},
    {CALL(META("\"x\"")), HEADERS(ONE("x"), NONE, NONE), JSONRPC_UNSUPPORTED_VERSION, NULL},
    {CALL(META("\"x\"")), HEADERS(NONE, NONE, NONE), JSONRPC_UNSUPPORTED_VERSION, NULL},
    {GOOD, HEADERS(NONE, NONE, NONE), JSONRPC_HEADER_MISMATCH, "MCP-Protocol-Version"},
    {GOOD, HEADERS(TWO("2026-07-28"), ONE("tools/call"), ONE("read")), JSONRPC_HEADER_MISMATCH,
     "MCP-Protocol-Version"},
    {GOOD, HEADERS(ONE("2026-07-28"), NONE, ONE("read")), JSONRPC_HEADER_MISMATCH, "Mcp-Method"},
    {GOOD, HEADERS(ONE("2026-07-28"), ONE("TOOLS/CALL"), NONE), JSONRPC_HEADER_MISMATCH,
     "Mcp-Method"},
    {GOOD, HEADERS(ONE("2026-07-28"), ONE("tools/call"), NONE), JSONRPC_HEADER_MISMATCH,
     "Mcp-Name"},
    {GOOD, HEADERS(ONE("2026-07-28"), ONE("tools/call"), TWO("read")), JSONRPC_HEADER_MISMATCH,
     "Mcp-Name"},
    {CALL(META("\"2026-07-28\"")), HEADERS(ONE("2026-07-28"), ONE("tools/call"), ONE("read")),
     JSONRPC_HEADER_MISMATCH, "Mcp-Name"},
    /* Optional members come last. */
    {WITH("\"progressToken\":-7"), RIGHT, NO_ERROR, NULL},
    {WITH("\"progressToken\":\"\""), RIGHT, NO_ERROR, NULL},
    {WITH("\"progressToken\":1.0"), RIGHT, JSONRPC_INCOMPLETE_ENVELOPE, NULL},
    {WITH("\"progressToken\":1e3"), RIGHT, JSONRPC_INCOMPLETE_ENVELOPE, NULL},
    {WITH("\"progressToken\":null"), RIGHT, JSONRPC_INCOMPLETE_ENVELOPE, NULL},
    {WITH("\"io.modelcontextprotocol/logLevel\":\"notice\""), RIGHT, NO_ERROR, NULL},
    {WITH("\"io.modelcontextprotocol/logLevel\":\"Notice\""), RIGHT, JSONRPC_INCOMPLETE_ENVELOPE,
     NULL},
    {WITH("\"io.modelcontextprotocol/clientInfo\":{}"), RIGHT, NO_ERROR, NULL},
    {WITH("\"io.modelcontextprotocol/clientInfo\":[]"), RIGHT, JSONRPC_INCOMPLETE_ENVELOPE, NULL},
    {WITH("\"progressToken\":[]"), HEADERS(ONE("2026-07-28"), NONE, NONE), JSONRPC_HEADER_MISMATCH,
     "Mcp-Method"},
};

START_TEST(the_first_fault_of_a_modern_request_counts)
{
    struct envelope envelope;
    struct mcp_era_fault fault = {.error = NO_ERROR};
    read_envelope(&envelope, checks[_i].body);
    bool passes = mcp_era_check(&envelope, &checks[_i].headers, &fault);
    ck_assert_int_eq(passes, checks[_i].error == NO_ERROR);
    ck_assert_int_eq(fault.error, checks[_i].error);
    if (checks[_i].header)
        ck_assert_str_eq(fault.header, checks[_i].header);
    envelope_finish(&envelope);
}
END_TEST

/* MCP 2026-07-28 has taken these codes back, and its own are nobody else's. */
START_TEST(no_modern_error_has_a_code_that_is_not_allowed)
{
    for (int i = 0; i < JSONRPC_ERROR_COUNT; i++) {
        const struct dialect_error told = dialect_modern.error((enum jsonrpc_error)i);
        int code = jsonrpc_error_code(told.error);
        ck_assert_msg(code != -32002 && code != -32042, "%d", code);
        bool is_specifications = code <= -32020 && code >= -32099;
        ck_assert_int_eq(is_specifications, i == JSONRPC_HEADER_MISMATCH ||
                                                i == JSONRPC_MISSING_CAPABILITY ||
                                                i == JSONRPC_UNSUPPORTED_VERSION);
        ck_assert_msg(told.status == 200 || told.status == 400 || told.status == 404, "%d",
                      told.status);
        ck_assert_int_eq(dialect_legacy.error((enum jsonrpc_error)i).status, 200);
    }
}
END_TEST

START_TEST(methods_are_of_their_era)
{
    static const char *const gone[] = {
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "notifications/initialized",
    };
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        struct str name = str_from(gone[i]);
        ck_assert_int_eq(mcp_method_find(name, MCP_ERA_MODERN)->treatment, MCP_UNKNOWN);
        ck_assert_int_ne(mcp_method_find(name, MCP_ERA_LEGACY)->treatment, MCP_UNKNOWN);
    }
    ck_assert_int_eq(mcp_method_find(STR("tasks/update"), MCP_ERA_MODERN)->treatment,
                     MCP_TASKS_UPDATE);
    ck_assert_int_eq(mcp_method_find(STR("subscriptions/listen"), MCP_ERA_LEGACY)->treatment,
                     MCP_UNKNOWN);
}
END_TEST

START_TEST(kept_results_are_private_and_short)
{
    static const struct {
        const char *result, *written;
    } rows[] = {
        {"{\"tools\":[],\"ttlMs\":900000,\"cacheScope\":\"public\",\"resultType\":\"complete\"}",
         "{\"tools\":[],\"ttlMs\":60000,\"cacheScope\":\"private\",\"resultType\":\"complete\"}"},
        {"{\"ttlMs\":1.5}", "{\"ttlMs\":0,\"cacheScope\":\"private\",\"resultType\":\"complete\"}"},
        {"{\"ttlMs\":-1}", "{\"ttlMs\":0,\"cacheScope\":\"private\",\"resultType\":\"complete\"}"},
        {"{\"ttlMs\":7}", "{\"ttlMs\":7,\"cacheScope\":\"private\",\"resultType\":\"complete\"}"},
        {"{}", "{\"cacheScope\":\"private\",\"resultType\":\"complete\",\"ttlMs\":0}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer out;
        buffer_init(&out);
        mcp_cacheable_write(&out, str_from(rows[i].result), MCP_CACHEABLE_MOST_MS);
        expect_written(&out, rows[i].written);
    }
}
END_TEST

Suite *era_suite(void)
{
    Suite *suite = suite_create("era");
    TCase *tests = tcase_create("era");
    tcase_add_loop_test(tests, the_body_says_the_era, 0, (int)(sizeof claims / sizeof *claims));
    tcase_add_loop_test(tests, the_first_fault_of_a_modern_request_counts, 0,
                        (int)(sizeof checks / sizeof *checks));
    tcase_add_test(tests, no_modern_error_has_a_code_that_is_not_allowed);
    tcase_add_test(tests, methods_are_of_their_era);
    tcase_add_test(tests, kept_results_are_private_and_short);
    suite_add_tcase(suite, tests);
    return suite;
}
