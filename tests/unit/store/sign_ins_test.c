/* Operators who have signed in: kept over a restart, to their end, and known by a digest alone. */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

static struct scratch scratch;
static struct bench bench;

static void set_up(void)
{
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

static enum store_status put(const char *digest, int64_t until_ms)
{
    struct answer answer = {0};
    char digest_text[65], person[] = "alice", issuer[] = "https://id.example",
                          claims[] = "{\"sub\":\"1\"}";
    snprintf(digest_text, sizeof digest_text, "%s", digest);
    const struct store_sign_in sign_in = {digest_text, person, issuer, claims, 1000, until_ms};
    store_sign_in_put(bench.store, &sign_in, bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    enum store_status status = answer.status;
    answer_finish(&answer);
    return status;
}

/* "person|issuer|claims|created", or "" when there is none. */
struct found {
    bool arrived;
    enum store_status status;
    char text[128];
};

static void on_found(void *context, const struct store_reply *reply)
{
    struct found *found = context;
    const struct store_sign_in *sign_in = reply->sign_in;
    found->arrived = true;
    found->status = reply->status;
    if (sign_in)
        snprintf(found->text, sizeof found->text, "%s|%s|%s|%s|%lld", sign_in->digest,
                 sign_in->person, sign_in->issuer, sign_in->claims, (long long)sign_in->created_ms);
}

static struct found get(const char *digest)
{
    struct found found = {0};
    store_sign_in_get(bench.store, str_from(digest),
                      (struct store_call){bench.loop, on_found, &found});
    while (!found.arrived)
        loop_run_once(bench.loop, 1000);
    return found;
}

static enum store_status forget(const char *digest)
{
    struct answer answer = {0};
    store_sign_in_delete(bench.store, str_from(digest), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    enum store_status status = answer.status;
    answer_finish(&answer);
    return status;
}

START_TEST(they_outlive_a_restart)
{
    ck_assert_int_eq(put("d1", clock_now_ms() + 60000), STORE_OK);
    bench_close(&bench);
    bench_open(&bench, &scratch);
    struct found found = get("d1");
    ck_assert_int_eq(found.status, STORE_OK);
    ck_assert_str_eq(found.text, "d1|alice|https://id.example|{\"sub\":\"1\"}|1000");
    ck_assert_int_eq(get("d2").status, STORE_NOT_FOUND);
}
END_TEST

START_TEST(one_that_is_over_is_not_found_and_goes)
{
    put("d1", clock_now_ms() - 1);
    ck_assert_int_eq(get("d1").status, STORE_NOT_FOUND);
    bench_close(&bench);
    bench_open(&bench, &scratch); /* a sweep comes first */
    ck_assert_int_eq(get("d1").status, STORE_NOT_FOUND);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM sign_in"), 0);
}
END_TEST

START_TEST(one_that_was_forgotten_is_not_found)
{
    put("d1", INT64_MAX);
    ck_assert_int_eq(forget("d1"), STORE_OK);
    ck_assert_int_eq(get("d1").status, STORE_NOT_FOUND);
    ck_assert_int_eq(forget("d1"), STORE_OK);
}
END_TEST

START_TEST(the_oldest_make_room)
{
    put("first", INT64_MAX);
    put("second", INT64_MAX);
    ck_assert_int_eq(
        scratch_execute(&scratch,
                        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                        " WHERE i < 9998) INSERT INTO sign_in (digest, person, issuer, claims,"
                        " created_ms, until_ms) SELECT 'n' || i, '', '', '{}', 0, 0 FROM n"),
        SQLITE_OK);
    put("last", INT64_MAX);
    ck_assert_int_eq(get("first").status, STORE_NOT_FOUND);
    ck_assert_int_eq(get("second").status, STORE_OK);
    ck_assert_int_eq(get("last").status, STORE_OK);
}
END_TEST

static enum store_status note_once(const char *digest, int64_t keep_ms)
{
    struct answer answer = {0};
    store_note_once(bench.store, str_from(digest), keep_ms, bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    enum store_status status = answer.status;
    answer_finish(&answer);
    return status;
}

START_TEST(a_key_noted_once_is_refused_until_it_is_over)
{
    int64_t rows = scratch_query(&scratch, "SELECT count(*) FROM audit");
    ck_assert_int_eq(note_once("p1", 60000), STORE_OK);
    ck_assert_int_eq(note_once("p1", 60000), STORE_CONFLICT);
    ck_assert_int_eq(note_once("p2", 60000), STORE_OK);
    bench_close(&bench);
    bench_open(&bench, &scratch);
    ck_assert_int_eq(note_once("p1", 60000), STORE_CONFLICT);
    ck_assert_int_eq(note_once("p3", -1), STORE_OK);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit"), rows);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sign-ins");
    TCase *tests = tcase_create("sign-ins");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, they_outlive_a_restart);
    tcase_add_test(tests, a_key_noted_once_is_refused_until_it_is_over);
    tcase_add_test(tests, one_that_is_over_is_not_found_and_goes);
    tcase_add_test(tests, one_that_was_forgotten_is_not_found);
    tcase_add_test(tests, the_oldest_make_room);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
