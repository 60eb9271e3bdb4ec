/*
 * Stepping over JSON text that has been checked. `end` bounds every step; on text that was
 * not checked the result has no meaning but stays within bounds.
 */
#pragma once

/* `at` is the first byte of a value (for walk_string: a quote); the result is behind it. */
const char *walk_string(const char *at, const char *end);
const char *walk_value(const char *at, const char *end);
