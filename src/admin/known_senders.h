/*
 * Long bodies are read of known senders alone: their credentials were good before, or can be judged
 * at once. On the admin's loop.
 */
#pragma once

#include "internal.h"

/* `who` has just been accepted; its connection is theirs from here on. */
void known_senders_note(struct admin *admin, struct http_exchange *exchange,
                        const struct operator_identity *who);
/* http_body_judge of the port. */
size_t known_senders_judge(const struct http_head *head, void *admin);
