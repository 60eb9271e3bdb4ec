/*
 * The example server's parts in one place.
 *
 * There is one thread and one event loop; every function of every module here
 * runs on it, and none blocks but for the few lines written to journal and log.
 */
#ifndef EXAMPLE_SERVER_H
#define EXAMPLE_SERVER_H

#include <h2o.h>
#include <stdbool.h>
#include <stdio.h>

#include "connection.h"
#include "databases.h"
#include "options.h"
#include "session.h"

#define SERVER_TICK_MS 50         /* how exactly `slow` keeps time */
#define SERVER_KEEPALIVE_MS 15000 /* comment lines that keep quiet streams open */
#define SERVER_BODY_BYTES ((size_t)4 * 1024 * 1024)

struct server {
    struct options options;
    h2o_globalconf_t config;
    h2o_context_t context;
    h2o_timeout_t tick;
    h2o_timeout_t keepalive;
    struct connections connections;
    struct sessions sessions;
    struct databases databases;
    FILE *journal; /* NULL when none was asked for */
    bool stopping;
};

#endif
