/* A database: its kind and where it is. */
#pragma once

struct store_backend;

struct store_site {
    const struct store_backend *backend;
    const char *place; /* of the kind: a file, or a URL with its password */
};
