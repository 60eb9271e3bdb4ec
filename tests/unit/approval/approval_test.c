/* The ballot: who may vote, what votes come to, and both as JSON. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "taskgate/approval/ballot.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

static struct ballot ballot;

static void start(void)
{
    ballot_read(&ballot, STR_EMPTY, STR_EMPTY);
}

static void finish(void)
{
    ballot_finish(&ballot);
}

static void take_terms(const char *json)
{
    ballot_terms_finish(&ballot.terms);
    ballot_terms_read(&ballot.terms, str_from(json));
    ck_assert_msg(!ballot.terms.is_unreadable, "%s", json);
}

#define TERMS(groups, people, quorum)                                                              \
    "{\"groups\":[" groups "],\"people\":[" people "],\"quorum\":" quorum ",\"emergency\":[]}"

/* "alice dba security": a named person and her groups. "?ci" is the bearer of a token. */
static struct person person_of(const char *words)
{
    struct person person = {.is_named = *words != '?'};
    struct str word, rest = str_from(words + (*words == '?'));
    str_cut(rest, ' ', &word, &rest);
    person.name = strndup(word.bytes, word.length);
    while (rest.length > 0) {
        char *group;
        str_cut(rest, ' ', &word, &rest);
        group = strndup(word.bytes, word.length);
        ballot_names_add(&person.groups, group);
        free(group);
    }
    return person;
}

static struct ballot_vote *vote(const char *words, enum ballot_verb verb)
{
    struct person person = person_of(words);
    struct ballot_vote *added = ballot_votes_add(&ballot.votes, &person, verb);
    person_finish(&person);
    return added;
}

/* "2", or "dba:1 security:0". */
static void expect_missing(const char *expected)
{
    char text[256] = "";
    size_t count, length = 0;
    struct ballot_need *missing = ballot_missing(&ballot, &count);
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%d", i ? " " : "",
                                   missing[i].group ? missing[i].group : "",
                                   missing[i].group ? ":" : "", (int)missing[i].count);
    free(missing);
    ck_assert_str_eq(text, expected);
}

static enum ballot_refusal ask(const char *words, struct ballot_question question)
{
    struct person person = person_of(words);
    question.voter = &person;
    enum ballot_refusal refusal = ballot_judge(&ballot, &question);
    person_finish(&person);
    return refusal;
}

static enum ballot_refusal ask_back(const char *words, struct ballot_question question)
{
    struct person person = person_of(words);
    question.voter = &person;
    enum ballot_refusal refusal = ballot_judge_withdrawal(&ballot, &question);
    person_finish(&person);
    return refusal;
}

#define PENDING .is_pending = true
#define Q(...) ((struct ballot_question){__VA_ARGS__})

/* ---- who may ---- */

START_TEST(many_names_cost_no_more_than_their_number)
{
    struct ballot_names names = {NULL, 0}, all = {NULL, 0};
    ballot_names_add(&all, "group 7");
    names.count = 90000;
    names.items = memory_alloc_array(names.count, sizeof(char *));
    for (size_t i = 0; i < names.count; i++)
        names.items[i] = memory_format("group %zu", i / 2); /* each twice */
    clock_t begun = clock();
    ballot_names_add_all(&all, &names);
    ck_assert_uint_eq(all.count, 45000);
    ck_assert_str_eq(all.items[0], "group 7");
    ck_assert_str_eq(all.items[44999], "group 44999");
    ck_assert_int_lt((clock() - begun) / CLOCKS_PER_SEC, 2); /* time of the processor */
    ballot_names_finish(&names);
    ballot_names_finish(&all);
}
END_TEST

START_TEST(without_any_key_every_approver_decides_alone)
{
    ck_assert(ballot_terms_are_plain(&ballot.terms));
    ck_assert_int_eq(ask("?ci", Q(PENDING)), BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("alice", Q(PENDING)), BALLOT_ACCEPTED);
    expect_missing("1");
    vote("?ci", BALLOT_APPROVE);
    expect_missing("0");
    ck_assert(ballot_is_filled(&ballot));
}
END_TEST

START_TEST(approvers_are_a_group_or_people)
{
    take_terms(TERMS("\"dba\"", "\"carol\"", "1"));
    ck_assert_int_eq(ask("alice dba", Q(PENDING)), BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("carol", Q(PENDING)), BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("bob security", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask("bob security", Q(PENDING, .verb = BALLOT_REJECT)),
                     BALLOT_NOT_AN_APPROVER);
    /* A token of that group, and one of that name, are no persons. */
    ck_assert_int_eq(ask("?ci dba", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask("?carol", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
}
END_TEST

START_TEST(a_token_of_nobody_votes_only_alone_and_without_a_group)
{
    take_terms(TERMS("", "", "2"));
    ck_assert_int_eq(ask("?ci", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask("alice", Q(PENDING)), BALLOT_ACCEPTED);
    take_terms(TERMS("", "", "{\"dba\":1}"));
    ck_assert_int_eq(ask("?ci dba", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask("alice dba", Q(PENDING)), BALLOT_ACCEPTED);
}
END_TEST

/* Each row lacks everything that the rows below it lack, too. */
START_TEST(refusals_come_in_their_order)
{
    take_terms("{\"groups\":[\"dba\"],\"people\":[],\"quorum\":2,\"approveNeedsReason\":true,"
               "\"rejectNeedsReason\":true,\"emergency\":[\"oncall\"]}");
    vote("alice dba", BALLOT_APPROVE);
    vote("mallory", BALLOT_APPROVE);
    for (int verb = BALLOT_APPROVE; verb <= BALLOT_REJECT; verb++) {
        struct ballot_question question = {.is_own = true, .verb = (enum ballot_verb)verb};
        ck_assert_int_eq(ask("mallory", question), BALLOT_OWN_CALL);
        question.is_own = false;
        ck_assert_int_eq(ask("mallory", question), BALLOT_NOT_AN_APPROVER);
        ck_assert_int_eq(ask("alice dba", question), BALLOT_NOT_PENDING);
        question.is_pending = true;
        question.definition_changed = true;
        question.request_digest = "a";
        question.shown_digest = "b";
        ck_assert_int_eq(ask("alice dba", question), BALLOT_CHANGED);
        question.shown_digest = "a";
        ck_assert_int_eq(ask("alice dba", question), verb == BALLOT_APPROVE
                                                         ? BALLOT_DEFINITION_CHANGED
                                                         : BALLOT_REASON_REQUIRED);
        question.definition_changed = false;
        ck_assert_int_eq(ask("alice dba", question), BALLOT_REASON_REQUIRED);
        question.has_reason = true;
        question.typed = BALLOT_TYPED_MISSING;
        question.grant = (struct ballot_wish){.for_ms = 1, .calls = 1};
        bool is_typed = verb == BALLOT_APPROVE;
        ck_assert_int_eq(ask("alice dba", question), BALLOT_ALREADY_VOTED);
        ck_assert_int_eq(ask("bob dba", question),
                         is_typed ? BALLOT_TYPED_REQUIRED : BALLOT_GRANT_NOT_ALLOWED);
        question.typed = BALLOT_TYPED_OTHER;
        ck_assert_int_eq(ask("bob dba", question),
                         is_typed ? BALLOT_TYPED_WRONG : BALLOT_GRANT_NOT_ALLOWED);
        question.typed = BALLOT_TYPED_NOT_ASKED;
        ck_assert_int_eq(ask("bob dba", question), BALLOT_GRANT_NOT_ALLOWED);
        question.grant.calls = 0;
        ck_assert_int_eq(ask("bob dba", question), BALLOT_ACCEPTED);
        /* A digest that was not recorded, or not shown, is not compared. */
        question.request_digest = "";
        question.shown_digest = "b";
        ck_assert_int_eq(ask("bob dba", question), BALLOT_ACCEPTED);
        question.request_digest = "a";
        question.shown_digest = "";
        ck_assert_int_eq(ask("bob dba", question), BALLOT_ACCEPTED);
    }
}
END_TEST

START_TEST(a_digest_that_an_earlier_key_has_hidden_is_that_of_the_call)
{
    static const unsigned char earlier[DIGEST_KEY_BYTES] = {1}, key[DIGEST_KEY_BYTES] = {2};
    char shown[DIGEST_HEX_BYTES];
    digest_use_keys(earlier, NULL);
    digest_keyed_hex("a", shown);
    digest_use_keys(key, earlier);
    ck_assert_int_eq(ask("alice", Q(PENDING, .request_digest = "a", .shown_digest = shown)),
                     BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("alice", Q(PENDING, .request_digest = "b", .shown_digest = shown)),
                     BALLOT_CHANGED);
    digest_use_keys(key, NULL);
    ck_assert_int_eq(ask("alice", Q(PENDING, .request_digest = "a", .shown_digest = shown)),
                     BALLOT_CHANGED);
}
END_TEST

START_TEST(only_without_the_keys_may_one_reject_a_call_of_ones_own)
{
    ck_assert_int_eq(ask("alice", Q(PENDING, .is_own = true, .verb = BALLOT_REJECT)),
                     BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("alice", Q(PENDING, .is_own = true)), BALLOT_OWN_CALL);
    take_terms(TERMS("", "", "2"));
    ck_assert_int_eq(ask("alice", Q(PENDING, .is_own = true, .verb = BALLOT_REJECT)),
                     BALLOT_OWN_CALL);
}
END_TEST

START_TEST(an_emergency_is_for_its_groups_and_needs_a_reason)
{
    take_terms("{\"groups\":[\"dba\"],\"people\":[],\"quorum\":2,\"emergency\":[\"oncall\"]}");
    const struct ballot_question bare = {PENDING, .is_emergency = true};
    const struct ballot_question good = {PENDING, .is_emergency = true, .has_reason = true};
    ck_assert_int_eq(ask("alice dba", good), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask("?ci oncall", good), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask("olga oncall", bare), BALLOT_REASON_REQUIRED);
    ck_assert_int_eq(ask("olga oncall", good), BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("olga oncall", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
    take_terms(TERMS("", "", "1"));
    ck_assert_int_eq(ask("olga oncall", good), BALLOT_NOT_AN_APPROVER);
}
END_TEST

START_TEST(a_vote_is_taken_back_by_whoever_gave_it_while_the_call_waits)
{
    take_terms(TERMS("\"dba\"", "", "2"));
    vote("alice dba", BALLOT_APPROVE);
    ck_assert_int_eq(ask_back("alice", Q(PENDING)), BALLOT_ACCEPTED);
    ck_assert_int_eq(ask_back("alice dba", Q(.is_pending = false)), BALLOT_NOT_PENDING);
    ck_assert_int_eq(ask_back("bob dba", Q(PENDING)), BALLOT_NO_VOTE);
    ck_assert_int_eq(ask_back("bob", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
    ck_assert_int_eq(ask_back("bob dba", Q(PENDING, .is_own = true)), BALLOT_OWN_CALL);
}
END_TEST

START_TEST(one_is_the_same_by_name_by_subject_or_by_address)
{
    char *addresses[] = {"e", "f"};
    const struct ballot_names both = {addresses, 2}, second = {addresses + 1, 1};
    char *more[] = {"token:cli"};
    struct person alice = {
        .name = "alice", .issuer = "i", .subject = "s", .emails = both, .keys = {more, 1}};
    const struct {
        struct person other;
        bool is_same;
    } rows[] = {
        {{.name = "alice"}, true},
        {{.name = "x", .issuer = "i", .subject = "s"}, true},
        {{.name = "x", .issuer = "j", .subject = "s"}, false},
        {{.name = "x", .issuer = "i", .subject = "t"}, false},
        {{.name = "x", .emails = second}, true},
        {{.name = "x"}, false},
        {{.name = "x", .via = "token", .credential = "cli"}, true},
        {{.name = "x", .via = "slack", .credential = "cli"}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(person_is(&alice, &rows[i].other), rows[i].is_same);
}
END_TEST

START_TEST(a_call_is_ones_own_by_any_key)
{
    char address[DIGEST_HEX_BYTES], owner[PERSON_SUBJECT_BYTES], agent[PERSON_SUBJECT_BYTES];
    person_email_digest("alice@example.org", address);
    person_subject_owner("i", "s", owner);
    person_subject_owner("agents", "s", agent);
    char *addresses[] = {"e", address}, *more[] = {"token:laptop", agent};
    const struct person alice = {.name = "alice",
                                 .via = "token",
                                 .credential = "cli",
                                 .issuer = "i",
                                 .subject = "s",
                                 .emails = {addresses, 2},
                                 .keys = {more, 2}};
    const struct {
        struct person_maker maker;
        bool is_own;
    } rows[] = {
        {{"admin:alice", "", ""}, true},
        {{"admin:cli", "", ""}, true},
        {{"admin:laptop", "", ""}, true}, /* of before that token had a person */
        {{"admin:bob", "", ""}, false},
        {{"admin:bob", "", "[\"token:cli\"]"}, true}, /* of before a reload */
        {{"admin:bob", "", "[\"token:other\",\"name:bob\"]"}, false},
        {{"admin:bob", "", "not JSON"}, false},
        {{owner, "", ""}, true},
        {{agent, "", ""}, true},
        {{"sub:1", address, ""}, true},
        {{"sub:1", "f", ""}, false},
        {{"anonymous", "", ""}, false},
        {{"session:1", "", ""}, false},
        {{"auth:1", "", ""}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(person_made(&alice, &rows[i].maker) == rows[i].is_own, "row %zu", i);
}
END_TEST

/* ---- what votes come to ---- */

START_TEST(a_rejection_and_a_vote_that_fell_are_no_approvals)
{
    take_terms(TERMS("\"dba\"", "", "3"));
    vote("alice dba", BALLOT_APPROVE);
    vote("bob dba", BALLOT_REJECT);
    vote("carol dba", BALLOT_APPROVE)->stands = false;
    vote("dave security", BALLOT_APPROVE); /* has left the group */
    expect_missing("2");
    ck_assert_int_eq(ballot_approvals(&ballot), 1);
}
END_TEST

START_TEST(two_that_became_one_person_count_once)
{
    take_terms(TERMS("", "", "2"));
    ballot_names_add(&vote("alice", BALLOT_APPROVE)->person.emails, "e");
    ballot_names_add(&vote("a-subject", BALLOT_APPROVE)->person.emails, "e");
    expect_missing("1");
    take_terms(TERMS("", "", "{\"dba\":1,\"ops\":1}"));
    ballot_names_add(&ballot.votes.items[0].person.groups, "dba");
    ballot_names_add(&ballot.votes.items[1].person.groups, "ops");
    expect_missing("dba:0 ops:1");
}
END_TEST

START_TEST(a_person_fills_one_place)
{
    take_terms(TERMS("", "", "{\"dba\":1,\"security\":1}"));
    expect_missing("dba:1 security:1");
    vote("alice dba security", BALLOT_APPROVE);
    expect_missing("dba:0 security:1");
    /* First come would leave alice at dba, and bob without a place. */
    vote("bob dba", BALLOT_APPROVE);
    expect_missing("dba:0 security:0");
    ck_assert(ballot_is_filled(&ballot));
}
END_TEST

START_TEST(a_voter_without_a_place_changes_nothing)
{
    take_terms(TERMS("", "", "{\"dba\":2}"));
    vote("alice ops", BALLOT_APPROVE);
    vote("bob dba", BALLOT_APPROVE);
    expect_missing("dba:1");
}
END_TEST

/* The most places that any way of giving them out fills, by trying all. */
static int most_filled(const int *places, size_t group_count, const unsigned *groups,
                       size_t person_count)
{
    if (person_count == 0)
        return 0;
    int best = most_filled(places, group_count, groups + 1, person_count - 1);
    for (size_t group = 0; group < group_count; group++) {
        int left[4];
        if (!(groups[0] & 1u << group) || places[group] == 0)
            continue;
        memcpy(left, places, sizeof left);
        left[group]--;
        int filled = 1 + most_filled(left, group_count, groups + 1, person_count - 1);
        best = filled > best ? filled : best;
    }
    return best;
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

START_TEST(no_way_of_giving_out_the_places_fills_more)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    unsigned seed = (unsigned)_i + 1;
    for (int round = 0; round < 400; round++) {
        int places[4] = {0};
        unsigned groups[6];
        size_t group_count = 1 + next_random(&seed) % 4, person_count = next_random(&seed) % 7;
        int wanted = 0, left = 0;
        finish();
        start();
        for (size_t i = 0; i < group_count; i++) {
            places[i] = 1 + (int)(next_random(&seed) % 3);
            wanted += places[i];
            ballot_terms_add_need(&ballot.terms, names[i], places[i]);
        }
        for (size_t i = 0; i < person_count; i++) {
            char words[32];
            int length = snprintf(words, sizeof words, "person%zu", i);
            groups[i] = next_random(&seed) % 16;
            for (size_t k = 0; k < 4; k++) {
                if (groups[i] & 1u << k)
                    length +=
                        snprintf(words + length, sizeof words - (size_t)length, " %s", names[k]);
            }
            vote(words, BALLOT_APPROVE);
        }
        size_t count;
        struct ballot_need *missing = ballot_missing(&ballot, &count);
        ck_assert_uint_eq(count, group_count);
        for (size_t i = 0; i < count; i++)
            left += (int)missing[i].count;
        free(missing);
        ck_assert_int_eq(left, wanted - most_filled(places, group_count, groups, person_count));
        ck_assert_int_eq(ballot_is_filled(&ballot), left == 0);
    }
}
END_TEST

/* ---- as JSON ---- */

static void expect_terms(const char *json)
{
    struct buffer out;
    buffer_init(&out);
    take_terms(json);
    ballot_terms_write(&out, &ballot.terms);
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(out.bytes, json);
    buffer_finish(&out);
}

START_TEST(terms_come_back_as_they_were_written)
{
    expect_terms("{\"groups\":[\"d\\\"ba\"],\"people\":[\"carol\"],\"quorum\":2,"
                 "\"approveNeedsReason\":true,\"rejectNeedsReason\":false,\"emergency\":[\"on\"]}");
    expect_terms("{\"groups\":[],\"people\":[],\"quorum\":{\"dba\":1,\"s\\\"ec\":2},"
                 "\"approveNeedsReason\":false,\"rejectNeedsReason\":true,\"emergency\":[]}");
    ck_assert_int_eq(ballot_terms_persons(&ballot.terms), 3);
    struct buffer out;
    buffer_init(&out);
    ballot_terms_finish(&ballot.terms);
    ballot_terms_write(&out, &ballot.terms);
    ck_assert_uint_eq(out.length, 0);
    buffer_finish(&out);
}
END_TEST

#define GRANTS                                                                                     \
    "{\"groups\":[],\"people\":[],\"quorum\":2,\"approveNeedsReason\":false,"                      \
    "\"rejectNeedsReason\":false,\"emergency\":[\"ops\"],\"grants\":{\"maxMs\":60000,"             \
    "\"maxCalls\":5,\"vary\":[\"note\"],\"by\":[\"dba\"]},\"allowEdit\":[\"a.b\"]}"

#define WISH(for_ms, calls) .grant = {for_ms, calls}

START_TEST(a_grant_is_refused_beyond_the_terms_and_to_others)
{
    expect_terms(GRANTS);
    ck_assert_int_eq(ask("alice dba", Q(PENDING, WISH(60000, 5))), BALLOT_ACCEPTED);
    ck_assert_int_eq(ask("alice dba", Q(PENDING, WISH(60001, 5))), BALLOT_GRANT_TOO_LARGE);
    ck_assert_int_eq(ask("alice dba", Q(PENDING, WISH(60000, 6))), BALLOT_GRANT_TOO_LARGE);
    ck_assert_int_eq(ask("carol", Q(PENDING, WISH(60000, 6))), BALLOT_NOT_A_GRANTER);
    ck_assert_int_eq(ask("carol", Q(WISH(60000, 6))), BALLOT_NOT_PENDING);
    ck_assert_int_eq(
        ask("bob dba ops", Q(PENDING, WISH(1, 1), .is_emergency = true, .has_reason = true)),
        BALLOT_GRANT_NOT_ALLOWED);
    take_terms(TERMS("", "", "1"));
    ck_assert_int_eq(ask("alice dba", Q(PENDING, WISH(1, 1))), BALLOT_GRANT_NOT_ALLOWED);
}
END_TEST

START_TEST(a_grant_is_what_all_approvals_that_count_ask_for)
{
    struct ballot_wish wish;
    take_terms(GRANTS);
    ck_assert(!ballot_grant(&ballot, &wish));
    vote("alice dba", BALLOT_APPROVE)->grant = (struct ballot_wish){60000, 5};
    ck_assert(ballot_grant(&ballot, &wish));
    struct ballot_vote *fallen = vote("dave dba", BALLOT_APPROVE);
    fallen->stands = false;
    ck_assert(ballot_grant(&ballot, &wish));
    vote("bob dba", BALLOT_APPROVE)->grant = (struct ballot_wish){60000, 5};
    ck_assert(ballot_grant(&ballot, &wish));
    ck_assert_int_eq(wish.for_ms, 60000);
    ck_assert_int_eq(wish.calls, 5);
    ballot.votes.items[2].grant.calls = 4;
    ck_assert(!ballot_grant(&ballot, &wish));
    ballot.votes.items[2].grant.calls = 0;
    ck_assert(!ballot_grant(&ballot, &wish));
}
END_TEST

START_TEST(votes_come_back_as_they_were_written)
{
    struct buffer first, again;
    struct ballot_vote *emergency = vote("alice dba ops", BALLOT_APPROVE);
    emergency->is_emergency = true;
    emergency->grant = (struct ballot_wish){3600000, 20};
    emergency->at_ms = INT64_C(1793000000123);
    emergency->reason = strdup("the \"site\" is down");
    emergency->person.via = strdup("oidc");
    emergency->person.issuer = strdup("https://id.example");
    emergency->person.subject = strdup("a");
    ballot_names_add(&emergency->person.emails, "e");
    vote("?ci", BALLOT_REJECT)->person.credential = strdup("ci");
    buffer_init(&first);
    buffer_init(&again);
    ballot_votes_write(&first, &ballot.votes);
    ballot_votes_finish(&ballot.votes);
    ck_assert(ballot_votes_read(&ballot.votes, buffer_str(&first)));
    ck_assert_uint_eq(ballot.votes.count, 2);
    ballot_votes_write(&again, &ballot.votes);
    ck_assert(str_equal(buffer_str(&first), buffer_str(&again)));
    emergency = &ballot.votes.items[0];
    ck_assert(emergency->is_emergency && emergency->stands && emergency->person.is_named);
    ck_assert_int_eq(emergency->at_ms, INT64_C(1793000000123));
    ck_assert_str_eq(emergency->reason, "the \"site\" is down");
    ck_assert(ballot_names_has(&emergency->person.groups, "ops"));
    ck_assert_ptr_null(ballot.votes.items[1].reason);
    ballot_votes_remove(&ballot.votes, 0);
    ck_assert_str_eq(ballot.votes.items[0].person.name, "ci");
    ck_assert(!ballot.votes.items[0].person.is_named);
    buffer_finish(&first);
    buffer_finish(&again);
}
END_TEST

/* A file that somebody has edited decides nothing. */
START_TEST(an_unreadable_ballot_lets_nobody_vote)
{
    static const struct {
        const char *terms, *votes;
    } rows[] = {
        {"{", ""},
        {"[]", ""},
        {"{}", ""},
        {TERMS("", "", "0"), ""},
        {TERMS("", "", "101"), ""},
        {TERMS("", "", "{}"), ""},
        {TERMS("", "", "{\"dba\":0}"), ""},
        {TERMS("", "", "{\"dba\":60,\"ops\":60}"), ""},
        {"", "{}"},
        {"", "[{}]"},
        {"", "[{\"at\":1,\"person\":\"a\",\"verb\":\"maybe\"}]"},
        {"", "[{\"at\":-1,\"person\":\"a\",\"verb\":\"approve\"}]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        finish();
        ballot_read(&ballot, str_from(rows[i].terms), str_from(rows[i].votes));
        ck_assert_msg(ballot.terms.is_unreadable, "row %zu", i);
        ck_assert_int_eq(ask("alice", Q(PENDING)), BALLOT_NOT_AN_APPROVER);
        ck_assert(!ballot_is_filled(&ballot));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("approval");
    TCase *tests = tcase_create("ballot");
    tcase_add_checked_fixture(tests, start, finish);
    tcase_add_test(tests, many_names_cost_no_more_than_their_number);
    tcase_add_test(tests, without_any_key_every_approver_decides_alone);
    tcase_add_test(tests, approvers_are_a_group_or_people);
    tcase_add_test(tests, a_token_of_nobody_votes_only_alone_and_without_a_group);
    tcase_add_test(tests, refusals_come_in_their_order);
    tcase_add_test(tests, a_digest_that_an_earlier_key_has_hidden_is_that_of_the_call);
    tcase_add_test(tests, only_without_the_keys_may_one_reject_a_call_of_ones_own);
    tcase_add_test(tests, an_emergency_is_for_its_groups_and_needs_a_reason);
    tcase_add_test(tests, a_vote_is_taken_back_by_whoever_gave_it_while_the_call_waits);
    tcase_add_test(tests, one_is_the_same_by_name_by_subject_or_by_address);
    tcase_add_test(tests, a_call_is_ones_own_by_any_key);
    tcase_add_test(tests, a_rejection_and_a_vote_that_fell_are_no_approvals);
    tcase_add_test(tests, two_that_became_one_person_count_once);
    tcase_add_test(tests, a_person_fills_one_place);
    tcase_add_test(tests, a_voter_without_a_place_changes_nothing);
    tcase_add_loop_test(tests, no_way_of_giving_out_the_places_fills_more, 0, 10);
    tcase_add_test(tests, terms_come_back_as_they_were_written);
    tcase_add_test(tests, a_grant_is_refused_beyond_the_terms_and_to_others);
    tcase_add_test(tests, a_grant_is_what_all_approvals_that_count_ask_for);
    tcase_add_test(tests, votes_come_back_as_they_were_written);
    tcase_add_test(tests, an_unreadable_ballot_lets_nobody_vote);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
