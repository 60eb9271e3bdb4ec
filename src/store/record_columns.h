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

#define DELIVERY_ROW_COLUMNS(COLUMN)                                                               \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(NUMBER, notice)                                                                         \
    COLUMN(TEXT, target)                                                                           \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(NUMBER, event)                                                                          \
    COLUMN(NUMBER, attempts)                                                                       \
    COLUMN(NUMBER, due_ms)

#define TARGET_COLUMNS(COLUMN)                                                                     \
    COLUMN(TEXT, key)                                                                              \
    COLUMN(NUMBER, events)                                                                         \
    COLUMN(NUMBER, with_arguments)

/* A token that a server accepted in a session. */
#define PAIR_COLUMNS(COLUMN)                                                                       \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, session_digest)                                                                   \
    COLUMN(TEXT, token_digest)                                                                     \
    COLUMN(NUMBER, accepted_ms)

#define TALLY_COLUMNS(COLUMN)                                                                      \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(NUMBER, day_ms)                                                                         \
    COLUMN(NUMBER, approved)                                                                       \
    COLUMN(NUMBER, rejected)                                                                       \
    COLUMN(NUMBER, expired)                                                                        \
    COLUMN(NUMBER, failed)

#define KEPT_COLUMNS(COLUMN)                                                                       \
    COLUMN(NUMBER, sequence)                                                                       \
    COLUMN(TEXT, arguments)                                                                        \
    COLUMN(NUMBER, until_ms)

#define ANCHOR_COLUMNS(COLUMN)                                                                     \
    COLUMN(NUMBER, sequence)                                                                       \
    COLUMN(TEXT, hash)                                                                             \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(TEXT, signature)                                                                        \
    COLUMN(NUMBER, is_start)

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

/* A task: COLUMN(kind, column, field). The long texts of clients, and the outcome, are beside it.
 */
#define TASK_COLUMNS(COLUMN)                                                                       \
    COLUMN(FIXED, id, id)                                                                          \
    COLUMN(UNSIGNED, state, state)                                                                 \
    COLUMN(TASK_TEXT, source, source)                                                              \
    COLUMN(TASK_TEXT, owner, owner)                                                                \
    COLUMN(TASK_TEXT, session, session)                                                            \
    COLUMN(TASK_TEXT, principal, principal)                                                        \
    COLUMN(TASK_TEXT, tool, tool)                                                                  \
    COLUMN(TASK_TEXT, workflow, workflow)                                                          \
    COLUMN(TASK_TEXT, action, action)                                                              \
    COLUMN(FIXED, arguments_digest, arguments_digest)                                              \
    COLUMN(FIXED, definition_digest, definition_digest)                                            \
    COLUMN(TASK_TEXT, progress_token, progress_token)                                              \
    COLUMN(FLAG, on_result, on_result)                                                             \
    COLUMN(FLAG, accelerated, accelerated)                                                         \
    COLUMN(FLAG, keep_task, keep_task)                                                             \
    COLUMN(NUMBER, ttl_ms, ttl_ms)                                                                 \
    COLUMN(NUMBER, poll_interval_ms, poll_interval_ms)                                             \
    COLUMN(NUMBER, created_ms, created_ms)                                                         \
    COLUMN(NUMBER, decide_by_ms, decide_by_ms)                                                     \
    COLUMN(NUMBER, updated_ms, updated_ms)                                                         \
    COLUMN(NUMBER, execute_by_ms, execute_by_ms)                                                   \
    COLUMN(NUMBER, decided_ms, decided_ms)                                                         \
    COLUMN(NUMBER, ended_ms, ended_ms)                                                             \
    COLUMN(TASK_TEXT, decided_by, decided_by)                                                      \
    COLUMN(TASK_TEXT, reason, reason)                                                              \
    COLUMN(TASK_TEXT, status_message, status_message)                                              \
    COLUMN(TASK_TEXT, upstream_task, upstream_task)                                                \
    COLUMN(UNSIGNED, failure, failure)                                                             \
    COLUMN(UNSIGNED, outcome, outcome)                                                             \
    COLUMN(TASK_TEXT, client_name, client_name)                                                    \
    COLUMN(TASK_TEXT, client_version, client_version)                                              \
    COLUMN(FLAG, promoted, promoted)                                                               \
    COLUMN(NUMBER, retention_ms, retention_ms)                                                     \
    COLUMN(NUMBER, expired_retention_ms, expired_retention_ms)                                     \
    COLUMN(FIXED, request_digest, request_digest)                                                  \
    COLUMN(FIXED, headers_digest, headers_digest)                                                  \
    COLUMN(TASK_TEXT, refused_credentials, refused_credentials)                                    \
    COLUMN(TASK_TEXT, rule, rule)                                                                  \
    COLUMN(FIXED, policy_digest, policy_digest)                                                    \
    COLUMN(FIXED, owner_email, owner_email)                                                        \
    COLUMN(TASK_TEXT, terms, terms)                                                                \
    COLUMN(TASK_TEXT, votes, votes)                                                                \
    COLUMN(FIXED, rule_digest, rule_digest)                                                        \
    COLUMN(FIXED, bound_digest, bound_digest)                                                      \
    COLUMN(TASK_TEXT, grant_facts, grant)                                                          \
    COLUMN(FIXED, original_digest, original_digest)                                                \
    COLUMN(FIXED, original_request_digest, original_request_digest)                                \
    COLUMN(TASK_TEXT, trace, trace)                                                                \
    COLUMN(TASK_TEXT, maker, maker)                                                                \
    COLUMN(NUMBER, started_ms, started_ms)                                                         \
    COLUMN(TASK_TEXT, brief, brief)                                                                \
    COLUMN(FLAG, promised, promised)

/* Of a call that waits, for a list of all of them: what its row and the verdict on a vote need. */
#define WAITING_COLUMNS(COLUMN)                                                                    \
    COLUMN(FIXED, id, id)                                                                          \
    COLUMN(TASK_TEXT, source, source)                                                              \
    COLUMN(TASK_TEXT, owner, owner)                                                                \
    COLUMN(TASK_TEXT, principal, principal)                                                        \
    COLUMN(TASK_TEXT, tool, tool)                                                                  \
    COLUMN(TASK_TEXT, workflow, workflow)                                                          \
    COLUMN(TASK_TEXT, rule, rule)                                                                  \
    COLUMN(FIXED, request_digest, request_digest)                                                  \
    COLUMN(FIXED, definition_digest, definition_digest)                                            \
    COLUMN(FIXED, owner_email, owner_email)                                                        \
    COLUMN(TASK_TEXT, maker, maker)                                                                \
    COLUMN(TASK_TEXT, terms, terms)                                                                \
    COLUMN(TASK_TEXT, votes, votes)                                                                \
    COLUMN(TASK_TEXT, brief, brief)                                                                \
    COLUMN(NUMBER, created_ms, created_ms)                                                         \
    COLUMN(NUMBER, decide_by_ms, decide_by_ms)
