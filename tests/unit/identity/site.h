/*
 * An issuer on this machine: an HTTP server on the test's own loop that says what the test has
 * written down, and counts who asks.
 */
#pragma once

#include <check.h>
#include <stdint.h>

#include "signer.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/http/server.h"
#include "taskgate/identity/issuer.h"

#define SITE_MAX_PAGES 8

struct page {
    char path[128];
    int status; /* 0: no answer at all */
    struct buffer body;
    const char *cache_control, *location; /* or NULL */
    int asked;
    char authorization[512]; /* of the last request */
    struct buffer received;  /* its body */
};

struct site {
    struct loop *loop;
    struct http_server *server;
    char url[64]; /* "http://127.0.0.1:PORT" */
    struct page pages[SITE_MAX_PAGES];
    size_t page_count;
    int strangers; /* requests for other paths: 404 */
    struct http_exchange *held;
};

void site_open(struct site *site);
void site_close(struct site *site);
/* Makes a page, or changes it. */
struct page *site_page(struct site *site, const char *path, int status, struct str body);
/* Metadata at `place` that names "/keys"; `more` are further members, each with a comma in front.
 */
struct page *site_metadata(struct site *site, const char *place, const char *more);
/* Keys at "/keys". */
struct page *site_keys(struct site *site, const struct signer *first, const struct signer *second);

/* Runs the loop until the condition holds, at most so long that a slow machine manages. */
#define until(site, condition)                                                                     \
    do {                                                                                           \
        int64_t end_ = clock_monotonic_ms() + 30000;                                               \
        while (!(condition)) {                                                                     \
            ck_assert_msg(clock_monotonic_ms() < end_, "never: %s", #condition);                   \
            loop_run_once((site)->loop, 20);                                                       \
        }                                                                                          \
    } while (0)
