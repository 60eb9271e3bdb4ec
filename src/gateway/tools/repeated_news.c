/* The calls of one client that have an outcome to get, on their way to other replicas. */
#include "repeated_news.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "call/client_profile.h"
#include "inbox/inbox.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

static void send(struct gateway_worker *worker, const struct repeated_call *join, const char *more)
{
    OWNED_BUFFER(text);
    if (!worker->gateway->replicas || join->key.length == 0)
        return;
    buffer_append_text(&text, "{\"client\":");
    buffer_append_json_string(&text, join->key);
    json_add_text(&text, "digest", join->digest);
    json_add_text(&text, "task", join->id);
    buffer_append_text(&text, more);
    buffer_append_char(&text, '}');
    news_send(worker, &(struct news){.kind = NEWS_REPEATED_CALL, .call = buffer_str(&text)});
}

void repeated_news_send(struct gateway_worker *worker, const struct repeated_call *join,
                        int64_t for_ms)
{
    char more[48];
    snprintf(more, sizeof more, ",\"forMs\":%" PRId64, for_ms);
    send(worker, join, more);
}

void repeated_news_send_left(struct gateway_worker *worker, const struct repeated_call *join)
{
    send(worker, join, ",\"forMs\":0,\"left\":true");
}

void repeated_news_send_end(struct gateway_worker *worker, const struct repeated_call *join)
{
    send(worker, join, "");
}

void repeated_news_forget(const struct call *call, const char *id)
{
    char key[CLIENT_KEY_BYTES], digest[DIGEST_HEX_BYTES];
    client_key_of_owner(call, key);
    if (repeated_call_forget_task(call->worker->gateway, str_from(key), id, digest))
        repeated_news_send_end(call->worker, &(struct repeated_call){str_from(key), digest, id});
}

void repeated_news_forget_told(const struct call *call, struct str events)
{
    size_t position = 0;
    struct str event;
    while (json_next_element(events, &position, &event)) {
        struct str data = json_member(event, "data");
        OWNED char *id = json_string_text(json_member(data, "taskId"), NULL);
        if (id && json_member(data, "result").length > 0)
            repeated_news_forget(call, id);
    }
}

/* The table is all workers'. */
void repeated_news_take(struct gateway_worker *worker, const struct news *news)
{
    static const char *const keys[] = {"client", "digest", "task"};
    static const size_t most[] = {CLIENT_KEY_BYTES, DIGEST_HEX_BYTES, TASK_ID_BYTES};
    struct str for_ms = json_member(news->call, "forMs");
    struct buffer texts[3];
    uint64_t ms = 0;
    bool is_whole = for_ms.length == 0 || (str_to_u64(for_ms, &ms) && ms <= REPEATED_CALL_DOUBT_MS);
    if (worker != worker->gateway->workers[0])
        return;
    for (size_t i = 0; i < 3; i++) {
        buffer_init(&texts[i]);
        is_whole = json_decode_string(json_member(news->call, keys[i]), &texts[i]) &&
                   texts[i].length > 0 && texts[i].length < most[i] && is_whole;
        buffer_append_char(&texts[i], '\0');
    }
    const struct repeated_call join = {str_from(texts[0].bytes), texts[1].bytes, texts[2].bytes};
    if (is_whole && for_ms.length > 0) {
        inbox_touch(worker->gateway, join.key);
        repeated_call_learn(worker->gateway, &join, (int64_t)ms,
                            json_type(json_member(news->call, "left")) == JSON_TRUE);
    } else if (is_whole) {
        repeated_call_forget(worker->gateway, &join);
    }
    for (size_t i = 0; i < 3; i++)
        buffer_finish(&texts[i]);
}
