/* Shared by the suites of this layer. */
#pragma once

#include <check.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

Suite *capabilities_suite(void);
Suite *clients_suite(void);
Suite *dialect_modern_suite(void);
Suite *dialect_suite(void);
Suite *elicitation_suite(void);
Suite *era_suite(void);
Suite *definition_suite(void);
Suite *input_schema_suite(void);
Suite *jsonrpc_suite(void);
Suite *lists_suite(void);
Suite *method_suite(void);
Suite *mirrored_header_suite(void);
Suite *subscription_suite(void);
Suite *parameter_headers_suite(void);
Suite *reason_property_suite(void);
Suite *reply_check_suite(void);
Suite *sse_suite(void);
Suite *texts_suite(void);

void expect_str(struct str actual, const char *expected);
/* Compares with the written text, then empties the buffer and frees it. A correlation id is
 * random: it must look like a UUID, and `expected` has CORRELATION in its place. */
void expect_written(struct buffer *actual, const char *expected);
#define CORRELATION "UUID"

/* A small generator with a fixed seed, so that a failure can be seen again. */
struct chance {
    uint64_t state;
};
size_t chance_below(struct chance *chance, size_t limit);
/* Changes, inserts or drops one byte of `text`, with a bias to the characters of JSON and SSE. */
void chance_mutate(struct chance *chance, struct buffer *text);
