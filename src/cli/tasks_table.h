/* Tasks of the API as a table for people. */
#pragma once

#include "taskgate/core/buffer.h"

/* Tasks as a table. On a terminal the ids are cut to what tells them apart. */
struct tasks_table {
    const struct str *tasks; /* JSON objects */
    size_t count;
    int64_t now_ms;
    bool for_terminal;
};
void tasks_append_table(struct buffer *out, const struct tasks_table *tasks);
