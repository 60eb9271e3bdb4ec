/* From credentials to their person. */
#include "operator.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/tls/server.h"

/* Of the credentials that are in `shown`, which is taken over; NULL: they are nobody's. */
static struct operator_identity *operator_create(const struct config *config, const char *name,
                                                 enum operator_via via, struct person *shown)
{
    struct operator_identity *who = memory_alloc(sizeof *who);
    who->references = 1;
    who->until_ms = INT64_MAX;
    who->name = memory_copy_text(name);
    who->via = via;
    who->person = *shown;
    who->person.via = memory_copy_text(operator_via_name(who));
    if (people_know(config, &who->person, &who->roles))
        return who;
    operator_unref(who);
    return NULL;
}

static struct operator_identity *create_by(const struct config *config, const char *name,
                                           enum operator_via via, const char *credential)
{
    struct person shown = {.credential = memory_copy_text(credential)};
    return operator_create(config, name, via, &shown);
}

/* Goes on after a match, so that the time does not tell which token it was. A token of the file has
 * the rights that the file gives it, also if it is the extra one as well. */
struct operator_identity *operator_of_token(const char *extra_sha256, const struct config *config,
                                            const char *sha256)
{
    const struct config_token *found = NULL;
    struct operator_identity *who = NULL;
    struct str digest = str_from(sha256);
    for (size_t i = 0; i < config->token_count; i++) {
        if (str_equal_constant_time(digest, str_from(config->tokens[i].sha256)))
            found = &config->tokens[i];
    }
    bool is_extra = str_equal_constant_time(digest, str_from(extra_sha256));
    if (found)
        who = create_by(config, found->name, OPERATOR_VIA_TOKEN, found->name);
    else if (is_extra)
        who = create_by(config, PEOPLE_OWN_NAME, OPERATOR_VIA_TOKEN, PEOPLE_OWN_CREDENTIAL);
    if (who)
        memcpy(who->sha256, sha256, sizeof who->sha256);
    return who;
}

struct operator_identity *operator_of_identity(const struct config *config,
                                               struct identity *identity)
{
    const char *name = identity->name ? identity->name : identity->subject;
    const struct ballot_names claimed = {identity->groups.items, identity->groups.count};
    struct person shown = {
        .issuer = memory_copy_text(identity->issuer),
        .subject = memory_copy_text(identity->subject),
    };
    ballot_names_add_all(&shown.claimed, &claimed);
    if (*identity->verified_email)
        ballot_names_add(&shown.emails, identity->verified_email);
    struct operator_identity *who = operator_create(config, name, OPERATOR_VIA_OIDC, &shown);
    if (!who)
        return NULL;
    who->identity = identity_ref(identity);
    who->until_ms = identity->until_ms;
    return who;
}

struct operator_identity *operator_of_certificate(const struct config *config, struct str subject,
                                                  int64_t until_ms)
{
    char *name = memory_copy_str(subject);
    struct operator_identity *who = create_by(config, name, OPERATOR_VIA_CERTIFICATE, name);
    free(name);
    if (!who)
        return NULL;
    who->port = tls_server_ref(config->admin_tls.server);
    who->until_ms = until_ms;
    return who;
}

struct operator_identity *operator_of_slack(const struct config *config, const char *id)
{
    return create_by(config, id, OPERATOR_VIA_SLACK, id);
}

struct operator_identity *operator_ref(struct operator_identity *who)
{
    ASSERT_NUMBERS(who->references, >, 0);
    who->references++;
    return who;
}

void operator_unref(struct operator_identity *who)
{
    if (!who)
        return;
    ASSERT_NUMBERS(who->references, >, 0);
    if (--who->references > 0)
        return;
    free(who->name);
    person_finish(&who->person);
    identity_unref(who->identity);
    tls_server_unref(who->port);
    free(who->sealed_token);
    free(who);
}

bool operator_owns(const struct operator_identity *who, const struct task *task)
{
    const struct person_maker maker = {task->owner, task->owner_email, task->maker};
    return person_made(&who->person, &maker);
}

/* ---- again, after a reload ---- */

static struct operator_identity *renew_certificate(const struct config *config,
                                                   const struct operator_identity *who)
{
    /* The authority that vouched for it may no longer count. */
    if (!tls_server_admit_alike(who->port, config->admin_tls.server))
        return NULL;
    return operator_of_certificate(config, str_from(who->name), who->until_ms);
}

static struct operator_identity *renew_identity(const struct config *config,
                                                const struct operator_identity *who)
{
    struct operator_identity *now = operator_of_identity(config, who->identity);
    int64_t allowed_ms = who->begun_ms + config->oidc.max_age_ms;
    if (!now)
        return NULL;
    now->is_session = who->is_session;
    now->begun_ms = who->begun_ms;
    if (now->is_session && allowed_ms < now->until_ms)
        now->until_ms = allowed_ms;
    memcpy(now->sha256, who->sha256, sizeof now->sha256);
    return now;
}

struct operator_identity *operator_renew(const char *extra_sha256,
                                         const struct operator_identity *who)
{
    struct snapshot *snapshot = snapshot_current();
    const struct config *config = snapshot ? snapshot->config : NULL;
    struct operator_identity *now = NULL;
    if (config && who->via == OPERATOR_VIA_CERTIFICATE)
        now = renew_certificate(config, who);
    else if (config && who->identity)
        now = renew_identity(config, who);
    else if (config)
        now = operator_of_token(extra_sha256, config, who->sha256);
    if (now &&
        (clock_now_ms() >= now->until_ms || strcmp(now->person.name, who->person.name) != 0)) {
        operator_unref(now);
        now = NULL;
    }
    snapshot_unref(snapshot);
    return now;
}

int64_t operator_delay_ms(const struct operator_identity *who, int64_t delay_ms)
{
    int64_t left_ms = who->until_ms - clock_now_ms();
    if (left_ms >= delay_ms)
        return delay_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* ---- as JSON ---- */

const char *operator_via_name(const struct operator_identity *who)
{
    static const char *const names[] = {[OPERATOR_VIA_TOKEN] = PEOPLE_VIA_TOKEN,
                                        [OPERATOR_VIA_OIDC] = PEOPLE_VIA_OIDC,
                                        [OPERATOR_VIA_CERTIFICATE] = PEOPLE_VIA_CERTIFICATE,
                                        [OPERATOR_VIA_SLACK] = PEOPLE_VIA_SLACK};
    ASSERT_NUMBERS(who->via, <, sizeof names / sizeof *names);
    return names[who->via];
}

/* ---- client certificates ---- */

bool client_certificate_suffices(const struct http_exchange *exchange, const struct config *config)
{
    return !config->admin_tls.client_ca || http_client_certificate(exchange).bytes != NULL;
}

struct operator_identity *client_certificate_find(const struct http_exchange *exchange,
                                                  const struct config *config)
{
    struct str subject = http_client_certificate(exchange);
    if (!subject.bytes)
        return NULL;
    return operator_of_certificate(config, subject, http_client_certificate_until_ms(exchange));
}
