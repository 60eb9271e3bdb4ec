/*
 * The gateway of the process, the worker of each loop, and how one worker reaches all of them. The
 * state of the gateway and its workers belongs to the rooms: each room knows the inside of its own.
 */
#pragma once

#include <stdatomic.h>

#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/loop/loop.h"
#include "taskgate/task/task.h"
#include "taskgate/upstream/upstream.h"

struct catalog;
struct detached_callbacks;
struct inbox_table;
struct question_events;
struct question_table;
struct news;
struct log_aggregate;
struct quota;
struct replicas;
struct request_headers;
struct seen_table;
struct state_keys;
struct shadow;
struct source_eras;
struct task_aliases;
struct token_check;
struct token_exchange_table;
struct token_exchanges;
struct token_worker;
struct gateway_worker;

struct gateway {
    uint32_t magic; /* GATEWAY_MAGIC */
    struct store *store;
    const struct state_keys *state_keys; /* of what clients keep for the gateway */
    struct seen_table *sessions;         /* state/session_table.h */
    struct seen_table *accepted_pairs;   /* state/session_table.h */
    struct seen_table *given_sessions;   /* state/session_table.h */
    struct catalog *catalog;
    struct definition_watch *definitions; /* state/definition_watch.h */
    struct source_eras *eras;             /* state/source_eras.h */
    struct seen_table *list_cache;
    struct seen_table *rewritten_lists; /* methods/list_cache.h */
    struct seen_table *rate_limit, *principal_rate_limit;
    struct quota *detached;    /* calls that go on without their client (conversation/detach.c) */
    struct quota *promoted;    /* tasks that were promoted and run, by client_key_of_call() */
    struct quota *promoted_in; /* the same by client_key_of_session(); and these sessions, */
    struct quota *ended_sessions;  /* if their client has ended them meanwhile */
    struct quota *listens;         /* streams of subscriptions/listen, by owner */
    struct quota *fed_streams;     /* by client_key_of_session() (client/legacy_stream.c) */
    struct quota *unknown_listens; /* of these those of clients that are not known, by address */
    struct quota *opened_sessions; /* by owner or address, of all workers (server/sessions.c) */
    struct quota *task_places;     /* tasks of unknown clients, by address */
    struct shadow *shadow;
    struct inbox_table *inbox_table;              /* inbox/inbox.h */
    struct question_table *questions;             /* open questions of upstream */
    struct request_headers *request_headers;      /* of calls that are tasks */
    struct token_check *token_check;              /* auth/token_check.h */
    struct token_exchange_table *token_exchanges; /* auth/token_exchange.h */
    struct task_aliases *task_aliases;            /* our task of each, while it is followed */
    /* The calls from lower rooms to higher ones; never NULL. */
    const struct detached_callbacks *detached_callbacks; /* conversation/detach.h */
    const struct question_events *question_events;       /* conversation/question.h */
    struct replicas *replicas; /* replicas/replicas.h; NULL: no request is relayed */
    /* A task has failed with the replica that ran it, whose session is adopted here; never NULL. */
    void (*task_lost)(struct gateway *gateway, struct task *task);
    /* The questions of a modern task's server have changed. On each worker; never NULL. */
    void (*task_asks)(struct gateway_worker *worker, const struct task *task);
    /* A message about a task, for the open streams of its owner. On each worker; never NULL. */
    void (*task_message)(struct gateway_worker *worker, struct task *task, struct str message);
    /* Another replica has told something. On each worker; never NULL. */
    void (*news)(struct gateway_worker *worker, const struct news *news);
    struct gateway_worker **workers;
    size_t worker_count;
    _Atomic(int64_t) reloaded_ms; /* monotonic, when the configuration was changed last; 0: never */
    atomic_bool shutting_down;
    atomic_long in_flight, listening; /* of these: streams that answer nothing */
    atomic_long parting;              /* messages to servers whose reply nobody waits for */
    atomic_uint_fast64_t arrived;
};
#define GATEWAY_MAGIC 0x47574702

static inline struct gateway *gateway_from(void *context)
{
    return MAGIC_CAST(struct gateway, GATEWAY_MAGIC, context);
}

/* Everything in it belongs to its loop's thread. */
struct gateway_worker {
    uint32_t magic; /* GATEWAY_WORKER_MAGIC */
    struct gateway *gateway;
    struct loop *loop;
    struct upstream_client *client;
    /* The source whose server answered lately, which is only compared, and the end of that
     * knowledge. */
    const struct config_source *reachable_source;
    int64_t reachable_until_ms; /* monotonic */
    struct metrics_handle active_requests;
    struct token_worker *tokens;       /* auth/token_check.h */
    struct token_exchanges *exchanges; /* auth/token_exchange.h; NULL until the first */
    struct list calls;                 /* struct call.node, every one that is not yet answered */
    struct list exchanges_reading;     /* struct exchange.node: those that read messages */
    struct loop_timer fetch_timer;     /* the next try to fetch tools (server/catalogue.c) */
    struct log_aggregate *aggregate; /* calls that rules alone have decided; NULL until the first */
    struct loop_timer log_aggregate_timer; /* when what it has summed up is said; with `tally` */
    struct loop_timer sweep_timer; /* of the first worker: what has been idle too long goes */
    struct list parked_sessions;   /* the gateway's own that servers refuse to end */
    size_t parked_session_count;   /* (server/own.c) */
    struct list opened_sessions;   /* struct opened_session.node: for modern clients */
    struct map *legs;              /* id -> struct leg: such clients that wait */
    struct map *conversations;     /* handle -> struct conversation: their requests at servers */
    struct list streams;           /* struct legacy_stream.node: open GET streams */
    struct list listens;           /* struct listening.node: each subscriptions/listen */
    struct list handovers;         /* struct subscription.handed_over (client/legacy_stream.c) */
    struct list news;              /* news on its way to other replicas (replicas/news.c) */
    size_t news_count;
    struct list pulses; /* struct pulse.node: replicas at which requests wait (replicas/carry.c) */
    struct loop_timer tools_changed_timer; /* of others: told once for all that came together */
    struct map *waiters;                   /* task id -> struct waiting_call: open tasks/result */
    struct map *answers;    /* task id -> answers inside its call (conversation/answer_gate.c) */
    struct map *executions; /* task id -> struct execution: credentials held, or running */
    struct list detached;   /* struct detached_call.node: all of them, tasks yet or not */
    struct map *detached_tasks; /* task id -> struct detached_call: those that run */
};
#define GATEWAY_WORKER_MAGIC 0x47575703

static inline struct gateway_worker *gateway_worker_from(void *context)
{
    return MAGIC_CAST(struct gateway_worker, GATEWAY_WORKER_MAGIC, context);
}
