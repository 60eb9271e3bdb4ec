/* The operators' page: static files, without a token and without data. */
#include "internal.h"

#include "assets.h"
#include "reply.h"

void page_serve(const struct request *request)
{
    struct str path = http_path(request->exchange);
    for (size_t i = 0; i < asset_count; i++) {
        if (str_equal(path, str_from(assets[i].path))) {
            reply_page(request->exchange, assets[i].content_type, assets[i].bytes);
            return;
        }
    }
    reply_error(request->exchange, REPLY_NOT_FOUND, "there is nothing at this path", NULL);
}
