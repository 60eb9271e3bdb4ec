/* Folding by a table over all characters, made at its first use. */
#include "taskgate/json/fold.h"

#include <pthread.h>
#include <string.h>

#include "fold_table.h"

/* Characters from here on that are no hidden ones fold to themselves. */
#define CHARACTERS 0x30000
#define PAGE 64
#define PAGES_MAX 256
#define BYTES_MAX 12 /* of what one character folds to */
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

struct fold {
    bool is_changed;
    unsigned char length;
    char bytes[BYTES_MAX];
};

/* The first page is empty, and stands for every page that nothing is said of. */
static struct fold pages[PAGES_MAX][PAGE];
static unsigned char page_of[CHARACTERS / PAGE];
static size_t page_count = 1;

static struct fold *cell(uint32_t character)
{
    unsigned char *page = &page_of[character / PAGE];
    if (!*page)
        *page = (unsigned char)page_count++;
    return &pages[*page][character % PAGE];
}

static unsigned char fold_encode(uint32_t character, char out[4])
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    unsigned char length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = length - 1; i > 0; i--, character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3F));
    out[0] = (char)(lead[length] | character);
    return length;
}

static void fold_build(void)
{
    for (uint32_t c = 0; c < 0x80; c++)
        *cell(c) = (struct fold){.is_changed = c >= 'A' && c <= 'Z',
                                 .length = 1,
                                 .bytes = {(char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c)}};
    for (size_t i = 0; i < COUNT(fold_ranges); i++) {
        for (uint32_t c = fold_ranges[i].first; c <= fold_ranges[i].last;
             c += fold_ranges[i].step) {
            struct fold *fold = cell(c);
            fold->is_changed = true;
            fold->length = fold_encode((uint32_t)((int64_t)c + fold_ranges[i].delta), fold->bytes);
        }
    }
    for (size_t i = 0; i < COUNT(fold_texts); i++) {
        struct fold *fold = cell(fold_texts[i].character);
        fold->is_changed = true;
        fold->length = (unsigned char)strlen(fold_texts[i].text);
        memcpy(fold->bytes, fold_texts[i].text, fold->length);
    }
    for (size_t i = 0; i < COUNT(fold_hidden); i++) {
        for (uint32_t c = fold_hidden[i].first; c <= fold_hidden[i].last && c < CHARACTERS; c++)
            *cell(c) = (struct fold){.is_changed = true};
    }
}

static void fold_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fold_build);
}

/* Of the character at the start; `*length` is 1 and the result 0 where it is no UTF-8. */
static inline uint32_t decode(struct str text, size_t *length)
{
    const unsigned char *p = (const unsigned char *)text.bytes;
    size_t wanted = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC2 ? 2 : 1;
    uint32_t character = wanted == 1 ? p[0] : p[0] & (0xFFu >> (wanted + 1));
    *length = 1;
    if (wanted > text.length || (wanted == 1 && p[0] >= 0x80))
        return 0;
    for (size_t i = 1; i < wanted; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        character = character << 6 | (p[i] & 0x3F);
    }
    *length = wanted;
    return character;
}

static inline const struct fold *find(uint32_t character)
{
    static const struct fold same, hidden = {.is_changed = true};
    if (character < CHARACTERS)
        return &pages[page_of[character / PAGE]][character % PAGE];
    return character >= 0xE0000 && character <= 0xE0FFF ? &hidden : &same;
}

/* After fold_prepare(). */
static inline struct str next(struct str *rest)
{
    size_t length;
    uint32_t character = decode(*rest, &length);
    const struct fold *fold = find(character);
    struct str folded =
        fold->is_changed ? str_slice(fold->bytes, fold->length) : str_slice(rest->bytes, length);
    *rest = str_slice(rest->bytes + length, rest->length - length);
    return folded;
}

struct str fold_next(struct str *rest)
{
    fold_prepare();
    return next(rest);
}

void fold_append(struct buffer *out, struct str text)
{
    fold_prepare();
    buffer_reserve(out, text.length * FOLD_GROWTH + BYTES_MAX);
    char *to = out->bytes + out->length;
    const char *from = text.bytes, *end = from + text.length;
    while (from < end) {
        unsigned char c = (unsigned char)*from;
        if (c < 0x80) {
            *to++ = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
            from++;
            continue;
        }
        size_t length;
        uint32_t character = decode(str_slice(from, (size_t)(end - from)), &length);
        const struct fold *fold = find(character);
        if (fold->is_changed) {
            memcpy(to, fold->bytes, BYTES_MAX); /* of a fixed size, which is faster */
            to += fold->length;
        } else {
            memcpy(to, from, length);
            to += length;
        }
        from += length;
    }
    out->length = (size_t)(to - out->bytes);
}

bool fold_is_folded(struct str text)
{
    size_t i = 0;
    while (i < text.length && (unsigned char)text.bytes[i] < 0x80 &&
           !(text.bytes[i] >= 'A' && text.bytes[i] <= 'Z'))
        i++;
    if (i == text.length)
        return true;
    fold_prepare();
    while (text.length) {
        const char *at = text.bytes;
        if (next(&text).bytes != at)
            return false;
    }
    return true;
}
