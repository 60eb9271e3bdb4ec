/* Subcommands by name, and the nearest name for a mistake. */
#include "subcommands.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"

#include "distance.h"
#include "options.h"

static int refuse_unknown(const struct subcommands *set, const char *name)
{
    const char **names = memory_alloc_array(set->count, sizeof *names);
    for (size_t i = 0; i < set->count; i++)
        names[i] = set->name(i);
    const char *nearest = distance_nearest(name, names, set->count);
    if (nearest)
        options_complain("there is no taskgate %s %s; did you mean %s?", set->command, name,
                         nearest);
    else
        options_complain("there is no taskgate %s %s", set->command, name);
    if (!nearest)
        set->write_usage(stderr);
    free(names);
    return CLI_USAGE;
}

bool subcommands_choose(const struct subcommands *set, int argc, char **argv, size_t *chosen,
                        int *code)
{
    *code = CLI_USAGE;
    if (argc < 2) {
        set->write_usage(stderr);
        return false;
    }
    if (strcmp(argv[1], OPTIONS_COMPLETE) == 0) {
        for (size_t i = 0; i < set->count; i++)
            options_write_word(set->name(i), NULL, set->help(i));
        *code = CLI_DONE;
        return false;
    }
    if (options_answer(argv[1], set->write_usage)) {
        *code = CLI_DONE;
        return false;
    }
    for (*chosen = 0; *chosen < set->count; ++*chosen) {
        if (strcmp(argv[1], set->name(*chosen)) == 0)
            return true;
    }
    *code = refuse_unknown(set, argv[1]);
    return false;
}
