/*
 * Whether arguments fit a tool's inputSchema (JSON Schema 2020-12), for arguments that an approver
 * has changed. The checker knows the keywords that tools use most. A schema whose answer depends on
 * any other keyword is not guessed at: INPUT_SCHEMA_UNKNOWN. Any thread; no I/O.
 */
#pragma once

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

enum input_schema_verdict {
    INPUT_SCHEMA_FITS,
    INPUT_SCHEMA_UNFIT,   /* `error` says where and why, and repeats no value */
    INPUT_SCHEMA_UNKNOWN, /* `error` names what cannot be checked */
};

/* Both texts have passed json_check(). */
enum input_schema_verdict input_schema_check(struct str schema, struct str value,
                                             struct error *error);
