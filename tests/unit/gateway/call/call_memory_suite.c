/* Memory of a call: what its request has left over first, then the heap. */
#include "call/call.h"

#include <stddef.h>
#include <string.h>

#include "scene.h"
#include "suites.h"

#define UNIT _Alignof(max_align_t)

static bool is_spare(const struct call *call, const char *memory)
{
    return memory >= call->spare.bytes && memory < call->spare.bytes + call->spare.size;
}

static bool is_cleared(const char *memory, size_t size)
{
    size_t set = 0;
    for (size_t i = 0; i < size; i++)
        set += memory[i] != 0;
    return set == 0;
}

static void begin(struct scene *scene, struct peer *peer, struct call *call)
{
    *scene = (struct scene){.act = hold};
    *call = (struct call){.worker = NULL};
    start(scene);
    peer_connect(peer, scene->loop, scene->port);
    peer_send_text(peer, "POST / HTTP/1.1\r\nX: short\r\nContent-Length: 3\r\n\r\nabc");
    run_until(scene->loop, &scene->requests, 1);
    call->exchange = scene->held;
}

static void end(struct scene *scene, struct peer *peer)
{
    http_respond_text(scene->held, 200, "text/plain", STR("done"));
    peer_await(peer, "\r\n\r\ndone");
    peer_close(peer);
    stop(scene);
}

START_TEST(objects_lie_in_what_the_request_has_left)
{
    struct scene scene;
    struct peer peer;
    struct call call;
    begin(&scene, &peer, &call);
    char *first = call_memory_take(&call, 100);
    ck_assert(is_spare(&call, first) && is_cleared(first, 100));
    memset(first, 'x', 100);
    char *second = call_memory_copy(&call, STR("a text"));
    ck_assert(is_spare(&call, second));
    ck_assert_int_eq(second - first, 100 + UNIT - 100 % UNIT);
    ck_assert_str_eq(second, "a text");
    ck_assert(is_cleared(call_memory_take(&call, 300), 300));
    call_memory_give(&call, first);
    call_memory_give(&call, second);
    call_memory_give(&call, NULL);
    ck_assert(str_equal(http_header(scene.held, "x"), STR("short")));
    end(&scene, &peer);
}
END_TEST

/* The leak detector finds what is not given back to the heap. */
START_TEST(a_large_block_is_of_the_heap)
{
    struct scene scene;
    struct peer peer;
    struct call call;
    begin(&scene, &peer, &call);
    char *small = call_memory_take(&call, 16);
    char *large = call_memory_take(&call, call.spare.size);
    char *last = call_memory_take(&call, call.spare.size - 16);
    ck_assert(is_spare(&call, small) && !is_spare(&call, large) && is_spare(&call, last));
    ck_assert_uint_eq(call.spare.used, call.spare.size);
    char *more = call_memory_take(&call, 1);
    ck_assert(!is_spare(&call, more));
    ck_assert(is_cleared(large, call.spare.size) && is_cleared(last, call.spare.size - 16));
    memset(large, 'x', call.spare.size);
    call_memory_give(&call, large);
    call_memory_give(&call, more);
    call_memory_give(&call, last);
    end(&scene, &peer);
}
END_TEST

START_TEST(a_request_may_have_nothing_left)
{
    struct scene scene;
    struct peer peer;
    struct call call;
    size_t all = 1000000;
    begin(&scene, &peer, &call);
    http_take_spare(scene.held, &all);
    char *memory = call_memory_copy(&call, STR("text"));
    ck_assert_ptr_null(call.spare.bytes);
    ck_assert_str_eq(memory, "text");
    call_memory_give(&call, memory);
    end(&scene, &peer);
}
END_TEST

START_TEST(a_call_without_an_exchange_has_the_heap)
{
    struct call call = {.worker = NULL};
    char *memory = call_memory_take(&call, 10);
    ck_assert(is_cleared(memory, 10));
    ck_assert_ptr_null(call.spare.bytes);
    call_memory_give(&call, memory);
}
END_TEST

TCase *call_memory_tests(void)
{
    TCase *tests = tcase_create("call_memory");
    tcase_add_test(tests, objects_lie_in_what_the_request_has_left);
    tcase_add_test(tests, a_large_block_is_of_the_heap);
    tcase_add_test(tests, a_request_may_have_nothing_left);
    tcase_add_test(tests, a_call_without_an_exchange_has_the_heap);
    return tests;
}
