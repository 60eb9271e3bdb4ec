/* Certificates and keys: their files are read, and must fit together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config_private.h"

#include "file.h"
#include "taskgate/core/memory.h"
#include "validate.h"

/* A `tls` block, and what was read of its files. */
struct block {
    const struct draft *draft;
    const struct node *node;
    const char *path;     /* "proxy.tls" */
    bool is_whole;        /* so far: every file that is named was read */
    const char *variable; /* the variable that has named the file in place of the block, or NULL */
};

struct texts {
    struct buffer cert, key, ca;
};

static void finish(struct texts *texts)
{
    if (texts->key.bytes)
        explicit_bzero(texts->key.bytes, texts->key.length);
    buffer_finish(&texts->cert);
    buffer_finish(&texts->key);
    buffer_finish(&texts->ca);
}

static void complain(const struct block *block, const char *key, const char *what)
{
    const struct node *node = node_get(block->node, key);
    char *path = memory_format("%s.%s", block->path, key);
    if (block->variable)
        problems_error(block->draft->report.problems, (struct place){.file = block->variable}, path,
                       NULL, "%s", what);
    else
        report_error(&block->draft->report, node ? node : block->node, path, NULL, "%s", what);
    free(path);
}

/* Makes the file's name one beside the configuration, and reads it. */
static void read_file(struct block *block, const char *key, char **name, struct buffer *text)
{
    struct config *config = block->draft->config;
    struct config_file file;
    if (!*name)
        return;
    char *path = config_path_beside(config->path, *name);
    free(*name);
    *name = path;
    if (!file_read(path, text, &file)) {
        char *what = memory_format("%s cannot be read: %s", path, strerror(errno));
        complain(block, key, what);
        free(what);
        block->is_whole = false;
    }
    config_add_file(config, path, &file);
}

static struct str text_of(const char *name, const struct buffer *text)
{
    return !name ? STR_EMPTY : text->length ? buffer_str(text) : STR("");
}

static void complain_of_file(const struct block *block, const char *key, const char *name,
                             const struct error *error)
{
    char *what =
        name ? memory_format("%s %s", name, error->message) : memory_copy_text(error->message);
    complain(block, key, what);
    free(what);
}

/* It is used all the same: a restart must not fail for a date, and clients will say so. */
static void warn_of_dates(const struct block *block, const struct tls_server *server)
{
    int64_t now_s = (int64_t)time(NULL);
    const char *what = tls_server_expires_s(server) <= now_s ? "the certificate has expired"
                       : tls_server_begins_s(server) > now_s ? "the certificate does not hold yet"
                                                             : NULL;
    char *path = memory_format("%s.cert", block->path);
    if (what)
        report_warning(&block->draft->report, node_get(block->node, "cert"), path, NULL, "%s",
                       what);
    free(path);
}

static void validate_port(const struct draft *draft, const char *side, bool lets_strangers_in,
                          struct config_tls *tls)
{
    static const char *const keys[] = {
        [TLS_PART_CERT] = "cert", [TLS_PART_KEY] = "key", [TLS_PART_CA] = "client_ca"};
    char *path = memory_format("%s.tls", side);
    struct block block = {draft, node_get(node_get(draft->root, side), "tls"), path, true, NULL};
    struct texts texts = {0};
    read_file(&block, "cert", &tls->cert, &texts.cert);
    read_file(&block, "key", &tls->key, &texts.key);
    read_file(&block, "client_ca", &tls->client_ca, &texts.ca);
    if (block.is_whole && tls->cert && tls->key) {
        const struct tls_server_settings settings = {
            .cert = text_of(tls->cert, &texts.cert),
            .key = text_of(tls->key, &texts.key),
            .client_ca = text_of(tls->client_ca, &texts.ca),
            .lets_strangers_in = lets_strangers_in,
            .min_version = tls->min_version,
        };
        const char *const names[] = {
            [TLS_PART_CERT] = tls->cert, [TLS_PART_KEY] = tls->key, [TLS_PART_CA] = tls->client_ca};
        enum tls_part part;
        struct error error;
        tls->server = tls_server_create(&settings, &part, &error);
        if (tls->server)
            warn_of_dates(&block, tls->server);
        else
            complain_of_file(&block, keys[part], names[part], &error);
    }
    finish(&texts);
    free(path);
}

static bool is_https(const char *url)
{
    return url && strncasecmp(url, "https:", 6) == 0;
}

static void validate_source(const struct draft *draft, const struct node *node, size_t index)
{
    static const char *const keys[] = {
        [TLS_PART_CERT] = "cert", [TLS_PART_KEY] = "key", [TLS_PART_CA] = "ca"};
    struct config_source *source = &draft->config->sources[index];
    char *path = memory_format("sources[%zu].tls", index);
    struct block block = {draft, node_get(node, "tls"), path, true, NULL};
    struct texts texts = {0};
    if (!source->tls_ca && !source->tls_cert && !source->tls_key) {
        free(path);
        return;
    }
    read_file(&block, "ca", &source->tls_ca, &texts.ca);
    read_file(&block, "cert", &source->tls_cert, &texts.cert);
    read_file(&block, "key", &source->tls_key, &texts.key);
    const char *const names[] = {[TLS_PART_CERT] = source->tls_cert,
                                 [TLS_PART_KEY] = source->tls_key,
                                 [TLS_PART_CA] = source->tls_ca};
    enum tls_part part;
    struct error error;
    if (block.is_whole) {
        source->tls = tls_client_create(text_of(source->tls_ca, &texts.ca),
                                        text_of(source->tls_cert, &texts.cert),
                                        text_of(source->tls_key, &texts.key), &part, &error);
        if (!source->tls)
            complain_of_file(&block, keys[part], names[part], &error);
    }
    /* It would be believed to protect what goes out in plain text. */
    if (source->url && !is_https(source->url))
        report_error(&draft->report, block.node, path, "write an https url, or leave tls out",
                     "the source is not called by TLS: its url is not https");
    finish(&texts);
    free(path);
}

/* Of a mail server any url will do: it is asked for STARTTLS. */
static void validate_endpoint(const struct draft *draft, const struct node *node, size_t index)
{
    struct config_notify *notify = &draft->config->notify[index];
    char *path = memory_format("notify[%zu].tls", index);
    struct block block = {draft, node_get(node, "tls"), path, true, NULL};
    struct texts texts = {0};
    enum tls_part part;
    struct error error;
    read_file(&block, "ca", &notify->tls_ca, &texts.ca);
    if (notify->tls_ca && block.is_whole) {
        notify->tls = tls_client_create(text_of(notify->tls_ca, &texts.ca), STR_EMPTY, STR_EMPTY,
                                        &part, &error);
        if (!notify->tls)
            complain_of_file(&block, "ca", notify->tls_ca, &error);
    }
    if (notify->tls_ca && notify->url && strncasecmp(notify->url, "http:", 5) == 0)
        report_error(&draft->report, block.node, path, "write an https url, or leave tls out",
                     "the endpoint is not called by TLS: its url is not https");
    finish(&texts);
    free(path);
}

static void validate_collector(const struct draft *draft)
{
    struct config_telemetry *telemetry = &draft->config->telemetry;
    const struct node *otlp = node_get(node_get(draft->root, "telemetry"), "otlp");
    struct block block = {draft, node_get(otlp, "tls"), "telemetry.otlp.tls", true,
                          telemetry->tls_ca_variable};
    struct texts texts = {0};
    enum tls_part part;
    struct error error;
    read_file(&block, "ca", &telemetry->tls_ca, &texts.ca);
    if (telemetry->tls_ca && block.is_whole) {
        telemetry->tls = tls_client_create(text_of(telemetry->tls_ca, &texts.ca), STR_EMPTY,
                                           STR_EMPTY, &part, &error);
        if (!telemetry->tls)
            complain_of_file(&block, "ca", telemetry->tls_ca, &error);
    }
    if (telemetry->tls_ca && telemetry->url && !is_https(telemetry->url))
        report_error(&draft->report, block.node, block.path, "write an https url, or leave tls out",
                     "the collector is not called by TLS: its url is not https");
    finish(&texts);
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
