/* Rules about sources: V-001, V-002, V-003, V-010, V-014 for their headers. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

/* A source while it is looked at. */
struct source_view {
    const struct draft *draft;
    const struct node *node;
    const struct config_source *source;
    size_t index;
};

static char *path_of(const struct source_view *view, const char *key)
{
    return memory_format("sources[%zu].%s", view->index, key);
}

static void complain_at(const struct source_view *view, const struct node *node, const char *key,
                        const char *hint, const char *message)
{
    char *path = path_of(view, key);
    report_error(&view->draft->report, node, path, hint, "%s", message);
    free(path);
}

static void complain(const struct source_view *view, const char *key, const char *hint,
                     const char *message)
{
    const struct node *node = node_get(view->node, key);
    complain_at(view, node ? node : view->node, key, hint, message);
}

static void complain_about_value(const struct source_view *view, const char *key, const char *hint,
                                 const char *what)
{
    char *quoted = report_quote(&view->draft->report, node_get(view->node, key));
    char *message = memory_format("%s: %s", what, quoted);
    complain(view, key, hint, message);
    free(message);
    free(quoted);
}

static void check_names(const struct source_view *view)
{
    const struct config_source *source = view->source;
    if (source->id && source->id[0] == '_')
        complain_about_value(view, "id", "begin it with a letter or a digit",
                             "V-002 reserved prefix \"_\" in source ID");
    for (size_t i = 0; i < view->index; i++) {
        const struct config_source *earlier = &view->draft->config->sources[i];
        if (source->id && earlier->id && strcmp(source->id, earlier->id) == 0)
            complain_about_value(view, "id", "each source needs an ID of its own",
                                 "V-001 duplicate source ID");
        if (source->prefix && earlier->prefix && strcmp(source->prefix, earlier->prefix) == 0)
            complain_about_value(view, "prefix", "each source needs a prefix of its own",
                                 "V-003 duplicate prefix");
    }
}

/* A list that nothing reads would let people believe that it protects them. */
static void check_expose(const struct source_view *view)
{
    const struct node *expose = node_get(view->node, "expose");
    const struct node *mode = node_get(expose, "mode");
    const struct node *tools = node_get(expose, "tools");
    if (!mode)
        return;
    char *path = path_of(view, "expose.tools");
    if (view->source->expose_mode != EXPOSE_ALL && node_is_null(tools))
        report_error(&view->draft->report, expose, path, "list globs, or write mode: all",
                     "the key is missing");
    if (strcmp(mode->text ? mode->text : "", "all") == 0 && tools)
        report_warning(&view->draft->report, tools, path, "write mode: allowlist or blocklist",
                       "the list has no effect with mode: all");
    free(path);
}

/* Tasks are the gateway's own offer, not the server's. */
static void check_extensions(const struct source_view *view)
{
    const struct node *deny = node_get(node_get(view->node, "extensions"), "deny");
    char *path = path_of(view, "extensions.deny");
    for (size_t i = 0; deny && deny->kind == NODE_LIST && i < deny->count; i++) {
        const struct node *glob = deny->values[i];
        if (glob->kind == NODE_TEXT && strcmp(glob->text, "io.modelcontextprotocol/tasks") == 0)
            report_warning(&view->draft->report, glob, path, "take it out",
                           "the glob has no effect: the gateway itself offers tasks");
    }
    free(path);
}

static void resolve_header(const struct source_view *view, struct config_source_header *header,
                           const struct node *name_node, const struct node *node)
{
    const struct report *report = &view->draft->report;
    const struct node *variable = node_get(node, "env");
    struct error error;
    if (!variable || variable->kind != NODE_TEXT || !*variable->text)
        return;
    char *headers = path_of(view, "headers");
    char *path = document_join(headers, header->name);
    const char *value = view->draft->environment(variable->text);
    if (!value && !view->draft->needs_no_secrets)
        report_error(report, variable, path, "set it to the header's value",
                     "V-014 the environment variable %s is not set",
                     check_shown_variable(variable->text));
    else if (value && !check_header_value(str_from(value), &error))
        report_error(report, variable, path, NULL, "in the environment variable %s: %s",
                     variable->text, error.message);
    else if (value)
        header->value = memory_copy_text(value);
    for (size_t i = 0; &view->source->headers[i] != header; i++) {
        struct str earlier = str_from(view->source->headers[i].name);
        if (str_equal_ignore_case(earlier, str_from(header->name)))
            report_error(report, name_node, path, "keep one of them",
                         "the header stands here twice: names differ in case only");
    }
    free(path);
    free(headers);
}

static void check_headers(const struct source_view *view)
{
    const struct node *headers = node_get(view->node, "headers");
    for (size_t i = 0; i < view->source->header_count; i++)
        resolve_header(view, &view->source->headers[i], headers->keys[i], headers->values[i]);
}

/* The endpoint that trades tokens, if that is asked for; and nothing that looks like it
 * otherwise. */
static void check_exchange(const struct source_view *view, const struct node *auth)
{
    const struct node *exchange = node_get(auth, "exchange");
    struct config_auth *read = &view->draft->config->sources[view->index].auth;
    char *path = path_of(view, "auth.exchange.client_secret_env");
    if (read->upstream != AUTH_UPSTREAM_EXCHANGE) {
        if (exchange)
            complain_at(view, exchange, "auth.exchange", "add it, or take the mapping out",
                        "the mapping has no effect without `upstream: exchange`");
    } else {
        const struct node *place = exchange ? exchange : node_get(auth, "upstream");
        if (node_is_null(node_get(exchange, "token_url")))
            complain_at(view, place, "auth.exchange.token_url", NULL, "the key is missing");
        if (node_is_null(node_get(exchange, "client_id")))
            complain_at(view, place, "auth.exchange.client_id", NULL, "the key is missing");
        read->exchange.client_secret =
            validate_secret(view->draft, node_get(exchange, "client_secret_env"), path);
    }
    free(path);
}

/* An empty mapping must not leave the source open to everybody. */
static void check_auth(const struct source_view *view)
{
    const struct node *auth = node_get(view->node, "auth");
    const struct config_auth *read = &view->source->auth;
    if (!auth)
        return;
    if (node_is_null(auth)) {
        complain(view, "auth", "name issuer and audience, or take the key out",
                 "the mapping is empty");
        return;
    }
    char *path = path_of(view, "auth");
    if (read->upstream == AUTH_UPSTREAM_PASS) {
        char *key = document_join(path, "upstream");
        report_warning(&view->draft->report, node_get(auth, "upstream"), key, "write drop",
                       "the specification forbids to pass tokens on unless they are meant for that "
                       "server");
        free(key);
    }
    check_exchange(view, auth);
    if (view->source->identity != IDENTITY_AUTHORIZATION)
        report_warning(&view->draft->report, node_get(view->node, "identity"), path,
                       "take `identity` out",
                       "with auth the token's subject owns, not the session");
    free(path);
}

static void check_identity(const struct source_view *view)
{
    if (view->source->identity != IDENTITY_ANONYMOUS || node_get(view->node, "auth"))
        return;
    char *path = path_of(view, "identity");
    report_warning(&view->draft->report, node_get(view->node, "identity"), path, NULL,
                   "all clients without credentials share tasks and results");
    free(path);
}

/* A changed tool waits for the workflow of its rule, or for `default`. */
static void check_pin(const struct source_view *view)
{
    const struct node *tools = node_get(node_get(view->node, "pin"), "tools");
    if (view->source->pins[DEFINITION_TOOL] != PIN_APPROVE ||
        view->draft->config->workflow_count == 0 || config_workflow_of(view->draft->config, NULL))
        return;
    char *path = path_of(view, "pin.tools");
    report_error(&view->draft->report, tools, path, "name one of them default",
                 "there are several workflows, and a change has none that decides");
    free(path);
}

void validate_sources(const struct draft *draft)
{
    const struct node *sources = node_get(draft->root, "sources");
    if (sources && sources->kind == NODE_LIST && sources->count == 0)
        report_error(&draft->report, sources, "sources", "add one with id, kind and url",
                     "V-010 no sources are defined");
    for (size_t i = 0; sources && i < draft->config->source_count; i++) {
        struct source_view view = {draft, sources->values[i], &draft->config->sources[i], i};
        struct place place = source_text_place(draft->report.source, view.node->start);
        draft->config->sources[i].line = place.line;
        draft->config->sources[i].column = place.column;
        check_names(&view);
        check_expose(&view);
        check_extensions(&view);
        check_headers(&view);
        check_auth(&view);
        check_identity(&view);
        check_pin(&view);
    }
}
