/* Mcp-Method, Mcp-Name, Mcp-Param-* and MCP-Protocol-Version, kept and made. */
#include "mirrored_headers.h"

#include "taskgate/mcp/era.h"
#include "taskgate/mcp/mirrored_header.h"

#define VERSION_NAME STR("mcp-protocol-version")

static bool is_kept(const struct http_header *header)
{
    enum http_name name = http_name_of(header);
    return name == HTTP_NAME_MCP_PROTOCOL_VERSION ||
           (http_name_flags(name) & HTTP_NAME_MIRRORS_BODY);
}

static void write_line(const struct http_header *header, struct buffer *lines)
{
    if (!is_kept(header))
        return;
    buffer_append(lines, header->name);
    buffer_append_char(lines, ':');
    buffer_append(lines, header->value);
    buffer_append_char(lines, '\n');
}

void mirrored_headers_write(const struct http_exchange *exchange, struct buffer *lines)
{
    for (size_t i = 0; i < http_header_count(exchange); i++) {
        const struct http_header header = http_header_at(exchange, i);
        write_line(&header, lines);
    }
}

void mirrored_headers_write_made(const struct headers *headers, struct buffer *lines)
{
    for (size_t i = 0; i < headers->count; i++)
        write_line(&headers->items[i], lines);
}

void mirrored_headers_restore(struct headers *headers, struct str lines)
{
    struct str line, name, value;
    headers_drop(headers, HTTP_NAME_MIRRORS_BODY);
    while (lines.length > 0) {
        str_cut(lines, '\n', &line, &lines);
        str_cut(line, ':', &name, &value);
        if (str_equal(name, VERSION_NAME))
            headers_set(headers, name, value);
        else
            headers_add(headers, name, value);
    }
}

void mirrored_headers_set(struct headers *headers, const char *method, struct str name)
{
    struct buffer value;
    headers_drop(headers, HTTP_NAME_MIRRORS_BODY);
    headers_set(headers, VERSION_NAME, STR(MCP_VERSION_MODERN));
    headers_add(headers, STR("mcp-method"), str_from(method));
    if (name.length == 0)
        return;
    buffer_init(&value);
    mirrored_header_encode(name, &value);
    headers_add(headers, STR("mcp-name"), buffer_str(&value));
    buffer_finish(&value);
}
