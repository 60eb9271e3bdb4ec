/*
 * The store in one SQLite file, for one process. The place is the file's path; the file is created
 * where there is none, with mode 0600, and locked for the process that has opened it.
 */
#pragma once

struct store_backend;
extern const struct store_backend store_sqlite;
