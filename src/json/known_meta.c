/* The last objects that were read, each as the pieces between the values that may differ. */
#include "known_meta.h"

#include <string.h>

#define META_BYTES 512
#define META_KEPT 4

struct kept_member {
    size_t offset;        /* in the envelope */
    size_t piece;         /* the one that it stands in, or that it follows */
    bool is_scalar;       /* it is one of those that may differ */
    size_t start, length; /* in the piece */
};

struct kept_meta {
    size_t pieces; /* 0: none */
    struct str piece[META_SCALARS + 1];
    size_t count;
    struct kept_member members[META_MEMBERS];
    char text[META_BYTES];
};

static _Thread_local struct {
    struct kept_meta metas[META_KEPT];
    size_t next;
} kept;

bool meta_is_scalar(char first)
{
    return first == '"' || first == '-' || (first >= '0' && first <= '9');
}

void meta_scalars_add(struct meta_scalars *scalars, struct str value)
{
    if (scalars->count < META_SCALARS)
        scalars->values[scalars->count++] = value;
}

/* ---- recall ---- */

enum match { UNLIKE, LIKE, UNREADABLE };

/* The places of the pieces and of the values between them in a body. */
struct places {
    const char *piece[META_SCALARS + 1];
    struct str value[META_SCALARS];
};

/* Reading a string or a number leaves nothing behind in the scanner unless it is unreadable: then
 * a strict reading would end at the same byte, because all before it is known. */
static enum match match(const struct kept_meta *meta, struct scanner *scanner, const char *at,
                        struct places *places, const char **end)
{
    const char *p = at;
    for (size_t i = 0;; i++) {
        struct str piece = meta->piece[i];
        if ((size_t)(scanner->end - p) < piece.length || memcmp(p, piece.bytes, piece.length) != 0)
            return UNLIKE;
        places->piece[i] = p;
        p += piece.length;
        if (i + 1 == meta->pieces)
            break;
        if (p == scanner->end || !meta_is_scalar(*p))
            return UNLIKE;
        const char *value = p;
        p = scan_value(scanner, value);
        if (!p)
            return UNREADABLE;
        places->value[i] = str_slice(value, (size_t)(p - value));
    }
    *end = p;
    return LIKE;
}

static void hand_over(const struct kept_meta *meta, const struct places *places,
                      struct envelope *envelope)
{
    for (size_t i = 0; i < meta->count; i++) {
        const struct kept_member *member = &meta->members[i];
        struct str *taken = (struct str *)(void *)((char *)envelope + member->offset);
        if (member->is_scalar)
            *taken = places->value[member->piece];
        else
            *taken = str_slice(places->piece[member->piece] + member->start, member->length);
    }
}

bool known_meta_recall(struct scanner *scanner, const char *at, struct envelope *envelope,
                       const char **end)
{
    struct places places;
    *end = NULL;
    for (size_t i = 0; i < META_KEPT; i++) {
        const struct kept_meta *meta = &kept.metas[i];
        enum match found = meta->pieces > 0 ? match(meta, scanner, at, &places, end) : UNLIKE;
        if (found == UNLIKE)
            continue;
        if (found == LIKE)
            hand_over(meta, &places, envelope);
        return true;
    }
    return false;
}

/* ---- keep ---- */

static void cut_pieces(struct kept_meta *meta, struct str text, const struct meta_scalars *scalars)
{
    const char *from = text.bytes, *end = text.bytes + text.length;
    memcpy(meta->text, text.bytes, text.length);
    meta->pieces = scalars->count + 1;
    for (size_t i = 0; i < meta->pieces; i++) {
        const struct str *value = i < scalars->count ? &scalars->values[i] : NULL;
        const char *to = value ? value->bytes : end;
        meta->piece[i] = str_slice(meta->text + (from - text.bytes), (size_t)(to - from));
        from = value ? to + value->length : to;
    }
}

static struct kept_member place_member(const struct kept_meta *meta, struct str text,
                                       const struct meta_scalars *scalars,
                                       const struct meta_member *member)
{
    struct kept_member placed = {.offset = member->offset, .length = member->span.length};
    const char *bytes = meta->text + str_offset(text, member->span);
    while (placed.piece < scalars->count &&
           scalars->values[placed.piece].bytes < member->span.bytes)
        placed.piece++;
    placed.is_scalar =
        placed.piece < scalars->count && scalars->values[placed.piece].bytes == member->span.bytes;
    if (!placed.is_scalar)
        placed.start = (size_t)(bytes - meta->piece[placed.piece].bytes);
    return placed;
}

void known_meta_keep(struct str text, const struct meta_scalars *scalars,
                     const struct meta_member *members, size_t count)
{
    if (text.length > META_BYTES)
        return;
    struct kept_meta *meta = &kept.metas[kept.next];
    kept.next = (kept.next + 1) % META_KEPT;
    cut_pieces(meta, text, scalars);
    meta->count = count;
    for (size_t i = 0; i < count; i++)
        meta->members[i] = place_member(meta, text, scalars, &members[i]);
}
