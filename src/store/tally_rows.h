/* The tally's demands on a database: a part of backend.h, whose promises hold here. */
#pragma once

#include "taskgate/store/tally.h"
#include "taskgate/task/task.h"

struct database;

/* Calls of one tool: of one owner, or "": of all. The name of the tool is as the trail has it. */
struct tally_key {
    const char *source;
    struct str tool;
    const char *owner;
};

/* A task that has ended, as what counts outcomes asks for it. The name is valid during the visit.
 */
struct ended_task {
    struct str tool;
    enum task_state state;
    int64_t approved_ms, ended_ms; /* approved_ms: 0: nobody approved it */
};

/* The outcomes of calls. Readers add to what is empty. */
struct tally_rows {
    /* To a day of this owner, and to that of all. */
    bool (*add)(struct database *database, const struct tally_key *key, int64_t day_ms,
                const struct store_tally_counts *counts);
    /* From a day of this owner to that of `heir`. */
    bool (*give)(struct database *database, const struct tally_key *key, const char *heir,
                 int64_t day_ms, const struct store_tally_counts *counts);
    bool (*read)(struct database *database, const struct tally_key *key, int64_t since_ms,
                 struct store_tally_counts *counts);
    /* The last decision by a person about another task than this. */
    bool (*last)(struct database *database, const struct tally_key *key, const char *but_id,
                 struct store_tally *tally);
    /* Approvals of other tasks with the arguments of this one. */
    bool (*same)(struct database *database, const struct tally_key *key, const struct task *task,
                 int64_t since_ms, struct store_tally *tally);
};
