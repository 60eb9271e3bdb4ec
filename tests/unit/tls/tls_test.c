/* The parts of TLS that need no connection. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/tls/bound.h"

/* One record of a handshake whose message says that it has `length` bytes. */
static size_t write_hello(char *at, size_t length)
{
    const unsigned char head[] = {22,
                                  3,
                                  1,
                                  0,
                                  4,
                                  1,
                                  (unsigned char)(length >> 16),
                                  (unsigned char)(length >> 8),
                                  (unsigned char)length};
    memcpy(at, head, sizeof head);
    return sizeof head;
}

START_TEST(a_message_that_says_it_is_too_long_is_known_by_its_head)
{
    char bytes[16];
    for (int by_one = 0; by_one < 2; by_one++) {
        for (size_t length = TLS_BOUND_BYTES - 1; length <= TLS_BOUND_BYTES + 1; length++) {
            struct tls_bound bound = {.is_over = false};
            size_t count = write_hello(bytes, length), taken = 0;
            bool is_good = true;
            for (size_t step = by_one ? 1 : count; is_good && taken < count; taken += step)
                is_good = tls_bound_take(&bound, str_slice(bytes + taken, step), false);
            ck_assert_int_eq(is_good, length <= TLS_BOUND_BYTES);
        }
    }
}
END_TEST

/* A head in pieces: each record has one byte of it. */
START_TEST(records_of_one_byte_hide_nothing)
{
    const unsigned char head[] = {1, 1, 0, 0};
    struct tls_bound bound = {.is_over = false};
    for (size_t i = 0; i < sizeof head; i++) {
        const char record[] = {22, 3, 1, 0, 1, (char)head[i]};
        ck_assert_int_eq(tls_bound_take(&bound, str_slice(record, sizeof record), false),
                         i + 1 < sizeof head);
    }
}
END_TEST

START_TEST(a_second_hello_counts_as_the_first_behind_a_change_that_means_nothing)
{
    static const char change[] = {20, 3, 3, 0, 1, 1};
    char bytes[16];
    for (int is_1_2 = 0; is_1_2 < 2; is_1_2++) {
        struct tls_bound bound = {.is_over = false};
        size_t count = write_hello(bytes, 0);
        ck_assert(tls_bound_take(&bound, str_slice(bytes, count), is_1_2));
        ck_assert(tls_bound_take(&bound, str_slice(change, sizeof change), is_1_2));
        count = write_hello(bytes, 0xffffff);
        ck_assert_int_eq(tls_bound_take(&bound, str_slice(bytes, count), is_1_2), is_1_2);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls");
    TCase *tests = tcase_create("bound");
    tcase_add_test(tests, a_message_that_says_it_is_too_long_is_known_by_its_head);
    tcase_add_test(tests, records_of_one_byte_hide_nothing);
    tcase_add_test(tests, a_second_hello_counts_as_the_first_behind_a_change_that_means_nothing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
