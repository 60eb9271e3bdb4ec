/*
 * A notification as a mail: header and plain text, ready for a server. Any thread; pure.
 *
 * Nothing that an agent, a server or a person wrote can begin a line of the header: what is not
 * plain ASCII is encoded. Sources: RFC 5322, RFC 2047, RFC 2045 §6, RFC 3834.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

struct mail {
    const struct config_notify *notify; /* from, to */
    const char *key;                    /* of the endpoint: no two send one mail twice */
    const char *id;                     /* of this delivery: stable over all attempts */
    const char *thread;                 /* of its thread: the task's id, for example */
    bool begins_thread;
    bool is_urgent;
    struct str subject;
    struct str text; /* lines that end with \n */
    int64_t at_ms;
};

/* Lines end with CR LF. */
void mail_write(struct buffer *out, const struct mail *mail);
