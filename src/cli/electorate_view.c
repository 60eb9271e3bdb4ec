/* The electorate of a workflow, in words and as JSON. */
#include "electorate_view.h"

#include <inttypes.h>
#include <stdlib.h>

#include "taskgate/config/electorate.h"
#include "taskgate/json/members.h"

/* Takes the votes of all in the file whom the terms let vote. */
static void read_ballot(struct ballot *ballot, const struct config *config,
                        const struct config_workflow *workflow)
{
    ballot_read(ballot, str_from(workflow->terms), STR_EMPTY);
    electorate_add(config, &ballot->votes);
    for (size_t i = ballot->votes.count; i > 0; i--) {
        if (!ballot_may_vote(&ballot->terms, &ballot->votes.items[i - 1].person))
            ballot_votes_remove(&ballot->votes, i - 1);
    }
}

/* ---- in words ---- */

static void append_names(struct buffer *out, const struct ballot_names *names, const char *before)
{
    for (size_t i = 0; i < names->count; i++)
        buffer_append_format(out, "%s%s", i == 0 ? before : ", ", names->items[i]);
}

static void append_needs(struct buffer *out, const struct ballot_need *needs, size_t count)
{
    const char *joint = "";
    for (size_t i = 0; i < count; i++) {
        if (needs[i].count == 0)
            continue;
        buffer_append_format(out, "%s%" PRId64 "%s%s", joint, needs[i].count,
                             needs[i].group ? " of " : "", needs[i].group ? needs[i].group : "");
        joint = ", ";
    }
}

static void append_terms(struct buffer *out, const struct ballot_terms *terms)
{
    bool is_named = terms->groups.count > 0 || terms->people.count > 0;
    if (terms->need_count > 0)
        append_needs(out, terms->needs, terms->need_count);
    else
        buffer_append_format(out, "%" PRId64 " %s", terms->quorum,
                             terms->quorum == 1 ? "approver" : "persons");
    append_names(out, &terms->groups, is_named ? " in " : "");
    append_names(out, &terms->people, terms->groups.count > 0 ? ", or " : " among ");
    append_names(out, &terms->emergency, "; alone in an emergency: ");
}

void electorate_view_write_text(struct buffer *out, const struct config *config,
                                const struct config_workflow *workflow)
{
    struct ballot ballot;
    size_t count;
    read_ballot(&ballot, config, workflow);
    struct ballot_need *missing = ballot_missing(&ballot, &count);
    append_terms(out, &ballot.terms);
    buffer_append_text(out, ballot.votes.count > 0 ? "; in this file: " : "; nobody in this file");
    for (size_t i = 0; i < ballot.votes.count; i++) {
        buffer_append_format(out, "%s%s", i > 0 ? ", " : "", ballot.votes.items[i].person.name);
        append_names(out, &ballot.votes.items[i].person.groups, " (");
        buffer_append_text(out, ballot.votes.items[i].person.groups.count > 0 ? ")" : "");
    }
    if (!ballot_is_filled(&ballot)) {
        buffer_append_text(out, "; missing: ");
        append_needs(out, missing, count);
    }
    if (electorate_is_open(config))
        buffer_append_text(out, "; others may sign in");
    free(missing);
    ballot_finish(&ballot);
}

/* ---- as JSON ---- */

static void add_present(struct buffer *out, const struct ballot_votes *votes)
{
    json_add_key(out, "present");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < votes->count; i++) {
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "name", votes->items[i].person.name);
        json_add_key(out, "groups");
        ballot_names_write(out, &votes->items[i].person.groups);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

void electorate_view_write_json(struct buffer *out, const struct config *config,
                                const struct config_workflow *workflow)
{
    struct ballot ballot;
    size_t count;
    read_ballot(&ballot, config, workflow);
    const struct ballot_terms *terms = &ballot.terms;
    const struct ballot_need anybody = {NULL, terms->quorum};
    struct ballot_need *missing = ballot_missing(&ballot, &count);
    buffer_append_text(out, ",\"approvers\":{\"groups\":");
    ballot_names_write(out, &terms->groups);
    json_add_key(out, "people");
    ballot_names_write(out, &terms->people);
    ballot_needs_write(out, "quorum", terms->need_count > 0 ? terms->needs : &anybody,
                       terms->need_count > 0 ? terms->need_count : 1);
    add_present(out, &ballot.votes);
    ballot_needs_write(out, "missing", missing, count);
    json_add_key(out, "open");
    buffer_append_text(out, electorate_is_open(config) ? "true}" : "false}");
    free(missing);
    ballot_finish(&ballot);
}
