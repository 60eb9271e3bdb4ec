/* An HTTP error of the server that goes down to the client. */
#include "server_refusal.h"

static const char *const passed_across_eras[] = {"content-type", "www-authenticate", "retry-after"};

static bool is_passed_across_eras(struct str name)
{
    for (size_t i = 0; i < sizeof passed_across_eras / sizeof *passed_across_eras; i++)
        if (str_equal_ignore_case(name, str_from(passed_across_eras[i])))
            return true;
    return false;
}

static void server_refusal_take_headers(struct headers *headers, const struct call *call,
                                        const struct headers *of_server)
{
    for (size_t i = 0; i < of_server->count; i++) {
        const struct http_header *item = &of_server->items[i];
        if (!call_leases_session(call) || is_passed_across_eras(item->name))
            headers_add(headers, item->name, item->value);
    }
    if (!call->dialect->has_sessions || call_gives_session(call))
        headers_drop(headers, HTTP_NAME_OF_SESSION);
}

void server_refusal_pass(struct call *call, const struct exchange_reply *reply)
{
    OWNED_HEADERS(headers, true);
    server_refusal_take_headers(&headers, call, reply->headers);
    call->outcome = "error";
    call_respond(call, reply->status, headers.items, headers.count, reply->body);
}
