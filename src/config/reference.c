/* The tables as Markdown: docs/configuration.md is this text. */
#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "keys.h"

/* A cell of a table: "|" would end it. */
static void write_cell(struct buffer *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '|')
            buffer_append_char(out, '\\');
        buffer_append_char(out, *c);
    }
}

static void write_key(struct buffer *out, const struct key *key)
{
    char *type = key_type_text(key);
    buffer_append_format(out, "| `%s%s%s` | ", key->parent, *key->parent ? "." : "", key->name);
    write_cell(out, type);
    /* A required key may have a default: for when the whole mapping is left out. */
    if (key->default_text && !key->is_required)
        buffer_append_format(out, " | `%s` | ", key->default_text);
    else
        buffer_append_text(out, key->is_required ? " | required | " : " | | ");
    write_cell(out, key->help);
    if (key->rule)
        buffer_append_format(out, " (%s)", key->rule);
    buffer_append_text(out, " |\n");
    free(type);
}

static void write_variable(struct buffer *out, const struct variable *variable)
{
    buffer_append_text(out, "| ");
    for (size_t i = 0; i < MAX_SPELLINGS && variable->spellings[i].name; i++)
        buffer_append_format(out, "%s`%s`", i ? ", else " : "", variable->spellings[i].name);
    if (variable->default_text)
        buffer_append_format(out, " | `%s` | ", variable->default_text);
    else
        buffer_append_text(out, " | | ");
    if (variable->sets)
        buffer_append_format(out, "`%s`", variable->sets);
    buffer_append_text(out, " | ");
    if (variable->kind == VARIABLE_WITHOUT_EFFECT)
        buffer_append_text(out, "Has no effect: ");
    write_cell(out, variable->help);
    buffer_append_text(out, " |\n");
}

void config_write_reference(struct buffer *out)
{
    buffer_append_text(out, "## Keys\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < config_key_count; i++)
        write_key(out, &config_keys[i]);
    buffer_append_text(out, "\n## Environment variables\n\nA variable wins over its key.\n\n"
                            "| Variable | Default | Wins over | Meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < environment_count; i++)
        write_variable(out, &environment_table[i]);
}
