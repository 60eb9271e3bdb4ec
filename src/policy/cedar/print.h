/*
 * Between the files that print policies.
 */
#pragma once

#include "ast.h"
#include "taskgate/core/buffer.h"

/* A longer text is broken into lines if possible. */
#define PRINT_COLUMNS 100

/* As a string literal, nothing in it that hides or misleads. */
void print_string(struct buffer *out, struct str text);
void print_pattern(struct buffer *out, const struct pattern *pattern);
/* A name as it is when that will do, else as a string literal. */
void print_name(struct buffer *out, struct str name);
void print_uid(struct buffer *out, const struct cedar_uid *uid);

void print_expression(struct buffer *out, const struct node *node);
/* The operands of a chain of && or || one below the other, each after `indent` spaces; any other
 * expression in one line. */
void print_lines(struct buffer *out, const struct node *node, size_t indent);
