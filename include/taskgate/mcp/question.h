/*
 * The requests that a server may send its client, in both eras: forms and URLs for a user, prompts
 * for a model, and folders. Any thread; nothing is owned. JSON texts have passed json_check() or
 * envelope_read().
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define MCP_ELICIT "elicitation/create"
#define MCP_SAMPLE "sampling/createMessage"
#define MCP_LIST_ROOTS "roots/list"

enum mcp_question {
    MCP_QUESTION_FORM,
    MCP_QUESTION_URL,
    MCP_QUESTION_SAMPLING,
    MCP_QUESTION_ROOTS,
    MCP_QUESTION_NONE /* another request */
};
/* The kind of a request: an object with `method` and `params`. */
enum mcp_question mcp_question_of(struct str message);
/* Whether a client with these capabilities can be asked it. */
bool mcp_may_ask(struct str capabilities, enum mcp_question question);
/* Whether it can be asked all of these: a JSON object of requests by their keys. */
bool mcp_may_ask_all(struct str capabilities, struct str requests);
/* Whether it can be asked anything. */
bool mcp_may_ask_any(struct str capabilities);

/* Appends the result that requires input: requests by keys (JSON object), and the state (JSON text)
 * that comes back with the answers, or nothing. Some clients take a result without `inputRequests`
 * for a final one. */
void mcp_write_input_required(struct buffer *out, struct str requests, struct str state);
