/* The right to vote, and the outcome of votes. */
#include "taskgate/approval/ballot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"

void ballot_read(struct ballot *ballot, struct str terms, struct str votes)
{
    ballot_terms_read(&ballot->terms, terms);
    if (!ballot_votes_read(&ballot->votes, votes))
        ballot->terms.is_unreadable = true;
}

void ballot_finish(struct ballot *ballot)
{
    ballot_terms_finish(&ballot->terms);
    ballot_votes_finish(&ballot->votes);
}

/* ---- who may ---- */

const char *ballot_refusal_code(enum ballot_refusal refusal)
{
    static const char *const codes[] = {
        [BALLOT_ACCEPTED] = NULL,
        [BALLOT_OWN_CALL] = "own_call",
        [BALLOT_NOT_AN_APPROVER] = "not_an_approver",
        [BALLOT_NOT_PENDING] = "conflict",
        [BALLOT_CHANGED] = "changed",
        [BALLOT_DEFINITION_CHANGED] = "definition_changed",
        [BALLOT_REASON_REQUIRED] = "reason_required",
        [BALLOT_ALREADY_VOTED] = "already_voted",
        [BALLOT_TYPED_REQUIRED] = "typed_required",
        [BALLOT_TYPED_WRONG] = "typed_wrong",
        [BALLOT_NO_VOTE] = "no_vote",
        [BALLOT_NOT_A_GRANTER] = "not_a_granter",
        [BALLOT_GRANT_NOT_ALLOWED] = "grant_not_allowed",
        [BALLOT_EDIT_NOT_ALLOWED] = "edit_not_allowed",
        [BALLOT_GRANT_TOO_LARGE] = "grant_too_large",
    };
    ASSERT_NUMBERS(refusal, <, sizeof codes / sizeof *codes);
    return codes[refusal];
}

/* Somebody may bear several tokens that name nobody, and be counted twice. */
static bool takes_unnamed(const struct ballot_terms *terms)
{
    return terms->quorum == 1 && terms->groups.count == 0 && terms->people.count == 0;
}

bool ballot_may_vote(const struct ballot_terms *terms, const struct person *person)
{
    if (terms->is_unreadable || (!person->is_named && !takes_unnamed(terms)))
        return false;
    if (terms->groups.count == 0 && terms->people.count == 0)
        return true;
    return ballot_names_meet(&terms->groups, &person->groups) ||
           ballot_names_has(&terms->people, person->name);
}

bool ballot_may_in_emergency(const struct ballot_terms *terms, const struct person *person)
{
    return !terms->is_unreadable && person->is_named &&
           ballot_names_meet(&terms->emergency, &person->groups);
}

bool ballot_may_grant(const struct ballot_terms *terms, const struct person *person)
{
    const struct ballot_names *by = &terms->grants.by;
    bool is_asked_for = by->count > 0;
    return terms->grants.are_offered && ballot_may_vote(terms, person) &&
           (!is_asked_for || (person->is_named && ballot_names_meet(by, &person->groups)));
}

static enum ballot_refusal judge_wish(const struct ballot_terms *terms,
                                      const struct ballot_question *question)
{
    const struct ballot_grants *grants = &terms->grants;
    const struct ballot_wish *wish = &question->grant;
    if (wish->calls == 0)
        return BALLOT_ACCEPTED;
    if (!grants->are_offered || question->is_emergency || question->verb != BALLOT_APPROVE)
        return BALLOT_GRANT_NOT_ALLOWED;
    if (!ballot_may_grant(terms, question->voter))
        return BALLOT_NOT_A_GRANTER;
    return wish->calls > grants->max_calls || wish->for_ms > grants->max_ms ? BALLOT_GRANT_TOO_LARGE
                                                                            : BALLOT_ACCEPTED;
}

/* The digest of a request with hidden values was shown keyed. */
static bool was_shown_another(const struct ballot_question *question)
{
    const char *is = question->request_digest, *was = question->shown_digest;
    if (!is || !*is || !was || !*was || strcmp(is, was) == 0)
        return false;
    return !digest_is_keyed(is, was);
}

enum ballot_refusal ballot_judge(const struct ballot *ballot,
                                 const struct ballot_question *question)
{
    const struct ballot_terms *terms = &ballot->terms;
    bool is_approval = question->verb == BALLOT_APPROVE;
    bool needs_reason = question->is_emergency ||
                        (is_approval ? terms->approve_needs_reason : terms->reject_needs_reason);
    bool may = question->is_emergency ? ballot_may_in_emergency(terms, question->voter)
                                      : ballot_may_vote(terms, question->voter);
    /* Where any one person decides, the maker of a call may still end it by a rejection. */
    bool may_own = !is_approval && ballot_terms_are_plain(terms);
    if (question->is_own && !may_own)
        return BALLOT_OWN_CALL;
    if (!may)
        return BALLOT_NOT_AN_APPROVER;
    if (!question->is_pending)
        return BALLOT_NOT_PENDING;
    if (was_shown_another(question))
        return BALLOT_CHANGED;
    if (is_approval && question->definition_changed)
        return BALLOT_DEFINITION_CHANGED;
    if (needs_reason && !question->has_reason)
        return BALLOT_REASON_REQUIRED;
    if (ballot_votes_of(&ballot->votes, question->voter))
        return BALLOT_ALREADY_VOTED;
    if (is_approval && question->typed == BALLOT_TYPED_MISSING)
        return BALLOT_TYPED_REQUIRED;
    if (is_approval && question->typed == BALLOT_TYPED_OTHER)
        return BALLOT_TYPED_WRONG;
    return judge_wish(terms, question);
}

/* A voter may take their vote back, also if they may no longer vote. */
enum ballot_refusal ballot_judge_withdrawal(const struct ballot *ballot,
                                            const struct ballot_question *question)
{
    bool has_voted = ballot_votes_of(&ballot->votes, question->voter) != NULL;
    if (!has_voted && question->is_own)
        return BALLOT_OWN_CALL;
    if (!has_voted && !ballot_may_vote(&ballot->terms, question->voter))
        return BALLOT_NOT_AN_APPROVER;
    if (!question->is_pending)
        return BALLOT_NOT_PENDING;
    if (was_shown_another(question))
        return BALLOT_CHANGED;
    return has_voted ? BALLOT_ACCEPTED : BALLOT_NO_VOTE;
}

/* ---- what votes come to ---- */

static bool ballot_counts(const struct ballot *ballot, size_t index)
{
    const struct ballot_vote *vote = &ballot->votes.items[index];
    return vote->verb == BALLOT_APPROVE && vote->stands &&
           ballot_may_vote(&ballot->terms, &vote->person);
}

/* Two that were two persons when they voted may be known as one by now. */
static bool is_first_of_person(const struct ballot *ballot, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (ballot_counts(ballot, i) &&
            person_is(&ballot->votes.items[i].person, &ballot->votes.items[index].person))
            return false;
    }
    return true;
}

int64_t ballot_approvals(const struct ballot *ballot)
{
    int64_t approvals = 0;
    for (size_t i = 0; i < ballot->votes.count; i++)
        approvals += ballot_counts(ballot, i) && is_first_of_person(ballot, i);
    return approvals;
}

/* The places of all groups, one beside the other, and the persons for them. */
struct matching {
    const struct ballot_terms *terms;
    const struct ballot_vote **voters;
    size_t voter_count;
    size_t *places; /* of each voter: its need plus one; 0: none */
    bool *is_tried; /* of each voter, in this search */
};

/* Finds a person for a place of `need`. Another who stands there may be moved to another place. */
static bool fill_place(struct matching *matching, size_t need)
{
    for (size_t i = 0; i < matching->voter_count; i++) {
        bool fits = ballot_names_has(&matching->voters[i]->person.groups,
                                     matching->terms->needs[need].group);
        if (!fits || matching->is_tried[i])
            continue;
        matching->is_tried[i] = true;
        if (matching->places[i] == 0 || fill_place(matching, matching->places[i] - 1)) {
            matching->places[i] = need + 1;
            return true;
        }
    }
    return false;
}

static void fill_places(struct matching *matching, struct ballot_need *missing)
{
    for (size_t need = 0; need < matching->terms->need_count; need++) {
        for (int64_t place = 0; place < matching->terms->needs[need].count; place++) {
            memset(matching->is_tried, 0, matching->voter_count * sizeof *matching->is_tried);
            if (!fill_place(matching, need))
                break;
            ASSERT_NUMBERS(missing[need].count, >, 0);
            missing[need].count--;
        }
    }
}

static void ballot_match(const struct ballot *ballot, struct ballot_need *missing)
{
    size_t count = ballot->votes.count;
    struct matching matching = {
        .terms = &ballot->terms,
        .voters = memory_alloc_array(count + 1, sizeof(struct ballot_vote *)),
        .places = memory_alloc_array(count + 1, sizeof(size_t)),
        .is_tried = memory_alloc_array(count + 1, sizeof(bool)),
    };
    for (size_t i = 0; i < count; i++) {
        if (ballot_counts(ballot, i) && is_first_of_person(ballot, i))
            matching.voters[matching.voter_count++] = &ballot->votes.items[i];
    }
    ASSERT_NUMBERS(matching.voter_count, <=, count);
    fill_places(&matching, missing);
    free((void *)matching.voters);
    free(matching.places);
    free(matching.is_tried);
}

struct ballot_need *ballot_missing(const struct ballot *ballot, size_t *count)
{
    const struct ballot_terms *terms = &ballot->terms;
    *count = terms->need_count > 0 ? terms->need_count : 1;
    struct ballot_need *missing = memory_alloc_array(*count, sizeof *missing);
    if (terms->need_count > 0) {
        memcpy(missing, terms->needs, terms->need_count * sizeof *missing);
        ballot_match(ballot, missing);
    } else {
        int64_t left = terms->quorum - ballot_approvals(ballot);
        missing[0].count = left > 0 ? left : 0;
    }
    return missing;
}

bool ballot_grant(const struct ballot *ballot, struct ballot_wish *wish)
{
    *wish = (struct ballot_wish){0, 0};
    for (size_t i = 0; i < ballot->votes.count; i++) {
        const struct ballot_vote *vote = &ballot->votes.items[i];
        if (!ballot_counts(ballot, i))
            continue;
        if (vote->grant.calls == 0 || !ballot_may_grant(&ballot->terms, &vote->person) ||
            (wish->calls > 0 &&
             (vote->grant.calls != wish->calls || vote->grant.for_ms != wish->for_ms)))
            return false;
        *wish = vote->grant;
    }
    return wish->calls > 0;
}

bool ballot_is_filled(const struct ballot *ballot)
{
    size_t count;
    struct ballot_need *missing = ballot_missing(ballot, &count);
    int64_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += missing[i].count;
    free(missing);
    return left == 0 && !ballot->terms.is_unreadable;
}

void ballot_needs_write(struct buffer *out, const char *key, const struct ballot_need *needs,
                        size_t count)
{
    const char *joint = "";
    json_add_key(out, key);
    buffer_append_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (needs[i].count == 0)
            continue;
        buffer_append_text(out, joint);
        buffer_append_json_string(out, str_from(needs[i].group ? needs[i].group : "count"));
        buffer_append_format(out, ":%" PRId64, needs[i].count);
        joint = ",";
    }
    buffer_append_char(out, '}');
}
