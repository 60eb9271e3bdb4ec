/*
 * The rows that outlive a process, beside the tasks and the trail: COPY_ROW(table, columns). Each
 * backend has these columns in a table of this name, or of one that it makes of it. A first column
 * `sequence` keeps its numbers.
 */
/* clang-format off */
#ifndef COPY_ROW
#error "define COPY_ROW before including this table"
#endif
COPY_ROW("audit_anchor", "sequence, hash, at_ms, signature, is_start")
COPY_ROW("session", "source, id_digest, version, client_name, client_version, client_capabilities, upstream_tasks,"
    " upstream_sse, seen_ms, owner")
COPY_ROW("pair", "source, session_digest, token_digest, accepted_ms")
COPY_ROW("sign_in", "sequence, digest, person, issuer, claims, created_ms, until_ms")
COPY_ROW("approval_grant", "sequence, id, task_id, owner, principal, source, tool, workflow, rule, rule_digest,"
    " definition_digest, bound_digest, terms, arguments, votes, reason, calls, used, for_ms, created_ms, until_ms,"
    " ended_ms, end_cause, ended_by, end_reason")
COPY_ROW("block", "sequence, id, task_id, scope, owner, source, client, principal, reason, person, created_ms,"
    " until_ms, ended_ms, ended_by")
COPY_ROW("tally", "source, tool, owner, day_ms, approved, rejected, expired, failed")
COPY_ROW("definition", "sequence, id, source, kind, name, digest, accepted, counted, text, accepted_text, difference,"
    " flags, is_changed, at_ms")
COPY_ROW("outbox_target", "key, events, with_arguments")
COPY_ROW("outbox_notice", "sequence, at_ms, task_id, state, source, tool, workflow, principal, arguments_digest,"
    " decided_by, reason, status_message, arguments, created_ms, decide_by_ms, decided_ms, is_emergency, anchor")
COPY_ROW("outbox_delivery", "sequence, id, notice, target, task_id, event, attempts, due_ms")
COPY_ROW("outbox_thread", "target, task_id, reference, seen")
/* clang-format on */
