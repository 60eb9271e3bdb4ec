/*
 * A request as libcurl's options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curl_internal.h"
#include "request_header.h"
#include "taskgate/core/memory.h"

#define UPLOAD_BUFFER_BYTES 16384L

/* libcurl copies texts. Without this one it would go on with what it had: another method, or the
 * proxy of the environment. */
#define SET(easy, option, value)                                                                   \
    do {                                                                                           \
        if (curl_easy_setopt(easy, option, value) == CURLE_OUT_OF_MEMORY)                          \
            memory_exhausted();                                                                    \
    } while (false)

static void add_line(struct curl_call *call, const char *line)
{
    struct curl_slist *longer = curl_slist_append(call->request_headers, line);
    if (longer == NULL)
        memory_exhausted();
    call->request_headers = longer;
}

static bool add_headers(struct curl_call *call, const struct upstream_request *request)
{
    /* libcurl adds these by itself unless told otherwise ("Name:" takes one out). */
    bool has_accept = false;
    bool has_content_type = false;

    for (size_t i = 0; i < request->header_count; i++) {
        struct str name = request->headers[i].name;
        struct str value = request->headers[i].value;
        if (!request_header_is_valid(&request->headers[i])) {
            snprintf(call->error_text, sizeof(call->error_text), REQUEST_HEADER_MALFORMED);
            return false;
        }
        if (request_header_is_left_out(&request->headers[i]))
            continue;
        has_accept |= str_equal_ignore_case(name, STR("accept"));
        has_content_type |= str_equal_ignore_case(name, STR("content-type"));
        /* For libcurl "Name;" is a header without a value. */
        char *line = value.length == 0
                         ? memory_format("%.*s;", STR_ARGS(name))
                         : memory_format("%.*s: %.*s", STR_ARGS(name), STR_ARGS(value));
        add_line(call, line);
        free(line);
    }
    add_line(call, "Expect:");
    if (!has_accept)
        add_line(call, "Accept:");
    if (!has_content_type)
        add_line(call, "Content-Type:");
    return true;
}

static void set_method(CURL *easy, const struct upstream_request *request, bool is_post)
{
    if (is_post || request->body.length > 0) {
        SET(easy, CURLOPT_POST, 1L);
        SET(easy, CURLOPT_POSTFIELDS, request->body.length > 0 ? request->body.bytes : "");
        SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.length);
    } else {
        SET(easy, CURLOPT_HTTPGET, 1L);
    }
    SET(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_blob(CURL *easy, CURLoption option, struct str text)
{
    struct curl_blob blob = {(char *)text.bytes, text.length, CURL_BLOB_NOCOPY};
    if (text.bytes != NULL)
        SET(easy, option, &blob);
}

/* libcurl keeps connections of other certificates apart from these. */
static void set_tls(CURL *easy, const struct tls_client *tls)
{
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls == NULL)
        return;
    /* Besides a text, libcurl would go on with the system's folder. */
    if (tls->ca.bytes != NULL)
        SET(easy, CURLOPT_CAPATH, (char *)NULL);
    set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key);
}

bool curl_request_prepare(struct curl_call *call, const struct upstream_request *request)
{
    CURL *easy = call->easy;

    if (!add_headers(call, request))
        return false;
    SET(easy, CURLOPT_HTTPHEADER, call->request_headers);
    SET(easy, CURLOPT_URL, request->url); /* copied */
    SET(easy, CURLOPT_PATH_AS_IS, 1L);
    set_method(easy, request, call->is_post);

    set_tls(easy, call->tls);

    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, CURLOPT_HTTP_TRANSFER_DECODING, 0L); /* see curl_body.c */
    SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    SET(easy, CURLOPT_PROXY, ""); /* no proxy of the environment */
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS,
        request->connect_timeout_ms > 0 ? (long)request->connect_timeout_ms
                                        : (long)UPSTREAM_CONNECT_TIMEOUT_MS);
    /* Else the loop would wait for a resolver's thread when its call ends first. */
    SET(easy, CURLOPT_QUICK_EXIT, 1L);
    return true;
}
