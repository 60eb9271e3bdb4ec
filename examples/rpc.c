/* Builds and writes JSON-RPC messages. */
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>

void rpc_out_of_memory(void)
{
    fputs("out of memory\n", stderr);
    abort();
}

json_t *rpc_need(json_t *value)
{
    if (value == NULL)
        rpc_out_of_memory();
    return value;
}

json_t *rpc_result(json_t *id, json_t *result)
{
    return rpc_need(json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

json_t *rpc_error(json_t *id, int code, const char *message)
{
    /* Strict clients refuse an id of null; the schema allows no id at all. */
    return rpc_need(json_pack("{s:s, s:O*, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error",
                              "code", code, "message", message));
}

json_t *rpc_notification(const char *method, json_t *params)
{
    return rpc_need(
        json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", params));
}

json_t *rpc_request(const char *id, const char *method, json_t *params)
{
    return rpc_need(json_pack("{s:s, s:s, s:s, s:o*}", "jsonrpc", "2.0", "id", id, "method", method,
                              "params", params));
}

char *rpc_text(json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    if (text == NULL)
        rpc_out_of_memory();
    json_decref(message);
    return text;
}
