/*
 * One call that Cedar policies judge by hand: the facts given to `explain`, the decision, and every
 * policy that had a part in it.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/gateway/snapshot.h"

#include "verified_caller.h"

/* As given on the command line; NULL where it was not. */
struct consultation_options {
    const char *arguments;   /* JSON object */
    const char *principal;   /* the owner's name, or a JSON object with name, subject, groups … */
    const char *at;          /* a time as RFC 3339 has it, or a date */
    const char *annotations; /* JSON object of the server's hints on the tool */
};

struct consultation {
    struct policy_request request;
    struct policy_facts facts;
    struct policy_decision decision; /* the decision on the call */
    struct policy_trace trace;
    const char *gate; /* the gate that stops or holds the call; NULL: none */
    char *owner, *client_name, *client_version; /* the texts that the facts point to */
    struct verified_caller caller;              /* the strings behind the request */
};

/* Whether anything was said of the call. */
bool consultation_is_wanted(const struct consultation_options *options);
/* False after a line on stderr about an unreadable fact. consultation_finish() in any case. */
bool consultation_init(struct consultation *consultation,
                       const struct consultation_options *options);
void consultation_finish(struct consultation *consultation);
/* Reads a date, or a time as RFC 3339 and the policies themselves have it. */
#define CONSULTATION_TIMES "2026-01-31 or 2026-01-31T13:30:00Z"
bool consultation_read_time(const char *text, int64_t *now_ms);
/* The same of --since, or an age such as 7d; a word on stderr when it is neither. */
bool consultation_read_since(const char *text, int64_t *since_ms);
/* Decides for `tool` of `source`, after the rule's decision. */
void consultation_hold(struct consultation *consultation, const struct snapshot *snapshot,
                       const struct config_source *source, struct str tool,
                       const struct policy_decision *ruled);
/* Whether the call is refused for its arguments before anybody judges it. */
bool consultation_is_invalid(const struct consultation *consultation);

/* Lines beneath those of `explain`. */
void consultation_write_text(struct buffer *out, const struct consultation *consultation);
/* ,"decision":…,"gate":…,"policies":[…] */
void consultation_write_json(struct buffer *out, const struct consultation *consultation);
