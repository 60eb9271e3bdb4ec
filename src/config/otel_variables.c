/* OpenTelemetry's variables: their forms, the switches, the numbers. */
#include "otel_variables.h"

#include "checks.h"

const char *otel_value(const struct draft *draft, const char *name)
{
    const char *value = draft->environment(name);
    return value && *value ? value : NULL;
}

const char *otel_setting(const struct draft *draft, struct otel_setting setting, const char **name)
{
    const char *const spellings[] = {setting.of_traces, setting.of_all};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const char *value = spellings[i] ? otel_value(draft, spellings[i]) : NULL;
        if (value) {
            *name = spellings[i];
            return value;
        }
    }
    return NULL;
}

void otel_warn(const struct draft *draft, const char *name, const char *hint, const char *what)
{
    problems_warning(draft->report.problems, (struct place){.file = name}, NULL, hint, "%s", what);
}

/* ---- switches ---- */

/* "All values other than true are false", and those that are not false get a warning. */
static bool is_disabled(const struct draft *draft)
{
    static const char name[] = "OTEL_SDK_DISABLED";
    struct str value = str_trim(str_from(otel_value(draft, name)));
    if (str_equal_ignore_case(value, STR("true")))
        return true;
    if (value.length > 0 && !str_equal_ignore_case(value, STR("false")))
        otel_warn(draft, name, "write true or false",
                  "this is no truth value, the variable is ignored");
    return false;
}

/* A list of exporters, of which there is one here. */
static bool exports_nothing(const struct draft *draft)
{
    static const char name[] = "OTEL_TRACES_EXPORTER";
    struct str rest = str_from(otel_value(draft, name)), item;
    bool has_otlp = false, has_none = false, has_other = false;
    while (rest.length > 0) {
        str_cut(rest, ',', &item, &rest);
        item = str_trim(item);
        has_otlp |= str_equal(item, STR("otlp"));
        has_none |= str_equal(item, STR("none"));
        has_other |= !str_equal(item, STR("otlp")) && !str_equal(item, STR("none"));
    }
    if (has_other)
        otel_warn(draft, name, "it may be otlp, none",
                  "this exporter does not exist, it is left out");
    return has_none && !has_otlp;
}

bool otel_is_off(const struct draft *draft)
{
    bool is_off = is_disabled(draft);
    return exports_nothing(draft) || is_off;
}

/* ---- lists ---- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void decode(struct str text, struct buffer *out)
{
    while (text.length > 0) {
        size_t taken = 1;
        char c = text.bytes[0];
        int high = c == '%' && text.length > 2 ? digit_of(text.bytes[1]) : -1;
        int low = high >= 0 ? digit_of(text.bytes[2]) : -1;
        if (low >= 0) {
            c = (char)(unsigned char)(high * 16 + low);
            taken = 3;
        }
        buffer_append_char(out, c);
        text = str_slice(text.bytes + taken, text.length - taken);
    }
}

bool otel_pairs(struct str list, otel_pair_fn take, void *context)
{
    struct str item, name, value;
    bool are_read = true;
    while (list.length > 0) {
        str_cut(list, ',', &item, &list);
        if (str_trim(item).length == 0)
            continue;
        struct buffer decoded;
        buffer_init(&decoded);
        bool has_value = str_cut(item, '=', &name, &value);
        decode(str_trim(value), &decoded);
        are_read &= has_value && take(context, str_trim(name), buffer_str(&decoded));
        buffer_finish(&decoded);
    }
    return are_read;
}

/* ---- numbers ---- */

struct number {
    struct otel_setting setting;
    size_t offset; /* of an int64_t in struct config_telemetry */
    int64_t least, most;
    const char *hint;
};

#define AT(member) offsetof(struct config_telemetry, member)
#define MS_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define MS_HINT "write a number of milliseconds, from 100 on"
#define COUNT_HINT "write a number of spans, from 1 on"

/* The bounds are those of the keys. */
static const struct number numbers[] = {
    {{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"},
     AT(export_timeout_ms),
     100,
     MS_MAX,
     MS_HINT},
    {{"OTEL_BSP_SCHEDULE_DELAY", NULL}, AT(scheduled_delay_ms), 100, MS_MAX, MS_HINT},
    {{"OTEL_BSP_MAX_QUEUE_SIZE", NULL}, AT(max_queue_size), 1, INT32_MAX, COUNT_HINT},
    {{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", NULL}, AT(max_export_batch_size), 1, INT32_MAX, COUNT_HINT},
};

void otel_apply_numbers(const struct draft *draft, struct config_telemetry *telemetry)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number *number = &numbers[i];
        const char *name, *value = otel_setting(draft, number->setting, &name);
        int64_t wanted;
        if (!value)
            continue;
        if (parse_integer(str_trim(str_from(value)), &wanted) && wanted >= number->least &&
            wanted <= number->most)
            *(int64_t *)(void *)((char *)telemetry + number->offset) = wanted;
        else
            otel_warn(draft, name, number->hint,
                      "this number is out of range, the variable is ignored");
    }
}
