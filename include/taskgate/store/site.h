/* A database: its kind and where it is. */
#pragma once

struct store_backend;

/* The store in one SQLite file, for one process. The place is the file's path; the file is created
 * where there is none, with mode 0600, and locked for the process that has opened it. */
extern const struct store_backend store_sqlite;
/* The store in a PostgreSQL database (15 and later), for any number of processes. The place is a
 * URL of libpq's form. A database that cannot be reached is tried again and again; one that refuses
 * us (password, no such database, a standby, a pooler in transaction mode, a newer schema) is an
 * error. Its tables are in the role's current schema, with the prefix "taskgate_". */
extern const struct store_backend store_postgres;

struct store_site {
    const struct store_backend *backend;
    const char *place; /* of the kind: a file, or a URL with its password */
};
