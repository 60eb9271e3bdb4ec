/* Inquiries: what they wait for, and how they end when the process does. */
#include "provider_internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

struct provider *provider_create(struct loop *loop)
{
    struct provider *provider = memory_alloc(sizeof *provider);
    provider->loop = loop;
    list_init(&provider->inquiries);
    return provider;
}

void provider_destroy(struct provider *provider)
{
    if (!provider)
        return;
    LIST_FOR_EACH_SAFE (node, next, &provider->inquiries) {
        inquiry_finish(LIST_ENTRY(node, struct inquiry, node), PROVIDER_UNAVAILABLE);
    }
    issuer_release(provider->issuer);
    issuers_destroy(provider->issuers);
    free(provider->issuer_name);
    free(provider);
}

/* A reference to the issuer of the configuration. It is kept between two inquiries, too, so that
 * its keys stay. NULL when there can be no thread to ask it. */
static struct issuer *get_issuer(struct provider *provider, const char *name)
{
    struct error error = {""};
    if (!provider->issuers)
        provider->issuers = issuers_create(&error);
    if (!provider->issuers) {
        log_error("The identity provider cannot be asked", LOG_TEXT("reason", error.message));
        return NULL;
    }
    if (!provider->issuer || strcmp(provider->issuer_name, name) != 0) {
        issuer_release(provider->issuer);
        free(provider->issuer_name);
        provider->issuer = issuers_get(provider->issuers, name, NULL);
        provider->issuer_name = memory_copy_text(name);
    }
    return issuers_get(provider->issuers, name, NULL);
}

struct inquiry *inquiry_create(struct provider *provider, struct snapshot *snapshot)
{
    struct inquiry *inquiry = memory_alloc(sizeof *inquiry);
    MAGIC_SET(inquiry, INQUIRY_MAGIC);
    inquiry->provider = provider;
    inquiry->snapshot = snapshot_ref(snapshot);
    inquiry->issuer = get_issuer(provider, snapshot->config->oidc.issuer);
    list_append(&provider->inquiries, &inquiry->node);
    return inquiry;
}

static void provider_tell(struct inquiry *inquiry, enum provider_result result)
{
    const struct issuer_metadata *metadata = inquiry->metadata;
    bool is_good = result == PROVIDER_OK;
    struct provider_endpoints endpoints = {0};
    if (metadata)
        endpoints = (struct provider_endpoints){
            .authorization = metadata->authorization_endpoint,
            .end_session = metadata->end_session_endpoint,
            .names_itself = metadata->names_itself,
        };
    if (inquiry->looked)
        inquiry->looked(inquiry->context, result, is_good ? &endpoints : NULL);
    else
        inquiry->told(inquiry->context, &(struct provider_answer){
                                            .result = result,
                                            .identity = is_good ? inquiry->identity : NULL,
                                            .token = is_good ? inquiry->token : NULL,
                                            .reason = inquiry->reason,
                                            .detail = *inquiry->detail ? inquiry->detail : NULL,
                                        });
}

void inquiry_finish(struct inquiry *inquiry, enum provider_result result)
{
    list_remove(&inquiry->node);
    issuer_wait_cancel(inquiry->wait);
    fetch_cancel(inquiry->fetch);
    provider_tell(inquiry, result);
    identity_unref(inquiry->identity);
    issuer_metadata_unref(inquiry->metadata);
    issuer_release(inquiry->issuer);
    snapshot_unref(inquiry->snapshot);
    memory_forget_text(inquiry->code);
    memory_forget_text(inquiry->verifier);
    memory_forget_text(inquiry->token);
    memory_forget_text(inquiry->access_token);
    free(inquiry->nonce);
    MAGIC_CLEAR(inquiry);
    free(inquiry);
}

/* ---- what is waited for ---- */

static void on_ready(void *context)
{
    struct inquiry *inquiry = inquiry_from(context);
    inquiry->wait = NULL;
    if (!inquiry->metadata)
        inquiry->metadata = issuer_metadata(inquiry->issuer);
    inquiry->next(inquiry);
}

void inquiry_await_keys(struct inquiry *inquiry, uint64_t used, inquiry_step next)
{
    inquiry->next = next;
    if (inquiry->issuer)
        inquiry->wait =
            issuer_wait(inquiry->issuer, used, inquiry->provider->loop, on_ready, inquiry);
    if (!inquiry->wait)
        next(inquiry);
}

void inquiry_know(struct inquiry *inquiry, inquiry_step next)
{
    if (inquiry->issuer)
        inquiry->metadata = issuer_metadata(inquiry->issuer);
    if (inquiry->metadata)
        next(inquiry);
    else
        inquiry_await_keys(inquiry, 0, next);
}

/* ---- where things are ---- */

static void answer_look(struct inquiry *inquiry)
{
    inquiry_finish(inquiry, inquiry->metadata ? PROVIDER_OK : PROVIDER_UNAVAILABLE);
}

void provider_look(struct provider *provider, struct snapshot *snapshot, provider_looked callback,
                   void *context)
{
    struct inquiry *inquiry = inquiry_create(provider, snapshot);
    inquiry->looked = callback;
    inquiry->context = context;
    inquiry_know(inquiry, answer_look);
}
