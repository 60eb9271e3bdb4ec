/* Cutting texts for people without breaking a character. */
#include "text.h"

struct str mcp_text_cut(struct str text)
{
    if (text.length <= MCP_TEXT_MAX_BYTES)
        return text;
    size_t length = MCP_TEXT_MAX_BYTES;
    /* At most three continuation bytes belong to a character; bytes that are no UTF-8 at all
     * are not worth going back further for. */
    for (int i = 0; i < 3 && ((unsigned char)text.bytes[length] & 0xC0) == 0x80; i++)
        length--;
    return str_slice(text.bytes, length);
}
