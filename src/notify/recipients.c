/* From workflows and filters to endpoints. */
#include "recipients.h"

#include "taskgate/config/glob.h"

unsigned recipients_events(const struct config_notify *notify, const struct config *config)
{
    unsigned events = notify->events;
    bool takes_escalations = false;
    for (size_t i = 0; i < config->workflow_count; i++)
        takes_escalations |= config_strings_have(&config->workflows[i].escalate_notify, notify->id);
    if ((events & NOTIFY_CREATED) != 0)
        events |= NOTIFY_REMINDED;
    if (notify->type == NOTIFY_SLACK && (events & NOTIFY_CREATED) != 0)
        events |= NOTIFY_VOTED;
    if (takes_escalations)
        events |= NOTIFY_ESCALATED;
    if (config_strings_have(&config->audit.anchor_notify, notify->id))
        events |= NOTIFY_ANCHORED;
    return events;
}

static bool recipients_fits(const struct config_notify *notify, const char *workflow)
{
    struct error error;
    bool does_fit = notify->workflows.count == 0 && !notify->is_destination;
    for (size_t i = 0; i < notify->workflows.count && !does_fit; i++) {
        struct glob *glob = glob_compile(str_from(notify->workflows.items[i]), &error);
        does_fit = glob && glob_matches(glob, str_from(workflow));
        glob_destroy(glob);
    }
    return does_fit;
}

bool recipients_have(const struct config_notify *notify, const struct store_delivery *delivery,
                     const struct config *config)
{
    const char *name = delivery->task->workflow;
    const struct config_workflow *workflow = config_workflow_find(config, str_from(name));
    if (delivery->anchor)
        return config_strings_have(&config->audit.anchor_notify, notify->id);
    /* People are called for tasks that need one: those have a workflow. */
    if (*name == '\0')
        return notify->type == NOTIFY_WEBHOOK && recipients_fits(notify, name);
    if (delivery->event == NOTIFY_ESCALATED)
        return workflow && config_strings_have(&workflow->escalate_notify, notify->id);
    /* All are notified of an emergency; and whoever was called is notified of its end. */
    if (delivery->is_emergency || delivery->reference ||
        config_strings_have(&notify->destination_of, name))
        return true;
    if (workflow && workflow->has_notify)
        return config_strings_have(&workflow->notify, notify->id);
    return recipients_fits(notify, name);
}

bool recipients_stay(const struct store_delivery *delivery)
{
    return delivery->event == NOTIFY_ESCALATED;
}
