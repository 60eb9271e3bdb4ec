/* Answers of the admin endpoint, as text and as JSON. */
#include "listing.h"

#include "taskgate/cli/cli.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "tasks_show.h"
#include "terminal.h"

int listing_print(struct str answer, bool json, listing_append append)
{
    OWNED_BUFFER(text);
    ASSERT(json || append);
    if (json) {
        visible_append_json(&text, answer);
        buffer_append_char(&text, '\n');
    } else {
        append(&text, answer);
    }
    return terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
}

int listing_ask(struct admin_client *client, const struct admin_request *request, bool json,
                listing_append append)
{
    OWNED_BUFFER(answer);
    int code = admin_client_send(client, request, &answer);
    if (code == CLI_DONE)
        code = listing_print(buffer_str(&answer), json, append);
    return code;
}

void listing_append_page(struct buffer *out, struct str page, const char *name,
                         listing_append append)
{
    struct str item;
    size_t position = 0;
    bool is_empty = true;
    while (json_next_element(json_member(page, name), &position, &item)) {
        append(out, item);
        is_empty = false;
    }
    if (is_empty)
        buffer_append_format(out, "No %s.\n", name);
    if (json_type(json_member(page, "nextCursor")) == JSON_STRING) {
        buffer_append_text(out, "More: --cursor ");
        tasks_append_member(out, page, "nextCursor");
        buffer_append_char(out, '\n');
    }
}
