/* From the reactions to a message to wishes. A reaction that was told is kept as seen. So a vote
 * that was taken back elsewhere is not given again by the reaction that still stands there. */
#include <stdlib.h>
#include <string.h>

#include "reactions.h"
#include "slack_internal.h"
#include "taskgate/core/memory.h"

struct change {
    uint32_t magic; /* CHANGE_MAGIC */
    struct slack_account *account;
    char key[DIGEST_HEX_BYTES];
    char *task_id, *votes_on, *channel, *ts, *seen; /* the reactions seen once all is settled */
    size_t waiting;                                 /* wishes, and one while they are told */
    bool has_failed;
};
#define CHANGE_MAGIC 0x51ac0003

static struct change *change_from(void *context)
{
    return MAGIC_CAST(struct change, CHANGE_MAGIC, context);
}

static void change_release(struct change *change)
{
    struct slack_account *account = change->account;
    if (--change->waiting > 0)
        return;
    if (!change->has_failed && !account->slack->is_closed)
        store_outbox_see(account->slack->store, str_from(change->key), str_from(change->task_id),
                         str_from(change->seen), (struct store_call){.callback = NULL});
    free(change->task_id);
    free(change->votes_on);
    free(change->channel);
    free(change->ts);
    free(change->seen);
    MAGIC_CLEAR(change);
    free(change);
    account_settle(account);
}

static void on_wish(void *context, bool is_settled)
{
    struct change *change = change_from(context);
    change->has_failed = change->has_failed || !is_settled;
    change_release(change);
}

static void change_tell(struct change *change, const char *mark, enum slack_want want)
{
    const struct slack *slack = change->account->slack;
    const struct slack_wish wish = {
        .task_id = change->task_id,
        .user = mark + 1,
        .want = want,
        .shown_digest = change->votes_on,
        .channel = change->channel,
        .ts = change->ts,
        .reaction = change->key,
    };
    change->waiting++;
    slack->decider(slack->context, &wish, on_wish, change);
}

/* Whether a reaction of the same person has gone: then the other one counts as if it had come. */
static bool has_changed_mind(const struct ballot_names *seen, const struct ballot_names *marks,
                             const char *mark)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->items[i] + 1, mark + 1) == 0 && !ballot_names_has(marks, seen->items[i]))
            return true;
    }
    return false;
}

/* A rejection goes before an approval: who has put both there has not approved. */
static void tell_new(struct change *change, const struct ballot_names *seen,
                     const struct ballot_names *marks, char sign)
{
    for (size_t i = 0; i < marks->count; i++) {
        const char *mark = marks->items[i];
        bool is_new = !ballot_names_has(seen, mark) || has_changed_mind(seen, marks, mark);
        if (*mark == sign && is_new)
            change_tell(change, mark, sign == '+' ? SLACK_APPROVE : SLACK_REJECT);
    }
}

static void tell_gone(struct change *change, const struct ballot_names *seen,
                      const struct ballot_names *marks)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (!ballot_names_has(marks, seen->items[i]))
            change_tell(change, seen->items[i], SLACK_WITHDRAW);
    }
}

static bool change_are_same(const struct ballot_names *left, const struct ballot_names *right)
{
    for (size_t i = 0; i < left->count; i++) {
        if (!ballot_names_has(right, left->items[i]))
            return false;
    }
    return left->count == right->count;
}

void change_settle(struct slack_account *account, const struct slack_message *message,
                   const struct ballot_names *marks)
{
    struct ballot_names seen = {NULL, 0};
    reactions_read_marks(&seen, message->seen);
    if (!change_are_same(&seen, marks)) {
        struct change *change = memory_alloc(sizeof *change);
        struct buffer text;
        buffer_init(&text);
        reactions_write(&text, marks);
        MAGIC_SET(change, CHANGE_MAGIC);
        change->account = account;
        change->task_id = memory_copy_text(message->task_id);
        change->channel = memory_copy_text(message->channel_id);
        change->ts = memory_copy_text(message->ts);
        change->votes_on = memory_copy_text(message->votes_on);
        change->seen = memory_copy_str(buffer_str(&text));
        memcpy(change->key, message->channel->key, sizeof change->key);
        change->waiting = 1;
        account->pending++;
        tell_gone(change, &seen, marks);
        if (message->counts) {
            tell_new(change, &seen, marks, '-');
            tell_new(change, &seen, marks, '+');
        }
        change_release(change);
        buffer_finish(&text);
    }
    ballot_names_finish(&seen);
}
