/*
 * Globs as ThoughtGate has them: the Rust glob crate with its default options, on bytes of
 * UTF-8 characters (reference §1.3). Compiled once, matched without allocation.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

struct glob;

/* NULL for an invalid pattern, with `error` saying why (V-009). */
struct glob *glob_compile(struct str pattern, struct error *error);
void glob_destroy(struct glob *glob); /* NULL is allowed */
/* Whole subject, case-sensitive; linear in the subject for any pattern. */
bool glob_matches(const struct glob *glob, struct str subject);
/* The literal the pattern begins with: an index can start from it. */
struct str glob_literal_prefix(const struct glob *glob);
/* Whether the pattern is nothing but that literal. */
bool glob_is_literal(const struct glob *glob);
