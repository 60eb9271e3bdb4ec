/* The operators' page: static files, without a token and without data. */
#include "internal.h"

#include "accept.h"
#include "assets.h"
#include "reply.h"
#include "site.h"

/* Not under the name localhost, for that would bind every port of the browser's own machine. */
static bool is_https_only(const struct request *request)
{
    struct str host, port;
    str_cut(http_authority(request->exchange), ':', &host, &port);
    return site_is_https(request->snapshot->config) &&
           !str_equal_ignore_case(host, STR("localhost"));
}

static const struct asset *page_find(struct str path)
{
    for (size_t i = 0; i < asset_count; i++) {
        if (str_equal(path, str_from(assets[i].path)))
            return &assets[i];
    }
    return NULL;
}

bool page_has(struct str path)
{
    return page_find(path) != NULL;
}

void page_serve(const struct request *request)
{
    const struct asset *asset = page_find(http_path(request->exchange));
    if (!asset) {
        reply_error(request->exchange, REPLY_NOT_FOUND, "there is nothing at this path", NULL);
        return;
    }
    bool is_gzip = accept_gzip(http_header_known(request->exchange, HTTP_NAME_ACCEPT_ENCODING));
    struct reply_page page = {.content_type = asset->content_type,
                              .body = is_gzip ? asset->gzip : asset->bytes,
                              .tag = is_gzip ? asset->gzip_tag : asset->tag,
                              .link = str_equal(str_from(asset->path), STR("/")) ? asset_modules
                                                                                 : STR_EMPTY,
                              .is_gzip = is_gzip,
                              .is_https_only = is_https_only(request)};
    reply_page(request->exchange, &page);
}
