/* Rules about sources: V-001, V-002, V-003, V-010, V-014 for their headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checks.h"
#include "config_private.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "validate.h"

/* Secrets that stand in environment variables (V-014). */

char *validate_secret(const struct draft *draft, const struct node *variable, const char *path)
{
    struct error error;
    if (!variable || variable->kind != NODE_TEXT ||
        !check_variable_name(str_from(variable->text), &error))
        return NULL;
    const char *secret = draft_variable(draft, variable->text);
    if (!secret && draft->needs_no_secrets)
        return NULL;
    if (!secret)
        report_error(&draft->report, variable, path, "set it to the secret",
                     "V-014 the environment variable %s is not set",
                     check_shown_variable(variable->text));
    else if (!check_header_value(str_from(secret), &error)) /* a line end read along with it */
        report_error(&draft->report, variable, path, NULL, "in the environment variable %s: %s",
                     variable->text, error.message);
    else
        return memory_copy_text(secret);
    return NULL;
}

const char *validate_read_file(const struct draft *draft, char **name, struct buffer *text)
{
    struct config *config = draft->config;
    struct config_file file;
    char *path = config_path_beside(config->path, *name);
    free(*name);
    *name = path;
    const char *failure = file_read(path, text, &file) ? NULL : strerror(errno);
    config_add_file(config, path, &file);
    return failure;
}

void view_report(const struct view *view, const struct node *node, bool is_warning, const char *key,
                 const char *hint, const char *format, ...)
{
    ASSERT(view->path && view->node);
    OWNED char *path = memory_format("%s.%s", view->path, key);
    va_list arguments;
    if (!node)
        node = node_get(view->node, key);
    va_start(arguments, format);
    report_by(&view->draft->report, is_warning, node ? node : view->node, path, hint, format,
              arguments);
    va_end(arguments);
}

static void complain_about_value(const struct view *view, const char *key, const char *hint,
                                 const char *what)
{
    OWNED char *quoted = report_quote(&view->draft->report, node_get(view->node, key));
    view_report(view, NULL, false, key, hint, "%s: %s", what, quoted);
}

static void validate_sources_check_names(const struct view *view)
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
static void check_expose(const struct view *view)
{
    const struct node *expose = node_get(view->node, "expose");
    const struct node *mode = node_get(expose, "mode");
    const struct node *tools = node_get(expose, "tools");
    if (!mode)
        return;
    if (view->source->expose_mode != EXPOSE_ALL && node_is_null(tools))
        view_report(view, expose, false, "expose.tools", "list globs, or write mode: all",
                    "the key is missing");
    if (strcmp(mode->text ? mode->text : "", "all") == 0 && tools)
        view_report(view, tools, true, "expose.tools", "write mode: allowlist or blocklist",
                    "the list has no effect with mode: all");
}

/* Tasks are the gateway's own offer, not the server's. */
static void check_extensions(const struct view *view)
{
    const struct node *deny = node_get(node_get(view->node, "extensions"), "deny");
    for (size_t i = 0; deny && deny->kind == NODE_LIST && i < deny->count; i++) {
        const struct node *glob = deny->values[i];
        if (glob->kind == NODE_TEXT && strcmp(glob->text, "io.modelcontextprotocol/tasks") == 0)
            view_report(view, glob, true, "extensions.deny", "take it out",
                        "the glob has no effect: the gateway itself offers tasks");
    }
}

static void resolve_header(const struct view *view, struct config_source_header *header,
                           const struct node *name_node, const struct node *node)
{
    const struct node *variable = node_get(node, "env");
    struct error error;
    if (!variable || variable->kind != NODE_TEXT || !*variable->text)
        return;
    OWNED char *key = document_join("headers", header->name);
    const char *value = view->draft->environment(variable->text);
    if (!value && !view->draft->needs_no_secrets)
        view_report(view, variable, false, key, "set it to the header's value",
                    "V-014 the environment variable %s is not set",
                    check_shown_variable(variable->text));
    else if (value && !check_header_value(str_from(value), &error))
        view_report(view, variable, false, key, NULL, "in the environment variable %s: %s",
                    variable->text, error.message);
    else if (value)
        header->value = memory_copy_text(value);
    for (size_t i = 0; &view->source->headers[i] != header; i++) {
        struct str earlier = str_from(view->source->headers[i].name);
        if (str_equal_ignore_case(earlier, str_from(header->name)))
            view_report(view, name_node, false, key, "keep one of them",
                        "the header stands here twice: names differ in case only");
    }
}

static void check_headers(const struct view *view)
{
    const struct node *headers = node_get(view->node, "headers");
    for (size_t i = 0; i < view->source->header_count; i++)
        resolve_header(view, &view->source->headers[i], headers->keys[i], headers->values[i]);
}

/* The endpoint that trades tokens, if that is asked for; and nothing that looks like it
 * otherwise. */
static void check_exchange(const struct view *view, const struct node *auth)
{
    const struct node *exchange = node_get(auth, "exchange");
    struct config_auth *read = &view->draft->config->sources[view->index].auth;
    OWNED char *path = memory_format("%s.auth.exchange.client_secret_env", view->path);
    if (read->upstream != AUTH_UPSTREAM_EXCHANGE) {
        if (exchange)
            view_report(view, exchange, false, "auth.exchange", "add it, or take the mapping out",
                        "the mapping has no effect without `upstream: exchange`");
    } else {
        const struct node *place = exchange ? exchange : node_get(auth, "upstream");
        if (node_is_null(node_get(exchange, "token_url")))
            view_report(view, place, false, "auth.exchange.token_url", NULL, "the key is missing");
        if (node_is_null(node_get(exchange, "client_id")))
            view_report(view, place, false, "auth.exchange.client_id", NULL, "the key is missing");
        read->exchange.client_secret =
            validate_secret(view->draft, node_get(exchange, "client_secret_env"), path);
    }
}

/* An empty mapping must not leave the source open to everybody. */
static void check_auth(const struct view *view)
{
    const struct node *auth = node_get(view->node, "auth");
    const struct config_auth *read = &view->source->auth;
    if (!auth)
        return;
    if (node_is_null(auth)) {
        view_report(view, NULL, false, "auth", "name issuer and audience, or take the key out",
                    "the mapping is empty");
        return;
    }
    if (read->upstream == AUTH_UPSTREAM_PASS)
        view_report(view, node_get(auth, "upstream"), true, "auth.upstream", "write drop",
                    "the specification forbids to pass tokens on unless they are meant for that "
                    "server");
    check_exchange(view, auth);
    if (view->source->identity != IDENTITY_AUTHORIZATION)
        view_report(view, node_get(view->node, "identity"), true, "auth", "take `identity` out",
                    "with auth the token's subject owns, not the session");
}

static void check_identity(const struct view *view)
{
    if (view->source->identity != IDENTITY_ANONYMOUS || node_get(view->node, "auth"))
        return;
    view_report(view, NULL, true, "identity", NULL,
                "all clients without credentials share tasks and results");
}

/* A changed tool waits for the workflow of its rule, or for `default`. */
static void check_pin(const struct view *view)
{
    const struct node *tools = node_get(node_get(view->node, "pin"), "tools");
    if (view->source->pins[DEFINITION_TOOL] != PIN_APPROVE ||
        view->draft->config->workflow_count == 0 || config_workflow_of(view->draft->config, NULL))
        return;
    view_report(view, tools, false, "pin.tools", "name one of them default",
                "there are several workflows, and a change has none that decides");
}

void validate_sources(const struct draft *draft)
{
    const struct node *sources = node_get(draft->root, "sources");
    if (sources && sources->kind == NODE_LIST && sources->count == 0)
        report_error(&draft->report, sources, "sources", "add one with id, kind and url",
                     "V-010 no sources are defined");
    for (size_t i = 0; sources && i < draft->config->source_count; i++) {
        OWNED char *path = memory_format("sources[%zu]", i);
        const struct view view = {.draft = draft,
                                  .node = sources->values[i],
                                  .path = path,
                                  .source = &draft->config->sources[i],
                                  .index = i};
        struct place place = source_text_place(draft->report.source, view.node->start);
        draft->config->sources[i].line = place.line;
        draft->config->sources[i].column = place.column;
        validate_sources_check_names(&view);
        check_expose(&view);
        check_extensions(&view);
        check_headers(&view);
        check_auth(&view);
        check_identity(&view);
        check_pin(&view);
    }
}

/* Certificates and keys: their files are read, and must fit together. */

#define PARTS 3

/* A `tls` block: each part that it may have, and what was read of its file. */
struct block {
    const struct draft *draft;
    const struct node *node;
    const char *path;     /* "proxy.tls" */
    const char *variable; /* the variable that has named a file in place of the block, or NULL */
    /* By enum tls_part: the key, and where the file's name is; NULL: it has no such part. */
    const char *keys[PARTS];
    char **names[PARTS];
    struct buffer texts[PARTS];
    bool lacks; /* a file that is named */
};

static void block_finish(struct block *block)
{
    struct buffer *key = &block->texts[TLS_PART_KEY];
    if (key->bytes)
        explicit_bzero(key->bytes, key->length);
    for (size_t i = 0; i < PARTS; i++)
        buffer_finish(&block->texts[i]);
}

static const char *block_name(const struct block *block, enum tls_part part)
{
    return block->names[part] ? *block->names[part] : NULL;
}

static struct str block_text(const struct block *block, enum tls_part part)
{
    const struct buffer *text = &block->texts[part];
    return !block_name(block, part) ? STR_EMPTY : text->length ? buffer_str(text) : STR("");
}

/* The file's name, where it has one, and the words. */
static void complain_of_file(const struct block *block, enum tls_part part, const char *words)
{
    const struct node *node = node_get(block->node, block->keys[part]);
    const char *name = block_name(block, part);
    OWNED char *path = memory_format("%s.%s", block->path, block->keys[part]);
    OWNED char *what = memory_format("%s%s%s", name ? name : "", name ? " " : "", words);
    if (block->variable)
        problems_error(block->draft->report.problems, (struct place){.file = block->variable}, path,
                       NULL, "%s", what);
    else
        report_error(&block->draft->report, node ? node : block->node, path, NULL, "%s", what);
}

static void read_tls_part(struct block *block, enum tls_part part)
{
    if (!block_name(block, part))
        return;
    const char *failure = validate_read_file(block->draft, block->names[part], &block->texts[part]);
    if (!failure)
        return;
    OWNED char *words = memory_format("cannot be read: %s", failure);
    complain_of_file(block, part, words);
    block->lacks = true;
}

/* It is used all the same: a restart must not fail for a date, and clients will say so. */
static void warn_of_dates(const struct block *block, const struct tls_server *server)
{
    int64_t now_s = (int64_t)time(NULL);
    const char *what = tls_server_expires_s(server) <= now_s ? "the certificate has expired"
                       : tls_server_begins_s(server) > now_s ? "the certificate does not hold yet"
                                                             : NULL;
    OWNED char *path = memory_format("%s.cert", block->path);
    if (what)
        report_warning(&block->draft->report, node_get(block->node, "cert"), path, NULL, "%s",
                       what);
}

static void validate_port(const struct draft *draft, const char *side, bool lets_strangers_in,
                          struct config_tls *tls)
{
    OWNED char *path = memory_format("%s.tls", side);
    struct block block = {.draft = draft,
                          .node = node_get(node_get(draft->root, side), "tls"),
                          .path = path,
                          .keys = {"cert", "key", "client_ca"},
                          .names = {&tls->cert, &tls->key, &tls->client_ca}};
    for (enum tls_part part = 0; part < PARTS; part++)
        read_tls_part(&block, part);
    if (!block.lacks && tls->cert && tls->key) {
        const struct tls_server_settings settings = {
            .cert = block_text(&block, TLS_PART_CERT),
            .key = block_text(&block, TLS_PART_KEY),
            .client_ca = block_text(&block, TLS_PART_CA),
            .lets_strangers_in = lets_strangers_in,
            .min_version = tls->min_version,
        };
        enum tls_part part;
        struct error error;
        tls->server = tls_server_create(&settings, &part, &error);
        if (tls->server)
            warn_of_dates(&block, tls->server);
        else
            complain_of_file(&block, part, error.message);
    }
    block_finish(&block);
}

static bool is_https(const char *url)
{
    return url && strncasecmp(url, "https:", 6) == 0;
}

/* The block of what is called: `what` is at a plain address, or not. Without files nothing of it is
 * said. */
static void validate_called(struct block *block, const char *what, bool is_plain,
                            struct tls_client **tls)
{
    enum tls_part part;
    struct error error;
    if (!block_name(block, TLS_PART_CA) && !block_name(block, TLS_PART_CERT) &&
        !block_name(block, TLS_PART_KEY))
        return;
    read_tls_part(block, TLS_PART_CA);
    read_tls_part(block, TLS_PART_CERT);
    read_tls_part(block, TLS_PART_KEY);
    if (!block->lacks) {
        *tls = tls_client_create(block_text(block, TLS_PART_CA), block_text(block, TLS_PART_CERT),
                                 block_text(block, TLS_PART_KEY), &part, &error);
        if (!*tls)
            complain_of_file(block, part, error.message);
    }
    /* It would be believed to protect what goes out in plain text. */
    if (is_plain)
        report_error(&block->draft->report, block->node, block->path,
                     "write an https url, or leave tls out",
                     "the %s is not called by TLS: its url is not https", what);
    block_finish(block);
}

static void validate_source(const struct draft *draft, const struct node *node, size_t index)
{
    struct config_source *source = &draft->config->sources[index];
    OWNED char *path = memory_format("sources[%zu].tls", index);
    struct block block = {.draft = draft,
                          .node = node_get(node, "tls"),
                          .path = path,
                          .keys = {"cert", "key", "ca"},
                          .names = {&source->tls_cert, &source->tls_key, &source->tls_ca}};
    validate_called(&block, "source", source->url && !is_https(source->url), &source->tls);
}

/* Of a mail server any url will do: it is asked for STARTTLS. */
static void validate_endpoint(const struct draft *draft, const struct node *node, size_t index)
{
    struct config_notify *notify = &draft->config->notify[index];
    OWNED char *path = memory_format("notify[%zu].tls", index);
    struct block block = {.draft = draft,
                          .node = node_get(node, "tls"),
                          .path = path,
                          .keys = {[TLS_PART_CA] = "ca"},
                          .names = {[TLS_PART_CA] = &notify->tls_ca}};
    bool is_plain = notify->url && strncasecmp(notify->url, "http:", 5) == 0;
    validate_called(&block, "endpoint", is_plain, &notify->tls);
}

static void validate_collector(const struct draft *draft)
{
    struct config_telemetry *telemetry = &draft->config->telemetry;
    const struct node *otlp = node_get(node_get(draft->root, "telemetry"), "otlp");
    struct block block = {.draft = draft,
                          .node = node_get(otlp, "tls"),
                          .path = "telemetry.otlp.tls",
                          .variable = telemetry->tls_ca_variable,
                          .keys = {[TLS_PART_CA] = "ca"},
                          .names = {[TLS_PART_CA] = &telemetry->tls_ca}};
    validate_called(&block, "collector", telemetry->url && !is_https(telemetry->url),
                    &telemetry->tls);
}

/* A shadow listens nowhere and calls nobody. */
void validate_tls(const struct draft *draft)
{
    const struct node *sources = node_get(draft->root, "sources");
    struct config *config = draft->config;
    if (draft->is_shadow)
        return;
    validate_port(draft, "proxy", false, &config->proxy_tls);
    validate_port(draft, "admin", true, &config->admin_tls);
    for (size_t i = 0; sources && i < config->source_count; i++)
        validate_source(draft, sources->values[i], i);
    const struct node *endpoints = node_get(draft->root, "notify");
    for (size_t i = 0; endpoints && i < config->notify_count; i++)
        validate_endpoint(draft, endpoints->values[i], i);
    validate_collector(draft);
}

/* Rules about everything else: the schema's number, and the places of methods. */

void validate_schema(const struct draft *draft)
{
    const struct node *schema = node_get(draft->root, "schema");
    int64_t version;
    if (node_text(schema) && parse_integer(str_from(schema->text), &version) && version != 1)
        report_error(&draft->report, schema, "schema", "write schema: 1",
                     "schema version %lld is not supported", (long long)version);
}

/* A layer above knows the methods on which they have no effect. */
void validate_methods(const struct draft *draft)
{
    const struct node *allow = node_get(node_get(draft->root, "methods"), "allow");
    size_t count = draft->config->methods_allow.count;
    draft->config->methods_allow_at = memory_alloc_array(count, sizeof(struct config_place));
    for (size_t i = 0; allow && i < count && i < allow->count; i++) {
        struct place place = source_text_place(draft->report.source, allow->values[i]->start);
        draft->config->methods_allow_at[i] = (struct config_place){place.line, place.column};
    }
}
