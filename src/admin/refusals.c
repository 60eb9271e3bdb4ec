/* Counting, and one line for many. */
#include "refusals.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

/* Strangers who reach the port are refused too: that must not fill the log. */
#define TELL_EVERY_MS 10000
/* Nor the store, whose trail is kept for long. */
#define RECORD_EVERY_MS 60000
/* More than there are kinds: of the rest, each is logged. */
#define KINDS_MAX 64

struct kind {
    const char *via, *reason;
    int64_t told_ms, recorded_ms; /* monotonic; 0: never */
    int64_t left_out;             /* of the log since then, */
    int64_t unrecorded;           /* and of the trail */
};

struct refusals {
    struct kind kinds[KINDS_MAX];
    size_t count;
};

struct refusals *refusals_create(void)
{
    return memory_alloc(sizeof(struct refusals));
}

void refusals_destroy(struct refusals *refusals)
{
    free(refusals);
}

/* NULL when there is no room for another kind. */
static struct kind *refusals_find_kind(struct refusals *refusals, const struct refusal *refusal)
{
    for (size_t i = 0; i < refusals->count; i++) {
        struct kind *kind = &refusals->kinds[i];
        if (str_same(kind->via, refusal->via) && str_same(kind->reason, refusal->reason))
            return kind;
    }
    if (refusals->count == KINDS_MAX)
        return NULL;
    ASSERT_NUMBERS(refusals->count, <, KINDS_MAX);
    struct kind *kind = &refusals->kinds[refusals->count++];
    *kind = (struct kind){.via = refusal->via, .reason = refusal->reason};
    return kind;
}

static void refusals_tell(const struct refusal *refusal, int64_t left_out)
{
    bool is_sign_in = !refusal->via;
    log_warn(is_sign_in ? "Sign-in refused" : "Operator refused", LOG_TEXT("via", refusal->via),
             LOG_TEXT("reason", refusal->reason), LOG_TEXT("detail", refusal->detail),
             LOG_TEXT("person", refusal->person), LOG_STR("client", refusal->client),
             LOG_NUMBER("others_since_the_last_line", left_out));
}

/* A cookie whose session is over is no attack: every browser has one each day. */
static bool belongs_in_trail(const struct admin *admin, const struct refusal *refusal)
{
    return !admin->closed && !str_same(refusal->via, "session");
}

static void refusals_record(struct admin *admin, struct kind *kind, const struct refusal *refusal,
                            int64_t now_ms)
{
    if (kind->recorded_ms != 0 && now_ms - kind->recorded_ms < RECORD_EVERY_MS) {
        kind->unrecorded++;
        return;
    }
    OWNED char *reason = kind->unrecorded == 0
                             ? memory_copy_text(refusal->reason)
                             : memory_format("%s (and %lld more since the last row)",
                                             refusal->reason, (long long)kind->unrecorded);
    const struct store_audit_note note = {
        .event = refusal->via ? "operator_refused" : "sign_in_refused",
        .person = refusal->person,
        .via = refusal->via ? refusal->via : "oidc",
        .reason = reason,
    };
    store_audit_note(admin->store, &note, (struct store_call){admin->loop, NULL, NULL});
    kind->recorded_ms = now_ms;
    kind->unrecorded = 0;
}

void refusals_note(struct admin *admin, const struct refusal *refusal)
{
    struct kind *kind = refusals_find_kind(admin->refusals, refusal);
    int64_t now_ms = clock_monotonic_ms();
    if (kind && belongs_in_trail(admin, refusal))
        refusals_record(admin, kind, refusal, now_ms);
    if (refusal->via)
        metrics_count(METRIC_OPERATORS_REFUSED, str_from(refusal->via), str_from(refusal->reason));
    else
        metrics_count(METRIC_SIGN_INS, str_from(refusal->reason));
    if (kind && kind->told_ms != 0 && now_ms - kind->told_ms < TELL_EVERY_MS) {
        kind->left_out++;
        return;
    }
    refusals_tell(refusal, kind ? kind->left_out : 0);
    if (kind) {
        kind->told_ms = now_ms;
        kind->left_out = 0;
    }
}
