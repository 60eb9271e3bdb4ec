/* From what was shown to the person behind it. */
#include "operator.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/control.h"
#include "taskgate/json/members.h"

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
    who->name = memory_copy_text(name);
    who->person = memory_copy_text(person ? person->name : name);
    who->roles = roles;
    if (person) {
        who->issuer = memory_copy_text(person->issuer);
        who->subject = memory_copy_text(person->subject);
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
        is_extra ? create(EXTRA_TOKEN_NAME, NULL, ROLE_APPROVER)
                 : create(found->name, config_person_find(config, found->person), found->roles);
    if (!is_extra)
        add_groups(&who->groups, &found->groups);
    who->via = OPERATOR_VIA_TOKEN;
    memcpy(who->sha256, sha256, sizeof who->sha256);
    return who;
}

struct operator_identity *operator_ref(struct operator_identity *who)
{
    who->references++;
    return who;
}

void operator_unref(struct operator_identity *who)
{
    if (!who || --who->references > 0)
        return;
    for (size_t i = 0; i < who->groups.count; i++)
        free(who->groups.items[i]);
    free(who->groups.items);
    free(who->name);
    free(who->person);
    free(who->issuer);
    free(who->subject);
    free(who);
}

/* ---- what they may ---- */

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

/* The owner that a verified agent's token of this subject gives a task. */
static bool is_own_subject(const struct operator_identity *who, const struct task *task)
{
    struct str owner = str_from(task->owner), prefix = STR("sub:");
    struct buffer text;
    char digest[65];
    if (!who->issuer || !who->subject || !str_starts_with(owner, prefix))
        return false;
    buffer_init(&text);
    buffer_append_text(&text, who->issuer);
    buffer_append_char(&text, '\0');
    buffer_append_text(&text, who->subject);
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
    return str_equal(str_slice(owner.bytes + prefix.length, owner.length - prefix.length),
                     str_from(digest));
}

/* The name as well: a task of before the token was given a person is theirs, too. */
bool operator_owns(const struct operator_identity *who, const struct task *task)
{
    return control_owns(who->person, task) || control_owns(who->name, task) ||
           is_own_subject(who, task);
}

bool operator_still_may(const struct admin *admin, const struct operator_identity *who,
                        unsigned roles)
{
    struct snapshot *snapshot = snapshot_current();
    struct operator_identity *now =
        snapshot ? operator_of_token(admin, snapshot->config, who->sha256) : NULL;
    bool may = now && operator_may(now, roles) && strcmp(now->person, who->person) == 0;
    operator_unref(now);
    snapshot_unref(snapshot);
    return may;
}

/* ---- as JSON ---- */

static void add_item(struct buffer *out, const char *text)
{
    if (out->bytes[out->length - 1] != '[')
        buffer_append_char(out, ',');
    buffer_append_json_string(out, str_from(text));
}

void operator_write(struct buffer *out, const struct operator_identity *who)
{
    static const enum config_role roles[] = {ROLE_VIEWER, ROLE_APPROVER, ROLE_CALLER, ROLE_AUDITOR};
    static const char *const via[] = {[OPERATOR_VIA_TOKEN] = "token"};
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
    json_add_text(out, "via", via[who->via]);
    buffer_append_char(out, '}');
}
