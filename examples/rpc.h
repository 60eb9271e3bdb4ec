/*
 * JSON-RPC messages as values. None of these functions returns NULL: a message that
 * cannot be built for want of memory ends the process.
 */
#ifndef EXAMPLE_RPC_H
#define EXAMPLE_RPC_H

#include <jansson.h>

#define RPC_PARSE_ERROR (-32700)
#define RPC_INVALID_REQUEST (-32600)
#define RPC_METHOD_NOT_FOUND (-32601)
#define RPC_INVALID_PARAMS (-32602)
#define RPC_BAD_SESSION (-32000)

/* `id` is borrowed; `result` is taken. */
json_t *rpc_result(json_t *id, json_t *result);

/* `id` is borrowed and may be NULL: then the error carries none. */
json_t *rpc_error(json_t *id, int code, const char *message);

/* `params` is taken and may be NULL. */
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_request(const char *id, const char *method, json_t *params);

/* The message as text on one line, to be freed. `message` is taken. */
char *rpc_text(json_t *message);

/* `value`, which a library call returned, unless it is NULL. */
json_t *rpc_need(json_t *value);

void rpc_out_of_memory(void) __attribute__((noreturn));

#endif
