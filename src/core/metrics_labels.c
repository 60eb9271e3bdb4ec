/* Label values: the permitted characters, and the number of values that clients choose. */
#include <pthread.h>
#include <string.h>

#include "metrics_internal.h"
#include "taskgate/core/map.h"

_Static_assert(METRIC_COUNT < 256, "a key has one byte for the metric");

/* Clients choose the values of these labels. Their number is capped, or an agent with invented
 * names would fill the memory of the gateway and of the monitoring system. Reference §7.2. */
struct capped_label {
    const char *name;
    size_t cap;
    pthread_mutex_t mutex;
    struct map *values; /* those admitted */
};
static struct capped_label capped_labels[] = {
    {"tool_name", 200, PTHREAD_MUTEX_INITIALIZER, NULL},
    {"method", 100, PTHREAD_MUTEX_INITIALIZER, NULL},
};
#define CAPPED_LABEL_COUNT (sizeof capped_labels / sizeof *capped_labels)
#define OVERFLOW_VALUE STR("__other__")

/* Controls (but LF, which is escaped) and characters that turn the direction of text: people read
 * metrics on terminals, too. In UTF-8, U+0080 to U+009F begin with C2, U+061C is D8 9C, the others
 * begin with E2 or EF. */
static bool misleads(struct str value)
{
    for (size_t i = 0; i < value.length; i++) {
        const unsigned char *at = (const unsigned char *)value.bytes + i;
        if ((at[0] < 0x20 && at[0] != '\n') || at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0) ||
            (at[0] == 0xD8 && at[1] == 0x9C) || (at[0] == 0xEF && at[1] == 0xBB && at[2] == 0xBF) ||
            (at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9) ||
            (at[0] == 0xE2 && at[1] == 0x80 &&
             (at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xA8 && at[2] <= 0xAE))))
            return true;
    }
    return false;
}

/* A value that may stand in the text: UTF-8 of bounded length. */
static struct str presentable(struct str value)
{
    if (!str_is_utf8(value) || misleads(value))
        return STR("__invalid__");
    if (value.length <= METRICS_LABEL_BYTES)
        return value;
    size_t length = METRICS_LABEL_BYTES;
    while (((unsigned char)value.bytes[length] & 0xC0) == 0x80)
        length--;
    return str_slice(value.bytes, length);
}

struct str metrics_key(enum metric metric, const struct str *values, char key[METRICS_KEY_BYTES])
{
    size_t length = 0;
    key[length++] = (char)metric;
    struct str name, rest = str_from(metrics_families[metric].labels);
    for (size_t i = 0; rest.length > 0; i++) {
        str_cut(rest, ',', &name, &rest);
        struct str value = values ? presentable(values[i]) : STR_EMPTY;
        if (value.length)
            memcpy(key + length, value.bytes, value.length);
        length += value.length;
        key[length++] = KEY_SEPARATOR;
    }
    return str_slice(key, length);
}

static bool is_admitted(struct capped_label *label, struct str value)
{
    static char present;
    pthread_mutex_lock(&label->mutex);
    if (!label->values)
        label->values = map_create();
    bool admitted = map_get(label->values, value) != NULL;
    if (!admitted && map_count(label->values) < label->cap) {
        map_put(label->values, value, &present);
        admitted = true;
    }
    pthread_mutex_unlock(&label->mutex);
    return admitted;
}

bool metrics_cap_labels(enum metric metric, const struct str *values,
                        struct str capped[METRICS_MAX_LABELS])
{
    bool changed = false;
    struct str name, rest = str_from(metrics_families[metric].labels);
    for (size_t i = 0; values && rest.length > 0; i++) {
        str_cut(rest, ',', &name, &rest);
        capped[i] = values[i];
        for (size_t c = 0; c < CAPPED_LABEL_COUNT; c++) {
            if (str_equal(name, str_from(capped_labels[c].name)) &&
                !is_admitted(&capped_labels[c], presentable(values[i]))) {
                capped[i] = OVERFLOW_VALUE;
                changed = true;
            }
        }
    }
    return changed;
}

void metrics_labels_finish(void)
{
    for (size_t i = 0; i < CAPPED_LABEL_COUNT; i++) {
        pthread_mutex_lock(&capped_labels[i].mutex);
        map_destroy(capped_labels[i].values, NULL);
        capped_labels[i].values = NULL;
        pthread_mutex_unlock(&capped_labels[i].mutex);
    }
}
