/* Judging the extensions that a server offers. */
#include "extensions.h"

#include <pthread.h>

#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/mcp/extension.h"

/* ---- what the log has ---- */

/* Servers may make names up: past these no further one is logged. */
#define LOGGED_MOST 256

static bool extensions_is_logged(struct str source, struct str name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t logged[LOGGED_MOST];
    static size_t count;
    OWNED_BUFFER(key);
    size_t i = 0;
    buffer_append(&key, source);
    buffer_append_char(&key, '/'); /* a source's id has none */
    buffer_append(&key, name);
    uint64_t hash = str_hash(buffer_str(&key));
    pthread_mutex_lock(&lock);
    while (i < count && logged[i] != hash)
        i++;
    bool is_known = i < count || count == LOGGED_MOST;
    if (!is_known)
        logged[count++] = hash;
    pthread_mutex_unlock(&lock);
    return is_known;
}

static void note_hidden(const struct call *call, struct str name)
{
    struct str source = str_from(call->source->id);
    metrics_count(METRIC_EXTENSIONS_HIDDEN, source);
    if (!extensions_is_logged(source, name))
        log_info("An extension of the server is left out", LOG_STR("source", source),
                 LOG_STR("extension", name));
}

/* ---- the judgement ---- */

static bool judge(void *context, struct str name, struct str entry)
{
    const struct call *call = call_from(context);
    const struct mcp_extension *known = mcp_extension_find(name);
    enum policy_extension said = policy_extension(call->snapshot->policy, call->source, name);
    if (said == POLICY_EXTENSION_DENIED || (said == POLICY_EXTENSION_UNNAMED && !known)) {
        note_hidden(call, name);
        return false;
    }
    return !known || known->crosses_eras || !call_leases_session(call);
}

void extensions_write_shown(struct call *call, struct str result, struct buffer *out)
{
    mcp_extensions_filter(out, result, judge, call);
}
