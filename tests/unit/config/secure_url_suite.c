/* Addresses that tokens and keys may come from. */
#include <check.h>

#include "suites.h"
#include "taskgate/config/secure_url.h"

static const struct {
    const char *url;
    bool is_good;
} addresses[] = {
    {"https://a.example", true},
    {"HTTPS://a.example:8443/x?y", true},
    {"http://localhost:1/", true},
    {"http://127.0.0.1/", true},
    {"http://[::1]:80/", true},
    {"http://a.example/", false},
    {"http://127.a.example/", false},
    {"http://127.0.0.1.example/", false},
    {"http://localhost.example/", false},
    {"http://[::2]/", false},
    {"http://[::1/", false},
    {"http://a.example@127.0.0.1/", false},
    {"https://user:pass@a.example/", false},
    {"https://", false},
    {"https:///path", false},
    {"https://:80/", false},
    {"https://a.example/ x", false},
    {"https://a.example/#x", false},
    {"https://a.example\\@b.example/", false},
    {"https://a.example/\r\n", false},
    {"ftp://a.example/", false},
    {"a.example", false},
    {"", false},
};

START_TEST(addresses_that_may_be_called)
{
    ck_assert_msg(secure_url_check(str_from(addresses[_i].url), NULL) == addresses[_i].is_good,
                  "%s", addresses[_i].url);
}
END_TEST

TCase *secure_url_case(void)
{
    TCase *tests = tcase_create("secure URLs");
    tcase_add_loop_test(tests, addresses_that_may_be_called, 0,
                        (int)(sizeof addresses / sizeof *addresses));
    return tests;
}
