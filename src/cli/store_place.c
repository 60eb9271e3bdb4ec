/* From options, variables and configurations to places. */
#include "store_place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/core/memory.h"
#include "taskgate/server/store_choice.h"

#include "options.h"

struct store_site store_place_site(const char *place)
{
    return (struct store_site){store_choice_of(place), place};
}

char *store_place_of_variable(const char *variable)
{
    const char *value = getenv(variable);
    if (value && *value)
        return memory_copy_text(value);
    options_complain("the environment variable %s is not set; set it to the URL of the database",
                     variable);
    return NULL;
}

static bool has_password(const char *url)
{
    const char *rest = strstr(url, "://");
    if (!rest)
        return false;
    rest += 3;
    size_t length = strcspn(rest, "@/");
    return (rest[length] == '@' && memchr(rest, ':', length)) || strstr(rest, "password=");
}

/* "{env: NAME}" as the configuration has it. NULL: something else. The caller frees. */
static char *variable_in(const char *text)
{
    struct str inside = str_trim(str_from(text)), key, name;
    if (!str_starts_with(inside, STR("{")) || inside.bytes[inside.length - 1] != '}')
        return NULL;
    inside = str_trim(str_slice(inside.bytes + 1, inside.length - 2));
    if (!str_cut(inside, ':', &key, &name) || !str_equal(str_trim(key), STR("env")))
        return NULL;
    return memory_copy_str(str_trim(name));
}

char *store_place_given(const char *option, const char *text, const char *elsewhere)
{
    char *variable = variable_in(text);
    if (variable) {
        char *place = store_place_of_variable(variable);
        free(variable);
        return place;
    }
    if (has_password(text)) {
        options_complain("everybody on this machine can read the password in --%s; put the URL "
                         "into an environment variable and name it with %s",
                         option, elsewhere);
        return NULL;
    }
    if (*text)
        return memory_copy_text(text);
    options_complain("--%s is empty", option);
    return NULL;
}

char *store_place_without_configuration(const char *path)
{
    const char *url = getenv("THOUGHTGATE_STORE_URL");
    bool is_alone = url && *url && !config_find(path, NULL);
    return is_alone ? memory_copy_text(url) : NULL;
}

static char *find_default(const char *path)
{
    static const char fallback[] = "./taskgate.db";
    if (access(path, F_OK) == 0)
        return memory_copy_text(path);
    if (access(fallback, F_OK) == 0)
        return memory_copy_text(fallback);
    options_complain(
        "there is no store at %s and none at %s: name it with --store, or in store.path", path,
        fallback);
    return NULL;
}

char *store_place_of_configuration(const struct config *config)
{
    if (config->store_url)
        return memory_copy_text(config->store_url);
    return config->store_path_is_default ? find_default(config->store_path)
                                         : memory_copy_text(config->store_path);
}
