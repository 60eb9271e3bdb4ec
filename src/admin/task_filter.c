/* Filters of a list, asked on the store's thread. */
#include "task_filter.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"

#include "rights.h"
#include "voter.h"

/* Copies of all that is asked for: the request is over before the store's thread is done. */
struct filter {
    uint32_t magic; /* FILTER_MAGIC */
    char *text, *digest;
    bool is_mine, may_decide;
    struct person voter;
    struct config *config;
};
#define FILTER_MAGIC 0x4f117e25

static struct filter *filter_from(void *context)
{
    return MAGIC_CAST(struct filter, FILTER_MAGIC, context);
}

void task_filter_digest(const struct task *task, char digest[TASK_FILTER_DIGEST_BYTES])
{
    const char *const parts[] = {task->owner, task->source, task->tool, task->definition_digest,
                                 *task->request_digest ? task->request_digest
                                                       : task->arguments_digest};
    OWNED_BUFFER(text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buffer_append_text(&text, parts[i]);
        buffer_append_char(&text, '\0');
    }
    char plain[DIGEST_HEX_BYTES];
    digest_sha256_hex(buffer_str(&text), plain);
    digest_keyed_hex(plain, digest);
}

/* Only what operators see: else somebody could guess a hidden value by searching for it. */
static bool task_filter_has_text(const struct filter *filter, const struct task *task)
{
    const char *const texts[] = {task->id,   task->tool,       task->source, task->principal,
                                 task->rule, task->decided_by, task->reason, task->workflow};
    OWNED_BUFFER(all);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buffer_append_text(&all, texts[i]);
        buffer_append_char(&all, '\n');
    }
    size_t start = all.length;
    redact_write(&all, str_from(*task->arguments ? task->arguments : "{}"), filter->config,
                 task->workflow);
    OWNED_BUFFER(summary);
    shown_write_summary(&summary, task, str_slice(all.bytes + start, all.length - start));
    buffer_append_char(&all, '\n');
    buffer_append(&all, buffer_str(&summary));
    buffer_append_char(&all, '\0');
    return search_finds(all.bytes, str_from(filter->text));
}

static bool is_of_group(const struct filter *filter, const struct task *task)
{
    char digest[TASK_FILTER_DIGEST_BYTES];
    task_filter_digest(task, digest);
    return strcmp(digest, filter->digest) == 0;
}

static bool waits_for(const struct task *task, const struct config *config,
                      const struct person *voter)
{
    const struct store_vote vote = {
        .voter = *voter,
        .verb = BALLOT_APPROVE,
        .reason = "given",
    };
    struct ballot ballot;
    voter_read_ballot(config, task, &ballot);
    bool waits = store_vote_judge(&ballot, &vote, task) == BALLOT_ACCEPTED;
    ballot_finish(&ballot);
    return waits;
}

static bool may_decide(const struct operator_identity *who)
{
    return rights_of(who, ROUTE_decisions_approve) == RIGHT_ALL;
}

bool task_filter_waits_for(const struct task *task, const struct task_view *view)
{
    return may_decide(view->who) && waits_for(task, view->config, &view->who->person);
}

static bool waits_for_me(const struct filter *filter, const struct task *task)
{
    return filter->may_decide && waits_for(task, filter->config, &filter->voter);
}

static bool accepts(void *context, const struct task *task)
{
    const struct filter *filter = filter_from(context);
    return task && (!filter->is_mine || waits_for_me(filter, task)) &&
           (!*filter->digest || is_of_group(filter, task)) &&
           (!*filter->text || task_filter_has_text(filter, task));
}

static void task_filter_release(void *context)
{
    OWNED struct filter *filter = filter_from(context);
    free(filter->text);
    free(filter->digest);
    person_finish(&filter->voter);
    config_unref(filter->config);
    MAGIC_CLEAR(filter);
}

void task_filter_add(struct task_list_query *query, const struct task_view *view)
{
    if (query->text.length == 0 && query->digest.length == 0 && !query->is_mine)
        return;
    struct filter *filter = memory_alloc(sizeof *filter);
    MAGIC_SET(filter, FILTER_MAGIC);
    filter->text = memory_copy_str(query->text);
    filter->digest = memory_copy_str(query->digest);
    filter->is_mine = query->is_mine;
    filter->may_decide = may_decide(view->who);
    filter->config = config_ref(view->config);
    person_copy(&filter->voter, &view->who->person);
    if (query->is_mine && query->filter.states == 0)
        query->filter.states = 1u << TASK_PENDING;
    query->filter.accepts = accepts;
    query->filter.release = task_filter_release;
    query->filter.context = filter;
}

#define WHITE_SPACE " \t\r\n"

bool search_finds(const char *text, struct str words)
{
    bool finds = true;
    char *rest = NULL, *copy = memory_copy_str(words);
    for (char *word = strtok_r(copy, WHITE_SPACE, &rest); word && finds;
         word = strtok_r(NULL, WHITE_SPACE, &rest))
        finds = strcasestr(text, word) != NULL;
    free(copy);
    return finds;
}
