/*
 * One JSON-RPC message: its bytes together with the spans into them, and the hot-path reader: one
 * pass, no tree, no copy.
 *
 * Strict: RFC 8259, UTF-8, one top-level object, bounded depth, no duplicate keys at any depth
 * (compared after unescaping), no key with a NUL, no key of the envelope, `params`, `task`, `ref`
 * or `_meta` that differs from a protocol key only by case or look (fold.h). Spans point into the
 * bytes that were read, so the judged bytes are sent (behaviour 1.1). A message is carried as its
 * envelope: bytes beside it could be others than the spans are of.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

#define ENVELOPE_MAX_DEPTH 128

enum envelope_kind {
    ENVELOPE_REQUEST,      /* method and id */
    ENVELOPE_NOTIFICATION, /* method, no id */
    ENVELOPE_RESPONSE,     /* id with result or error */
};

enum envelope_status {
    ENVELOPE_OK,
    ENVELOPE_PARSE_ERROR,     /* -32700: not JSON, bad UTF-8, trailing bytes, too deep */
    ENVELOPE_INVALID_REQUEST, /* -32600: batch, duplicate or case-variant key, NUL in one, no
                                 JSON-RPC */
    ENVELOPE_INVALID_PARAMS,  /* -32602: `params` is not an object, or a NUL in its name or uri */
};

/* A member of `params`. */
struct envelope_member {
    struct str raw;  /* the value's JSON text; empty when the member is absent */
    struct str text; /* decoded, of name, uri, taskId, cursor and the members of ref when the value
                      * is a string; else bytes == NULL */
};

struct envelope {
    enum envelope_kind kind;
    struct str jsonrpc; /* JSON text */
    struct str id;      /* JSON text of a string or an integer; empty without one */
    struct str method;  /* decoded; empty in a response */
    struct str params;  /* JSON text of the object; empty when absent */
    struct str result;  /* JSON text, in a response */
    struct str error;   /* JSON text, in a response */
    /* Members of params, for every method. */
    struct envelope_member name, uri, task_id, cursor, arguments, task, meta, ref;
    struct envelope_member ref_type, ref_name, ref_uri; /* members of params.ref */
    /* More members of params, JSON text, empty when absent: of rounds in which a server asks the
     * client, and of a subscription. */
    struct str request_state, input_responses, notifications;
    /* Members of params._meta with the prefix io.modelcontextprotocol/, JSON text. */
    struct {
        struct str version, client_info, client_capabilities, log_level;
    } reserved;
    /* params._meta.progressToken and params.task.ttl, JSON text, empty when absent. */
    struct str progress_token, task_ttl;
    /* The first member beside jsonrpc, id, method, params, result and error, from the key's quote
     * to the end of the value; empty when there is none. */
    struct str unknown_member;
    struct str body;        /* all of the message; every span but decoded texts lies in it */
    char *own_body;         /* the same if the envelope owns it, else NULL */
    struct str task_member; /* from the key's quote to the end of the value */
    /* Holds decoded texts that had escapes; freed by envelope_finish(). */
    struct buffer decoded;
};

/* Reads `body`, which must outlive `envelope`. Always call envelope_finish() afterwards. On failure
 * `error` has the mistake and its byte. `envelope->id` is set if the message is JSON with unique
 * and exactly spelled keys, but not good JSON-RPC. Other refusals answer without id
 * (behaviour 3.3). After ENVELOPE_INVALID_PARAMS kind, method and params are set too, after other
 * refusals nothing. */
enum envelope_status envelope_read(struct envelope *envelope, struct str body, struct error *error);
/* The same with bytes that the envelope takes over, and frees. */
enum envelope_status envelope_read_own(struct envelope *envelope, struct buffer *body,
                                       struct error *error);
void envelope_finish(struct envelope *envelope);
/* An envelope that ends with its block, read or not: OWNED_ENVELOPE(envelope); */
#define OWNED_ENVELOPE(name)                                                                       \
    __attribute__((cleanup(envelope_finish))) struct envelope name = {.own_body = NULL}

/* Appends the message with `text` in the place of `span`, one of its spans. */
void envelope_write_replaced(const struct envelope *envelope, struct str span, struct str text,
                             struct buffer *out);
/* The body for the execution: the client's own bytes without the `task` member (with one
 * joining comma and the white space beside it), and with the JSON string `id` as id. With
 * keep_task the task member stays (for a server that itself requires tasks). */
void envelope_write_executable(const struct envelope *envelope, struct str id, bool keep_task,
                               struct buffer *out);
