/* The mistakes in a configuration, collected so that all are reported at once. */
#include "document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define QUOTED_BYTES 60

static void problems_add(struct config_problems *problems, bool is_warning, struct place place,
                         const char *key, const char *hint, const char *format, va_list arguments)
{
    struct error message;
    vsnprintf(message.message, sizeof message.message, format, arguments);
    problems->items =
        memory_grow_array(problems->items, problems->count + 1, sizeof *problems->items);
    problems->items[problems->count++] = (struct config_problem){
        .is_warning = is_warning,
        .file = memory_copy_text(place.file),
        .line = place.line,
        .column = place.column,
        .key = memory_copy_text(key),
        .message = memory_copy_text(message.message),
        .hint = memory_copy_text(hint),
    };
    if (!is_warning)
        problems->errors++;
}

void problems_error(struct config_problems *problems, struct place place, const char *key,
                    const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problems_add(problems, false, place, key, hint, format, arguments);
    va_end(arguments);
}

void problems_warning(struct config_problems *problems, struct place place, const char *key,
                      const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problems_add(problems, true, place, key, hint, format, arguments);
    va_end(arguments);
}

static bool problems_is_same(const char *left, const char *right)
{
    return strcmp(left ? left : "", right ? right : "") == 0;
}

bool problems_have(const struct config_problems *problems, bool is_warning, struct place place,
                   const char *message)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct config_problem *known = &problems->items[i];
        if (known->is_warning == is_warning && known->line == place.line &&
            known->column == place.column && problems_is_same(known->file, place.file) &&
            problems_is_same(known->message, message))
            return true;
    }
    return false;
}

void config_problems_add(struct config_problems *problems, bool is_warning, const char *file,
                         int line, int column, const char *message)
{
    struct place place = {file, line, column};
    if (problems_have(problems, is_warning, place, message))
        return;
    if (is_warning)
        problems_warning(problems, place, NULL, NULL, "%s", message);
    else
        problems_error(problems, place, NULL, NULL, "%s", message);
}

char *problems_quote(const char *text)
{
    struct str shown = str_from(text);
    bool is_cut = shown.length > QUOTED_BYTES;
    if (is_cut) {
        shown.length = QUOTED_BYTES;
        while (shown.length && ((unsigned char)shown.bytes[shown.length] & 0xC0) == 0x80)
            shown.length--;
    }
    OWNED_BUFFER(quoted);
    buffer_append_json_string(&quoted, shown);
    if (is_cut)
        buffer_append_text(&quoted, "…");
    return buffer_take(&quoted, NULL);
}

void config_problems_finish(struct config_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        free(problems->items[i].file);
        free(problems->items[i].key);
        free(problems->items[i].message);
        free(problems->items[i].hint);
    }
    for (size_t i = 0; i < problems->file_count; i++)
        free(problems->files[i].path);
    free(problems->files);
    free(problems->items);
    *problems = (struct config_problems){0};
}

static void write_place(const struct config_problem *problem, struct buffer *out)
{
    if (problem->file && problem->line)
        buffer_append_format(out, "%s:%d:%d: ", problem->file, problem->line, problem->column);
    else if (problem->file)
        buffer_append_format(out, "%s: ", problem->file);
}

void config_problems_write_places(const struct config_problems *problems, struct buffer *out)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct config_problem *problem = &problems->items[i];
        if (problem->is_warning)
            continue;
        if (out->length > 0)
            buffer_append_char(out, '\n');
        write_place(problem, out);
        buffer_append_text(out, problem->key && *problem->key ? problem->key : "the log says why");
    }
}

void config_problems_write(const struct config_problems *problems, struct buffer *out)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct config_problem *problem = &problems->items[i];
        write_place(problem, out);
        if (problem->is_warning)
            buffer_append_text(out, "warning: ");
        if (problem->key && *problem->key)
            buffer_append_format(out, "%s: ", problem->key);
        buffer_append_text(out, problem->message);
        if (problem->hint)
            buffer_append_format(out, "; %s", problem->hint);
        buffer_append_char(out, '\n');
    }
}
