/*
 * Globs as ThoughtGate has them: the Rust glob crate with its default options, on bytes of UTF-8
 * characters. Compiled once, then matched by any thread, without allocation.
 *
 *     *      any run, across "/" and "."      ?      one character
 *     [abc] [a-z] [!x]   one of, none of      ** /   any number of whole components
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

struct glob;

/* NULL for an invalid pattern, with `error` saying why (V-009). */
struct glob *glob_compile(struct str pattern, struct error *error);
void glob_destroy(struct glob *glob); /* NULL is allowed */
/* Whole subject, case-sensitive; linear in the subject for any pattern. */
bool glob_matches(const struct glob *glob, struct str subject);
/* The literals of the pattern, in order, from `*position` 0 on: every subject that matches holds
 * each of them, so that an index can start from one. Valid as long as the glob. False after the
 * last one. */
bool glob_next_literal(const struct glob *glob, size_t *position, struct str *literal);
