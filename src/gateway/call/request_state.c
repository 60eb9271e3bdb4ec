/* Sealed states of held calls. */
#include "request_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "call.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/state_seal.h"
#include "taskgate/json/text.h"

#define PREFIX STR("tg1.")
#define FIELD_COUNT 10 /* of an older state 7 or 9 */

static const char *const kinds[REQUEST_STATE_KIND_COUNT] = {"hold", "confirm", "execute"};

bool request_state_is_ours(const struct call *call)
{
    struct str state = call->envelope.request_state;
    return state.length > PREFIX.length + 1 &&
           str_starts_with(str_slice(state.bytes + 1, state.length - 1), PREFIX);
}

static void write_bound(const struct call *call, struct buffer *bound)
{
    buffer_append_text(bound, call->source->id);
    buffer_append_char(bound, '\n');
    buffer_append(bound, call->envelope.method);
}

/* Digests of the caller, the method and its arguments. */
struct binding {
    char owner[DIGEST_HEX_BYTES], name[DIGEST_HEX_BYTES], arguments[DIGEST_HEX_BYTES];
};

static void bind_call(const struct call *call, struct binding *binding)
{
    bool names_uri = call->method->treatment == MCP_GATED_URI;
    digest_sha256_hex(str_from(call->owner), binding->owner);
    digest_sha256_hex(names_uri ? call->envelope.uri.text : call->envelope.name.text,
                      binding->name);
    call_digest_arguments(call, binding->arguments);
}

void request_state_write(const struct call *call, const struct request_state *state,
                         struct buffer *out)
{
    OWNED_BUFFER(payload);
    OWNED_BUFFER(bound);
    OWNED_BUFFER(sealed);
    struct binding binding;
    const struct store *store = call->worker->gateway->store;
    bool is_shared = store_is_shared(store);
    bind_call(call, &binding);
    write_bound(call, &bound);
    buffer_append_format(&payload, "%s\n%" PRId64 "\n%" PRId64 "\n%s\n%s\n%s\n%s", state->id,
                         state->round, state->until_ms, binding.owner, binding.name,
                         binding.arguments, kinds[state->kind]);
    buffer_append_format(&payload, "\n%s\n%" PRId64 "\n%" PRId64,
                         is_shared ? store_replica_id(store) : "",
                         is_shared ? store_replica_epoch(store) : 0, clock_now_ms());
    if (!state_seal(call->worker->gateway->state_keys, PREFIX, buffer_str(&bound),
                    buffer_str(&payload), &sealed))
        log_error("A request state could not be sealed", LOG_TEXT("task", state->id));
    buffer_append_json_string(out, buffer_str(&sealed));
}

static bool request_state_read_kind(struct str text, enum request_state_kind *kind)
{
    for (int i = 0; i < REQUEST_STATE_KIND_COUNT; i++) {
        *kind = (enum request_state_kind)i;
        if (str_equal(text, str_from(kinds[i])))
            return true;
    }
    return false;
}

static bool read_place(struct str replica, struct str epoch, struct request_state *state)
{
    uint64_t number = 0;
    if (replica.length >= sizeof state->replica ||
        (replica.length > 0 && (!str_to_u64(epoch, &number) || number > INT64_MAX)))
        return false;
    snprintf(state->replica, sizeof state->replica, "%.*s", STR_ARGS(replica));
    state->epoch = (int64_t)number;
    return true;
}

static bool read_payload(struct str payload, struct str fields[FIELD_COUNT],
                         struct request_state *state)
{
    uint64_t round, until_ms, given_ms = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        str_cut(payload, '\n', &fields[i], &payload);
    if (!str_to_u64(fields[1], &round) || !str_to_u64(fields[2], &until_ms) ||
        fields[0].length >= sizeof state->id || !request_state_read_kind(fields[6], &state->kind) ||
        !read_place(fields[7], fields[8], state) ||
        (fields[9].length > 0 && !str_to_u64(fields[9], &given_ms)))
        return false;
    snprintf(state->id, sizeof state->id, "%.*s", STR_ARGS(fields[0]));
    state->round = (int64_t)round;
    state->until_ms = (int64_t)until_ms;
    state->given_ms = (int64_t)given_ms;
    return true;
}

/* NULL: the state is this call's. Else why it is not, for the log. */
static const char *judge(const struct call *call, struct str payload, struct request_state *state)
{
    struct str fields[FIELD_COUNT];
    struct binding binding;
    if (!read_payload(payload, fields, state))
        return "it has another form";
    bind_call(call, &binding);
    if (state->until_ms < clock_now_ms())
        return "it has expired";
    if (!str_equal_constant_time(fields[3], str_from(binding.owner)))
        return "it is another caller's";
    if (!str_equal(fields[4], str_from(binding.name)))
        return "it is of another tool, prompt or resource";
    if (!str_equal(fields[5], str_from(binding.arguments)))
        return "the call has other arguments";
    return NULL;
}

static bool unseal(const struct call *call, struct buffer *payload)
{
    OWNED_BUFFER(text);
    OWNED_BUFFER(bound);
    json_decode_string(call->envelope.request_state, &text);
    write_bound(call, &bound);
    return state_unseal(call->worker->gateway->state_keys, PREFIX, buffer_str(&bound),
                        buffer_str(&text), payload);
}

bool request_state_peek(const struct call *call, struct request_state *state)
{
    OWNED_BUFFER(payload);
    struct str fields[FIELD_COUNT];
    return unseal(call, &payload) && read_payload(buffer_str(&payload), fields, state);
}

bool request_state_open(const struct call *call, struct request_state *state)
{
    OWNED_BUFFER(payload);
    const char *wrong = "it is forged, or of another source or key";
    if (unseal(call, &payload))
        wrong = judge(call, buffer_str(&payload), state);
    if (wrong)
        log_warn("A request state was refused", LOG_TEXT("source", call->source->id),
                 LOG_TEXT("reason", wrong));
    return wrong == NULL;
}
