/*
 * Headers that are the caller's to send, and those that are not.
 */
#include "upstream_internal.h"

#include <stdint.h>
#include <string.h>

bool request_header_is_left_out(const struct http_header *header)
{
    return (http_name_flags(http_name_of(header)) & HTTP_NAME_NOT_SENT_UP) != 0;
}

/* RFC 9110 §5.1 "token": letters, digits and !#$%&'*+-.^_`|~, a bit each. */
static bool is_token_character(unsigned char c)
{
    static const uint64_t bits[] = {0x03ff6cfa00000000, 0x57ffffffc7fffffe, 0, 0};
    return (bits[c / 64] >> c % 64 & 1) != 0;
}

static bool request_header_has(struct str s, char c)
{
    return s.length > 0 && memchr(s.bytes, c, s.length) != NULL;
}

bool request_header_is_token(struct str name)
{
    for (size_t i = 0; i < name.length; i++)
        if (!is_token_character((unsigned char)name.bytes[i]))
            return false;
    return name.length > 0;
}

/* The parsers let names through that are no tokens; those with a row are. */
bool request_header_has_valid_text(const struct http_header *header)
{
    bool has_row = http_name_has_row((enum http_name)header->known);
    return (has_row || request_header_is_token(header->name)) &&
           (header->is_clean ||
            (!request_header_has(header->value, '\r') && !request_header_has(header->value, '\n') &&
             !request_header_has(header->value, '\0')));
}
