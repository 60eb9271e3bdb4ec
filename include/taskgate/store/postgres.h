/*
 * The store in a PostgreSQL database (15 and later), for any number of processes. The place is a
 * URL of libpq's form. A database that cannot be reached is tried again and again; one that refuses
 * us (password, no such database, a standby, a pooler in transaction mode, a newer schema) is an
 * error. Its tables are in the role's current schema, with the prefix "taskgate_".
 */
#pragma once

struct store_backend;
extern const struct store_backend store_postgres;
