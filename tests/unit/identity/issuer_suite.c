/* Keys and metadata of an issuer: found, kept, fetched anew, and what becomes of a bad one. */
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "issuer_internal.h"
#include "site.h"
#include "taskgate/core/memory.h"

#define OAUTH "/.well-known/oauth-authorization-server"
#define OPENID "/.well-known/openid-configuration"

static struct site site;
static struct issuers *issuers;
static struct issuer *issuer;
static struct signer *old_key, *new_key;
static int ready;

static void set_up(void)
{
    struct error error = {0};
    site_open(&site);
    issuers = issuers_create(&error);
    ck_assert_msg(issuers, "%s", error.message);
    old_key = signer_create("ES256", "old");
    new_key = signer_create("ES256", "new");
    issuer = NULL;
    ready = 0;
    rules = (struct token_rules){.issuer = site.url, .audience = AUDIENCE};
}

static void tear_down(void)
{
    issuer_release(issuer);
    issuers_destroy(issuers);
    site_close(&site);
    signer_destroy(old_key);
    signer_destroy(new_key);
}

static void on_ready(void *context)
{
    ++*(int *)context;
}

static enum token_error verify_by(const struct signer *key, const char *kid, uint64_t *used)
{
    struct identity *identity = NULL;
    struct buffer token = {0};
    char *header = memory_format("{\"alg\":\"ES256\",\"kid\":\"%s\"}", kid);
    char *claims = memory_format(
        "{\"iss\":\"%s\",\"aud\":\"" AUDIENCE "\",\"sub\":\"a\",\"exp\":1800000300}", site.url);
    signer_write_token(key, "ES256", str_from(header), str_from(claims), &token);
    enum token_error error =
        issuer_verify(issuer, buffer_str(&token), &rules, NOW_MS, &identity, used);
    identity_unref(identity);
    buffer_finish(&token);
    free(header);
    free(claims);
    return error;
}

static bool has_keys(void)
{
    struct key_set *known = issuer_keys(issuer);
    key_set_unref(known);
    return known != NULL;
}

static bool has_problem(const char *text)
{
    struct error problem;
    issuer_problem(issuer, &problem);
    return strstr(problem.message, text) != NULL;
}

static bool is_idle(void)
{
    pthread_mutex_lock(&issuer->lock);
    bool is_fetching = issuer->is_fetching;
    pthread_mutex_unlock(&issuer->lock);
    return !is_fetching;
}

/* As if so much time had gone by. */
static void age(int64_t ms)
{
    pthread_mutex_lock(&issuer->lock);
    issuer->asked_anew_ms -= ms;
    issuer->tried_ms -= ms;
    pthread_mutex_unlock(&issuer->lock);
}

static const char *const places[] = {OAUTH, OPENID};

START_TEST(metadata_is_found_where_rfc_8414_or_openid_put_it)
{
    site_metadata(&site, places[_i], ",\"token_endpoint\":\"https://x.example/token\"");
    site_keys(&site, old_key, NULL);
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, has_keys());
    ck_assert_int_eq(site.strangers, _i);
    expect_refused(TOKEN_OK, verify_by(old_key, "old", NULL));
    expect_refused(TOKEN_SIGNATURE, verify_by(new_key, "old", NULL));
    struct issuer_metadata *metadata = issuer_metadata(issuer);
    ck_assert_str_eq(metadata->token_endpoint, "https://x.example/token");
    issuer_metadata_unref(metadata);
}
END_TEST

START_TEST(an_address_of_keys_needs_no_metadata)
{
    char *url = memory_format("%s/keys", site.url);
    site_keys(&site, old_key, NULL);
    issuer = issuers_get(issuers, site.url, url);
    until(&site, has_keys());
    ck_assert_int_eq(site.strangers, 0);
    expect_refused(TOKEN_OK, verify_by(old_key, "old", NULL));
    ck_assert_ptr_null(issuer_metadata(issuer));

    struct issuer *same = issuers_get(issuers, site.url, url);
    ck_assert_ptr_eq(same, issuer);
    issuer_release(same);
    free(url);
}
END_TEST

/* An unknown key is asked for at once, and then not again for half a minute. */
START_TEST(an_unknown_key_is_fetched_once_in_thirty_seconds)
{
    uint64_t used;
    site_metadata(&site, OAUTH, "");
    struct page *keys_page = site_keys(&site, old_key, NULL);
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, has_keys() && is_idle());
    ck_assert_int_eq(keys_page->asked, 1);
    site_keys(&site, old_key, new_key);
    expect_refused(TOKEN_KEY_UNKNOWN, verify_by(new_key, "new", &used));
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    until(&site, ready == 2);
    ck_assert_int_eq(keys_page->asked, 2);
    expect_refused(TOKEN_OK, verify_by(new_key, "new", NULL));
    expect_refused(TOKEN_OK, verify_by(old_key, "old", NULL));

    /* Callers that looked before the fetch are told at once. */
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    until(&site, ready == 3);
    ck_assert_int_eq(keys_page->asked, 2);

    expect_refused(TOKEN_KEY_UNKNOWN, verify_by(new_key, "third", &used));
    ck_assert_ptr_null(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    age(29000);
    ck_assert_ptr_null(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    age(1000);
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    until(&site, ready == 4);
    ck_assert_int_eq(keys_page->asked, 3);
    expect_refused(TOKEN_KEY_UNKNOWN, verify_by(new_key, "third", &used));
}
END_TEST

START_TEST(an_issuer_that_is_down_leaves_its_keys_in_force)
{
    uint64_t used;
    site_metadata(&site, OAUTH, "");
    struct page *keys_page = site_keys(&site, old_key, NULL);
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, has_keys() && is_idle());
    keys_page->status = 500;
    expect_refused(TOKEN_KEY_UNKNOWN, verify_by(new_key, "new", &used));
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    until(&site, ready == 1);
    ck_assert(has_problem("keys: HTTP status 500"));
    expect_refused(TOKEN_OK, verify_by(old_key, "old", NULL));
    expect_refused(TOKEN_KEY_UNKNOWN, verify_by(new_key, "new", NULL));
}
END_TEST

START_TEST(without_any_key_nothing_is_verified_until_there_is_one)
{
    uint64_t used;
    site_metadata(&site, OAUTH, "")->status = 503;
    site_keys(&site, old_key, NULL);
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, is_idle());
    ck_assert(has_problem("metadata: HTTP status"));
    expect_refused(TOKEN_UNAVAILABLE, verify_by(old_key, "old", &used));
    site_metadata(&site, OAUTH, "");
    age(1000);
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    until(&site, ready == 1);
    expect_refused(TOKEN_OK, verify_by(old_key, "old", NULL));
    ck_assert(has_problem(""));
}
END_TEST

/* Requests do not hammer an issuer that is down: one fetch a second. */
START_TEST(an_issuer_that_is_down_is_asked_once_a_second)
{
    uint64_t used;
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, is_idle());
    expect_refused(TOKEN_UNAVAILABLE, verify_by(old_key, "old", &used));
    pthread_mutex_lock(&issuer->lock);
    issuer->tried_ms = clock_monotonic_ms() + 1000000;
    pthread_mutex_unlock(&issuer->lock);
    ck_assert_ptr_null(issuer_wait(issuer, used, site.loop, on_ready, &ready));
}
END_TEST

static const struct {
    const char *metadata, *keys, *problem;
    int metadata_status, keys_status;
    const char *location;
} bad[] = {
    {"{\"issuer\":\"https://other.example\",\"jwks_uri\":\"https://other.example/keys\"}", NULL,
     "another issuer", 200, 0, NULL},
    {"{\"jwks_uri\":\"https://other.example/keys\"}", NULL, "another issuer", 200, 0, NULL},
    {"{\"issuer\":\"%s\"}", NULL, "names no keys", 200, 0, NULL},
    {"{\"issuer\":\"%s\",\"jwks_uri\":7}", NULL, "names no keys", 200, 0, NULL},
    {"{\"issuer\":\"%s\",\"jwks_uri\":\"http://keys.example/\"}", NULL, "names no keys", 200, 0,
     NULL},
    {"{\"issuer\":\"%s\",\"jwks_uri\":\"file:///etc/passwd\"}", NULL, "names no keys", 200, 0,
     NULL},
    {"{\"issuer\":\"%s\",\"issuer\":\"%s\"}", NULL, "no JSON object", 200, 0, NULL},
    {"[]", NULL, "no JSON object", 200, 0, NULL},
    {"<html>", NULL, "no JSON object", 200, 0, NULL},
    {"", NULL, "HTTP status 302", 302, 0, "/elsewhere"},
    {"{\"issuer\":\"%s\",\"jwks_uri\":\"%s/keys\"}", "{}", "no list `keys`", 200, 200, NULL},
    {"{\"issuer\":\"%s\",\"jwks_uri\":\"%s/keys\"}", "{\"keys\":[]}", "HTTP status 302", 200, 302,
     "/elsewhere"},
};

START_TEST(wild_answers_give_no_keys)
{
    struct buffer text = {0};
    const char *at = bad[_i].metadata;
    for (const char *hole; (hole = strstr(at, "%s")); at = hole + 2) {
        buffer_append(&text, str_slice(at, (size_t)(hole - at)));
        buffer_append_text(&text, site.url);
    }
    buffer_append_text(&text, at);
    for (unsigned i = 0; i < 2; i++)
        site_page(&site, places[i], bad[_i].metadata_status, buffer_str(&text))->location =
            bad[_i].location;
    if (bad[_i].keys)
        site_page(&site, "/keys", bad[_i].keys_status, str_from(bad[_i].keys))->location =
            bad[_i].location;
    struct page *elsewhere = site_page(&site, "/elsewhere", 200, STR("{\"keys\":[]}"));
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, is_idle());
    ck_assert_msg(has_problem(bad[_i].problem), "%s", issuer->problem.message);
    ck_assert(!has_keys());
    ck_assert_int_eq(elsewhere->asked, 0);
    buffer_finish(&text);
}
END_TEST

START_TEST(a_large_answer_is_not_read)
{
    struct buffer text = {0};
    site_metadata(&site, OAUTH, "");
    for (size_t i = 0; i <= FETCH_MAX_BYTES; i++)
        buffer_append_char(&text, ' ');
    site_page(&site, "/keys", 200, buffer_str(&text));
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, is_idle());
    ck_assert(has_problem("larger than 1 MiB"));
    buffer_finish(&text);
}
END_TEST

/* An issuer that accepts and says nothing: who waits is told when the process ends at the latest,
 * and a wait that was cancelled is not told at all. */
START_TEST(a_silent_issuer_holds_nobody_up)
{
    uint64_t used;
    int other = 0;
    site_page(&site, OAUTH, 0, STR(""));
    issuer = issuers_get(issuers, site.url, NULL);
    until(&site, site.held != NULL);
    expect_refused(TOKEN_UNAVAILABLE, verify_by(old_key, "old", &used));
    issuer_wait_cancel(issuer_wait(issuer, used, site.loop, on_ready, &other));
    ck_assert_ptr_nonnull(issuer_wait(issuer, used, site.loop, on_ready, &ready));
    issuer_release(issuer);
    issuer = NULL;
    until(&site, ready == 1);
    ck_assert_int_eq(other, 0);
}
END_TEST

START_TEST(a_refused_connection_is_a_problem)
{
    issuer = issuers_get(issuers, "http://127.0.0.1:1", NULL);
    until(&site, is_idle());
    ck_assert(has_problem("metadata: "));
    ck_assert(!has_keys());
}
END_TEST

START_TEST(keys_are_kept_five_minutes_to_a_day)
{
    ck_assert_int_eq(issuer_keys_kept_ms(-1), 300000);
    ck_assert_int_eq(issuer_keys_kept_ms(0), 300000);
    ck_assert_int_eq(issuer_keys_kept_ms(299999), 300000);
    ck_assert_int_eq(issuer_keys_kept_ms(3600000), 3600000);
    ck_assert_int_eq(issuer_keys_kept_ms(86400000), 86400000);
    ck_assert_int_eq(issuer_keys_kept_ms(INT64_C(1) << 60), 86400000);
}
END_TEST

static const struct {
    const char *issuer, *urls[3];
} located[] = {
    {"https://a.example", {"https://a.example" OAUTH, NULL, "https://a.example" OPENID}},
    {"https://a.example/", {"https://a.example" OAUTH, NULL, "https://a.example" OPENID}},
    {"https://a.example/t/1",
     {"https://a.example" OAUTH "/t/1", "https://a.example" OPENID "/t/1",
      "https://a.example/t/1" OPENID}},
    {"https://a.example/t/",
     {"https://a.example" OAUTH "/t", "https://a.example" OPENID "/t",
      "https://a.example/t" OPENID}},
};

START_TEST(places_of_metadata)
{
    for (unsigned place = 0; place < ISSUER_METADATA_PLACES; place++) {
        char *url = issuer_metadata_url(located[_i].issuer, place);
        if (located[_i].urls[place])
            ck_assert_str_eq(url, located[_i].urls[place]);
        else
            ck_assert_ptr_null(url);
        free(url);
    }
}
END_TEST

/* An issuer elsewhere cannot have this machine's own services called. */
START_TEST(metadata_leads_a_remote_issuer_to_no_local_service)
{
    struct issuer_metadata *metadata = issuer_metadata_parse(
        STR("{\"issuer\":\"https://a.example\",\"jwks_uri\":\"http://127.0.0.1:9/keys\","
            "\"token_endpoint\":\"https://a.example/token\",\"userinfo_endpoint\":\"x\","
            "\"token_endpoint_auth_methods_supported\":[\"client_secret_post\"]}"),
        "https://a.example", NULL);
    ck_assert_ptr_null(metadata->jwks_url);
    ck_assert_ptr_null(metadata->userinfo_endpoint);
    ck_assert_str_eq(metadata->token_endpoint, "https://a.example/token");
    ck_assert(metadata->secret_in_body && !metadata->names_itself && !metadata->has_s256);
    issuer_metadata_unref(metadata);
    metadata = issuer_metadata_parse(
        STR("{\"issuer\":\"https://a.example\",\"code_challenge_methods_supported\":[\"S256\"],"
            "\"authorization_response_iss_parameter_supported\":true,"
            "\"token_endpoint_auth_methods_supported\":[\"client_secret_post\","
            "\"client_secret_basic\"]}"),
        "https://a.example", NULL);
    ck_assert(!metadata->secret_in_body && metadata->names_itself && metadata->has_s256);
    issuer_metadata_unref(metadata);
}
END_TEST

#define ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

Suite *issuer_suite(void)
{
    Suite *suite = suite_create("issuer");
    TCase *tests = tcase_create("fetched"), *values = tcase_create("values");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, metadata_is_found_where_rfc_8414_or_openid_put_it, 0, 2);
    tcase_add_test(tests, an_address_of_keys_needs_no_metadata);
    tcase_add_test(tests, an_unknown_key_is_fetched_once_in_thirty_seconds);
    tcase_add_test(tests, an_issuer_that_is_down_leaves_its_keys_in_force);
    tcase_add_test(tests, without_any_key_nothing_is_verified_until_there_is_one);
    tcase_add_test(tests, an_issuer_that_is_down_is_asked_once_a_second);
    tcase_add_loop_test(tests, wild_answers_give_no_keys, 0, ROWS(bad));
    tcase_add_test(tests, a_large_answer_is_not_read);
    tcase_add_test(tests, a_silent_issuer_holds_nobody_up);
    tcase_add_test(tests, a_refused_connection_is_a_problem);
    suite_add_tcase(suite, tests);
    tcase_add_test(values, keys_are_kept_five_minutes_to_a_day);
    tcase_add_loop_test(values, places_of_metadata, 0, ROWS(located));
    tcase_add_test(values, metadata_leads_a_remote_issuer_to_no_local_service);
    suite_add_tcase(suite, values);
    return suite;
}
