/* One map of names for each source. */
#include "taskgate/policy/pins.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define MOST_NAME_BYTES 1024

struct pin {
    char digest[DIGEST_HEX_BYTES]; /* that the server gives now; "": it was not seen */
    char stored[DIGEST_HEX_BYTES]; /* the present one of the store, maybe by another replica; "" */
    char *accepted;
    char *difference;
    unsigned flags;
    bool is_told; /* the store */
};

static struct {
    pthread_mutex_t lock;
    struct map *sources; /* id -> map of kind and name -> struct pin */
    bool is_loading;
    atomic_uint_fast64_t version;
} pins = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void destroy_pin(void *value)
{
    struct pin *pin = value;
    free(pin->accepted);
    free(pin->difference);
    free(pin);
}

static void pins_destroy_source(void *value)
{
    map_destroy(value, destroy_pin);
}

static void pins_renew(void)
{
    atomic_fetch_add(&pins.version, 1);
}

uint64_t pins_version(void)
{
    return atomic_load(&pins.version);
}

void pins_begin(void)
{
    pthread_mutex_lock(&pins.lock);
    pins.is_loading = true;
    pthread_mutex_unlock(&pins.lock);
}

bool pins_can_keep(struct str name)
{
    return name.length <= MOST_NAME_BYTES &&
           (name.length == 0 || !memchr(name.bytes, '\0', name.length));
}

void pins_end(void)
{
    pthread_mutex_lock(&pins.lock);
    map_destroy(pins.sources, pins_destroy_source);
    pins.sources = NULL;
    pins.is_loading = false;
    pins_renew();
    pthread_mutex_unlock(&pins.lock);
}

/* ---- under the lock ---- */

static struct map *pins_source_of(const struct pin_name *name)
{
    if (!pins.sources)
        pins.sources = map_create();
    struct map *names = map_get(pins.sources, name->source);
    if (!names) {
        names = map_create();
        map_put(pins.sources, name->source, names);
    }
    return names;
}

static void pins_write_key(const struct pin_name *name, struct buffer *key)
{
    buffer_init(key);
    buffer_append_char(key, (char)('0' + (int)name->kind));
    buffer_append(key, name->name);
}

static struct pin *pins_find(const struct pin_name *name)
{
    struct buffer key;
    const struct map *names = pins.sources ? map_get(pins.sources, name->source) : NULL;
    if (!names)
        return NULL;
    pins_write_key(name, &key);
    struct pin *pin = map_get(names, buffer_str(&key));
    buffer_finish(&key);
    return pin;
}

static bool is_full(const struct pin_name *name)
{
    const struct map *names = pins.sources ? map_get(pins.sources, name->source) : NULL;
    return names && map_count(names) >= DEFINITIONS_MOST;
}

static struct pin *pins_add(const struct pin_name *name)
{
    struct pin *pin = memory_alloc(sizeof *pin);
    struct buffer key;
    pins_write_key(name, &key);
    map_put(pins_source_of(name), buffer_str(&key), pin);
    buffer_finish(&key);
    return pin;
}

static bool pins_is_accepted(const struct pin *pin, const char *digest)
{
    return !digest || !*digest || (pin->accepted && strstr(pin->accepted, digest));
}

static void pins_set_text(char **text, const char *value)
{
    free(*text);
    *text = value && *value ? memory_copy_text(value) : NULL;
}

/* ---- seeing ---- */

/* The store has nothing of these: they were seen for the first time. */
static void accept_first(const struct map *names)
{
    size_t position = 0;
    void *value;
    while (map_next(names, &position, NULL, &value)) {
        struct pin *pin = value;
        if (!pin->accepted && !*pin->stored)
            pins_set_text(&pin->accepted, pin->digest);
    }
}

void pins_loaded(void)
{
    size_t position = 0;
    void *names;
    pthread_mutex_lock(&pins.lock);
    pins.is_loading = false;
    while (pins.sources && map_next(pins.sources, &position, NULL, &names))
        accept_first(names);
    pins_renew();
    pthread_mutex_unlock(&pins.lock);
}

static void take_digest(char present[DIGEST_HEX_BYTES], const char *digest)
{
    snprintf(present, DIGEST_HEX_BYTES, "%s", digest);
}

enum pin_sight pins_see(const struct pin_name *name, const char *digest, unsigned flags)
{
    enum pin_sight sight = PIN_SAME;
    pthread_mutex_lock(&pins.lock);
    struct pin *pin = pins_find(name);
    bool is_first = !pin;
    if (is_first && is_full(name)) {
        sight = PIN_FULL;
    } else {
        if (is_first)
            pin = pins_add(name);
        if (is_first && !pins.is_loading)
            pins_set_text(&pin->accepted, digest);
        bool is_same = !is_first && strcmp(pin->digest, digest) == 0 && pin->flags == flags;
        if (!is_same) {
            if (!is_first || flags)
                pins_renew();
            take_digest(pin->digest, digest);
            pin->flags = flags;
            pin->is_told = false;
            pins_set_text(&pin->difference, NULL);
        }
        sight = pin->is_told ? PIN_SAME : PIN_FRESH;
    }
    pthread_mutex_unlock(&pins.lock);
    return sight;
}

bool pins_put(const struct pin_name *name, const struct pin_row *row, bool is_answer)
{
    pthread_mutex_lock(&pins.lock);
    struct pin *pin = pins_find(name);
    if (!pin)
        pin = pins_add(name);
    if (!*pin->digest) { /* the server has given nothing since the start */
        take_digest(pin->digest, row->digest);
        pin->flags = row->flags;
    }
    bool is_present = strcmp(pin->digest, row->digest) == 0 && pin->flags == row->flags;
    bool is_news = !pin->accepted || strcmp(pin->accepted, row->accepted) != 0 ||
                   strcmp(pin->stored, row->digest) != 0;
    take_digest(pin->stored, row->digest);
    pins_set_text(&pin->accepted, row->accepted);
    pins_set_text(&pin->difference, row->difference);
    if (is_answer || is_present)
        pin->is_told = is_present;
    if (is_news)
        pins_renew();
    pthread_mutex_unlock(&pins.lock);
    return is_present;
}

/* ---- asking ---- */

bool pins_is_changed(const struct pin_name *name, const char *digest)
{
    pthread_mutex_lock(&pins.lock);
    const struct pin *pin = pins_find(name);
    bool is_changed = pin ? !pins_is_accepted(pin, pin->digest) ||
                                !pins_is_accepted(pin, pin->stored) ||
                                !pins_is_accepted(pin, digest)
                          : pins.is_loading || is_full(name) || !pins_can_keep(name->name);
    pthread_mutex_unlock(&pins.lock);
    return is_changed;
}

bool pins_has_accepted(const struct pin_name *name, const char *digest)
{
    pthread_mutex_lock(&pins.lock);
    const struct pin *pin = pins_find(name);
    bool has = pin && pin->accepted && strstr(pin->accepted, digest);
    pthread_mutex_unlock(&pins.lock);
    return has;
}

unsigned pins_flags(const struct pin_name *name)
{
    pthread_mutex_lock(&pins.lock);
    const struct pin *pin = pins_find(name);
    unsigned flags = pin ? pin->flags : 0;
    pthread_mutex_unlock(&pins.lock);
    return flags;
}

void pins_write_difference(const struct pin_name *name, struct buffer *out)
{
    pthread_mutex_lock(&pins.lock);
    const struct pin *pin = pins_find(name);
    if (pin && pin->difference)
        buffer_append_text(out, pin->difference);
    pthread_mutex_unlock(&pins.lock);
}
