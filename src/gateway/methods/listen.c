/* `subscriptions/listen`: a stream of notifications, one to one with the server's. */
#include "methods.h"
#include "relay/relay.h"
#include "taskgate/json/text.h"

void listen_handle(struct call *call)
{
    const struct relay_options options = {0};
    if (json_type(call->envelope.notifications) != JSON_OBJECT)
        modern_refuse_params(call, "params.notifications must be an object");
    else
        relay_start(call, &options);
}
