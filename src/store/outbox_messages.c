/* Messages that endpoints keep of tasks, as those who look at them there see them. */
#include "operation.h"

#define MOST_OF_TASK 100

static bool give(struct operation *operation, const struct record_list *list, bool done)
{
    operation->reply.messages = list->items;
    operation->reply.message_count = list->count;
    return done;
}

/* Of waiting tasks, the newest first. */
static bool run_messages(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&message_record};
    bool done = rows_list(batch->database, STATEMENT_OUTBOX_MESSAGES,
                          VALUES(TEXT(operation->id), NUMBER((int64_t)operation->limit)), &list);
    return give(operation, &list, done);
}

static bool run_messages_of(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&message_record};
    bool done = rows_list(batch->database, STATEMENT_OUTBOX_MESSAGES_OF,
                          VALUES(TEXT(operation->id), NUMBER(MOST_OF_TASK)), &list);
    return give(operation, &list, done);
}

static bool run_see(struct batch *batch, struct operation *operation)
{
    return rows_write(
        batch->database, STATEMENT_OUTBOX_SEE,
        VALUES(TEXT(operation->id), TEXT(operation->source), TEXT(operation->reason)));
}

const struct operation_kind operation_outbox_messages = {"outbox messages", false, run_messages};
const struct operation_kind operation_outbox_messages_of = {"outbox messages of a task", false,
                                                            run_messages_of};
const struct operation_kind operation_outbox_see = {"outbox see", true, run_see};
