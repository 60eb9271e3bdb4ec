/* Shared objects of workers, used by several threads at once; for the thread sanitizer. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call/broadcast.h"
#include "conversation/question_table.h"
#include "decision/shadow.h"
#include "gates/rate_limit.h"
#include "methods/list_cache.h"
#include "state/quota.h"
#include "state/session_table.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

enum { THREADS = 4, ROUNDS = 400 };

struct shared {
    struct seen_table *sessions;
    struct seen_table *pairs;
    struct catalog *catalog;
    struct seen_table *list_cache;
    struct seen_table *rate_limit;
    struct quota *quota;
    int allowed; /* atomic */
};

static const char *environment(const char *name)
{
    return NULL;
}

static struct snapshot *make_snapshot(void)
{
    static const char text[] = "schema: 1\n"
                               "sources: [{id: up, kind: mcp, url: \"http://127.0.0.1:1/mcp\"}]\n"
                               "governance: {defaults: {action: forward}}\n";
    struct config_problems problems = {0};
    struct config *config = config_parse(str_from(text), "t.yaml", environment, &problems);
    ck_assert_ptr_nonnull(config);
    struct snapshot *snapshot = snapshot_create(config, &problems);
    config_problems_finish(&problems);
    return snapshot;
}

static void use_sessions(struct shared *shared, struct str name, int round)
{
    struct session_facts facts = {.known = true}, seen;
    char *forgotten;
    static const struct config_limits limits = {.sessions = 50, .sessions_per_principal = 20};
    sessions_put(shared->sessions, STR("up"), name, &facts, 50);
    accepted_pairs_note(shared->pairs, STR("up"), name, STR("t"), round, &limits, &forgotten);
    free(forgotten);
    sessions_get(shared->sessions, STR("up"), name, &seen);
    accepted_pairs_ago_ms(shared->pairs, STR("up"), name, STR("t"), round);
    if (round % 7 == 0) {
        seen_table_forget_session(shared->sessions, STR("up"), name);
        accepted_pairs_remove(shared->pairs, STR("up"), name, STR("t"));
    }
}

static void use_catalog(struct shared *shared, struct str name, int round)
{
    struct snapshot *snapshot = snapshot_current();
    struct mcp_tool tool = {.name = name, .raw = STR("{}")};
    struct catalog_tool known;
    struct buffer kept = {0};
    const struct catalog_reader reader = {snapshot, &snapshot->config->sources[0], name, 1};
    struct catalog_page *page = catalog_page_create(shared->catalog);
    catalog_page_add(page, &tool, NULL);
    catalog_put_page(shared->catalog, &reader, page, true, true);
    catalog_page_destroy(page);
    catalog_find_tool(shared->catalog, STR("up"), name, name, &known);
    ck_assert(known.known);
    list_cache_put(shared->list_cache, name, NULL, STR("list"));
    list_cache_get(shared->list_cache, name, &kept);
    server_status_note(shared->catalog, STR("up"), round % 2 == 0);
    if (round % 50 == 0) {
        snapshot_install(make_snapshot()); /* a reload */
        catalog_announce_all(shared->catalog, snapshot);
    }
    buffer_finish(&kept);
    snapshot_unref(snapshot);
}

static void *work(void *context)
{
    struct shared *shared = context;
    char name[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "n%d", i % 97);
        use_sessions(shared, str_from(name), i);
        use_catalog(shared, str_from(name), i);
        if (quota_take(shared->quota, STR("few"), 2, INT64_MAX)) {
            ck_assert(quota_has(shared->quota, STR("few")));
            quota_give_back(shared->quota, STR("few"));
        }
        if (rate_limit_allows(shared->rate_limit, STR("peer"), 100, 0))
            __atomic_add_fetch(&shared->allowed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

START_TEST(workers_share_sessions_catalogue_limits_and_configuration)
{
    struct shared shared = {.sessions = sessions_create(),
                            .pairs = accepted_pairs_create(),
                            .catalog = catalog_create(),
                            .list_cache = list_cache_create(),
                            .rate_limit = rate_limit_create(),
                            .quota = quota_create()};
    pthread_t threads[THREADS];
    snapshot_install(make_snapshot());
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &shared), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(shared.allowed, 200);
    snapshot_install(NULL);
    ck_assert(!quota_has(shared.quota, STR("few")));
    quota_destroy(shared.quota);
    seen_table_destroy(shared.rate_limit);
    seen_table_destroy(shared.list_cache);
    catalog_destroy(shared.catalog);
    seen_table_destroy(shared.pairs);
    seen_table_destroy(shared.sessions);
    metrics_finish();
}
END_TEST

/* ---- questions ---- */

enum { QUESTIONS = 90 };

struct race {
    struct question_table *table;
    struct question *inputs[QUESTIONS];
    int closed; /* atomic */
};

/* Closes all open questions, like answers on several ways, and reads the table meanwhile. */
static void *close_questions(void *context)
{
    struct race *race = context;
    struct question_closing closing = {.state = QUESTION_ANSWERED_IN_TASK, .now_ms = 1};
    size_t seen = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        const struct question_match match = {.id = str_from(race->inputs[i]->id)};
        if (question_table_close(race->table, STR("key"), &match, &closing))
            __atomic_add_fetch(&race->closed, 1, __ATOMIC_RELAXED);
        struct question_walk walk = question_walk(race->table, STR("key"), NULL);
        while (question_walk_next(&walk))
            seen++;
    }
    return NULL;
}

START_TEST(each_question_is_closed_by_one_thread)
{
    struct race race = {.table = question_table_create()};
    pthread_t threads[THREADS];
    for (int i = 0; i < QUESTIONS; i++) {
        struct question *input = memory_alloc(sizeof *input);
        list_init(&input->node);
        random_ulid(input->id);
        snprintf(input->key, sizeof input->key, "key");
        input->source = input->task = "";
        input->upstream_id = input->id;
        input->message = "{}";
        ck_assert_int_eq(question_table_add(race.table, input), QUESTION_ADDED);
        race.inputs[i] = input;
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, close_questions, &race), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(race.closed, QUESTIONS);
    for (int i = 0; i < QUESTIONS; i++) {
        question_table_remove(race.table, race.inputs[i]);
        free(race.inputs[i]);
    }
    question_table_destroy(race.table);
}
END_TEST

/* ---- the shadow ---- */

static const char *shadow_environment(const char *name)
{
    return strcmp(name, "THOUGHTGATE_POLICIES") == 0
               ? "permit(principal, action, resource) when { resource.arguments.n < 10 };"
               : NULL;
}

static void write_configuration(const char *path, const char *governance)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "schema: 1\nsources: [{id: up, kind: mcp, url: \"http://127.0.0.1:1/mcp\"}]\n"
            "governance:\n  defaults: {action: forward}\n%s",
            governance);
    fclose(file);
}

/* In force is `forward`; its shadow asks policies, but for "plain". */
static struct snapshot *make_shadowed(void)
{
    char folder[] = "/tmp/taskgate-shadow-XXXXXX", path[64], shadow[64];
    struct config_problems problems = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/main.yaml", folder);
    snprintf(shadow, sizeof shadow, "%s/shadow.yaml", folder);
    write_configuration(path, "  shadow: shadow.yaml\n");
    write_configuration(shadow, "  rules: [{match: plain, action: deny},"
                                " {match: '*', action: policy, policy_id: p}]\n");
    struct config *config = config_load(path, shadow_environment, &problems);
    ck_assert_ptr_nonnull(config);
    struct snapshot *snapshot = snapshot_create(config, &problems);
    ck_assert_ptr_nonnull(snapshot->shadow);
    config_problems_finish(&problems);
    unlink(path);
    unlink(shadow);
    rmdir(folder);
    return snapshot;
}

struct callers {
    struct shadow *shadow;
    struct snapshot *snapshot;
};

static void *call_shadow(void *context)
{
    struct callers *callers = context;
    char arguments[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(arguments, sizeof arguments, "{\"n\": %d}", i % 20);
        struct shadow_call call = {
            .snapshot = callers->snapshot,
            .request = {&callers->snapshot->config->sources[0],
                        i % 4 == 0 ? STR("plain") : STR("pay"), str_from(arguments)},
            .outcome = VERDICT_FORWARD,
        };
        if (!shadow_compare_rules(callers->shadow, &call))
            shadow_compare_later(callers->shadow, &call);
    }
    return NULL;
}

static long counted(const char *sample)
{
    struct buffer text;
    buffer_init(&text);
    metrics_write(&text, false);
    buffer_append_char(&text, '\0');
    const char *found = strstr(text.bytes, sample);
    long count = found ? strtol(found + strlen(sample), NULL, 10) : 0;
    buffer_finish(&text);
    return count;
}

static long compared(void)
{
    return counted("shadow_calls_total{outcome=\"same\"} ") +
           counted("shadow_calls_total{outcome=\"different\"} ") +
           counted("shadow_calls_total{outcome=\"skipped\"} ");
}

/* The caller never waits; each call is counted once, as compared or skipped. */
START_TEST(workers_share_the_shadow)
{
    pthread_t threads[THREADS];
    struct callers callers = {shadow_create(), make_shadowed()};
    metrics_finish();
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_shadow, &callers), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2000 && compared() < (long)THREADS * ROUNDS; i++)
        usleep(10000);
    ck_assert_int_eq(compared(), THREADS * ROUNDS);
    ck_assert_int_ge(counted("shadow_calls_total{outcome=\"different\"} "), THREADS * ROUNDS / 4);
    ck_assert_int_ge(counted("shadow_calls_total{outcome=\"same\"} "), 1);
    ck_assert_int_eq(counted("outcome=\"forward\",shadow_outcome=\"deny\"} "),
                     THREADS * ROUNDS / 4);
    call_shadow(&callers); /* and ends while some of it waits */
    shadow_destroy(callers.shadow);
    snapshot_unref(callers.snapshot);
    metrics_finish();
}
END_TEST

/* ---- inquiries ---- */

enum { INQUIRIES = 300 };

/* Number n is known by worker n % 5, which there may not be; an even one by worker 0 as well. */
struct asking {
    struct inquiry base; /* first */
    int number, answered_by;
    bool is_over;
};

struct office {
    struct gateway gateway;
    struct gateway_worker workers[THREADS];
    struct gateway_worker *list[THREADS];
    int busy, under_way; /* atomic: workers that ask; inquiries that live */
};
static struct office office;

static int number_of(const struct gateway_worker *worker)
{
    return (int)(worker - office.workers);
}

static bool knows(struct gateway_worker *worker, struct inquiry *inquiry)
{
    int number = ((struct asking *)inquiry)->number;
    return number % 5 == number_of(worker) || (number % 2 == 0 && number_of(worker) == 0);
}

static void answer(struct gateway_worker *worker, struct inquiry *inquiry)
{
    struct asking *asking = (struct asking *)inquiry;
    ck_assert_int_eq(asking->answered_by, -1);
    asking->answered_by = number_of(worker);
}

static void ask_next(struct gateway_worker *worker, int number);

static void on_answer(struct inquiry *inquiry, enum inquiry_end end)
{
    struct asking *asking = (struct asking *)inquiry;
    bool is_known = asking->number % 5 != 4 || asking->number % 2 == 0;
    ck_assert(loop_is_current(inquiry->asker->loop));
    ck_assert(!asking->is_over);
    asking->is_over = true;
    ck_assert_int_eq(end, is_known ? INQUIRY_ANSWERED : INQUIRY_UNKNOWN);
    ck_assert_int_eq(asking->answered_by >= 0, is_known);
    if (asking->number + 1 < INQUIRIES)
        ask_next(inquiry->asker, asking->number + 1);
    else
        __atomic_sub_fetch(&office.busy, 1, __ATOMIC_RELAXED);
}

static void forget(struct inquiry *inquiry)
{
    __atomic_sub_fetch(&office.under_way, 1, __ATOMIC_RELAXED);
    free(inquiry);
}

static void ask_next(struct gateway_worker *worker, int number)
{
    static const struct inquiry_kind kind = {knows, answer, on_answer, forget};
    struct asking *asking = memory_alloc(sizeof *asking);
    asking->number = number;
    asking->answered_by = -1;
    __atomic_add_fetch(&office.under_way, 1, __ATOMIC_RELAXED);
    inquiry_begin(&asking->base, &kind, worker);
}

static void *work_in_office(void *context)
{
    struct gateway_worker *worker = context;
    loop_run_once(worker->loop, 0); /* from now on the loop is this thread's */
    ask_next(worker, 0);
    while (__atomic_load_n(&office.busy, __ATOMIC_RELAXED) > 0)
        loop_run_once(worker->loop, 10);
    return NULL;
}

START_TEST(workers_ask_each_other_and_each_question_has_one_answer)
{
    pthread_t threads[THREADS];
    struct error error = {""};
    office.busy = THREADS;
    office.gateway = (struct gateway){.workers = office.list, .worker_count = THREADS};
    for (int i = 0; i < THREADS; i++) {
        office.workers[i] =
            (struct gateway_worker){.gateway = &office.gateway, .loop = loop_create(&error)};
        office.list[i] = &office.workers[i];
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work_in_office, &office.workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        loop_destroy(office.workers[i].loop); /* delivers what is under way */
    ck_assert_int_eq(office.under_way, 0);
}
END_TEST

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    Suite *suite = suite_create("gateway_threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, workers_share_sessions_catalogue_limits_and_configuration);
    tcase_add_test(tests, each_question_is_closed_by_one_thread);
    tcase_add_test(tests, workers_share_the_shadow);
    tcase_add_test(tests, workers_ask_each_other_and_each_question_has_one_answer);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
