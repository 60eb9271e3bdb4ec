/* An HTTP error of the server that goes down to the client. */
#pragma once

#include "http.h"

/* Answers the call with the server's status, body and headers: they may tell the client how to log
 * in, or when to come again. A modern client of a legacy server gets the headers for that alone,
 * because the others are of a session and an era that it does not know. */
void server_refusal_pass(struct call *call, const struct exchange_reply *reply);
