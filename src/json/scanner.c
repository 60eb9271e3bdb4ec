/* The strict JSON reader: grammar, UTF-8, escapes, depth, duplicate keys, in one pass. */
#include "scanner.h"

#include <string.h>

#include "bytes.h"
#include "taskgate/json/envelope.h"

void scanner_init(struct scanner *scanner, struct str text, struct error *error)
{
    static const char nothing[1] = "";
    scanner->begin = text.bytes ? text.bytes : nothing;
    scanner->end = scanner->begin + text.length;
    scanner->depth = 0;
    scanner->verdict = SCAN_ACCEPTED;
    scanner->error = error;
    scanner->place = NULL;
    scanner->refuses_nul = scanner->folds_keys = false;
    keys_init(&scanner->keys);
}

void scanner_finish(struct scanner *scanner)
{
    keys_finish(&scanner->keys);
}

void scanner_fold_keys(struct scanner *scanner)
{
    scanner->folds_keys = true;
}

static void complain(struct scanner *scanner, const char *at, const char *kind, const char *what)
{
    size_t place = (size_t)(at - scanner->begin);
    if (!scanner->place) {
        error_set(scanner->error, "%s%s at byte %zu", kind, what, place);
        return;
    }
    *scanner->place = place;
    error_set(scanner->error, "%s%s", kind, what);
}

void scan_refuse(struct scanner *scanner, const char *at, const char *what)
{
    if (scanner->verdict != SCAN_ACCEPTED)
        return;
    scanner->verdict = SCAN_REFUSED;
    complain(scanner, at, "", what);
}

static __attribute__((noinline, cold)) const char *unreadable(struct scanner *scanner,
                                                              const char *at, const char *what)
{
    scanner->verdict = SCAN_UNREADABLE;
    complain(scanner, at, "not readable as JSON: ", at == scanner->end ? "unexpected end" : what);
    return NULL;
}

/* NUL at the end, where no NUL is ever accepted. */
static unsigned char byte_at(const struct scanner *scanner, const char *at)
{
    return at < scanner->end ? (unsigned char)*at : 0;
}

/* `at` is a byte of 0x80 or more. Sequences hold only such bytes, so a run of them is well
 * formed or not whatever stands around it. */
static const char *scan_non_ascii(struct scanner *scanner, const char *at)
{
    const char *p = at;
    while (byte_at(scanner, p) >= 0x80)
        p++;
    if (str_is_utf8(str_slice(at, (size_t)(p - at))))
        return p;
    /* Step to the ill-formed sequence itself. */
    for (size_t length = 2; length <= 4 && (size_t)(p - at) >= length; length++) {
        if (str_is_utf8(str_slice(at, length))) {
            at += length;
            length = 1;
        }
    }
    return unreadable(scanner, at, "invalid UTF-8");
}

/* The code unit of a \uXXXX at `at`, or -1. */
static int code_unit(const struct scanner *scanner, const char *at)
{
    if (scanner->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    return hex_quad(at + 2);
}

/* `at` is a backslash. */
static const char *scan_escape(struct scanner *scanner, const char *at)
{
    switch (byte_at(scanner, at + 1)) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 2;
    case 'u':
        break;
    default:
        return unreadable(scanner, at, "unknown escape");
    }
    int unit = code_unit(scanner, at);
    if (unit < 0)
        return unreadable(scanner, at, "\\u without four hex digits");
    if (unit < 0xD800 || unit > 0xDFFF)
        return at + 6;
    int low = code_unit(scanner, at + 6);
    if (unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return unreadable(scanner, at, "lone surrogate");
    return at + 12;
}

/* The rest of a string from a byte that is not plain, in the common case out of the way. */
static __attribute__((noinline)) const char *scan_string_rest(struct scanner *scanner,
                                                              const char *at, bool *escaped)
{
    const char *p = at;
    while (p) {
        unsigned char c = byte_at(scanner, p);
        if (c == '"')
            return p + 1;
        if (c == '\\') {
            *escaped = true;
            p = scan_escape(scanner, p);
        } else if (c >= 0x80) {
            p = scan_non_ascii(scanner, p);
        } else {
            p = unreadable(scanner, p, "control character in a string");
        }
        if (p)
            p = plain_end(p, scanner->end);
    }
    return NULL;
}

/* `at` is a quote. */
static inline const char *scan_string(struct scanner *scanner, const char *at, bool *escaped)
{
    const char *p = plain_end(at + 1, scanner->end);
    if (p < scanner->end && *p == '"')
        return p + 1;
    return scan_string_rest(scanner, p, escaped);
}

static const char *scan_digits(struct scanner *scanner, const char *at)
{
    const char *p = at;
    while (p < scanner->end && *p >= '0' && *p <= '9')
        p++;
    return p > at ? p : unreadable(scanner, p, "expected a digit");
}

static const char *scan_number(struct scanner *scanner, const char *at)
{
    const char *p = at + (*at == '-');
    p = byte_at(scanner, p) == '0' ? p + 1 : scan_digits(scanner, p);
    if (p && byte_at(scanner, p) == '.')
        p = scan_digits(scanner, p + 1);
    if (p && (byte_at(scanner, p) | 0x20) == 'e') {
        unsigned char sign = byte_at(scanner, ++p);
        p = scan_digits(scanner, p + (sign == '+' || sign == '-'));
    }
    return p;
}

static const char *scan_word(struct scanner *scanner, const char *at, struct str word)
{
    if ((size_t)(scanner->end - at) < word.length || memcmp(at, word.bytes, word.length) != 0)
        return unreadable(scanner, at, "unknown word");
    return at + word.length;
}

static bool enter(struct scanner *scanner, const char *at)
{
    if (scanner->depth == ENVELOPE_MAX_DEPTH) {
        unreadable(scanner, at, "nested too deep");
        return false;
    }
    scanner->depth++;
    return true;
}

/* Scans a key, its colon and the space around; returns where the value starts. */
static const char *scan_key(struct scanner *scanner, const char *at, const struct key **key)
{
    if (byte_at(scanner, at) != '"')
        return unreadable(scanner, at, "expected a key");
    bool escaped = false;
    const char *p = scan_string(scanner, at, &escaped);
    if (!p)
        return NULL;
    struct str raw = {at + 1, (size_t)(p - at) - 2};
    *key = keys_push(&scanner->keys, raw, escaped, scanner->end);
    if (escaped && scanner->refuses_nul && memchr((*key)->bytes, '\0', (*key)->length))
        scan_refuse(scanner, at, "a NUL in a key");
    p = skip_space(p, scanner->end);
    if (byte_at(scanner, p) != ':')
        return unreadable(scanner, p, "expected ':'");
    return skip_space(p + 1, scanner->end);
}

const char *scan_members(struct scanner *scanner, const char *at, scan_visitor *visit,
                         void *context)
{
    size_t first_key = scanner->keys.count;
    bool is_changed = !scanner->folds_keys;
    if (!enter(scanner, at))
        return NULL;
    const char *p = skip_space(at + 1, scanner->end);
    while (first_key < scanner->keys.count || byte_at(scanner, p) != '}') {
        const struct key *key = NULL;
        p = scan_key(scanner, p, &key);
        if (p && scanner->folds_keys && keys_fold_last(&scanner->keys))
            is_changed = true;
        if (p)
            p = visit ? visit(scanner, p, key, context) : scan_value(scanner, p);
        if (!p)
            return NULL;
        p = skip_space(p, scanner->end);
        if (byte_at(scanner, p) == '}')
            break;
        if (byte_at(scanner, p) != ',')
            return unreadable(scanner, p, "expected ',' or '}'");
        p = skip_space(p + 1, scanner->end);
    }
    const char *duplicate = NULL;
    if (is_changed)
        duplicate = keys_pop_object(&scanner->keys, first_key);
    else
        scanner->keys.count = first_key; /* they were told apart before, and folding changed none */
    if (duplicate)
        scan_refuse(scanner, duplicate,
                    scanner->folds_keys ? "a key that only case or look tells from another"
                                        : "duplicate key");
    scanner->depth--;
    return p + 1;
}

/* `at` is an opening bracket. */
static const char *scan_elements(struct scanner *scanner, const char *at)
{
    if (!enter(scanner, at))
        return NULL;
    const char *p = skip_space(at + 1, scanner->end);
    bool empty = byte_at(scanner, p) == ']';
    while (!empty) {
        p = scan_value(scanner, p);
        if (!p)
            return NULL;
        p = skip_space(p, scanner->end);
        if (byte_at(scanner, p) == ']')
            break;
        if (byte_at(scanner, p) != ',')
            return unreadable(scanner, p, "expected ',' or ']'");
        p = skip_space(p + 1, scanner->end);
    }
    scanner->depth--;
    return p + 1;
}

const char *scan_value(struct scanner *scanner, const char *at)
{
    bool escaped;
    unsigned char c = byte_at(scanner, at);
    switch (c) {
    case '"':
        return scan_string(scanner, at, &escaped);
    case '{':
        return scan_members(scanner, at, NULL, NULL);
    case '[':
        return scan_elements(scanner, at);
    case 't':
        return scan_word(scanner, at, STR("true"));
    case 'f':
        return scan_word(scanner, at, STR("false"));
    case 'n':
        return scan_word(scanner, at, STR("null"));
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return scan_number(scanner, at);
        return unreadable(scanner, at, "expected a value");
    }
}

enum scan_verdict scan_document(struct scanner *scanner, scan_visitor *visit, void *context,
                                struct str *value)
{
    const char *start = skip_space(scanner->begin, scanner->end);
    const char *p = byte_at(scanner, start) == '{' ? scan_members(scanner, start, visit, context)
                                                   : scan_value(scanner, start);
    if (!p)
        return scanner->verdict;
    if (value)
        *value = (struct str){start, (size_t)(p - start)};
    p = skip_space(p, scanner->end);
    if (p != scanner->end)
        unreadable(scanner, p, "text behind the value");
    return scanner->verdict;
}
