/* Operators who have signed in. */

#include "audit.h"
#include "queue.h"

/* Beyond this number the oldest go. Fewer people than this decide at one gateway. */
#define KEPT 10000
/* Only the provider of admin.oidc leads to a session. */
#define VIA_PROVIDER "oidc"

static bool sign_in_put(struct batch *batch, const struct store_sign_in *sign_in)
{
    return rows_insert(batch->database, STATEMENT_SIGN_IN_PUT, &sign_in_record, sign_in) &&
           rows_write(batch->database, STATEMENT_SIGN_IN_DROP_OLDEST, VALUES(NUMBER(KEPT)));
}

static bool run_sign_in_put(struct batch *batch, struct operation *operation)
{
    const struct store_sign_in *sign_in = operation->sign_in;
    return sign_in_put(batch, sign_in) &&
           audit_append_note(batch, &(struct store_audit_note){.event = "sign_in",
                                                               .person = sign_in->person,
                                                               .via = VIA_PROVIDER});
}

static bool run_sign_in_get(struct batch *batch, struct operation *operation)
{
    void *sign_in;
    enum row_result result = rows_find_new(batch->database, STATEMENT_SIGN_IN_GET,
                                           VALUES(TEXT(operation->id), NUMBER(batch->now_ms)),
                                           &sign_in_record, &sign_in);
    operation->reply.sign_in = sign_in;
    if (result == ROW_ABSENT)
        operation->reply.status = STORE_NOT_FOUND;
    return result != ROW_FAILED;
}

static bool note_end(struct batch *batch, const char *person)
{
    return audit_append_note(
        batch,
        &(struct store_audit_note){.event = "sign_out", .person = person, .via = VIA_PROVIDER});
}

static bool run_sign_in_delete(struct batch *batch, struct operation *operation)
{
    const struct store_sign_in *ended = NULL;
    if (!run_sign_in_get(batch, operation))
        return false;
    if (operation->reply.status == STORE_OK)
        ended = operation->reply.sign_in;
    operation->reply.status = STORE_OK;
    if (ended && !note_end(batch, ended->person))
        return false;
    return rows_write(batch->database, STATEMENT_SIGN_IN_DELETE, VALUES(TEXT(operation->id)));
}

static bool run_note_once(struct batch *batch, struct operation *operation)
{
    const struct store_sign_in nobodys = {
        .digest = (char *)operation->id,
        .person = (char *)"",
        .issuer = (char *)"",
        .claims = (char *)"{}",
        .created_ms = batch->now_ms,
        .until_ms = batch->now_ms + operation->keep_ms,
    };
    if (!run_sign_in_get(batch, operation))
        return false;
    bool is_first = operation->reply.status == STORE_NOT_FOUND;
    operation->reply.status = is_first ? STORE_OK : STORE_CONFLICT;
    return !is_first || sign_in_put(batch, &nobodys);
}

/* ---- the calls ---- */

static void sign_in_finish(struct operation *operation)
{
    record_destroy(&sign_in_record, operation->sign_in);
}

static const struct operation_kind operation_sign_in_put = {"sign-in put", true, run_sign_in_put,
                                                            sign_in_finish};
static const struct operation_kind operation_sign_in_get = {"sign-in get", false, run_sign_in_get,
                                                            NULL};
static const struct operation_kind operation_note_once = {"note once", true, run_note_once, NULL};
static const struct operation_kind operation_sign_in_delete = {"sign-in delete", true,
                                                               run_sign_in_delete, NULL};

void store_sign_in_put(struct store *store, const struct store_sign_in *sign_in,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_sign_in_put, call);
    operation->sign_in = record_copy(&sign_in_record, sign_in);
    store_queue(store, operation);
}

void store_sign_in_get(struct store *store, struct str digest, struct store_call call)
{
    struct operation *operation = operation_create(&operation_sign_in_get, call);
    operation->id = operation_keep(operation, digest);
    store_queue(store, operation);
}

void store_sign_in_delete(struct store *store, struct str digest, struct store_call call)
{
    struct operation *operation = operation_create(&operation_sign_in_delete, call);
    operation->id = operation_keep(operation, digest);
    store_queue(store, operation);
}

void store_note_once(struct store *store, struct str digest, int64_t keep_ms,
                     struct store_call call)
{
    struct operation *operation = operation_create(&operation_note_once, call);
    operation->id = operation_keep(operation, digest);
    operation->keep_ms = keep_ms;
    store_queue(store, operation);
}
