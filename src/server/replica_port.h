/*
 * The port at which this replica listens for the others: `replica.bind`, else that of
 * `replica.address`.
 */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"

struct replica_port {
    char address[INET6_ADDRSTRLEN]; /* of an interface of this machine */
    uint16_t port;
};

/* Looks the name up, so it may block: at the start alone. */
bool replica_port_read(struct replica_port *port, const struct config *config, struct error *error);
