/*
 * Changes of grants, for those who follow them. The store says which grant has changed. It is read
 * then, if anybody follows, and told as it is. Such an event has no number: a reader that comes
 * back asks for the list of grants, which has them all.
 */
#include "grant_events.h"

#include "taskgate/store/grants.h"

#include "events.h"
#include "grant_json.h"

static void grant_events_tell(void *context, const struct store_reply *reply)
{
    struct admin *admin = admin_from(context);
    struct buffer event;
    if (reply->status != STORE_OK || admin->closed)
        return;
    struct snapshot *snapshot = snapshot_current();
    buffer_init(&event);
    buffer_append_text(&event, "event: grant\ndata: ");
    grant_json_write(&event, &reply->grants[0], snapshot->config);
    buffer_append_text(&event, "\n\n");
    events_send(admin, buffer_str(&event));
    buffer_finish(&event);
    snapshot_unref(snapshot);
}

static void grant_events_on_change(void *context, struct str id)
{
    struct admin *admin = admin_from(context);
    if (!list_is_empty(&admin->streams) && !admin->closed)
        store_grant_get(admin->store, id,
                        (struct store_call){admin->loop, grant_events_tell, admin});
}

void grant_events_observe(struct admin *admin)
{
    store_observe_grants(admin->store, admin->loop, grant_events_on_change, admin);
}
