/*
 * The form of a task on the wire of the modern era: the extension io.modelcontextprotocol/tasks
 * (SEP-2663) of MCP 2026-07-28. A task is flat, its result or error is inside it, and an undecided
 * one is `working`: `input_required` means that the client itself must answer.
 *
 * Writers append to a buffer of the caller's. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/dialect.h"

/* The whole result of tasks/update and tasks/cancel. */
#define DIALECT_ACKNOWLEDGEMENT STR("{\"resultType\":\"complete\"}")
/* The data of -32021 for a request that does not declare the extension. */
#define DIALECT_REQUIRES_TASKS STR("{\"extensions\":{\"" MODERN_TASKS_EXTENSION "\":{}}}")

/* A notifications/tasks message for the listen request of that id (JSON text). */
void dialect_modern_write_notification(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view, struct str subscription_id);

/* Whether a request that has these clientCapabilities (JSON text, or empty) declares the
 * extension: its value is an object. */
bool mcp_declares_task_extension(struct str client_capabilities);
/* In one answer of a server's. */
#define MODERN_MOST_REQUESTS 100
/* Whether a result that requires input is one of the protocol's: `requests` and `state` are its
 * members, or empty. It has one of them at least, and asks what the protocol knows. */
bool dialect_modern_is_round(struct str requests, struct str state);
