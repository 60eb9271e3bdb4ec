/* The operators' page: static files, without a token and without data. */
#include "internal.h"

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

void page_serve(const struct request *request)
{
    struct str path = http_path(request->exchange);
    for (size_t i = 0; i < asset_count; i++) {
        if (str_equal(path, str_from(assets[i].path))) {
            reply_page(request->exchange, assets[i].content_type, assets[i].bytes,
                       is_https_only(request));
            return;
        }
    }
    reply_error(request->exchange, REPLY_NOT_FOUND, "there is nothing at this path", NULL);
}
