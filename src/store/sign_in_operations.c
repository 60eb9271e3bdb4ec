/* Operators who have signed in. */
#include <stdlib.h>

#include "audit.h"
#include "taskgate/core/memory.h"

/* Beyond this number the oldest go. Fewer people than this decide at one gateway. */
#define KEPT 10000
/* Only the provider of admin.oidc leads to a session. */
#define VIA_PROVIDER "oidc"

struct store_sign_in *sign_in_copy(const struct store_sign_in *sign_in)
{
    struct store_sign_in *copy = memory_alloc(sizeof *copy);
    *copy = *sign_in;
    copy->digest = memory_copy_text(sign_in->digest);
    copy->person = memory_copy_text(sign_in->person);
    copy->issuer = memory_copy_text(sign_in->issuer);
    copy->claims = memory_copy_text(sign_in->claims);
    return copy;
}

void sign_in_destroy(struct store_sign_in *sign_in)
{
    if (!sign_in)
        return;
    free(sign_in->digest);
    free(sign_in->person);
    free(sign_in->issuer);
    free(sign_in->claims);
    free(sign_in);
}

static bool run_put(struct batch *batch, struct operation *operation)
{
    const struct store_sign_in *sign_in = operation->sign_in;
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_SIGN_IN_PUT);
    database_bind_text(row, 1, sign_in->digest);
    database_bind_text(row, 2, sign_in->person);
    database_bind_text(row, 3, sign_in->issuer);
    database_bind_text(row, 4, sign_in->claims);
    sqlite3_bind_int64(row, 5, sign_in->created_ms);
    sqlite3_bind_int64(row, 6, sign_in->until_ms);
    if (!database_run(row))
        return false;
    row = database_statement(batch->database, STATEMENT_SIGN_IN_DROP_OLDEST);
    sqlite3_bind_int64(row, 1, KEPT);
    return database_run(row) &&
           audit_append_note(batch, &(struct store_audit_note){.event = "sign_in",
                                                               .person = sign_in->person,
                                                               .via = VIA_PROVIDER});
}

static bool run_get(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_SIGN_IN_GET);
    database_bind_text(row, 1, operation->id);
    sqlite3_bind_int64(row, 2, batch->now_ms);
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW) {
        struct store_sign_in *sign_in = memory_alloc(sizeof *sign_in);
        *sign_in = (struct store_sign_in){
            .digest = database_take_text(row, 0),
            .person = database_take_text(row, 1),
            .issuer = database_take_text(row, 2),
            .claims = database_take_text(row, 3),
            .created_ms = sqlite3_column_int64(row, 4),
            .until_ms = sqlite3_column_int64(row, 5),
        };
        operation->reply.sign_in = sign_in;
    } else {
        operation->reply.status = STORE_NOT_FOUND;
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool note_end(struct batch *batch, const char *person)
{
    return audit_append_note(
        batch,
        &(struct store_audit_note){.event = "sign_out", .person = person, .via = VIA_PROVIDER});
}

static bool run_delete(struct batch *batch, struct operation *operation)
{
    const struct store_sign_in *ended = NULL;
    if (!run_get(batch, operation))
        return false;
    if (operation->reply.status == STORE_OK)
        ended = operation->reply.sign_in;
    operation->reply.status = STORE_OK;
    if (ended && !note_end(batch, ended->person))
        return false;
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_SIGN_IN_DELETE);
    database_bind_text(row, 1, operation->id);
    return database_run(row);
}

const struct operation_kind operation_sign_in_put = {"sign-in put", true, run_put};
const struct operation_kind operation_sign_in_get = {"sign-in get", false, run_get};
const struct operation_kind operation_sign_in_delete = {"sign-in delete", true, run_delete};
