/*
 * The place of a database: a URL of libpq's own form,
 * postgres://USER:PASSWORD@HOST:PORT/DATABASE?KEY=VALUE, which may hold a password. Its title for
 * people holds none.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"

struct place {
    char *url;
    char *title;    /* postgres://HOST:PORT/DATABASE */
    char *password; /* "" when the URL has none */
    char *program;  /* the application_name that it asks for, or "" */
};

/* NULL with an error, which has no part of the URL but a host. */
struct place *place_create(const char *url, struct error *error);
void place_destroy(struct place *place); /* NULL is allowed */
/* Takes the password out of a message. */
void place_hide_password(const struct place *place, char *message);
