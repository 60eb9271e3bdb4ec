/* Votes of before: whether they still stand; and the store's way to ask. */
#include "voter.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/typed.h"

/* The vote keeps the name that it was given under: credentials that are another person's by now do
 * not vote for that one. */
static void voter_renew(const struct config *config, struct ballot_vote *vote)
{
    struct person *person = &vote->person;
    char *name = memory_copy_text(person->name);
    bool is_named = person->is_named;
    unsigned roles;
    vote->stands = people_know(config, person, &roles) && (roles & (unsigned)ROLE_APPROVER) != 0 &&
                   person->is_named == is_named && strcmp(person->name, name) == 0;
    free(person->name);
    person->name = name;
    person->is_named = is_named;
}

void voter_read_ballot(const struct config *config, const struct task *task, struct ballot *ballot)
{
    ballot_read(ballot, str_from(task->terms), str_from(task->votes));
    for (size_t i = 0; i < ballot->votes.count; i++)
        voter_renew(config, &ballot->votes.items[i]);
}

/* ---- for the store ---- */

struct asked {
    uint32_t magic; /* ASKED_MAGIC */
    struct config *config;
    const struct gateway_worker *worker; /* or NULL */
};
#define ASKED_MAGIC 0x41444d56

static struct config *config_of(void *context)
{
    return MAGIC_CAST(struct asked, ASKED_MAGIC, context)->config;
}

static bool voter_definition_changed(void *context, const struct task *task)
{
    const struct asked *asked = MAGIC_CAST(struct asked, ASKED_MAGIC, context);
    return asked->worker && gateway_definition_changed(asked->worker, task, NULL);
}

static void voter_renew_vote(void *context, struct ballot_vote *vote)
{
    voter_renew(config_of(context), vote);
}

static enum ballot_typed typed(void *context, const struct store_vote *vote,
                               const struct task *task)
{
    OWNED_BUFFER(arguments);
    const char *own = vote->edit ? vote->edit->arguments : task->arguments;
    if (vote->withdraws || vote->verb != BALLOT_APPROVE)
        return BALLOT_TYPED_NOT_ASKED;
    redact_write(&arguments, str_from(own && *own ? own : "{}"), config_of(context),
                 task->workflow);
    return typed_judge(task, buffer_str(&arguments), vote->typed);
}

static int64_t valid_for_ms(void *context, const char *workflow)
{
    return config_approval_valid_ms(config_of(context), str_from(workflow));
}

static const char *terms(void *context, const char *workflow)
{
    const struct config_workflow *found =
        config_workflow_find(config_of(context), str_from(workflow));
    return found ? found->terms : NULL;
}

static void voter_release(void *context)
{
    OWNED struct asked *asked = MAGIC_CAST(struct asked, ASKED_MAGIC, context);
    config_unref(asked->config);
    MAGIC_CLEAR(asked);
}

struct store_electorate voter_electorate(struct config *config, const struct gateway_worker *worker)
{
    struct asked *asked = memory_alloc(sizeof *asked);
    MAGIC_SET(asked, ASKED_MAGIC);
    asked->config = config_ref(config);
    asked->worker = worker;
    return (struct store_electorate){
        .typed = typed,
        .definition_changed = voter_definition_changed,
        .renew = voter_renew_vote,
        .terms = terms,
        .valid_for_ms = valid_for_ms,
        .release = voter_release,
        .context = asked,
    };
}
