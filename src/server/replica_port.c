/* HOST:PORT as an address to listen on. */
#include "replica_port.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "taskgate/core/memory.h"

/* The configuration has been checked for the form. */
static bool cut(struct str text, char **host, struct replica_port *port)
{
    size_t digits = 0;
    uint64_t number;
    while (text.bytes && digits < text.length && text.bytes[text.length - digits - 1] != ':')
        digits++;
    if (digits >= text.length ||
        !str_to_u64(str_slice(text.bytes + text.length - digits, digits), &number) || number == 0 ||
        number > UINT16_MAX)
        return false;
    struct str name = str_slice(text.bytes, text.length - digits - 1);
    if (str_starts_with(name, STR("[")) && str_ends_with(name, STR("]")))
        name = str_slice(name.bytes + 1, name.length - 2);
    *host = memory_copy_str(name);
    port->port = (uint16_t)number;
    return true;
}

static bool look_up(const char *host, struct replica_port *port, struct error *error)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0)
        return error_set(error,
                         "replica.address: the name %s is not found (%s); name the address "
                         "to listen on in replica.bind",
                         host, gai_strerror(code));
    bool is_written = getnameinfo(found->ai_addr, found->ai_addrlen, port->address,
                                  sizeof port->address, NULL, 0, NI_NUMERICHOST) == 0;
    freeaddrinfo(found);
    return is_written || error_set(error, "replica.bind: %s is no address to listen on", host);
}

bool replica_port_read(struct replica_port *port, const struct config *config, struct error *error)
{
    struct str scheme = STR("http://"), text = str_from(config->replica.bind);
    char *host = NULL;
    if (text.length == 0) {
        text = str_from(config->replica.address);
        text = str_slice(text.bytes + scheme.length, text.length - scheme.length);
    }
    if (!cut(text, &host, port))
        return error_set(error, "replica.bind: %.*s has no port to listen on", STR_ARGS(text));
    bool is_found = look_up(host, port, error);
    free(host);
    return is_found;
}
