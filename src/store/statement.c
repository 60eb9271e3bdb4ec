/* Writing statements for a database. */
#include "statement.h"

#include <string.h>

#include "taskgate/core/assert.h"

static const struct {
    const char *name, *sql;
} statements[STATEMENT_COUNT] = {
#define STATEMENT(symbol, sql) [STATEMENT_##symbol] = {#symbol, sql},
#include "statements.h"
#undef STATEMENT
};

static void expand(const struct dialect *dialect, const char *text, struct buffer *out);

static void write_table(const struct dialect *dialect, struct str name, struct buffer *out)
{
    for (const struct dialect_word *word = dialect->words; word->name; word++) {
        if (str_equal(name, str_from(word->name))) {
            expand(dialect, word->text, out);
            return;
        }
    }
    buffer_append_text(out, dialect->prefix);
    buffer_append(out, name);
}

static void add_name(struct buffer *out, size_t start, const char *name)
{
    if (name)
        buffer_append_format(out, "%s%s", out->length > start ? ", " : "", name);
}

static void write_columns(const struct record *record, bool with_sequence, struct buffer *out)
{
    const size_t start = out->length;
    add_name(out, start, with_sequence ? "sequence" : NULL);
    add_name(out, start, record->before);
    for (size_t i = 0; i < record->count; i++)
        add_name(out, start, record->columns[i].name);
    add_name(out, start, record->after);
}

static void write_marks(const struct dialect *dialect, size_t count, struct buffer *out)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(out, "%s%c%zu", i > 0 ? ", " : "", dialect->mark, i + 1);
}

/* A row that keeps the number it has elsewhere, or gets one here. */
static void write_new(const struct dialect *dialect, const struct record *record,
                      bool with_sequence, struct buffer *out)
{
    write_table(dialect, str_from(record->table), out);
    buffer_append_text(out, " (");
    write_columns(record, with_sequence, out);
    buffer_append_char(out, ')');
    if (with_sequence)
        write_table(dialect, STR("keeping numbers"), out);
    buffer_append_text(out, " VALUES (");
    write_marks(dialect, record_width(record) + with_sequence, out);
    buffer_append_char(out, ')');
}

/* What is between the braces. */
static void statement_write_name(const struct dialect *dialect, struct str name, struct buffer *out)
{
    const char *dot = memchr(name.bytes, '.', name.length);
    const struct record *record =
        dot ? record_of(str_slice(name.bytes, (size_t)(dot - name.bytes))) : NULL;
    ASSERT(!dot || record); /* else the name is misspelt in a statement */
    if (record && dot[1] == '*')
        write_columns(record, record->has_sequence, out);
    else if (record && dot[1] == '?')
        write_marks(dialect, record_width(record), out);
    else if (record)
        write_new(dialect, record, dot[1] == 'c', out);
    else
        write_table(dialect, name, out);
}

static void expand(const struct dialect *dialect, const char *text, struct buffer *out)
{
    for (size_t plain; *text; text += plain) {
        plain = strcspn(text, "?{");
        buffer_append(out, str_slice(text, plain));
        if (text[plain] == '?') {
            buffer_append_char(out, dialect->mark);
            plain++;
        } else if (text[plain] == '{') {
            size_t length = strcspn(text + plain, "}");
            ASSERT(text[plain + length] == '}');
            statement_write_name(dialect, str_slice(text + plain + 1, length - 1), out);
            plain += length + 1;
        }
    }
}

void statement_write_text(const struct dialect *dialect, const char *text, struct buffer *out)
{
    expand(dialect, text, out);
    buffer_append_char(out, '\0');
    out->length--;
}

void statement_write(const struct dialect *dialect, unsigned which, struct buffer *out)
{
    const char *own = dialect->own[which];
    ASSERT(own || which < STATEMENT_COUNT);
    statement_write_text(dialect, own ? own : statements[which].sql, out);
}

const char *statement_name(enum statement which)
{
    ASSERT_NUMBERS(which, <, STATEMENT_COUNT);
    return statements[which].name;
}
