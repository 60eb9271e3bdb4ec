/* Requests to the admin endpoint whose answer is an object, or a page of a list of them: printed as
 * JSON, or as text. */
#pragma once

#include "admin_client.h"

typedef void (*listing_append)(struct buffer *out, struct str answer);

/* Prints an answer; returns the exit code. */
int listing_print(struct str answer, bool json, listing_append append);
/* Sends, and prints the answer of a request that was accepted; returns the exit code. */
int listing_ask(struct admin_client *client, const struct admin_request *request, bool json,
                listing_append append);
/* The members of the list `name`, each by `append`, and the cursor of the next page. */
void listing_append_page(struct buffer *out, struct str page, const char *name,
                         listing_append append);
