/* Reads the command line of the example server. */
#include "options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT 7470

static const char help[] =
    "taskgate-example-server: a small MCP server to put a gateway in front of\n"
    "\n"
    "Usage: taskgate-example-server [--host ADDRESS] [--port N] [--data-dir DIR] [--journal FILE]\n"
    "\n"
    "  --host ADDRESS   numeric address to listen on (default " DEFAULT_HOST ")\n"
    "  --port N         port to listen on (default 7470); 0 takes a free one and prints it\n"
    "  --data-dir DIR   keep each demo database as a file DIR/NAME.db instead of in memory only\n"
    "  --journal FILE   append the exact body of every executed tools/call, and a line break\n"
    "  --help           this text\n"
    "\n"
    "Tools at http://ADDRESS:N/mcp: get_time, delete_database, slow, ask.\n"
    "Each executed call is a line on stderr: executed TOOL ARGUMENTS\n";

static bool read_port(const char *text, uint16_t *port)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 0 || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

enum options_outcome options_read(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"host", required_argument, NULL, 'a'},     {"port", required_argument, NULL, 'p'},
        {"data-dir", required_argument, NULL, 'd'}, {"journal", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    *options = (struct options){.host = DEFAULT_HOST, .port = DEFAULT_PORT};

    int letter = 0;
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (letter) {
        case 'a':
            options->host = optarg;
            break;
        case 'p':
            if (!read_port(optarg, &options->port)) {
                fprintf(stderr, "--port %s: not a port; give a number from 0 to 65535\n", optarg);
                return OPTIONS_WRONG;
            }
            break;
        case 'd':
            options->data_dir = optarg;
            break;
        case 'j':
            options->journal = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            return OPTIONS_DONE;
        default: /* getopt has reported the mistake */
            fputs("try --help\n", stderr);
            return OPTIONS_WRONG;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected argument; try --help\n", argv[optind]);
        return OPTIONS_WRONG;
    }
    return OPTIONS_RUN;
}
