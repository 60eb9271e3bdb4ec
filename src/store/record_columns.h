/*
 * The columns of tables that a structure has whole: COLUMN(kind, column), of the field of the same
 * name, but for the sequence, which is the first of most.
 */
#pragma once

#define GRANT_COLUMNS(COLUMN)                                                                      \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, workflow)                                                                         \
    COLUMN(TEXT, rule)                                                                             \
    COLUMN(TEXT, rule_digest)                                                                      \
    COLUMN(TEXT, definition_digest)                                                                \
    COLUMN(TEXT, bound_digest)                                                                     \
    COLUMN(TEXT, terms)                                                                            \
    COLUMN(TEXT, arguments)                                                                        \
    COLUMN(TEXT, votes)                                                                            \
    COLUMN(TEXT, reason)                                                                           \
    COLUMN(NUMBER, calls)                                                                          \
    COLUMN(NUMBER, used)                                                                           \
    COLUMN(NUMBER, for_ms)                                                                         \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, until_ms)                                                                       \
    COLUMN(NUMBER, ended_ms)                                                                       \
    COLUMN(TEXT, end_cause)                                                                        \
    COLUMN(TEXT, ended_by)                                                                         \
    COLUMN(TEXT, end_reason)

#define BLOCK_COLUMNS(COLUMN)                                                                      \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, scope)                                                                            \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, client)                                                                           \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, reason)                                                                           \
    COLUMN(TEXT, person)                                                                           \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, until_ms)                                                                       \
    COLUMN(NUMBER, ended_ms)                                                                       \
    COLUMN(TEXT, ended_by)

/* The texts are the last two: lists are without them. */
#define DEFINITION_COLUMNS(COLUMN)                                                                 \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, kind)                                                                             \
    COLUMN(TEXT, name)                                                                             \
    COLUMN(TEXT, digest)                                                                           \
    COLUMN(TEXT, accepted)                                                                         \
    COLUMN(TEXT, counted)                                                                          \
    COLUMN(TEXT, difference)                                                                       \
    COLUMN(UNSIGNED, flags)                                                                        \
    COLUMN(FLAG, is_changed)                                                                       \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(TEXT, text)                                                                             \
    COLUMN(TEXT, accepted_text)

#define SESSION_COLUMNS(COLUMN)                                                                    \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, id_digest)                                                                        \
    COLUMN(TEXT, version)                                                                          \
    COLUMN(TEXT, client_name)                                                                      \
    COLUMN(TEXT, client_version)                                                                   \
    COLUMN(TEXT, client_capabilities)                                                              \
    COLUMN(FLAG, upstream_tasks)                                                                   \
    COLUMN(FLAG, upstream_sse)                                                                     \
    COLUMN(NUMBER, seen_ms)                                                                        \
    COLUMN(TEXT, owner)

#define SIGN_IN_COLUMNS(COLUMN)                                                                    \
    COLUMN(TEXT, digest)                                                                           \
    COLUMN(TEXT, person)                                                                           \
    COLUMN(TEXT, issuer)                                                                           \
    COLUMN(TEXT, claims)                                                                           \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, until_ms)

/* The order of its INSERT. */
#define NOTICE_COLUMNS(COLUMN)                                                                     \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, workflow)                                                                         \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, arguments_digest)                                                                 \
    COLUMN(TEXT, decided_by)                                                                       \
    COLUMN(TEXT, reason)                                                                           \
    COLUMN(TEXT, status_message)                                                                   \
    COLUMN(TEXT, arguments)                                                                        \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(NUMBER, state)                                                                          \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, decide_by_ms)                                                                   \
    COLUMN(NUMBER, decided_ms)                                                                     \
    COLUMN(NUMBER, is_emergency)                                                                   \
    COLUMN(TEXT, anchor)

#define MESSAGE_COLUMNS(COLUMN)                                                                    \
    COLUMN(TEXT, target)                                                                           \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, reference)                                                                        \
    COLUMN(TEXT, seen)

/* Of a task's trail, as clients see it. */
#define ENTRY_COLUMNS(COLUMN)                                                                      \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, event)                                                                            \
    COLUMN(TEXT, from_state)                                                                       \
    COLUMN(TEXT, to_state)                                                                         \
    COLUMN(TEXT, actor_kind)                                                                       \
    COLUMN(TEXT, actor_name)                                                                       \
    COLUMN(TEXT, reason)
