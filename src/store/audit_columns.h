/*
 * The columns of the audit trail: AUDIT_COLUMN(column, key, kind), in the order of their keys,
 * which is that of the canonical JSON. Included many times; no guard on purpose. The kind is how
 * the value stands in the JSON: TEXT, JSON (as it is), TIME, NUMBER, or HASH (not part of what is
 * hashed).
 */
/* clang-format off */
#ifndef AUDIT_COLUMN
#error "define AUDIT_COLUMN before including this table"
#endif
AUDIT_COLUMN(actor_name, "actor", TEXT)
AUDIT_COLUMN(actor_kind, "actorKind", TEXT)
AUDIT_COLUMN(arguments_digest, "argumentsDigest", TEXT)
AUDIT_COLUMN(at_ms, "at", TIME)
AUDIT_COLUMN(decision, "decision", JSON)
AUDIT_COLUMN(definition_digest, "definitionDigest", TEXT)
AUDIT_COLUMN(event, "event", TEXT)
AUDIT_COLUMN(from_state, "from", TEXT)
AUDIT_COLUMN(hash, "hash", HASH)
AUDIT_COLUMN(kept_digest, "keptDigest", TEXT)
AUDIT_COLUMN(person, "person", TEXT)
AUDIT_COLUMN(policy_digest, "policyDigest", TEXT)
AUDIT_COLUMN(principal, "principal", TEXT)
AUDIT_COLUMN(reason, "reason", TEXT)
AUDIT_COLUMN(request_digest, "requestDigest", TEXT)
AUDIT_COLUMN(rule, "rule", TEXT)
AUDIT_COLUMN(sequence, "sequence", NUMBER)
AUDIT_COLUMN(source, "source", TEXT)
AUDIT_COLUMN(task_id, "taskId", TEXT)
AUDIT_COLUMN(to_state, "to", TEXT)
AUDIT_COLUMN(tool, "tool", TEXT)
AUDIT_COLUMN(via, "via", TEXT)
AUDIT_COLUMN(votes, "votes", JSON)
AUDIT_COLUMN(workflow, "workflow", TEXT)
/* clang-format on */
