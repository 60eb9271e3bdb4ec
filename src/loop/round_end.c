/*
 * Work that is done once at the end of a round.
 */
#include "loop_internal.h"

void round_ends_run(struct loop *loop)
{
    struct list taken;
    list_init(&taken);
    list_append(&loop->round_ends, &taken);
    list_remove(&loop->round_ends);
    while (!list_is_empty(&taken)) {
        struct loop_round_end *end = LIST_ENTRY(taken.next, struct loop_round_end, node);
        list_remove(&end->node);
        end->callback(end->context);
    }
}

void loop_round_end_init(struct loop_round_end *end, struct loop *loop, loop_callback callback,
                         void *context)
{
    *end = (struct loop_round_end){.loop = loop, .callback = callback, .context = context};
    list_init(&end->node);
}

void loop_round_end_schedule(struct loop_round_end *end)
{
    if (list_is_empty(&end->node))
        list_append(&end->loop->round_ends, &end->node);
}

void loop_round_end_finish(struct loop_round_end *end)
{
    list_remove(&end->node);
}
