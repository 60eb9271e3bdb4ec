/*
 * Strings with a length, borrowed.
 *
 * A `struct str` never owns its bytes and is never NUL-terminated, because bytes
 * of the wire may include NUL. Functions here allocate nothing and are callable from any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *bytes; /* may be NULL when length is 0 */
    size_t length;     /* in bytes */
};

#define STR_EMPTY ((struct str){NULL, 0})
/* A str of a string literal. */
#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
/* For printf's "%.*s". */
#define STR_ARGS(s) (int)(s).length, ((s).length ? (s).bytes : "")

/* These three are called a hundred times for each request: inline, most of them are nothing. */

/* NULL gives the empty str. */
static inline struct str str_from(const char *terminated)
{
    return terminated ? (struct str){terminated, strlen(terminated)} : STR_EMPTY;
}

static inline struct str str_slice(const char *bytes, size_t length)
{
    return (struct str){bytes, length};
}

static inline bool str_equal(struct str a, struct str b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* Of two texts, each of which may be NULL, which equals NULL alone. */
bool str_same(const char *one, const char *other);
/* ASCII case only. */
bool str_equal_ignore_case(struct str a, struct str b);
/* Time depends on the lengths alone: for secrets and their digests. */
bool str_equal_constant_time(struct str a, struct str b);
bool str_starts_with(struct str s, struct str prefix);
bool str_ends_with(struct str s, struct str suffix);
/* Byte-wise order, shorter first on a tie; as memcmp's sign. */
int str_compare(struct str a, struct str b);
/* Without leading and trailing ASCII white space. */
struct str str_trim(struct str s);
/* Cuts `s` at the first `separator`; the rest goes to `rest` (empty when there is none).
 * Returns whether the separator was found. */
bool str_cut(struct str s, char separator, struct str *before, struct str *rest);
/* The offset of `part` in `whole`, whose bytes it points into. Any other part is a mistake of the
 * program, and ends it: the distance of two unrelated addresses is no offset. */
size_t str_offset(struct str whole, struct str part);
/* Decimal digits only, no sign, no white space; false on anything else or overflow. */
bool str_to_u64(struct str s, uint64_t *value);
#define STR_U64_BYTES 20
/* The decimal digits, in `digits`. */
struct str str_from_u64(uint64_t value, char digits[STR_U64_BYTES]);
/* The value of a hexadecimal digit; -1: it is none. */
int str_hex_digit(char c);
/* Two digits for each byte, in lower case. Returns the place behind the last, which has no zero. */
char *str_write_hex(const void *bytes, size_t count, char *text);
/* The bytes of hexadecimal digits, half as many; false for any other text. */
bool str_read_hex(struct str hex, unsigned char *bytes);
/* Two texts in the `size` bytes at `out`, ended by a zero; what has no room is cut off. */
void str_join(char *out, size_t size, struct str first, struct str second);
bool str_is_utf8(struct str s);
/* How many bytes of it are UTF-8, up to the first that is not. */
size_t str_utf8_length(struct str s);
/* How many characters it has. */
size_t str_utf8_count(struct str s);
/* Reads the first code point; returns its bytes, or 0 where it is not UTF-8 or empty. */
size_t str_code_point(struct str s, unsigned *code_point);
/* The first `most` bytes of it, or fewer where a character would be cut in two. */
struct str str_utf8_cut(struct str s, size_t most);
/* Keyed with a secret of the process, for hash tables: a client cannot choose collisions. */
uint64_t str_hash(struct str s);
