/* The command line of the example server. */
#ifndef EXAMPLE_OPTIONS_H
#define EXAMPLE_OPTIONS_H

#include <stdint.h>

/* Strings are borrowed from argv; NULL means not given. */
struct options {
    const char *host;     /* numeric address to listen on */
    uint16_t port;        /* 0: the kernel chooses */
    const char *data_dir; /* one file per demo database, or NULL: in memory only */
    const char *journal;  /* the body of every executed tools/call, or NULL */
};

enum options_outcome { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/* Reads argv into `options`. DONE: the help was asked for and printed.
 * WRONG: the mistake is on stderr already. */
enum options_outcome options_read(struct options *options, int argc, char **argv);

#endif
