/* Subcommands by name, and the nearest name for a mistake. */
#include "subcommands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"

#include "distance.h"
#include "options.h"

static const struct subcommand_text *subcommands_text_of(const struct subcommands *set,
                                                         size_t index)
{
    return (const void *)((const char *)set->rows + index * set->row_bytes);
}

static int longer_of(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void subcommands_write_usage(const struct subcommands *set, FILE *out)
{
    int names = 0, operands = 0;
    for (size_t i = 0; i < set->count; i++) {
        names = longer_of(names, subcommands_text_of(set, i)->name);
        operands = longer_of(operands, subcommands_text_of(set, i)->operands);
    }
    fputs(set->head, out);
    for (size_t i = 0; i < set->count; i++) {
        const struct subcommand_text *text = subcommands_text_of(set, i);
        const char *joint = operands > 0 ? "  " : "";
        fprintf(out, "  %-*s  %-*s%s%s\n", names, text->name, operands, text->operands, joint,
                text->help);
    }
    fputs(set->foot, out);
}

static int subcommands_refuse_unknown(const struct subcommands *set, const char *name)
{
    const char **names = memory_alloc_array(set->count, sizeof *names);
    for (size_t i = 0; i < set->count; i++)
        names[i] = subcommands_text_of(set, i)->name;
    const char *nearest = distance_nearest(name, names, set->count);
    if (nearest)
        options_complain("there is no taskgate %s %s; did you mean %s?", set->command, name,
                         nearest);
    else
        options_complain("there is no taskgate %s %s", set->command, name);
    if (!nearest)
        subcommands_write_usage(set, stderr);
    free(names);
    return CLI_USAGE;
}

/* The row of the subcommand that argv[1] names. NULL: --help or --version was answered, or there is
 * no such subcommand, which is said on stderr; then `*code` is the exit code. */
static const void *subcommands_choose(const struct subcommands *set, int argc, char **argv,
                                      int *code)
{
    *code = CLI_USAGE;
    if (argc < 2) {
        subcommands_write_usage(set, stderr);
        return NULL;
    }
    if (strcmp(argv[1], OPTIONS_COMPLETE) == 0) {
        for (size_t i = 0; i < set->count; i++)
            options_write_word(subcommands_text_of(set, i)->name, NULL,
                               subcommands_text_of(set, i)->help);
        *code = CLI_DONE;
        return NULL;
    }
    if (options_asks_help(argv[1]) || options_answer_version(argv[1])) {
        if (options_asks_help(argv[1]))
            subcommands_write_usage(set, stdout);
        *code = CLI_DONE;
        return NULL;
    }
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(argv[1], subcommands_text_of(set, i)->name) == 0)
            return subcommands_text_of(set, i);
    }
    *code = subcommands_refuse_unknown(set, argv[1]);
    return NULL;
}

int subcommands_run(const struct subcommands *set, int argc, char **argv)
{
    int code;
    const void *chosen = subcommands_choose(set, argc, argv, &code);
    if (!chosen)
        return code;
    if (set->run)
        return set->run(chosen, argc - 1, argv + 1);
    return ((const struct subcommand_main *)chosen)->run(argc - 1, argv + 1);
}
