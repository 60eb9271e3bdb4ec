/*
 * The bound on request bodies that are being received, of all connections of all servers that
 * share one: beyond it the slowest is dropped, with 503 and the end of its connection. Contract
 * "Hardening, second round", `limits.bodies_bytes`. Any thread.
 */
#pragma once

#include <stddef.h>

struct http_intake;

struct http_intake *http_intake_create(size_t limit_bytes);
/* For requests received from now on. */
void http_intake_set_limit(struct http_intake *intake, size_t limit_bytes);
/* After the servers that share it. NULL is allowed. */
void http_intake_destroy(struct http_intake *intake);
