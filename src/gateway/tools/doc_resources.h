/*
 * The resource of state diagrams, which the gateway lists and reads beside upstream's own: under
 * one URI fixed diagrams, under another what the code runs on (behaviour 5.12).
 */
#pragma once

#include "call/call.h"

/* Whether the client is shown them; after call_with_facts(), or once its `initialize` was read. */
bool doc_resources_are_offered(const struct call *call);
/* Whether ours stand in for upstream's error: it knows no resources, and the client was told that
 * there are some. */
bool doc_resources_replace(const struct call *call, struct str error);
/* Whether the URI is one of ours. */
bool doc_resources_have(struct str uri);
/* The entries of resources/list: JSON objects with a comma between them. */
void doc_resources_write_entries(struct buffer *out);
/* The result of resources/read for a URI that is ours; after call_identify(). */
void doc_resources_write_contents(const struct call *call, struct buffer *out);
