/*
 * The extension functions as one table, and the values they read from text.
 */
#pragma once

#include "value.h"

#define EXTENSION_MAX_ARITY 2

struct extension {
    struct str name;
    bool method;    /* called as receiver.name(…) */
    unsigned arity; /* with the receiver */
    enum cedar_kind takes[EXTENSION_MAX_ARITY];
    /* The arguments have the kinds above. False when they are refused. */
    bool (*call)(struct arena *arena, const struct cedar_value *arguments,
                 struct cedar_value *result);
};

/* NULL when there is no such function. */
const struct extension *extension_find(struct str name);
/* Checks number and kinds of the arguments, then calls. On failure `failure` has code and
 * detail, not policy and offset. */
bool extension_call(const struct extension *extension, struct arena *arena,
                    const struct cedar_value *arguments, size_t count, struct cedar_value *result,
                    struct cedar_failure *failure);

/* The texts of the four types, each by the language's own grammar. */
bool extension_parse_decimal(struct str text, int64_t *ten_thousandths);
bool extension_parse_duration(struct str text, int64_t *ms);
bool extension_parse_datetime(struct str text, int64_t *ms);
bool extension_parse_ip(struct str text, struct cedar_ip *ip);

bool ip_is_loopback(const struct cedar_ip *ip);
bool ip_is_multicast(const struct cedar_ip *ip);
/* Whether every address of `inner` is one of `outer`. */
bool ip_is_in_range(const struct cedar_ip *inner, const struct cedar_ip *outer);

/* Digits at the front of `text`, at most `most`; none is allowed. */
size_t digits_count(struct str text, size_t most);
/* Adds `digit` behind `*number`; false beyond 64 bits. */
bool digits_append(uint64_t *number, char digit);
