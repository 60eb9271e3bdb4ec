/*
 * The columns of a call that waits, for a list of all of them: WAITING_COLUMN(kind, name). TEXT is
 * a text that the task owns, FIXED an array in it. A task made of them has what its row and the
 * verdict on a vote need.
 */
#pragma once

#define WAITING_COLUMN_TABLE(COLUMN)                                                               \
    COLUMN(FIXED, id)                                                                              \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, workflow)                                                                         \
    COLUMN(TEXT, rule)                                                                             \
    COLUMN(FIXED, request_digest)                                                                  \
    COLUMN(FIXED, definition_digest)                                                               \
    COLUMN(FIXED, owner_email)                                                                     \
    COLUMN(TEXT, maker)                                                                            \
    COLUMN(TEXT, terms)                                                                            \
    COLUMN(TEXT, votes)                                                                            \
    COLUMN(TEXT, brief)                                                                            \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, decide_by_ms)

#define WAITING_COLUMN_NAME(kind, name) ", " #name
/* After the sequence. The last one is `shown`, of which the risk is read for a call without a
 * brief, as an earlier version stored it; '' for the others, because it may be long. `shown`: an
 * expression. */
#define WAITING_COLUMNS(shown)                                                                     \
    WAITING_COLUMN_TABLE(WAITING_COLUMN_NAME) ", CASE WHEN brief = '' THEN " shown " ELSE '' END"
