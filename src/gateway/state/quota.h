/*
 * How many of something each holder has, with a limit for each holder and one for all. All workers
 * share it behind a short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/config/config.h"
#include "taskgate/core/str.h"

struct quota;

/* The most that one holder has of `limit`; at least one. */
static inline int64_t quota_share(const struct config_limits *limits, int64_t limit)
{
    int64_t share = limit / 100 * limits->share_percent + limit % 100 * limits->share_percent / 100;
    return share > 0 ? share : 1;
}

struct quota *quota_create(void);
void quota_destroy(struct quota *quota); /* NULL is allowed */
/* One more for `holder`; false: it has `most` already, or all together have `most_in_all`. */
bool quota_take(struct quota *quota, struct str holder, int64_t most, int64_t most_in_all);
int64_t quota_count(struct quota *quota, struct str holder);
/* Whether `holder` has any. */
bool quota_has(struct quota *quota, struct str holder);
void quota_give_back(struct quota *quota, struct str holder);

/* The same for a thing that has none yet, by whose name it is given back. */
bool quota_take_for(struct quota *quota, struct str thing, struct str holder, int64_t most);
/* One without is passed over. */
void quota_give_back_for(struct quota *quota, struct str thing);
