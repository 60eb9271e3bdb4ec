/* The handlers of the intercepted methods, one file each. Each answers its call, now or later. */
#pragma once

#include "request/call.h"

void initialize_handle(struct call *call);
void tools_list_handle(struct call *call);
void tools_call_handle(struct call *call);
void resources_list_handle(struct call *call);
void resources_templates_list_handle(struct call *call);
void prompts_list_handle(struct call *call);
/* For relay_options.rewrite of a GET stream that goes on where another ended: what is on it may be
 * the answer to any request, a list among them. */
struct relay_reply;
void lists_rewrite_resumed(struct call *call, const struct relay_reply *reply, struct buffer *out);
void name_gate_handle(struct call *call); /* resources/read, resources/subscribe, prompts/get */
void completion_handle(struct call *call);
void unsubscribe_handle(struct call *call);
void tasks_get_handle(struct call *call);
void tasks_result_handle(struct call *call);
void tasks_cancel_handle(struct call *call);
void tasks_list_handle(struct call *call);

/* Puts the call to every gate, as if the client had called the tool plainly. For execute_tool,
 * once it has replaced the body. */
void tools_call_execute(struct call *call, int64_t patience_ms);
