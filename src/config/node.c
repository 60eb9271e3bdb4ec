/* The nodes of a document: their content, their paths, and findings about them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "taskgate/core/memory.h"

void node_destroy(struct node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_MAPPING)
            node_destroy(node->keys[i]);
        node_destroy(node->values[i]);
    }
    free(node->keys);
    free(node->values);
    free(node->text);
    free(node);
}

const struct node *node_get(const struct node *mapping, const char *key)
{
    if (!mapping || mapping->kind != NODE_MAPPING)
        return NULL;
    for (size_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->text, key) == 0)
            return mapping->values[i];
    }
    return NULL;
}

bool node_is_null(const struct node *node)
{
    if (!node)
        return true;
    if (node->kind != NODE_TEXT || !node->is_plain)
        return false;
    return node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
           strcmp(node->text, "null") == 0 || strcmp(node->text, "Null") == 0 ||
           strcmp(node->text, "NULL") == 0;
}

char *document_join(const char *path, const char *name)
{
    char *quoted = NULL;
    for (const char *c = name; *c && !quoted; c++) {
        if (*c <= ' ' || *c == 0x7F || strchr("\"\\.[]:", *c))
            quoted = problems_quote(name);
    }
    char *joined = memory_format("%s%s%s", path, *path ? "." : "", quoted ? quoted : name);
    free(quoted);
    return joined;
}

static char *path_at(const struct node *node, size_t index, const char *path)
{
    if (node->kind == NODE_TEXT)
        return memory_copy_text(path);
    for (size_t i = 0; i < node->count; i++) {
        const struct node *value = node->values[i];
        if (index < value->start || index >= value->end)
            continue;
        char *inner = node->kind == NODE_LIST ? memory_format("%s[%zu]", path, i)
                                              : document_join(path, node->keys[i]->text);
        char *found = path_at(value, index, inner);
        free(inner);
        return found;
    }
    return NULL;
}

char *document_path_at(const struct node *root, size_t index)
{
    return root ? path_at(root, index, "") : NULL;
}

static struct place place_of(const struct report *report, const struct node *node)
{
    return source_text_place(report->source, node->start);
}

/* A single value that is but the name of a variable without a value. */
static bool is_missing(const struct report *report, const struct node *node)
{
    return node->kind == NODE_TEXT &&
           source_text_holds(report->source, node->start, node->end, SEGMENT_MISSING);
}

void report_error(const struct report *report, const struct node *node, const char *path,
                  const char *hint, const char *format, ...)
{
    struct error message;
    va_list arguments;
    if (is_missing(report, node))
        return;
    va_start(arguments, format);
    vsnprintf(message.message, sizeof message.message, format, arguments);
    va_end(arguments);
    problems_error(report->problems, place_of(report, node), path, hint, "%s", message.message);
}

void report_warning(const struct report *report, const struct node *node, const char *path,
                    const char *hint, const char *format, ...)
{
    struct error message;
    va_list arguments;
    if (is_missing(report, node))
        return;
    va_start(arguments, format);
    vsnprintf(message.message, sizeof message.message, format, arguments);
    va_end(arguments);
    problems_warning(report->problems, place_of(report, node), path, hint, "%s", message.message);
}

char *report_quote(const struct report *report, const struct node *node)
{
    if (source_text_holds(report->source, node->start, node->end, SEGMENT_VALUE))
        return memory_copy_text("the value of the variable");
    return problems_quote(node->text);
}
