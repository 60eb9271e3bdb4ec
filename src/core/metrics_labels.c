/* Label values: the permitted characters, and the number of values that clients choose. */
#include <pthread.h>
#include <string.h>

#include "metrics_internal.h"
#include "taskgate/core/map.h"
#include "taskgate/core/visible.h"

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

/* Hidden characters but LF, which is escaped: people read metrics on terminals, too. */
static bool misleads(struct str value)
{
    unsigned c;
    for (size_t i = 0, length; i < value.length; i += length) {
        length = str_code_point(str_slice(value.bytes + i, value.length - i), &c);
        if (length == 0 || (c != '\n' && visible_is_hidden(c)))
            return true;
    }
    return false;
}

/* A value that may stand in the text: UTF-8 of bounded length. */
static struct str presentable(struct str value)
{
    if (misleads(value))
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
