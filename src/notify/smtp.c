/* One thread for each mail. */
#include "smtp.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/upstream/curl_library.h"

#define CONNECT_MS 5000L
#define ATTEMPT_MS 20000L
#define ANSWER_S 10L  /* the longest pause between two words of the server */
#define FAREWELL_S 1L /* the same, where the mail is given up: libcurl 8.14 says QUIT even then */
#define POLL_MS 1000

struct smtp_client {
    struct loop *loop;
    struct list calls; /* all whose end the loop has not heard of */
};

struct smtp_call {
    uint32_t magic;   /* SMTP_CALL_MAGIC */
    struct list node; /* in client->calls */
    struct smtp_client *client;
    smtp_done done;
    void *context;
    bool is_cancelled; /* the loop's, as those above */

    /* Copies, for the thread. */
    char *url, *from, *user, *password;
    char **to;
    size_t to_count;
    struct tls_client *tls;
    struct buffer mail;
    size_t sent;
    struct smtp_result result;
    char error_text[CURL_ERROR_SIZE];

    pthread_t thread;
    bool has_thread;      /* it has not been waited for */
    atomic_bool must_end; /* set by the loop */
    pthread_mutex_t lock; /* of `multi` */
    CURLM *multi;         /* wakes libcurl; NULL once the thread is through with it */
};
#define SMTP_CALL_MAGIC 0x534d5401

static struct smtp_call *call_from(void *context)
{
    return MAGIC_CAST(struct smtp_call, SMTP_CALL_MAGIC, context);
}

/* ---- on the thread ---- */

#define SET(easy, option, value)                                                                   \
    do {                                                                                           \
        if (curl_easy_setopt(easy, option, value) == CURLE_OUT_OF_MEMORY)                          \
            memory_exhausted();                                                                    \
    } while (false)

static size_t give_mail(char *bytes, size_t size, size_t count, void *context)
{
    struct smtp_call *call = call_from(context);
    ASSERT_NUMBERS(call->sent, <=, call->mail.length);
    size_t length = call->mail.length - call->sent;
    if (length > size * count)
        length = size * count;
    if (length > 0)
        memcpy(bytes, call->mail.bytes + call->sent, length);
    call->sent += length;
    return length;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A line of the server's: 4yz and 5yz refuse something (RFC 5321 §4.2.1). */
static size_t smtp_take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct smtp_call *call = call_from(context);
    size_t length = size * count;
    bool is_last = length > 3 && is_digit(bytes[1]) && is_digit(bytes[2]) && bytes[3] != '-';
    if (is_last && (bytes[0] == '4' || bytes[0] == '5')) {
        call->result.refused++;
        call->result.status = (bytes[0] - '0') * 100 + (bytes[1] - '0') * 10 + (bytes[2] - '0');
    }
    return length;
}

static void smtp_set_tls(CURL *easy, const struct smtp_call *call)
{
    /* Without a secret and an authority of its own, a mail goes as the server will have it. */
    bool needs_tls = call->password || call->tls;
    SET(easy, CURLOPT_USE_SSL, needs_tls ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_TRY);
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (!call->tls)
        return;
    struct curl_blob blob = {(char *)call->tls->ca.bytes, call->tls->ca.length, CURL_BLOB_NOCOPY};
    SET(easy, CURLOPT_CAPATH, (char *)NULL);
    SET(easy, CURLOPT_CAINFO_BLOB, &blob);
}

static void smtp_prepare(CURL *easy, struct smtp_call *call, const struct curl_slist *recipients)
{
    SET(easy, CURLOPT_URL, call->url);
    SET(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    SET(easy, CURLOPT_PROXY, ""); /* no proxy of the environment */
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_QUICK_EXIT, 1L);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    SET(easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, ANSWER_S);
    SET(easy, CURLOPT_TIMEOUT_MS, ATTEMPT_MS);
    SET(easy, CURLOPT_ERRORBUFFER, call->error_text);
    if (call->user) {
        SET(easy, CURLOPT_USERNAME, call->user);
        SET(easy, CURLOPT_PASSWORD, call->password);
    }
    smtp_set_tls(easy, call);
    SET(easy, CURLOPT_MAIL_FROM, call->from);
    SET(easy, CURLOPT_MAIL_RCPT, recipients);
    SET(easy, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
    SET(easy, CURLOPT_UPLOAD, 1L);
    SET(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->mail.length);
    SET(easy, CURLOPT_READFUNCTION, give_mail);
    SET(easy, CURLOPT_READDATA, call);
    SET(easy, CURLOPT_HEADERFUNCTION, smtp_take_answer);
    SET(easy, CURLOPT_HEADERDATA, call);
}

/* CURLE_ABORTED_BY_CALLBACK when it was cancelled. */
static CURLcode transfer(struct smtp_call *call, CURL *easy)
{
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    int running = 1, left;
    if (curl_multi_add_handle(call->multi, easy) != CURLM_OK)
        return CURLE_FAILED_INIT;
    while (!atomic_load(&call->must_end) && running > 0) {
        if (curl_multi_perform(call->multi, &running) != CURLM_OK ||
            (running > 0 && curl_multi_poll(call->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK))
            break;
    }
    CURLMsg *message = curl_multi_info_read(call->multi, &left);
    if (message && message->msg == CURLMSG_DONE)
        code = message->data.result;
    if (atomic_load(&call->must_end))
        SET(easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, FAREWELL_S);
    curl_multi_remove_handle(call->multi, easy);
    return code;
}

static void smtp_judge(struct smtp_call *call, CURLcode code)
{
    struct smtp_result *result = &call->result;
    result->is_sent = code == CURLE_OK;
    if (result->is_sent)
        return;
    const char *what = *call->error_text ? call->error_text : curl_easy_strerror(code);
    if (code == CURLE_USE_SSL_FAILED)
        what = "the server offers no STARTTLS, which a password or tls.ca requires";
    if (result->status > 0)
        error_set(&result->why, "%s (the server answered %d)", what, result->status);
    else
        error_set(&result->why, "%s", what);
}

static void smtp_perform(struct smtp_call *call)
{
    struct curl_slist *recipients = NULL;
    CURL *easy = curl_easy_init();
    if (!easy)
        memory_exhausted();
    for (size_t i = 0; i < call->to_count; i++) {
        struct curl_slist *longer = curl_slist_append(recipients, call->to[i]);
        if (!longer)
            memory_exhausted();
        recipients = longer;
    }
    smtp_prepare(easy, call, recipients);
    smtp_judge(call, transfer(call, easy));
    curl_easy_cleanup(easy);
    curl_slist_free_all(recipients);
}

static void smtp_deliver(void *context);

static void *smtp_run(void *context)
{
    struct smtp_call *call = call_from(context);
    smtp_perform(call);
    pthread_mutex_lock(&call->lock);
    CURLM *multi = call->multi;
    call->multi = NULL;
    pthread_mutex_unlock(&call->lock);
    curl_multi_cleanup(multi); /* says farewell, and waits for the answer */
    loop_post(call->client->loop, smtp_deliver, call);
    return NULL;
}

/* Signals are for the program's own threads. */
static bool smtp_start_thread(struct smtp_call *call)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&call->thread, NULL, smtp_run, call);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0;
}

/* ---- on the loop ---- */

static void smtp_destroy(struct smtp_call *call)
{
    ASSERT(!call->has_thread); /* which would still use it */
    list_remove(&call->node);
    if (call->multi)
        curl_multi_cleanup(call->multi);
    free(call->url);
    free(call->from);
    free(call->user);
    memory_forget_text(call->password);
    for (size_t i = 0; i < call->to_count; i++)
        free(call->to[i]);
    free(call->to);
    tls_client_unref(call->tls);
    if (call->mail.bytes)
        explicit_bzero(call->mail.bytes, call->mail.length);
    buffer_finish(&call->mail);
    pthread_mutex_destroy(&call->lock);
    MAGIC_CLEAR(call);
    free(call);
}

static void smtp_join(struct smtp_call *call)
{
    if (call->has_thread)
        pthread_join(call->thread, NULL);
    call->has_thread = false;
}

static void smtp_deliver(void *context)
{
    struct smtp_call *call = call_from(context);
    smtp_join(call); /* that posted this as its last act */
    if (!call->is_cancelled)
        call->done(call->context, &call->result);
    smtp_destroy(call);
}

struct smtp_client *smtp_client_create(struct loop *loop)
{
    struct smtp_client *client = memory_alloc(sizeof *client);
    client->loop = loop;
    list_init(&client->calls);
    return client;
}

void smtp_client_close(struct smtp_client *client)
{
    if (!client)
        return;
    LIST_FOR_EACH_SAFE (node, next, &client->calls)
        smtp_call_cancel(LIST_ENTRY(node, struct smtp_call, node));
    LIST_FOR_EACH_SAFE (node, next, &client->calls)
        smtp_join(LIST_ENTRY(node, struct smtp_call, node));
}

void smtp_client_destroy(struct smtp_client *client)
{
    free(client);
}

static void smtp_begin(struct smtp_call *call)
{
    struct error error;
    if (!curl_library_load(&error))
        call->result.why = error;
    else if (!(call->multi = curl_multi_init()))
        memory_exhausted();
    else if (smtp_start_thread(call))
        call->has_thread = true;
    else
        error_set(&call->result.why, "no thread could be started");
    if (!call->has_thread)
        loop_post(call->client->loop, smtp_deliver, call);
}

struct smtp_call *smtp_call_start(struct smtp_client *client, const struct config_notify *notify,
                                  struct str mail, smtp_done done, void *context)
{
    struct smtp_call *call = memory_alloc(sizeof *call);
    *call = (struct smtp_call){
        .client = client,
        .done = done,
        .context = context,
        .url = memory_copy_text(notify->url),
        .from = memory_copy_text(notify->from),
        .user = memory_copy_text(notify->user),
        .password = memory_copy_text(notify->secret),
        .to = memory_alloc_array(notify->to.count, sizeof *call->to),
        .to_count = notify->to.count,
        .tls = tls_client_ref(notify->tls),
    };
    MAGIC_SET(call, SMTP_CALL_MAGIC);
    for (size_t i = 0; i < notify->to.count; i++)
        call->to[i] = memory_copy_text(notify->to.items[i]);
    buffer_init(&call->mail);
    buffer_append(&call->mail, mail);
    pthread_mutex_init(&call->lock, NULL);
    list_append(&client->calls, &call->node);
    smtp_begin(call);
    return call;
}

void smtp_call_cancel(struct smtp_call *call)
{
    call->is_cancelled = true;
    atomic_store(&call->must_end, true);
    pthread_mutex_lock(&call->lock);
    if (call->multi)
        curl_multi_wakeup(call->multi);
    pthread_mutex_unlock(&call->lock);
}
