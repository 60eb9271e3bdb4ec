/*
 * Writing the members of an object one after the other: each function adds `,"key":value`,
 * without the comma where the object has just begun. Keys are plain text that needs no
 * escape. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"

void json_add_key(struct buffer *out, const char *key);
/* `value` is JSON text; nothing is added where it is empty. */
void json_add_value(struct buffer *out, const char *key, struct str value);
void json_add_bool(struct buffer *out, const char *key, bool is_true);
void json_add_number(struct buffer *out, const char *key, int64_t number);
void json_add_str(struct buffer *out, const char *key, struct str text);
/* NULL counts as "". */
void json_add_text(struct buffer *out, const char *key, const char *text);
/* null for NULL or "". */
void json_add_text_or_null(struct buffer *out, const char *key, const char *text);
/* An array of strings, each NUL-terminated. */
void json_add_texts(struct buffer *out, const char *key, char *const *texts, size_t count);
/* The same without a key: the array alone. */
void json_write_texts(struct buffer *out, char *const *texts, size_t count);
/* RFC 3339; null for 0. */
void json_add_time(struct buffer *out, const char *key, int64_t wall_ms);
