/* The gateway that the configuration of this machine describes: its admin port, and the token that
 * it made for itself. For commands that are run beside it, such as inside its container. */
#pragma once

#include <stdbool.h>

/* The configuration that `serve --upstream` makes in local_gateway_folder() where there is none. */
#define LOCAL_GATEWAY_CONFIG "config.yaml"
/* The folder of a user's own state ($XDG_STATE_HOME, ~/.local/state), for root the system's. The
 * caller frees. */
char *local_gateway_folder(void);

struct local_gateway {
    char *url;        /* of its admin port, without a slash at its end */
    char *token;      /* NULL: it made none, or this user may not read it */
    char *token_file; /* of `token`, for messages */
};

/* `path` as for `serve --config`; NULL: one of the usual places, or that folder. false, and nothing
 * is in `gateway`: there is no configuration there, or it has mistakes; nothing is written about
 * it. */
bool local_gateway_find(struct local_gateway *gateway, const char *path);
/* Wipes the token. */
void local_gateway_finish(struct local_gateway *gateway);
