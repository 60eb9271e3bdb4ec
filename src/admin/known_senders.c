/* The credentials that were good lately, by their digests. A token of the configuration is looked
 * up as it is; one of an issuer and the cookie of a session take time to judge, so they count once
 * they were good. */
#include "known_senders.h"

#include <string.h>

#include "taskgate/core/digest.h"

#define MOST_SLACK_BYTES ((size_t)512 * 1024) /* of a press, all signed */

static bool known_senders_is_known(const struct admin *admin, const char *sha256)
{
    for (size_t i = 0; i < KNOWN_SENDERS; i++) {
        if (memcmp(admin->known_senders[i], sha256, sizeof admin->known_senders[i]) == 0)
            return true;
    }
    return false;
}

void known_senders_note(struct admin *admin, struct http_exchange *exchange,
                        const struct operator_identity *who)
{
    http_vouch(exchange, str_from(who->person.name));
    if (!*who->sha256 || known_senders_is_known(admin, who->sha256))
        return;
    memcpy(admin->known_senders[admin->next_sender], who->sha256,
           sizeof admin->known_senders[admin->next_sender]);
    admin->next_sender = (admin->next_sender + 1) % KNOWN_SENDERS;
}

static bool is_good(struct admin *admin, const struct config *config, struct str credential)
{
    char sha256[65];
    digest_sha256_hex(credential, sha256);
    if (known_senders_is_known(admin, sha256))
        return true;
    struct operator_identity *who = operator_of_token(admin->extra_token_sha256, config, sha256);
    operator_unref(who);
    return who != NULL;
}

static bool has_good_cookie(struct admin *admin, const struct config *config, struct str cookies)
{
    struct str pair, name, value;
    while (cookies.length > 0) {
        str_cut(cookies, ';', &pair, &cookies);
        if (str_cut(str_trim(pair), '=', &name, &value) && is_good(admin, config, value))
            return true;
    }
    return false;
}

static bool is_good_header(struct admin *admin, const struct config *config,
                           const struct http_header *header)
{
    struct str scheme, token;
    if (str_equal_ignore_case(header->name, STR("authorization")))
        return str_cut(header->value, ' ', &scheme, &token) &&
               is_good(admin, config, str_trim(token));
    return str_equal_ignore_case(header->name, STR("cookie")) &&
           has_good_cookie(admin, config, header->value);
}

static bool takes_presses(const struct config *config)
{
    for (size_t i = 0; i < config->notify_count; i++) {
        if (config->notify[i].signing_secret)
            return true;
    }
    return false;
}

/* The handler judges again, once the body is there. */
size_t known_senders_judge(const struct http_head *head, void *context)
{
    struct admin *admin = admin_from(context);
    struct snapshot *snapshot = snapshot_current();
    bool is_sender = head->has_certificate;
    if (!snapshot)
        return 0;
    for (size_t i = 0; !is_sender && i < head->header_count; i++)
        is_sender = is_good_header(admin, snapshot->config, &head->headers[i]);
    bool is_press =
        str_equal(head->path, STR("/slack/interactions")) && takes_presses(snapshot->config);
    snapshot_unref(snapshot);
    return is_sender ? SIZE_MAX : is_press ? MOST_SLACK_BYTES : 0;
}
