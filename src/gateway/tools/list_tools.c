/* list_servers, and list_tools: upstream's tools as this client may see them, fetched with its own
 * credentials. */
#include "list_tools.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "call/call.h"
#include "decision/agent_reason.h"
#include "server/catalogue.h"
#include "state/tool_catalog.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/str.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/lists.h"
#include "tools.h"

/* ---- patterns of names ---- */

/*
 * Glushkov's construction: a state for each character of the expression, and for each of them the
 * set of those that may come next. All states that a name has led to are moved on together, byte
 * by byte, so that nothing is ever tried twice.
 *
 * The beginning and the end of a name are two bytes more, which "^" and "$" stand for.
 */

#define MOST_BYTES 256
#define WORDS (MOST_BYTES / 64)
#define BEGINNING 256
#define END 257
#define SYMBOLS 258

/* Of states. */
struct set {
    uint64_t words[WORDS];
};

struct name_pattern {
    struct set accepting[SYMBOLS]; /* the states that a byte may lead to */
    struct set next[MOST_BYTES];
    struct set first, last;
    bool is_empty; /* it matches nothing at all, too, and so every name */
    unsigned count;
};

/* A part of the expression: the states that it may begin and end with. */
struct part {
    struct set first, last;
    bool is_empty; /* it may be left out */
};

struct reader {
    struct name_pattern *pattern;
    const char *at, *end;
    const char *fault; /* NULL until there is one */
};

static void add(struct set *set, const struct set *more)
{
    for (unsigned i = 0; i < WORDS; i++)
        set->words[i] |= more->words[i];
}

static bool meets(const struct set *a, const struct set *b)
{
    uint64_t common = 0;
    for (unsigned i = 0; i < WORDS; i++)
        common |= a->words[i] & b->words[i];
    return common != 0;
}

/* The states that those of `from` lead to. */
static struct set list_tools_follow(const struct name_pattern *pattern, const struct set *from)
{
    struct set next = {{0}};
    for (unsigned i = 0; i < WORDS; i++) {
        for (uint64_t left = from->words[i]; left; left &= left - 1)
            add(&next, &pattern->next[i * 64 + (unsigned)__builtin_ctzll(left)]);
    }
    return next;
}

/* ---- parts ---- */

static void join(struct name_pattern *pattern, const struct set *from, const struct set *to)
{
    for (unsigned i = 0; i < pattern->count; i++) {
        if (from->words[i / 64] & UINT64_C(1) << i % 64)
            add(&pattern->next[i], to);
    }
}

static void put_behind(struct name_pattern *pattern, struct part *part, const struct part *more)
{
    join(pattern, &part->last, &more->first);
    if (part->is_empty)
        add(&part->first, &more->first);
    struct set last = more->last;
    if (more->is_empty)
        add(&last, &part->last);
    part->last = last;
    part->is_empty = part->is_empty && more->is_empty;
}

/* ---- single characters ---- */

static struct part new_state(struct reader *reader,
                             bool (*accepts)(const void *of, unsigned symbol), const void *of)
{
    struct name_pattern *pattern = reader->pattern;
    unsigned state = pattern->count++;
    struct part part = {.is_empty = false};
    part.first.words[state / 64] |= UINT64_C(1) << state % 64;
    part.last = part.first;
    for (unsigned symbol = 0; symbol < SYMBOLS; symbol++) {
        if (accepts(of, symbol))
            add(&pattern->accepting[symbol], &part.first);
    }
    return part;
}

static bool is_symbol(const void *of, unsigned symbol)
{
    return *(const unsigned *)of == symbol;
}

static bool is_any(const void *of, unsigned symbol)
{
    return symbol < BEGINNING;
}

struct members {
    bool has[BEGINNING];
    bool is_negated;
};

static bool is_member(const void *of, unsigned symbol)
{
    const struct members *members = of;
    return symbol < BEGINNING && members->has[symbol] != members->is_negated;
}

static const struct {
    const char *name;
    int (*holds)(int byte);
} classes[] = {
    {"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum}, {"upper", isupper},
    {"lower", islower}, {"space", isspace}, {"blank", isblank}, {"punct", ispunct},
    {"print", isprint}, {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit},
};

static void add_class(struct members *members, int (*holds)(int byte))
{
    for (int byte = 0; byte < 128; byte++)
        members->has[byte] = members->has[byte] || holds(byte);
}

/* "[:alpha:]" within brackets; `at` is behind the "[:". */
static bool read_class(struct reader *reader, struct members *members)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        size_t length = strlen(classes[i].name);
        if ((size_t)(reader->end - reader->at) < length + 2 ||
            memcmp(reader->at, classes[i].name, length) != 0 ||
            memcmp(reader->at + length, ":]", 2) != 0)
            continue;
        add_class(members, classes[i].holds);
        reader->at += length + 2;
        return true;
    }
    reader->fault = "has a class that is not known";
    return false;
}

/* A single byte or a range. */
static bool read_range(struct reader *reader, struct members *members)
{
    unsigned char first = (unsigned char)*reader->at++, last = first;
    if (reader->end - reader->at > 1 && reader->at[0] == '-' && reader->at[1] != ']') {
        last = (unsigned char)reader->at[1];
        reader->at += 2;
    }
    if (last < first)
        reader->fault = "has a range that ends before it begins";
    for (unsigned byte = first; byte <= last; byte++)
        members->has[byte] = true;
    return last >= first;
}

/* `at` is behind the opening bracket. */
static struct part read_brackets(struct reader *reader)
{
    struct members members = {.is_negated = reader->at < reader->end && *reader->at == '^'};
    reader->at += members.is_negated;
    bool is_good = true;
    for (const char *start = reader->at; is_good;) {
        if (reader->at >= reader->end) {
            reader->fault = "has a [ without its ]";
            is_good = false;
        } else if (*reader->at == ']' && reader->at > start) {
            reader->at++;
            break;
        } else if (*reader->at == '[' && reader->end - reader->at > 1 &&
                   strchr(":.=", reader->at[1])) {
            reader->at += 2;
            is_good = read_class(reader, &members);
        } else {
            is_good = read_range(reader, &members);
        }
    }
    return new_state(reader, is_member, &members);
}

static int is_word(int byte)
{
    return isalnum(byte) || byte == '_';
}

/* `at` is behind the backslash. */
static struct part read_escape(struct reader *reader)
{
    struct members members = {.is_negated = false};
    unsigned char c = reader->at < reader->end ? (unsigned char)*reader->at++ : '\0';
    int lower = tolower(c);
    if (c == '\0')
        reader->fault = "ends with a backslash";
    else if (c >= '1' && c <= '9')
        reader->fault = "has a back reference, which is not supported";
    else if (lower == 'b' || strchr("<>`'", c))
        reader->fault = "has an escape that is not supported";
    if (lower == 'w' || lower == 's' || lower == 'd')
        add_class(&members, lower == 'w' ? is_word : lower == 's' ? isspace : isdigit);
    else
        members.has[c] = true;
    members.is_negated = c == 'W' || c == 'S' || c == 'D';
    return new_state(reader, is_member, &members);
}

/* ---- the expression ---- */

static struct part read_alternatives(struct reader *reader, bool is_inside);

static struct part read_one(struct reader *reader)
{
    unsigned symbol = (unsigned char)*reader->at++;
    switch (symbol) {
    case '(':
        return read_alternatives(reader, true);
    case '[':
        return read_brackets(reader);
    case '\\':
        return read_escape(reader);
    case '.':
        return new_state(reader, is_any, NULL);
    case '^':
        symbol = BEGINNING;
        break;
    case '$':
        symbol = END;
        break;
    case '*':
    case '+':
    case '?':
        reader->fault = "repeats nothing";
        break;
    case '{':
        reader->fault = "has a repetition count, which is not supported";
        break;
    case ')':
        reader->fault = "has a ) without its (";
        break;
    case '\0':
        reader->fault = "holds a NUL";
        break;
    default:
        break;
    }
    return new_state(reader, is_symbol, &symbol);
}

static struct part read_repeated(struct reader *reader)
{
    struct part part = read_one(reader);
    while (!reader->fault && reader->at < reader->end && *reader->at &&
           strchr("*+?", *reader->at)) {
        char how = *reader->at++;
        if (how != '?')
            join(reader->pattern, &part.last, &part.first);
        part.is_empty = part.is_empty || how != '+';
    }
    return part;
}

static struct part read_sequence(struct reader *reader, bool is_inside)
{
    struct part part = {.is_empty = true};
    while (!reader->fault && reader->at < reader->end && *reader->at != '|' &&
           !(is_inside && *reader->at == ')')) {
        struct part more = read_repeated(reader);
        put_behind(reader->pattern, &part, &more);
    }
    return part;
}

/* Inside parentheses up to the closing one, and over it. */
static struct part read_alternatives(struct reader *reader, bool is_inside)
{
    struct part part = read_sequence(reader, is_inside);
    while (!reader->fault && reader->at < reader->end && *reader->at == '|') {
        reader->at++;
        struct part other = read_sequence(reader, is_inside);
        add(&part.first, &other.first);
        add(&part.last, &other.last);
        part.is_empty = part.is_empty || other.is_empty;
    }
    if (is_inside && !reader->fault && reader->at++ >= reader->end)
        reader->fault = "has a ( without its )";
    return part;
}

struct name_pattern *name_pattern_create(struct str text, const char **fault)
{
    if (text.length > MOST_BYTES) {
        *fault = "is longer than 256 bytes";
        return NULL;
    }
    struct name_pattern *pattern = memory_alloc(sizeof *pattern);
    struct reader reader = {.pattern = pattern, .at = text.bytes, .end = text.bytes + text.length};
    struct part all = read_alternatives(&reader, false);
    pattern->first = all.first;
    pattern->last = all.last;
    pattern->is_empty = all.is_empty;
    *fault = reader.fault;
    if (!reader.fault)
        return pattern;
    free(pattern);
    return NULL;
}

void name_pattern_destroy(struct name_pattern *pattern)
{
    free(pattern);
}

/* ---- names ---- */

/* Moves on by one byte; a match may begin at each. */
static void step(const struct name_pattern *pattern, struct set *states, unsigned symbol)
{
    struct set next = list_tools_follow(pattern, states);
    add(&next, &pattern->first);
    for (unsigned i = 0; i < WORDS; i++)
        states->words[i] = next.words[i] & pattern->accepting[symbol].words[i];
}

/* "^^" is the beginning once, as "^" is. */
static bool step_at_edge(const struct name_pattern *pattern, struct set *states, unsigned edge)
{
    struct set all = {{0}}, before;
    do {
        before = all;
        step(pattern, states, edge);
        add(&all, states);
        *states = all;
    } while (memcmp(&before, &all, sizeof all) != 0);
    return meets(states, &pattern->last);
}

bool name_pattern_matches(const struct name_pattern *pattern, struct str name)
{
    struct set states = {{0}};
    bool found = pattern->is_empty || step_at_edge(pattern, &states, BEGINNING);
    for (size_t i = 0; i < name.length && !found; i++) {
        step(pattern, &states, (unsigned char)name.bytes[i]);
        found = meets(&states, &pattern->last);
    }
    return found || step_at_edge(pattern, &states, END);
}

#define MOST_NAME_BYTES 1024

/* What is listed. */
struct listing {
    struct call_part part;
    struct name_pattern *server, *tool; /* NULL until they are compiled */
    struct buffer tools;                /* JSON objects with commas */
    size_t count;
};

static void drop(struct call *call, void *object)
{
    struct listing *listing = object;
    name_pattern_destroy(listing->server);
    name_pattern_destroy(listing->tool);
    buffer_finish(&listing->tools);
    free(listing);
}

static const struct call_part_kind listing_kind = CALL_PART_KIND(struct listing, drop);

static struct listing *list_tools_listing_of(const struct call *call)
{
    return call_part_get(call, &listing_kind);
}

/* ---- patterns ---- */

/* False when the call has been answered. */
static bool compile(struct call *call, const char *name, struct name_pattern **pattern)
{
    OWNED_BUFFER(expression);
    const char *fault;
    if (!pseudo_argument_text(call->envelope.arguments.raw, name, &expression))
        buffer_append_text(&expression, ".*");
    *pattern = name_pattern_create(buffer_str(&expression), &fault);
    bool is_good = *pattern != NULL; /* once it is answered, the call's state is gone */
    if (!is_good)
        pseudo_fail(call, "%s is no regular expression that can be used here: it %s", name, fault);
    return is_good;
}

/* No model could call a tool with a longer name. */
static bool matches(const struct name_pattern *pattern, struct str name)
{
    return name.length <= MOST_NAME_BYTES && name_pattern_matches(pattern, name);
}

/* ---- the list ---- */

static void answer(struct call *call)
{
    const struct listing *listing = list_tools_listing_of(call);
    OWNED_BUFFER(list);
    buffer_append_format(&list, "[%.*s]", STR_ARGS(buffer_str(&listing->tools)));
    pseudo_answer_array(call, "tools", buffer_str(&list), listing->count,
                        STR("No tools available"));
}

/* As tools/list shows it. */
static void add_schema(const struct call *call, const struct mcp_tool *tool, struct buffer *out)
{
    const struct policy_request request = {call->source, tool->name, STR_EMPTY,
                                           call_verified(call)};
    struct policy_decision decision;
    OWNED_BUFFER(schema);
    policy_decide(call->snapshot->policy, &request, &decision);
    bool changes =
        agent_reason_write_schema(&schema, agent_reason_asked(&decision), call->source->id, tool);
    json_add_value(out, "inputSchema",
                   changes ? buffer_str(&schema) : json_member(tool->raw, "inputSchema"));
}

static void add_tool(struct call *call, const struct mcp_tool *tool)
{
    struct listing *listing = list_tools_listing_of(call);
    struct buffer *out = &listing->tools;
    if (!policy_is_visible(call->snapshot->policy, call->source, tool->name) ||
        !matches(listing->tool, tool->name))
        return;
    if (listing->count++ > 0)
        buffer_append_char(out, ',');
    buffer_append_char(out, '{');
    json_add_text(out, "server", call->source->id);
    json_add_str(out, "name", tool->name);
    json_add_value(out, "description", json_member(tool->raw, "description"));
    add_schema(call, tool, out);
    buffer_append_char(out, '}');
}

static void list_tools_done(struct call *call, bool is_list)
{
    if (is_list)
        answer(call);
    else
        pseudo_fail(call, "The server cannot be asked for its tools now");
}

void pseudo_tool_list_tools(struct call *call, struct str arguments)
{
    struct listing *listing = memory_alloc(sizeof *listing);
    call_part_add(call, &listing->part, &listing_kind);
    if (!compile(call, "server", &listing->server) || !compile(call, "tool", &listing->tool))
        return;
    if (matches(listing->server, str_from(call->source->id)))
        tools_walk(call, add_tool, list_tools_done);
    else
        answer(call);
}

/* ---- list_servers ---- */

/* A session reaches the one server that its path names. The address of that server is not shown: it
 * may hold credentials. */
void pseudo_tool_list_servers(struct call *call, struct str arguments)
{
    const struct config_source *source = call->source;
    OWNED_BUFFER(list);
    OWNED_BUFFER(url);
    int64_t since_ms;
    bool is_reachable =
        catalog_is_reachable(call->worker->gateway->catalog, str_from(source->id), &since_ms);
    buffer_append_format(&url, "/%s/mcp", source->id);
    buffer_append_char(&url, '\0');
    buffer_append_text(&list, "[{");
    json_add_text(&list, "name", source->id);
    json_add_text(&list, "url", url.bytes);
    json_add_text(&list, "status", is_reachable ? "connected" : "disconnected");
    buffer_append_format(&list, ",\"connected\":%s", is_reachable ? "true" : "false");
    if (is_reachable && since_ms > 0)
        json_add_time(&list, "connectedAt", since_ms);
    if (source->description)
        json_add_text(&list, "description", source->description);
    buffer_append_text(&list, "}]");
    pseudo_answer_array(call, "servers", buffer_str(&list), 1, STR_EMPTY);
}
