/* The end of a session. */
#include "session_end.h"

#include "execution.h"
#include "pseudo/client.h"
#include "questions.h"
#include "relay.h"

/* Only what upstream has really ended is ended here: undecided tasks of the session are
 * cancelled (those that an Authorization owns stay), credentials are dropped. */
static void on_head(struct call *call, int status, const struct headers *headers)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    struct store_call nobody = {call->worker->loop, NULL, NULL};
    char key[PSEUDO_KEY_BYTES];
    bool ended = (status >= 200 && status < 300) || status == 404;
    if (!ended || !call->session[0])
        return;
    sessions_remove(gateway->sessions, source, session, str_from(call->token));
    store_session_delete(gateway->store, source, session, nobody);
    store_task_cancel_session(gateway->store, source, session, nobody);
    gateway_tell_workers(gateway, execution_forget_session, NULL, session);
    pseudo_key_of_session(call->source, call->session, key);
    questions_end_key(call->worker, str_from(key));
    pseudo_client_end(gateway, str_from(key));
}

void session_end_handle(struct call *call)
{
    struct relay_options options = {.head = on_head};
    relay_start(call, &options);
}
