/* The issuer of a test. */
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

static struct page *find(struct site *site, struct str path)
{
    for (size_t i = 0; i < site->page_count; i++) {
        if (str_equal(str_from(site->pages[i].path), path))
            return &site->pages[i];
    }
    return NULL;
}

static void forget_held(void *context)
{
    ((struct site *)context)->held = NULL;
}

static void answer(struct http_exchange *exchange, void *context)
{
    struct site *site = context;
    struct page *page = find(site, http_path(exchange));
    if (!page) {
        site->strangers++;
        http_respond(exchange, 404, NULL, 0, STR("{}"));
        return;
    }
    page->asked++;
    struct str authorization = http_header(exchange, "authorization");
    snprintf(page->authorization, sizeof page->authorization, "%.*s", STR_ARGS(authorization));
    buffer_clear(&page->received);
    buffer_append(&page->received, http_body(exchange));
    if (page->status == 0) {
        site->held = exchange;
        http_on_gone(exchange, forget_held, site);
        return;
    }
    struct http_header headers[2];
    size_t count = 0;
    if (page->cache_control)
        headers[count++] =
            (struct http_header){STR("cache-control"), str_from(page->cache_control)};
    if (page->location)
        headers[count++] = (struct http_header){STR("location"), str_from(page->location)};
    http_respond(exchange, page->status, headers, count, buffer_str(&page->body));
}

void site_open(struct site *site)
{
    struct error error = {0};
    *site = (struct site){.loop = loop_create(&error)};
    ck_assert_msg(site->loop, "%s", error.message);
    const struct http_server_options options = {.address = STR("127.0.0.1"),
                                                .max_body_bytes = 65536,
                                                .read_timeout_ms = 30000,
                                                .handler = answer,
                                                .context = site};
    site->server = http_server_create(site->loop, &options, &error);
    ck_assert_msg(site->server, "%s", error.message);
    snprintf(site->url, sizeof site->url, "http://127.0.0.1:%u", http_server_port(site->server));
}

void site_close(struct site *site)
{
    http_server_destroy(site->server);
    loop_run_once(site->loop, 0);
    loop_destroy(site->loop);
    for (size_t i = 0; i < site->page_count; i++) {
        buffer_finish(&site->pages[i].body);
        buffer_finish(&site->pages[i].received);
    }
}

struct page *site_page(struct site *site, const char *path, int status, struct str body)
{
    struct page *page = find(site, str_from(path));
    if (!page) {
        ck_assert_uint_lt(site->page_count, SITE_MAX_PAGES);
        page = &site->pages[site->page_count++];
        snprintf(page->path, sizeof page->path, "%s", path);
    }
    page->status = status;
    buffer_clear(&page->body);
    buffer_append(&page->body, body);
    return page;
}

struct page *site_metadata(struct site *site, const char *place, const char *more)
{
    char *text =
        memory_format("{\"issuer\":\"%s\",\"jwks_uri\":\"%s/keys\"%s}", site->url, site->url, more);
    struct page *page = site_page(site, place, 200, str_from(text));
    free(text);
    return page;
}

struct page *site_keys(struct site *site, const struct signer *first, const struct signer *second)
{
    struct buffer text = {0};
    buffer_append_text(&text, "{\"keys\":[");
    signer_write_jwk(first, "", &text);
    if (second) {
        buffer_append_char(&text, ',');
        signer_write_jwk(second, "", &text);
    }
    buffer_append_text(&text, "]}");
    struct page *page = site_page(site, "/keys", 200, buffer_str(&text));
    buffer_finish(&text);
    return page;
}
