/* Identifiers and paths of them. */
#include <string.h>

#include "ast.h"

bool name_is_reserved(struct str word)
{
    static const struct str reserved[] = {{"true", 4}, {"false", 5},  {"if", 2}, {"then", 4},
                                          {"else", 4}, {"in", 2},     {"is", 2}, {"like", 4},
                                          {"has", 3},  {"__cedar", 7}};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (str_equal(reserved[i], word))
            return true;
    return false;
}

bool name_is_identifier(struct str word)
{
    if (word.length == 0 || (word.bytes[0] >= '0' && word.bytes[0] <= '9'))
        return false;
    for (size_t i = 0; i < word.length; i++) {
        char c = word.bytes[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return true;
}

bool cedar_type_is_valid(struct str type)
{
    struct str rest = type;
    for (;;) {
        const char *colons = rest.length ? memmem(rest.bytes, rest.length, "::", 2) : NULL;
        struct str word = colons ? str_slice(rest.bytes, (size_t)(colons - rest.bytes)) : rest;
        if (!name_is_identifier(word) || name_is_reserved(word))
            return false;
        if (!colons)
            return true;
        rest = str_slice(colons + 2, rest.length - word.length - 2);
    }
}

bool type_is_action(struct str type)
{
    return str_equal(type, STR("Action")) || str_ends_with(type, STR("::Action"));
}

struct cedar_position source_position(const struct source *source, size_t offset)
{
    struct cedar_position position = {.source = source->name, .line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < source->text.length; i++) {
        unsigned char c = (unsigned char)source->text.bytes[i];
        if (c == '\n') {
            position.line++;
            position.column = 1;
        } else if ((c & 0xc0) != 0x80) {
            position.column++; /* not inside a character */
        }
    }
    return position;
}
