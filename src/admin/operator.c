/* From credentials to their person. */
#include "operator.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/config/electorate.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/control.h"
#include "taskgate/json/members.h"
#include "taskgate/tls/server.h"

#include "internal.h"

#define EXTRA_TOKEN_NAME "admin"

/* ---- the person behind a token ---- */

static bool has_group(const struct config_strings *groups, const char *group)
{
    for (size_t i = 0; i < groups->count; i++) {
        if (strcmp(groups->items[i], group) == 0)
            return true;
    }
    return false;
}

static void add_groups(struct config_strings *groups, const struct config_strings *more)
{
    for (size_t i = 0; i < more->count; i++) {
        if (has_group(groups, more->items[i]))
            continue;
        groups->items = memory_grow_array(groups->items, groups->count + 1, sizeof *groups->items);
        groups->items[groups->count++] = memory_copy_text(more->items[i]);
    }
}

static struct operator_identity *create(const char *name, const struct config_person *person,
                                        unsigned roles)
{
    struct operator_identity *who = memory_alloc(sizeof *who);
    who->references = 1;
    who->until_ms = INT64_MAX;
    who->name = memory_copy_text(name);
    who->person = memory_copy_text(person ? person->name : name);
    who->roles = roles;
    who->is_person = person != NULL;
    if (person) {
        who->issuer = memory_copy_text(person->issuer);
        who->subject = memory_copy_text(person->subject);
        identity_email_digest(person->email, who->email);
        add_groups(&who->groups, &person->groups);
    }
    return who;
}

/* Goes on after a match, so that the time does not tell which token it was. */
struct operator_identity *operator_of_token(const struct admin *admin, const struct config *config,
                                            const char *sha256)
{
    const struct config_token *found = NULL;
    struct str digest = str_from(sha256);
    for (size_t i = 0; i < config->token_count; i++) {
        if (str_equal_constant_time(digest, str_from(config->tokens[i].sha256)))
            found = &config->tokens[i];
    }
    bool is_extra = str_equal_constant_time(digest, str_from(admin->extra_token_sha256));
    if (!found && !is_extra)
        return NULL;
    struct operator_identity *who =
        is_extra ? create(EXTRA_TOKEN_NAME, NULL, ROLE_APPROVER | ROLE_AUDITOR)
                 : create(found->name, config_person_find(config, found->person), found->roles);
    if (!is_extra)
        add_groups(&who->groups, &found->groups);
    who->via = OPERATOR_VIA_TOKEN;
    memcpy(who->sha256, sha256, sizeof who->sha256);
    return who;
}

/* ---- the person whom an issuer has told ---- */

/* An entry that has a subject is that subject's alone: an address may be given to another person.
 */
static const struct config_person *find_person(const struct config *config,
                                               const struct identity *identity)
{
    const struct config_person *found = NULL;
    for (size_t i = 0; i < config->person_count; i++) {
        const struct config_person *person = &config->people[i];
        bool is_of_issuer = person->issuer && strcmp(person->issuer, identity->issuer) == 0;
        if (person->subject && is_of_issuer && strcmp(person->subject, identity->subject) == 0)
            return person;
        if (!person->subject && person->email && identity->email && identity->email_verified &&
            str_equal_ignore_case(str_from(person->email), str_from(identity->email)))
            found = person;
    }
    return found;
}

/* A stranger's subject may read like the name of somebody else here. */
static char *name_stranger(const struct config *config, const struct identity *identity)
{
    bool is_taken = strcmp(identity->subject, EXTRA_TOKEN_NAME) == 0 ||
                    config_person_find(config, identity->subject);
    for (size_t i = 0; i < config->token_count; i++)
        is_taken = is_taken || strcmp(config->tokens[i].name, identity->subject) == 0;
    return is_taken ? memory_format("%s (%s)", identity->subject, identity->issuer)
                    : memory_copy_text(identity->subject);
}

static unsigned roles_of(const struct config_oidc *oidc, const struct config_strings *groups)
{
    const struct {
        enum config_role role;
        const struct config_strings *groups;
    } rows[] = {
        {ROLE_VIEWER, &oidc->viewers},
        {ROLE_APPROVER, &oidc->approvers},
        {ROLE_CALLER, &oidc->callers},
        {ROLE_AUDITOR, &oidc->auditors},
    };
    unsigned roles = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < rows[i].groups->count; k++) {
            if (has_group(groups, rows[i].groups->items[k]))
                roles |= (unsigned)rows[i].role;
        }
    }
    return roles;
}

struct operator_identity *operator_of_identity(const struct config *config,
                                               struct identity *identity)
{
    if (!config->oidc.is_on || strcmp(config->oidc.issuer, identity->issuer) != 0)
        return NULL;
    const char *name = identity->name ? identity->name : identity->subject;
    const struct config_person *person = find_person(config, identity);
    const struct config_strings claimed = {identity->groups.items, identity->groups.count};
    struct operator_identity *who = create(name, person, 0);
    if (!person) {
        free(who->person);
        who->person = name_stranger(config, identity);
    }
    free(who->issuer);
    free(who->subject);
    who->issuer = memory_copy_text(identity->issuer);
    who->subject = memory_copy_text(identity->subject);
    who->is_person = true;
    add_groups(&who->claimed, &claimed);
    add_groups(&who->groups, &claimed);
    who->roles = roles_of(&config->oidc, &who->groups);
    who->via = OPERATOR_VIA_OIDC;
    who->identity = identity_ref(identity);
    who->until_ms = identity->until_ms;
    return who;
}

/* ---- the person behind a certificate ---- */

static const struct config_person *find_holder(const struct config *config, struct str subject)
{
    for (size_t i = 0; i < config->person_count; i++) {
        const char *certificate = config->people[i].certificate;
        if (certificate && str_equal(str_from(certificate), subject))
            return &config->people[i];
    }
    return NULL;
}

struct operator_identity *operator_of_certificate(const struct config *config, struct str subject,
                                                  int64_t until_ms)
{
    const struct config_person *person = find_holder(config, subject);
    if (!config->admin_tls.client_ca || !person)
        return NULL;
    struct operator_identity *who = create(person->certificate, person, person->roles);
    who->via = OPERATOR_VIA_CERTIFICATE;
    who->port = tls_server_ref(config->admin_tls.server);
    who->until_ms = until_ms;
    return who;
}

/* ---- the person behind an id in Slack ---- */

struct operator_identity *operator_of_slack(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->person_count; i++) {
        const struct config_person *person = &config->people[i];
        if (!person->slack || strcmp(person->slack, id) != 0 ||
            !electorate_may_in_slack(config, person))
            continue;
        struct operator_identity *who = create(person->slack, person, ROLE_APPROVER);
        who->via = OPERATOR_VIA_SLACK;
        return who;
    }
    return NULL;
}

struct operator_identity *operator_ref(struct operator_identity *who)
{
    who->references++;
    return who;
}

static void finish_groups(struct config_strings *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        free(groups->items[i]);
    free(groups->items);
}

void operator_unref(struct operator_identity *who)
{
    if (!who || --who->references > 0)
        return;
    finish_groups(&who->groups);
    finish_groups(&who->claimed);
    free(who->name);
    free(who->person);
    free(who->issuer);
    free(who->subject);
    identity_unref(who->identity);
    tls_server_unref(who->port);
    free(who->sealed_token);
    free(who);
}

/* ---- rights ---- */

bool operator_may(const struct operator_identity *who, unsigned roles)
{
    bool looks = (who->roles & (unsigned)(ROLE_APPROVER | ROLE_AUDITOR)) != 0;
    unsigned all = who->roles | (looks ? (unsigned)ROLE_VIEWER : 0);
    return (all & roles) != 0;
}

bool operator_sees_own_only(const struct operator_identity *who)
{
    return !operator_may(who, ROLE_VIEWER);
}

/* A call of an agent that has shown a verified token of this subject. */
static bool is_own_subject(const struct operator_identity *who, const struct task *task)
{
    char owner[IDENTITY_OWNER_BYTES];
    if (!who->issuer || !who->subject)
        return false;
    identity_owner(who->issuer, who->subject, owner);
    return strcmp(task->owner, owner) == 0;
}

/* The token's name as well: a task of before it was given a person is theirs, too. */
bool operator_owns(const struct operator_identity *who, const struct task *task)
{
    return control_owns(who->person, task) ||
           (who->via == OPERATOR_VIA_TOKEN && control_owns(who->name, task)) ||
           is_own_subject(who, task);
}

const char *operator_email(const struct operator_identity *who)
{
    bool is_told = who->identity && who->identity->verified_email[0];
    return is_told ? who->identity->verified_email : who->email;
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

struct operator_identity *operator_renew(const struct admin *admin,
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
        now = operator_of_token(admin, config, who->sha256);
    if (now && (clock_now_ms() >= now->until_ms || strcmp(now->person, who->person) != 0)) {
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

static void add_item(struct buffer *out, const char *text)
{
    if (out->bytes[out->length - 1] != '[')
        buffer_append_char(out, ',');
    buffer_append_json_string(out, str_from(text));
}

const char *operator_via_name(const struct operator_identity *who)
{
    static const char *const names[] = {[OPERATOR_VIA_TOKEN] = "token",
                                        [OPERATOR_VIA_OIDC] = "oidc",
                                        [OPERATOR_VIA_CERTIFICATE] = "certificate",
                                        [OPERATOR_VIA_SLACK] = "slack"};
    return names[who->via];
}

void operator_write(struct buffer *out, const struct operator_identity *who)
{
    static const enum config_role roles[] = {ROLE_VIEWER, ROLE_APPROVER, ROLE_CALLER, ROLE_AUDITOR};
    buffer_append_char(out, '{');
    json_add_text(out, "name", who->name);
    json_add_text(out, "person", who->person);
    json_add_key(out, "groups");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < who->groups.count; i++)
        add_item(out, who->groups.items[i]);
    buffer_append(out, STR("],\"roles\":["));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if ((who->roles & (unsigned)roles[i]) != 0)
            add_item(out, config_role_name(roles[i]));
    }
    buffer_append_char(out, ']');
    json_add_text(out, "via", operator_via_name(who));
    buffer_append_char(out, '}');
}
