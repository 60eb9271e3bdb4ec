/* Messages that endpoints keep of tasks, as those who look at them there see them. */
#include "operation.h"

static bool run_messages(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    struct store_message *messages = NULL;
    bool done = batch->backend->outbox->find_messages(
        batch->database, operation->id, operation->limit, &messages, &reply->message_count);
    reply->messages = messages;
    return done;
}

static bool run_messages_of(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    struct store_message *messages = NULL;
    bool done = batch->backend->outbox->find_messages_of(batch->database, operation->id, &messages,
                                                         &reply->message_count);
    reply->messages = messages;
    return done;
}

static bool run_see(struct batch *batch, struct operation *operation)
{
    return batch->backend->outbox->see(batch->database, operation->id, operation->source,
                                       operation->reason);
}

const struct operation_kind operation_outbox_messages = {"outbox messages", false, run_messages};
const struct operation_kind operation_outbox_messages_of = {"outbox messages of a task", false,
                                                            run_messages_of};
const struct operation_kind operation_outbox_see = {"outbox see", true, run_see};
