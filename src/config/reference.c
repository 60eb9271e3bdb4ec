/* The tables as Markdown lists, for docs/configuration.md. */
#include <stdio.h>
#include <string.h>

#include "environment.h"
#include "keys.h"
#include "taskgate/core/markdown.h"
#include "taskgate/core/owned.h"

static void reference_write_key(struct buffer *out, const struct key *key)
{
    OWNED_BUFFER(item);
    OWNED char *type = key_type_text(key);
    buffer_append_format(&item, "`%s%s%s` (%s", key->parent, *key->parent ? "." : "", key->name,
                         type);
    /* A required key may have a default: for when the whole mapping is left out. */
    if (key->is_required)
        buffer_append_text(&item, "; required");
    else if (key->default_text)
        buffer_append_format(&item, "; default `%s`", key->default_text);
    buffer_append_format(&item, "): %s", key->help);
    if (key->rule)
        buffer_append_format(&item, " (%s)", key->rule);
    if (key->needs_restart)
        buffer_append_text(&item, CONFIG_NEEDS_RESTART);
    markdown_append_item(out, buffer_str(&item));
}

/* All keys, with a heading for each mapping. */
static void write_keys(struct buffer *out)
{
    const char *parent = NULL;
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (!parent || strcmp(parent, key->parent) != 0) {
            parent = key->parent;
            if (*parent)
                buffer_append_format(out, "\n### `%s`\n\n", parent);
            else
                buffer_append_text(out, "\n### At the top\n\n");
        }
        reference_write_key(out, key);
    }
}

static void write_variable(struct buffer *out, const struct variable *variable)
{
    OWNED_BUFFER(item);
    for (size_t i = 0; i < MAX_SPELLINGS && variable->spellings[i].name; i++)
        buffer_append_format(&item, "%s`%s`", i ? ", else " : "", variable->spellings[i].name);
    const char *before = " (";
    if (variable->default_text) {
        buffer_append_format(&item, "%sdefault `%s`", before, variable->default_text);
        before = "; ";
    }
    if (variable->sets)
        buffer_append_format(&item, "%swins over `%s`", before, variable->sets);
    buffer_append_text(&item, variable->default_text || variable->sets ? "): " : ": ");
    if (variable->kind == VARIABLE_WITHOUT_EFFECT)
        buffer_append_text(&item, "Has no effect: ");
    buffer_append_text(&item, variable->help);
    markdown_append_item(out, buffer_str(&item));
}

bool config_restart_key(size_t index, char text[static CONFIG_RESTART_KEY_BYTES])
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (key->needs_restart && index-- == 0) {
            snprintf(text, CONFIG_RESTART_KEY_BYTES, "%s%s%s", key->parent, *key->parent ? "." : "",
                     key->name);
            return true;
        }
    }
    return false;
}

void config_write_reference(struct buffer *out)
{
    buffer_append_text(out, "## Keys\n");
    write_keys(out);
    buffer_append_text(out, "\n## Environment variables\n\nA variable wins over its key.\n\n");
    for (size_t i = 0; i < environment_count; i++)
        write_variable(out, &environment_table[i]);
}
