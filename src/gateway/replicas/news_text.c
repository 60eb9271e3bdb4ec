/* The members of each message, which it has or leaves out. */
#include "news_text.h"

#include <inttypes.h>
#include <string.h>

#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

static const char *const names[NEWS_COUNT] = {
#define NEWS_ROW(symbol, name) [NEWS_##symbol] = (name),
    NEWS_TABLE(NEWS_ROW)
#undef NEWS_ROW
};

const char *news_name(enum news_kind kind)
{
    return names[kind];
}

static void add_json(struct buffer *out, const char *key, struct str value)
{
    if (value.length == 0)
        return;
    json_add_key(out, key);
    buffer_append(out, value);
}

static void add_number(struct buffer *out, const char *key, int64_t value)
{
    json_add_key(out, key);
    buffer_append_format(out, "%" PRId64, value);
}

void news_write(struct buffer *out, const struct news *news)
{
    buffer_append_char(out, '{');
    json_add_text(out, "kind", names[news->kind]);
    add_number(out, "sequence", news->sequence);
    if (*news->task)
        json_add_text(out, "task", news->task);
    add_json(out, "wait", news->wait);
    add_json(out, "call", news->call);
    if (news->kind == NEWS_TASK_ASKS) {
        add_json(out, "requests", news->requests);
        add_json(out, "questions", news->questions);
        add_json(out, "isAsking", news->is_asking ? STR("true") : STR("false"));
        add_number(out, "changedMs", news->changed_ms);
    }
    buffer_append_char(out, '}');
}

static bool read_kind(struct str value, enum news_kind *kind)
{
    for (int i = 0; i < NEWS_COUNT; i++) {
        *kind = (enum news_kind)i;
        if (json_string_equals(value, str_from(names[i])))
            return true;
    }
    return false;
}

static bool read_task(struct str value, char id[TASK_ID_BYTES])
{
    struct buffer text;
    buffer_init(&text);
    bool is_good = json_decode_string(value, &text) && task_id_is_ours(buffer_str(&text)) &&
                   text.length < TASK_ID_BYTES && !memchr(text.bytes, '\0', text.length);
    if (is_good) {
        memcpy(id, text.bytes, text.length);
        id[text.length] = '\0';
    }
    buffer_finish(&text);
    return is_good;
}

static bool read_number(struct str value, int64_t *number)
{
    uint64_t read;
    if (!str_to_u64(value, &read) || read > INT64_MAX)
        return false;
    *number = (int64_t)read;
    return true;
}

static bool is_absent_or(struct str value, enum json_type type)
{
    return value.length == 0 || json_type(value) == type;
}

static bool read_asks(struct str text, struct news *news)
{
    news->requests = json_member(text, "requests");
    news->questions = json_member(text, "questions");
    news->is_asking = str_equal(json_member(text, "isAsking"), STR("true"));
    return is_absent_or(news->requests, JSON_OBJECT) && is_absent_or(news->questions, JSON_ARRAY) &&
           read_number(json_member(text, "changedMs"), &news->changed_ms);
}

bool news_read(struct str text, struct news *news)
{
    *news = (struct news){.kind = NEWS_COUNT};
    if (!json_check(text, NULL) || json_type(text) != JSON_OBJECT ||
        !read_kind(json_member(text, "kind"), &news->kind) ||
        !read_number(json_member(text, "sequence"), &news->sequence))
        return false;
    if (news->kind == NEWS_TOOLS_CHANGED)
        return true;
    if (news->kind == NEWS_WAIT_OVER) {
        news->wait = json_member(text, "wait");
        return json_type(news->wait) == JSON_OBJECT;
    }
    if (news->kind == NEWS_REPEATED_CALL) {
        news->call = json_member(text, "call");
        return json_type(news->call) == JSON_OBJECT;
    }
    return read_task(json_member(text, "task"), news->task) &&
           (news->kind != NEWS_TASK_ASKS || read_asks(text, news));
}
