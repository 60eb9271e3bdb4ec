/* Reading the URL. libpq's own words of a bad one may repeat a part of the password. */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/str.h"
#include "taskgate/store/postgres_library.h"

#define HIDDEN '*'

static const char *option(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword; options++) {
        if (strcmp(options->keyword, keyword) == 0)
            return options->val ? options->val : "";
    }
    return "";
}

/* Of hosts and ports, and lists of them. A password with an unescaped "@" or "/" would stand in
 * one of the two. */
static bool place_is_plain(const char *host, const char *port)
{
    return strchr(host, '@') == NULL && strspn(port, "0123456789,") == strlen(port);
}

static char *place_title_of(const PQconninfoOption *options)
{
    const char *host = option(options, "host"), *port = option(options, "port");
    if (!*host)
        host = option(options, "hostaddr");
    return memory_format("postgres://%s%s%s/%s", *host ? host : "localhost", *port ? ":" : "", port,
                         option(options, "dbname"));
}

struct place *place_create(const char *url, struct error *error)
{
    if (!postgres_library_load(error))
        return NULL;
    struct place *place = NULL;
    struct str whole = str_from(url);
    bool is_url =
        str_starts_with(whole, STR("postgres://")) || str_starts_with(whole, STR("postgresql://"));
    PQconninfoOption *options = is_url ? PQconninfoParse(url, NULL) : NULL;
    if (!options || !place_is_plain(option(options, "host"), option(options, "port"))) {
        error_set(error, "the store's URL is not of the form "
                         "postgres://USER:PASSWORD@HOST:PORT/DATABASE?KEY=VALUE; write special "
                         "characters of the password as %%XX");
        goto done;
    }
    place = memory_alloc(sizeof *place);
    place->url = memory_copy_text(url);
    place->title = place_title_of(options);
    place->password = memory_copy_text(option(options, "password"));
    place->program = memory_copy_text(option(options, "application_name"));

done:
    PQconninfoFree(options);
    return place;
}

void place_destroy(struct place *place)
{
    if (!place)
        return;
    free(place->url);
    free(place->title);
    memory_forget_text(place->password);
    free(place->program);
    free(place);
}

void place_hide_password(const struct place *place, char *message)
{
    size_t length = place ? strlen(place->password) : 0;
    for (char *found = message; length > 0 && (found = strstr(found, place->password));)
        memset(found, HIDDEN, length);
}
