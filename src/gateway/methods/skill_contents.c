/* Contents of files, compared with the digests of skills. */
#include "methods.h"

#include <openssl/evp.h>

#include "call/client_profile.h"
#include "state/definition_watch.h"
#include "state/skill_files.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"

#define MOST_BYTES ((size_t)SKILL_FILE_BYTES * 2)

static bool is_compared(const struct call *call)
{
    return call->source->pins[DEFINITION_SKILL] == PIN_APPROVE;
}

static struct skill_files *files_of(const struct call *call)
{
    return definition_watch_skill_files(call->worker->gateway->definitions);
}

/* In place. Standard base64 with its padding. */
static bool decode_blob(struct buffer *blob)
{
    size_t length = blob->length;
    if (length % 4 != 0 || length > MOST_BYTES)
        return false;
    if (length == 0)
        return true;
    size_t padding = blob->bytes[length - 1] != '=' ? 0 : blob->bytes[length - 2] != '=' ? 1 : 2;
    unsigned char *bytes = (unsigned char *)blob->bytes;
    int decoded = EVP_DecodeBlock(bytes, bytes, (int)length);
    if (decoded < 0)
        return false;
    blob->length = (size_t)decoded - padding; /* padding decodes to zero bytes */
    return true;
}

/* One element of `contents`: its bytes are those of the text, or of the decoded blob. */
static bool read_bytes(const struct str members[3], struct buffer *bytes)
{
    bool has_blob = members[0].length > 0, has_text = members[1].length > 0;
    if (has_blob == has_text)
        return false;
    return has_text ? json_decode_string(members[1], bytes)
                    : json_decode_string(members[0], bytes) && decode_blob(bytes);
}

/* By its own URI, and by that which was asked for. */
static bool may_go_down(const struct call *call, struct str asked, const struct str members[3])
{
    struct str source = str_from(call->source->id);
    struct buffer bytes, uri;
    buffer_init(&bytes);
    buffer_init(&uri);
    bool may = read_bytes(members, &bytes) && json_decode_string(members[2], &uri);
    if (may) {
        enum skill_file own =
            skill_files_judge(files_of(call), source, buffer_str(&uri), buffer_str(&bytes));
        may = own != SKILL_FILE_MISFITS &&
              skill_files_judge(files_of(call), source, asked, buffer_str(&bytes)) !=
                  SKILL_FILE_MISFITS;
    }
    buffer_finish(&uri);
    buffer_finish(&bytes);
    return may;
}

static bool all_may(const struct call *call, struct str asked, struct str contents)
{
    static const char *const keys[] = {"blob", "text", "uri"};
    struct str item, members[3];
    bool may = json_type(contents) == JSON_ARRAY;
    for (size_t position = 0;
         may && json_next_element_members(contents, &position, &item, keys, 3, members);)
        may = may_go_down(call, asked, members);
    if (!may)
        log_warn("Content is not that of the skill's digest", LOG_TEXT("source", call->source->id),
                 LOG_STR("uri", asked));
    return may;
}

static struct jsonrpc_error_data data_of(const struct call *call)
{
    return (struct jsonrpc_error_data){.details = call->envelope.uri.text};
}

bool skill_contents_refuse(struct call *call, const struct relay_reply *reply,
                           struct buffer *message)
{
    const struct jsonrpc_error_data data = data_of(call);
    struct str contents = json_member(reply->result, "contents");
    bool only_asks = contents.length == 0 && json_member(reply->result, "inputRequests").length > 0;
    if (only_asks || all_may(call, call->envelope.uri.text, contents))
        return false;
    dialect_write_error(call->dialect, message, call->envelope.id, JSONRPC_DIGEST_MISMATCH,
                        STR_EMPTY, &data);
    call->outcome = "error";
    return true;
}

bool skill_contents_refuse_unread(struct call *call, enum lost_reason reason)
{
    const struct jsonrpc_error_data data = data_of(call);
    if (reason != LOST_UNREADABLE)
        return false;
    call_answer_error(call, JSONRPC_DIGEST_MISMATCH, STR_EMPTY, &data);
    return true;
}

bool skill_contents_are_compared(struct call *call)
{
    struct str uri = call->envelope.uri.text;
    char key[CLIENT_KEY_BYTES];
    if (!is_compared(call) || call->method->treatment != MCP_GATED_URI ||
        !str_equal(call->envelope.method, STR("resources/read")))
        return false;
    client_key_of_call(call, key);
    skill_files_note_read(files_of(call), &(struct skill_read){str_from(key), call->envelope.id},
                          uri);
    return skill_files_has(files_of(call), str_from(call->source->id), uri);
}

bool skill_contents_refuse_late(struct call *call, const struct relay_reply *reply,
                                struct buffer *message)
{
    struct str contents = json_member(reply->result, "contents");
    char key[CLIENT_KEY_BYTES];
    struct buffer asked;
    if (!is_compared(call) || json_type(contents) != JSON_ARRAY)
        return false;
    buffer_init(&asked);
    client_key_of_call(call, key);
    const struct skill_read read = {str_from(key), reply->id};
    bool is_known = skill_files_find_read(files_of(call), &read, &asked);
    bool may = is_known && all_may(call, buffer_str(&asked), contents);
    const struct jsonrpc_error_data data = {
        .details = buffer_str(&asked),
        .hint = is_known ? STR_EMPTY
                         : STR("The gateway knows of no such request any more. Read it again.")};
    if (!may)
        dialect_write_error(call->dialect, message, reply->id, JSONRPC_DIGEST_MISMATCH, STR_EMPTY,
                            &data);
    buffer_finish(&asked);
    return !may;
}
