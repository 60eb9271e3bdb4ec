/* The audit trail: its clocks fit together, and its key can sign. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config_private.h"
#include "file.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/signature.h"
#include "validate.h"

static void complain(const struct draft *draft, const struct node *node, const char *what)
{
    char *message = memory_format("%s %s", draft->config->audit.key_file, what);
    report_error(&draft->report, node, "audit.key_file",
                 "make one with: openssl genpkey -algorithm ed25519", "%s", message);
    free(message);
}

static void read_key(const struct draft *draft, const struct node *node, const struct buffer *text)
{
    struct config_audit *audit = &draft->config->audit;
    struct error error = {""};
    audit->key = signature_key_read(buffer_str(text), &error);
    if (!audit->key)
        complain(draft, node, error.message);
    else if (!signature_key_is_private(audit->key))
        complain(draft, node, "holds a public key, which cannot sign");
}

static void read_key_file(const struct draft *draft, const struct node *node)
{
    struct config *config = draft->config;
    struct config_file file;
    struct buffer text;
    char *path = config_path_beside(config->path, config->audit.key_file);
    free(config->audit.key_file);
    config->audit.key_file = path;
    buffer_init(&text);
    if (file_read(path, &text, &file)) {
        read_key(draft, node, &text);
    } else {
        char *what = memory_format("cannot be read: %s", strerror(errno));
        complain(draft, node, what);
        free(what);
    }
    config_add_file(config, path, &file);
    if (text.bytes)
        explicit_bzero(text.bytes, text.length);
    buffer_finish(&text);
}

void validate_audit(const struct draft *draft)
{
    const struct config_audit *audit = &draft->config->audit;
    const struct node *node = node_get(draft->root, "audit");
    if (audit->keep_ms > 0 && audit->keep_arguments_ms > audit->keep_ms)
        report_error(&draft->report, node_get(node, "keep_arguments"), "audit.keep_arguments",
                     "shorten it, or lengthen keep",
                     "arguments cannot be kept longer than the rows that they belong to");
    if (audit->key_file)
        read_key_file(draft, node_get(node, "key_file"));
}
