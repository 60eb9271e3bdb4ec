/* Conversations of one worker: what they cost while many wait. */
#include "conversation/conversation.h"

#include <stdio.h>
#include <stdlib.h>

#include "conversation/question_table.h"
#include "scaling.h"
#include "suites.h"
#include "taskgate/core/map.h"

static size_t begun, cancelled, released;

static void attach(struct server_link *link, struct call *call)
{
    ck_assert_ptr_nonnull(call->worker);
}

static void begin(struct server_link *link)
{
    begun++;
}

static void cancel(struct server_link *link, const char *reason)
{
    ck_assert_str_eq(reason, "the client has closed the stream");
    cancelled++;
}

static void release(struct server_link *link)
{
    released++;
}

static const struct server_protocol server = {
    .attach = attach, .begin = begin, .cancel = cancel, .release = release};
static const struct client_protocol client;

/* A worker whose clients wait. */
struct waiting {
    struct gateway gateway;
    struct gateway_worker worker;
    struct snapshot snapshot;
    struct call call;
    size_t count;
};

static void name_one(size_t number, char name[RANDOM_UUID_BYTES])
{
    snprintf(name, RANDOM_UUID_BYTES, "%zu", number);
}

static void begin_one(struct waiting *waiting, size_t number)
{
    char name[RANDOM_UUID_BYTES];
    name_one(number, name);
    conversation_begin(&waiting->call,
                       &(struct conversation_start){
                           .client = &client, .server = &server, .leg = name, .handle = name});
}

static void end_one(struct waiting *waiting, size_t number)
{
    char name[RANDOM_UUID_BYTES];
    name_one(number, name);
    conversation_leg_gone(&waiting->worker, name, name);
}

static void wait_for_many(struct waiting *waiting, struct loop *loop, size_t count)
{
    waiting->gateway.questions = question_table_create();
    waiting->worker = (struct gateway_worker){
        .gateway = &waiting->gateway, .loop = loop, .conversations = map_create()};
    waiting->snapshot.references = 1;
    waiting->call = (struct call){.worker = &waiting->worker, .snapshot = &waiting->snapshot};
    waiting->count = count;
    for (size_t i = 0; i < count; i++)
        begin_one(waiting, i);
}

static void finish(struct waiting *waiting)
{
    ck_assert_uint_eq(map_count(waiting->worker.conversations), waiting->count);
    conversations_drop(&waiting->worker);
    ck_assert_uint_eq(map_count(waiting->worker.conversations), 0);
    ck_assert_int_eq(waiting->snapshot.references, 1);
    map_destroy(waiting->worker.conversations, NULL);
    question_table_destroy(waiting->gateway.questions);
}

/* The last of them come and go. */
static void come_and_go(void *input)
{
    struct waiting *waiting = input;
    for (size_t i = 0; i < 100; i++) {
        begin_one(waiting, waiting->count + i);
        end_one(waiting, waiting->count + i);
    }
}

START_TEST(a_client_that_leaves_costs_the_same_however_many_wait)
{
    struct error error = {""};
    struct loop *loop = loop_create(&error);
    struct waiting little = {.count = 0}, much = {.count = 0};
    begun = cancelled = released = 0;
    ck_assert_ptr_nonnull(loop);
    wait_for_many(&little, loop, 100);
    wait_for_many(&much, loop, 4000);
    expect_scaling(come_and_go, &little, &much, 8);
    ck_assert_uint_eq(cancelled, (size_t)2 * SCALING_RUNS * 100);
    finish(&little);
    finish(&much);
    ck_assert_uint_eq(begun, released);
    loop_destroy(loop);
}
END_TEST

TCase *conversation_tests(void)
{
    TCase *tests = tcase_create("conversation");
    tcase_add_test(tests, a_client_that_leaves_costs_the_same_however_many_wait);
    return tests;
}
