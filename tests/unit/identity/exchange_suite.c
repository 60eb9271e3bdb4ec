/* Trading tokens at an issuer's token endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "site.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/exchanger.h"
#include "taskgate/identity/oauth.h"

static struct site site;
static struct fetcher *fetcher;
static struct exchanger *exchanger;
static char token_url[96];
static struct exchanger_settings settings;

struct outcome {
    int count;
    enum exchanger_result result;
    char token[64];
};

static void set_up(void)
{
    struct error error = {0};
    site_open(&site);
    fetcher = fetcher_create(&error);
    ck_assert_msg(fetcher, "%s", error.message);
    snprintf(token_url, sizeof token_url, "%s/token", site.url);
    settings = (struct exchanger_settings){.token_url = token_url,
                                           .client_id = "gate way",
                                           .client_secret = "s:%",
                                           .audience = "https://up.example/"};
    exchanger = exchanger_create(fetcher, &settings, 2);
}

static void tear_down(void)
{
    exchanger_unref(exchanger);
    fetcher_destroy(fetcher);
    loop_run_once(site.loop, 0); /* the answers, and then those who wait for them */
    loop_run_once(site.loop, 0);
    site_close(&site);
}

static void note(void *context, enum exchanger_result result, struct str token)
{
    struct outcome *outcome = context;
    outcome->count++;
    outcome->result = result;
    snprintf(outcome->token, sizeof outcome->token, "%.*s", STR_ARGS(token));
}

static struct exchanger_wait *ask(const char *token, int64_t until_ms, struct outcome *outcome)
{
    const struct exchanger_order order = {.digest = token_digest(str_from(token)),
                                          .token = str_from(token),
                                          .until_ms = until_ms,
                                          .loop = site.loop};
    return exchanger_request(exchanger, &order, note, outcome);
}

static bool is_known(const char *token, int64_t now_ms, const char *traded)
{
    struct token_digest digest = token_digest(str_from(token));
    char *known = exchanger_find(exchanger, &digest, now_ms);
    bool is_it = strcmp(known ? known : "", traded) == 0;
    free(known);
    return is_it;
}

START_TEST(a_token_is_traded_once_and_kept_to_its_end)
{
    struct outcome first = {0}, second = {0};
    int64_t now_ms = clock_now_ms();
    struct page *page =
        site_page(&site, "/token", 200,
                  STR("{\"access_token\":\"up-1\",\"token_type\":\"bearer\",\"expires_in\":100}"));
    ck_assert(is_known("a.b.c", now_ms, ""));
    ck_assert_ptr_nonnull(ask("a.b.c", now_ms + 3600000, &first));
    ck_assert_ptr_nonnull(ask("a.b.c", now_ms + 3600000, &second));
    until(&site, first.count && second.count);
    ck_assert_int_eq(page->asked, 1);
    ck_assert_int_eq(first.result, EXCHANGER_DONE);
    ck_assert_str_eq(second.token, "up-1");
    /* "gate way" and "s:%", each encoded, joined, in base64 */
    ck_assert_str_eq(page->authorization, "Basic Z2F0ZSUyMHdheTpzJTNBJTI1");
    buffer_append_char(&page->received, '\0');
    ck_assert_str_eq(page->received.bytes,
                     "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
                     "&subject_token=a.b.c"
                     "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
                     "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
                     "&audience=https%3A%2F%2Fup.example%2F");
    ck_assert(is_known("a.b.c", now_ms + 99000, "up-1"));
    ck_assert(is_known("a.b.d", now_ms, ""));
    ck_assert(is_known("a.b.c", clock_now_ms() + 100001, ""));
    ck_assert(is_known("a.b.c", now_ms, "")); /* forgotten */
}
END_TEST

/* A token from an exchange ends with the token that was traded for it. */
START_TEST(the_token_that_was_traded_bounds_the_other)
{
    struct outcome outcome = {0};
    int64_t now_ms = clock_now_ms();
    site_page(&site, "/token", 200,
              STR("{\"access_token\":\"up\",\"token_type\":\"Bearer\",\"expires_in\":9999}"));
    ask("a.b.c", now_ms + 50000, &outcome);
    until(&site, outcome.count);
    ck_assert(is_known("a.b.c", now_ms + 49999, "up"));
    ck_assert(is_known("a.b.c", now_ms + 50000, ""));
}
END_TEST

static const struct {
    int status;
    const char *body;
    enum exchanger_result result;
} answers[] = {
    {400, "{\"error\":\"invalid_grant\"}", EXCHANGER_REFUSED},
    {400, "{\"error\":\"invalid_target\"}", EXCHANGER_FORBIDDEN},
    {400, "{\"error\":\"invalid_scope\"}", EXCHANGER_FORBIDDEN},
    {400, "{\"error\":\"invalid_request\"}", EXCHANGER_REFUSED},
    {400, "", EXCHANGER_REFUSED},
    {403, "", EXCHANGER_FORBIDDEN},
    {403, "{\"error\":\"access_denied\"}", EXCHANGER_FORBIDDEN},
    {400, "{\"error\":\"unauthorized_client\"}", EXCHANGER_UNAVAILABLE},
    {429, "", EXCHANGER_UNAVAILABLE},
    {400, "{\"error\":\"invalid_client\"}", EXCHANGER_UNAVAILABLE},
    {401, "{\"error\":\"invalid_client\"}", EXCHANGER_UNAVAILABLE},
    {500, "", EXCHANGER_UNAVAILABLE},
    {302, "", EXCHANGER_UNAVAILABLE},
    {200, "", EXCHANGER_UNAVAILABLE},
    {200, "{\"access_token\":\"up\"}", EXCHANGER_UNAVAILABLE},
    {200, "{\"access_token\":\"up\",\"token_type\":\"N_A\"}", EXCHANGER_UNAVAILABLE},
    {200, "{\"access_token\":\"u p\",\"token_type\":\"Bearer\"}", EXCHANGER_UNAVAILABLE},
    {200, "{\"access_token\":\"u\\r\\np\",\"token_type\":\"Bearer\"}", EXCHANGER_UNAVAILABLE},
    {200, "{\"access_token\":7,\"token_type\":\"Bearer\"}", EXCHANGER_UNAVAILABLE},
    {200, "{\"token_type\":\"Bearer\"}", EXCHANGER_UNAVAILABLE},
};

START_TEST(other_answers_trade_nothing)
{
    struct outcome outcome = {0};
    struct page *page = site_page(&site, "/token", answers[_i].status, str_from(answers[_i].body));
    ask("a.b.c", clock_now_ms() + 50000, &outcome);
    until(&site, outcome.count);
    ck_assert_int_eq(outcome.result, answers[_i].result);
    ck_assert_str_eq(outcome.token, "");
    ck_assert(is_known("a.b.c", clock_now_ms(), ""));
    /* A refusal is remembered, an outage is not. */
    bool is_refused = answers[_i].result != EXCHANGER_UNAVAILABLE;
    outcome.result = EXCHANGER_DONE;
    ask("a.b.c", clock_now_ms() + 50000, &outcome);
    ck_assert_int_eq(outcome.count, 1); /* never from inside */
    until(&site, outcome.count == 2);
    ck_assert_int_eq(outcome.result, answers[_i].result);
    ck_assert_int_eq(page->asked, is_refused ? 1 : 2);
}
END_TEST

START_TEST(a_refusal_is_remembered_for_its_token_alone_and_not_for_long)
{
    struct outcome outcome = {0}, left = {0};
    struct page *page = site_page(&site, "/token", 400, STR("{\"error\":\"invalid_grant\"}"));
    ask("a.b.c", clock_now_ms() + 300, &outcome); /* not longer than the token */
    until(&site, outcome.count == 1);
    exchanger_wait_cancel(ask("a.b.c", clock_now_ms() + 300, &left));
    ask("a.b.d", clock_now_ms() + 50000, &outcome);
    until(&site, outcome.count == 2);
    ck_assert_int_eq(page->asked, 2);
    ck_assert_int_eq(left.count, 0);
    int64_t end_ms = clock_now_ms() + 300;
    until(&site, clock_now_ms() > end_ms);
    ask("a.b.c", clock_now_ms() + 50000, &outcome);
    until(&site, outcome.count == 3);
    ck_assert_int_eq(page->asked, 3);
    exchanger_wait_cancel(ask("a.b.c", clock_now_ms() + 50000, &outcome));
}
END_TEST

START_TEST(no_more_are_kept_than_there_is_room_for)
{
    int64_t now_ms = clock_now_ms();
    site_page(&site, "/token", 200,
              STR("{\"access_token\":\"up\",\"token_type\":\"Bearer\",\"expires_in\":9999}"));
    static const char *const tokens[] = {"a", "b", "c"};
    static const int64_t ends[] = {60000, 50000, 70000};
    for (unsigned i = 0; i < 3; i++) {
        struct outcome outcome = {0};
        ask(tokens[i], now_ms + ends[i], &outcome);
        until(&site, outcome.count);
    }
    ck_assert(is_known("a", now_ms, "up"));
    ck_assert(is_known("b", now_ms, ""));
    ck_assert(is_known("c", now_ms, "up"));
}
END_TEST

START_TEST(one_who_left_is_not_told)
{
    struct outcome left = {0}, stayed = {0};
    site_page(&site, "/token", 200, STR("{\"access_token\":\"up\",\"token_type\":\"Bearer\"}"));
    exchanger_wait_cancel(ask("a.b.c", clock_now_ms() + 50000, &left));
    ask("a.b.c", clock_now_ms() + 50000, &stayed);
    until(&site, stayed.count);
    ck_assert_int_eq(left.count, 0);
}
END_TEST

START_TEST(an_endpoint_that_says_nothing_does_not_pile_up_requests)
{
    static struct outcome outcome; /* they are told at the end */
    char token[16];
    site_page(&site, "/token", 0, STR(""));
    for (unsigned i = 0; i < 100; i++) {
        snprintf(token, sizeof token, "t%u", i);
        ck_assert_ptr_nonnull(ask(token, clock_now_ms() + 50000, &outcome));
    }
    ck_assert_ptr_null(ask("one-more", clock_now_ms() + 50000, &outcome));
    ck_assert_ptr_nonnull(ask("t5", clock_now_ms() + 50000, &outcome));
}
END_TEST

START_TEST(a_client_says_its_secret_where_the_issuer_wants_it)
{
    struct page *page = site_page(&site, "/token", 200, STR("{}"));
    struct oauth_client client = {"c", "s", true};
    struct oauth_parameter parameters[] = {{"code", STR("x&y")}, {"none", STR_EMPTY}};
    oauth_post(fetcher, token_url, &client, parameters, 2, site.loop, NULL, NULL);
    until(&site, page->asked == 1);
    ck_assert(
        str_equal(buffer_str(&page->received), STR("code=x%26y&client_id=c&client_secret=s")));
    ck_assert_str_eq(page->authorization, "");
    client = (struct oauth_client){"c", NULL, false};
    oauth_post(fetcher, token_url, &client, parameters, 2, site.loop, NULL, NULL);
    until(&site, page->asked == 2);
    ck_assert(str_equal(buffer_str(&page->received), STR("code=x%26y&client_id=c")));
}
END_TEST

START_TEST(error_codes_are_fit_for_a_log)
{
    char code[OAUTH_ERROR_BYTES];
    oauth_error_code(STR("{\"error\":\"invalid_grant\"}"), code);
    ck_assert_str_eq(code, "invalid_grant");
    oauth_error_code(STR("{\"error\":\"a\\nb c\"}"), code);
    ck_assert_str_eq(code, "a?b?c");
    oauth_error_code(STR("{\"error\":{}}"), code);
    ck_assert_str_eq(code, "");
    oauth_error_code(STR("<html>"), code);
    ck_assert_str_eq(code, "");
}
END_TEST

Suite *exchange_suite(void)
{
    Suite *suite = suite_create("exchange");
    TCase *tests = tcase_create("exchange");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_token_is_traded_once_and_kept_to_its_end);
    tcase_add_test(tests, the_token_that_was_traded_bounds_the_other);
    tcase_add_loop_test(tests, other_answers_trade_nothing, 0,
                        (int)(sizeof answers / sizeof *answers));
    tcase_add_test(tests, a_refusal_is_remembered_for_its_token_alone_and_not_for_long);
    tcase_add_test(tests, no_more_are_kept_than_there_is_room_for);
    tcase_add_test(tests, one_who_left_is_not_told);
    tcase_add_test(tests, an_endpoint_that_says_nothing_does_not_pile_up_requests);
    tcase_add_test(tests, a_client_says_its_secret_where_the_issuer_wants_it);
    tcase_add_test(tests, error_codes_are_fit_for_a_log);
    suite_add_tcase(suite, tests);
    return suite;
}
