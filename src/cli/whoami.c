/* taskgate whoami: the holder of the token, as the admin endpoint knows them. */
#include "taskgate/cli/cli.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "admin_client.h"
#include "listing.h"
#include "options.h"
#include "tasks_show.h"

/* "groups:  dba, it"; nothing for an empty list. */
static void whoami_append_list(struct buffer *out, const char *label, struct str list)
{
    struct str item;
    size_t position = 0;
    bool is_first = true;
    while (json_next_element(list, &position, &item)) {
        struct buffer text;
        buffer_init(&text);
        json_decode_string(item, &text);
        buffer_append_format(out, is_first ? "%-8s " : ", ", label);
        visible_append(out, buffer_str(&text));
        buffer_finish(&text);
        is_first = false;
    }
    if (!is_first)
        buffer_append_char(out, '\n');
}

static void whoami_append_member(struct buffer *out, const char *label, struct str who,
                                 const char *name)
{
    buffer_append_format(out, "%-8s ", label);
    tasks_append_member(out, who, name);
    buffer_append_char(out, '\n');
}

static void append_who(struct buffer *out, struct str who)
{
    whoami_append_member(out, "person:", who, "person");
    whoami_append_member(out, "name:", who, "name");
    whoami_append_list(out, "groups:", json_member(who, "groups"));
    whoami_append_list(out, "roles:", json_member(who, "roles"));
    whoami_append_member(out, "via:", who, "via");
}

int cli_whoami(int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {{"json", NULL, "print JSON", NULL, &json}};
    const struct command command = {
        .usage = "taskgate whoami [--json]",
        .synopsis = "Shows your name and rights at a running gateway.",
        .options = options,
        .option_count = 1,
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct admin_client *client = admin_client_create();
    const struct admin_request request = {.method = "GET", .path = "/api/v1/whoami"};
    int code = client ? listing_ask(client, &request, json, append_who) : CLI_USAGE;
    admin_client_destroy(client);
    return code;
}
