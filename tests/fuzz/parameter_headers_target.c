/* Schemas and calls with Mcp-Param-*: a call whose headers were made from its own arguments is
 * never refused, and one with another value always is. */
#include "taskgate/mcp/parameter_headers.h"

#include "fuzz.h"
#include "taskgate/json/text.h"

struct request {
    struct str value;
    size_t count;
};

static struct mirrored_header find(void *context, struct str name)
{
    const struct request *request = context;
    return (struct mirrored_header){request->value, request->count};
}

/* One string argument, as the client of the protocol writes its header. */
static void check_string(const struct parameter_headers *headers, struct str text)
{
    struct buffer arguments = {0}, value = {0};
    struct str name;
    buffer_append_text(&arguments, "{\"a\":");
    buffer_append_json_string(&arguments, text);
    buffer_append_char(&arguments, '}');
    struct str json = json_member(buffer_str(&arguments), "a");
    struct buffer own = {0};
    json_decode_string(json, &own);
    mirrored_header_encode(buffer_str(&own), &value);
    struct request request = {buffer_str(&value), 1};
    FUZZ_EXPECT(parameter_headers_check(headers, buffer_str(&arguments), find, &request, &name) ==
                MIRRORED_SAME);
    buffer_append_char(&own, 'x');
    buffer_clear(&value);
    mirrored_header_encode(buffer_str(&own), &value);
    request.value = buffer_str(&value);
    FUZZ_EXPECT(parameter_headers_check(headers, buffer_str(&arguments), find, &request, &name) ==
                MIRRORED_DIFFERENT);
    buffer_finish(&arguments);
    buffer_finish(&value);
    buffer_finish(&own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size), name;
    struct parameter_headers *headers;
    struct request nothing = {STR_EMPTY, 0};
    struct error error;
    if (json_check(text, NULL)) {
        enum parameter_headers_status status = parameter_headers_create(text, &headers, &error);
        FUZZ_EXPECT((status == PARAMETER_HEADERS_SOME) == (headers != NULL));
        FUZZ_EXPECT((status == PARAMETER_HEADERS_INVALID) == (error.message[0] != '\0'));
        if (headers) {
            enum mirrored_verdict verdict =
                parameter_headers_check(headers, text, find, &nothing, &name);
            FUZZ_EXPECT(verdict == MIRRORED_SAME || verdict == MIRRORED_MISSING);
        }
        parameter_headers_destroy(headers);
    }
    FUZZ_EXPECT(parameter_headers_create(
                    STR("{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}"),
                    &headers, &error) == PARAMETER_HEADERS_SOME);
    check_string(headers, text);
    parameter_headers_destroy(headers);
    return 0;
}
