/* The store's place, and the replica. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"

#define URL "postgres://gate:s3cret@db.example:5432/gate"
#define KEY "0123456789abcdef0123456789abcdef"
#define STATE_KEY "state_key: {env: STATE}\n"
#define NO_STATE_KEY                                                                               \
    "warning: store.url: without state_key each replica has a key of its own, and refuses the "    \
    "requestState that another one has given a modern client; give all replicas one key: "         \
    "state_key: {env: VARIABLE}\n"

/* Loads the minimal file with `more` behind it. */
static struct config *load_in(const char *more, const char *const *pairs, const char *problems)
{
    char *text = with(more);
    test_environment(pairs);
    struct config *config = expect_load(text, problems);
    test_environment(NULL);
    free(text);
    return config;
}

static const struct {
    const char *more, *pairs[4], *problems;
} refused[] = {
    {"store: {url: '" URL "'}\n",
     {NULL},
     "t.yaml:9:14: store.url: must not stand in the file, because it may hold a password; put it "
     "into an environment variable and write {env: NAME}\n"},
    {"store: {url: {env: DB}, path: /x.db}\n" STATE_KEY,
     {"DB=" URL},
     "t.yaml:9:31: store.path: the store has one place, and url names another; take one of the two "
     "out\n"},
    {"store: {url: {env: DB}}\n" STATE_KEY,
     {"DB=" URL, "THOUGHTGATE_STORE_PATH=/x.db"},
     "THOUGHTGATE_STORE_PATH: store.path: the store has one place, and store.url names another; "
     "unset it, or take store.url out\n"},
    {"store: {url: {env: DB}}\n",
     {NULL},
     "t.yaml:9:20: store.url.env: V-014 the environment variable named here is not set; set it to "
     "the "
     "secret\n"},
    {"store: {url: {env: DB}}\n",
     {"DB=mysql://gate:s3cret@h/gate"},
     "t.yaml:9:20: store.url.env: in the environment variable DB: the value is no URL of a "
     "PostgreSQL database; write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE\n"},
    {STATE_KEY,
     {"THOUGHTGATE_STORE_URL=host=h password=s3cret"},
     "THOUGHTGATE_STORE_URL: store.url: the value is no URL of a PostgreSQL database; write it as "
     "postgres://USER:PASSWORD@HOST:PORT/DATABASE\n"},
    {"store: {url: {}}\n", {NULL}, "t.yaml:9:14: store.url.env: the key is missing\n"},
    {"store: {url: {env: DB}}\n" STATE_KEY "replica: {address: 'http://a:1'}\n",
     {"DB=" URL},
     "t.yaml:11:20: replica.address: calls between replicas must be signed, and there is no key; "
     "name a variable that holds it in replica.key_env\n"},
    {"store: {url: {env: DB}}\n" STATE_KEY "replica: {address: 'http://a:1', key_env: K}\n",
     {"DB=" URL},
     "t.yaml:11:43: replica.key_env: V-014 the environment variable named here is not set; set it "
     "to the "
     "secret\n"},
    {"replica: {id: 'a b', address: 'https://a:1', bind: host, key_env: K}\n",
     {"K=" KEY},
     "t.yaml:9:15: replica.id: \"a b\": a replica's name is up to 128 visible ASCII characters "
     "without blanks\n"
     "t.yaml:9:31: replica.address: \"https://a:1\": write it as http://HOST:PORT, without a path\n"
     "t.yaml:9:52: replica.bind: \"host\": this is no address and port to listen on, such as "
     "0.0.0.0:7471\n"},
    {"replica: {bind: '0.0.0.0:7471'}\n",
     {NULL},
     "t.yaml:9:17: replica.bind: no replica calls this one without its address; add "
     "replica.address, or take the key out\n"},
};

START_TEST(a_bad_store_is_refused)
{
    config_unref(load_in(refused[_i].more, refused[_i].pairs, refused[_i].problems));
    ck_assert_ptr_null(strstr(refused[_i].problems, "s3cret"));
}
END_TEST

START_TEST(a_database_is_named_by_a_variable)
{
    struct config *config =
        load_in("store: {url: {env: DB}}\n" STATE_KEY, (const char *[]){"DB=" URL, NULL}, "");
    ck_assert_str_eq(config->store_url, URL);
    ck_assert_str_eq(config->store_url_env, "DB");
    config_unref(config);
    /* over both keys, and over the path's variable */
    config = load_in("store: {path: /x.db}\n" STATE_KEY,
                     (const char *[]){"THOUGHTGATE_STORE_URL=postgresql:///x",
                                      "THOUGHTGATE_STORE_PATH=/y.db", NULL},
                     "");
    ck_assert_str_eq(config->store_url, "postgresql:///x");
    ck_assert_str_eq(config->store_url_env, "THOUGHTGATE_STORE_URL");
    config_unref(config);
    config = load_in("store: {url: {env: UNSET}}\n" STATE_KEY,
                     (const char *[]){"THOUGHTGATE_STORE_URL=" URL, NULL}, "");
    ck_assert_str_eq(config->store_url, URL);
    config_unref(config);
    config = load_in("", NULL, "");
    ck_assert_ptr_null(config->store_url);
    config_unref(config);
}
END_TEST

/* The minimal file's server may be of either era. */
static const struct {
    const char *more, *variable, *problems;
} shared[] = {
    {"store: {url: {env: DB}}\n", "DB=" URL, "t.yaml:9:14: " NO_STATE_KEY},
    {"", "THOUGHTGATE_STORE_URL=" URL, "THOUGHTGATE_STORE_URL: " NO_STATE_KEY},
    {"store: {url: {env: DB}}\n" STATE_KEY, "DB=" URL, ""},
    {"store: {path: /x.db}\n", "DB=" URL, ""},
};

START_TEST(replicas_have_one_key_for_what_modern_clients_keep)
{
    const char *pairs[] = {shared[_i].variable, NULL};
    config_unref(load_in(shared[_i].more, pairs, shared[_i].problems));
}
END_TEST

START_TEST(a_replica_has_a_name)
{
    struct config *config =
        load_in("store: {url: {env: DB}}\n" STATE_KEY
                "replica: {id: one, address: 'http://[::1]:7471', bind: '[::]:7471', key_env: K}\n",
                (const char *[]){"DB=" URL, "K=" KEY, "HOSTNAME=two", NULL}, "");
    ck_assert_str_eq(config->replica.id, "one");
    ck_assert_str_eq(config->replica.address, "http://[::1]:7471");
    ck_assert_str_eq(config->replica.bind, "[::]:7471");
    ck_assert_str_eq(config->replica.key, KEY);
    config_unref(config);
    config = load_in("", (const char *[]){"HOSTNAME=two", NULL}, "");
    ck_assert_str_eq(config->replica.id, "two");
    config_unref(config);
    config = load_in("", NULL, "");
    ck_assert_str_ne(config->replica.id, "");
    config_unref(config);
    config =
        load_in("replica: {address: 'http://a:1', key_env: K}\n", (const char *[]){"K=short", NULL},
                "t.yaml:9:20: warning: replica.address: the key has no effect, because an "
                "SQLite file is one process's alone; name the database of all replicas in "
                "store.url\n"
                "t.yaml:9:43: warning: replica.key_env: the key has fewer than 32 characters, "
                "so it may be guessed; make one with: openssl rand -hex 32\n");
    config_unref(config);
}
END_TEST

TCase *store_case(void)
{
    TCase *tests = tcase_create("store");
    tcase_add_loop_test(tests, a_bad_store_is_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, a_database_is_named_by_a_variable);
    tcase_add_loop_test(tests, replicas_have_one_key_for_what_modern_clients_keep, 0,
                        sizeof shared / sizeof *shared);
    tcase_add_test(tests, a_replica_has_a_name);
    return tests;
}
