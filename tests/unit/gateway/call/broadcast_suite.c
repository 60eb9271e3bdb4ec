/* Messages from one worker to all: each gets a copy of its own, on its own loop. */
#include "call/broadcast.h"

#include <stdlib.h>
#include <string.h>

#include "suites.h"

enum { WORKERS = 3 };

static struct gateway_worker workers[WORKERS];
static const char *texts[WORKERS];
static size_t delivered;

static void deliver(struct gateway_worker *worker, struct str key)
{
    ck_assert_ptr_eq(worker, &workers[delivered]);
    ck_assert(str_equal(key, STR("up/session:a")));
    texts[delivered++] = key.bytes;
}

static void deliver_empty(struct gateway_worker *worker, const void *message)
{
    ck_assert_ptr_null(message);
    delivered++;
}

static const struct broadcast_kind empty_kind = {.deliver = deliver_empty};

static void with_workers(void (*test)(struct gateway *gateway))
{
    struct error error = {""};
    struct loop *loop = loop_create(&error);
    ck_assert_ptr_nonnull(loop);
    struct gateway_worker *list[WORKERS];
    struct gateway gateway = {.workers = list, .worker_count = WORKERS};
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct gateway_worker){.gateway = &gateway, .loop = loop};
        list[i] = &workers[i];
    }
    delivered = 0;
    test(&gateway);
    ck_assert_uint_eq(delivered, 0); /* never before the loop's next round */
    while (delivered < WORKERS)
        loop_run_once(loop, 1000);
    loop_destroy(loop);
}

static void send_key(struct gateway *gateway)
{
    char key[] = "up/session:a";
    broadcast_client(gateway, str_from(key), deliver);
    memset(key, 'x', sizeof key - 1); /* the borrowed bytes may change at once */
}

START_TEST(each_worker_gets_a_copy_of_its_own)
{
    with_workers(send_key);
    ck_assert_ptr_ne(texts[0], texts[1]);
    ck_assert_ptr_ne(texts[1], texts[2]);
}
END_TEST

static void send_nothing(struct gateway *gateway)
{
    broadcast_send(gateway, &empty_kind, NULL);
}

START_TEST(a_kind_without_a_message_delivers_none)
{
    with_workers(send_nothing);
}
END_TEST

TCase *broadcast_tests(void)
{
    TCase *tests = tcase_create("broadcast");
    tcase_add_test(tests, each_worker_gets_a_copy_of_its_own);
    tcase_add_test(tests, a_kind_without_a_message_delivers_none);
    return tests;
}
