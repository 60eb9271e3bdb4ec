/* ECMA-48 SGR sequences: the eight colours that every terminal has. */
#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether standard output is a terminal that shows colours. */
static bool colour_is_on(void)
{
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(off && *off) && terminal && *terminal &&
           strcmp(terminal, "dumb") != 0;
}

static const char *when_on(const char *sequence)
{
    return colour_is_on() ? sequence : "";
}

const char *colour_of_state(struct str state)
{
    static const struct {
        const char *state, *sequence;
    } colours[] = {
        {"pending", "\033[33m"},   {"approved", "\033[36m"}, {"executing", "\033[36m"},
        {"completed", "\033[32m"}, {"failed", "\033[31m"},   {"rejected", "\033[31m"},
        {"expired", "\033[31m"},   {"cancelled", "\033[2m"},
    };
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++) {
        if (str_equal(state, str_from(colours[i].state)))
            return when_on(colours[i].sequence);
    }
    return "";
}

const char *colour_bold(void)
{
    return when_on("\033[1m");
}

const char *colour_dim(void)
{
    return when_on("\033[2m");
}

const char *colour_end(void)
{
    return when_on("\033[0m");
}
