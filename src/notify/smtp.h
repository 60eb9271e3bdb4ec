/*
 * Mails on their way to a server, by libcurl.
 *
 * Each is sent on a thread of its own, because libcurl waits for the server's farewell when it
 * closes the connection, and no loop may wait. A client belongs to one loop.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"
#include "taskgate/core/list.h"
#include "taskgate/core/str.h"
#include "taskgate/loop/loop.h"

struct smtp_client;
struct smtp_call;

struct smtp_client *smtp_client_create(struct loop *loop);
/* Ends all calls, without callbacks, and waits for their threads, at most for the limit of one
 * answer. The client stays until the loop has delivered its messages. NULL is allowed. */
void smtp_client_close(struct smtp_client *client);
void smtp_client_destroy(struct smtp_client *client); /* closed; NULL is allowed */

struct smtp_result {
    bool is_sent;
    int status;       /* of the server's last refusal, such as 550; 0: it has refused nothing */
    size_t refused;   /* recipients of a mail that others got */
    struct error why; /* it was not sent; holds no secret */
};
typedef void (*smtp_done)(void *context, const struct smtp_result *result);

/* Sends `mail` (copied) by what `notify` says: to all of its addresses, or at least to one of them.
 * A password is sent over TLS alone. `done` runs once on the loop, never from inside this
 * function, unless the call is cancelled; the call is gone then. */
struct smtp_call *smtp_call_start(struct smtp_client *client, const struct config_notify *notify,
                                  struct str mail, smtp_done done, void *context);
/* Ends the call; no callback comes any more. */
void smtp_call_cancel(struct smtp_call *call);
