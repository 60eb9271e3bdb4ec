/* Starting, asking and ending the operators' side of a test. */
#include "scene.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/store/site.h"

#include "peer.h"

#define CONFIGURATION                                                                              \
    "schema: 1\n"                                                                                  \
    "sources: [{id: up, kind: mcp, url: http://127.0.0.1:9/mcp}]\n"                                \
    "governance: {defaults: {action: approve}}\n"                                                  \
    "admin:\n"                                                                                     \
    "  allowed_origins: [\"https://ops.example\"]\n"                                               \
    "  tokens:\n"                                                                                  \
    "    - {name: hand, token_env: DECIDE, roles: [approver]}\n"                                   \
    "    - {name: voice, token_env: CALL, roles: [caller]}\n"                                      \
    "    - {name: book, token_env: AUDIT, roles: [auditor]}\n"
#define VIEWER "    - {name: eye, token_env: VIEW, roles: [viewer]}\n"

static const char *environment(const char *name)
{
    static const char *const values[][2] = {{"VIEW", "view"},
                                            {"DECIDE", "decide"},
                                            {"CALL", "call"},
                                            {"AUDIT", "audit"},
                                            {"THOUGHTGATE_ADMIN_TOKEN", "extra"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(name, values[i][0]) == 0)
            return values[i][1];
    }
    return NULL;
}

void scene_configure(bool has_viewer, const char *approval)
{
    struct config_problems problems = {0};
    char *text = memory_format(CONFIGURATION "%s%s", has_viewer ? VIEWER : "", approval);
    struct config *config = config_parse(str_from(text), "test.yaml", environment, &problems);
    if (!config) {
        struct buffer out;
        buffer_init(&out);
        config_problems_write(&problems, &out);
        ck_abort_msg("%.*s", STR_ARGS(buffer_str(&out)));
    }
    free(text);
    struct snapshot *snapshot = snapshot_create(config, &problems);
    ck_assert_ptr_nonnull(snapshot);
    config_problems_finish(&problems);
    snapshot_install(snapshot);
}

static bool is_reachable(void *context)
{
    return ((struct scene *)context)->upstream_reachable;
}

void scene_start(struct scene *scene)
{
    struct error error = {""};
    *scene = (struct scene){.upstream_reachable = true};
    scene_configure(
        true, "approval: {default: {timeout: 10m, redact_fields: [password, card.number]}}\n");
    snprintf(scene->folder, sizeof scene->folder, "/tmp/taskgate-admin-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scene->folder));
    char *path = memory_format("%s/taskgate.db", scene->folder);
    scene->store = store_open(&store_sqlite, path, NULL, NULL, &error);
    ck_assert_msg(scene->store != NULL, "%s", error.message);
    free(path);
    scene->loop = loop_create(&error);
    struct admin_options options = {.bind = "127.0.0.1",
                                    .store = scene->store,
                                    .upstream_reachable = is_reachable,
                                    .context = scene};
    digest_sha256_hex(STR("extra"), options.extra_token_sha256);
    scene->admin = admin_create(scene->loop, &options, &error);
    ck_assert_msg(scene->admin != NULL, "%s", error.message);
}

void scene_finish(struct scene *scene)
{
    store_close(scene->store);
    loop_run_once(scene->loop, 0);
    admin_destroy(scene->admin);
    loop_destroy(scene->loop);
    snapshot_install(NULL);
    metrics_finish();
    free(scene->head);
    free(scene->body);
    char *command = memory_format("rm -rf '%s'", scene->folder);
    ck_assert_int_eq(system(command), 0); // NOLINT(cert-env33-c)
    free(command);
}

static void store_answered(void *context, const struct store_reply *reply)
{
    struct scene *scene = context;
    scene->is_answered = true;
    scene->status = reply->status;
}

static void await_store(struct scene *scene)
{
    int64_t end_ms = clock_monotonic_ms() + 10000;
    while (!scene->is_answered) {
        ck_assert_msg(clock_monotonic_ms() < end_ms, "the store does not answer");
        loop_run_once(scene->loop, 100);
    }
    scene->is_answered = false;
    ck_assert_int_eq(scene->status, STORE_OK);
}

void scene_create(struct scene *scene, const char *tool, const char *arguments)
{
    struct task *task = task_create(TASK_PENDING);
    task_set_text(&task->source, STR("up"));
    task_set_text(&task->owner, STR("anonymous"));
    task_set_text(&task->principal, STR("agent 1f2e"));
    task_set_text(&task->tool, str_from(tool));
    task_set_text(&task->workflow, STR("default"));
    task_set_text(&task->action, STR("approve"));
    task_set_text(&task->arguments, str_from(arguments));
    task_set_request(task, STR("{}"));
    digest_sha256_hex(str_from(arguments), task->arguments_digest);
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms = 600000;
    task->decide_by_ms = task->created_ms + 600000;
    snprintf(scene->id, sizeof scene->id, "%s", task->id);
    struct store_limits limits = {100, 100, INT64_MAX, INT64_MAX};
    store_task_create(scene->store, task, &limits,
                      (struct store_call){scene->loop, store_answered, scene});
    await_store(scene);
}

const char *scene_task_path(const struct scene *scene, const char *rest)
{
    static char path[128];
    snprintf(path, sizeof path, "/api/v1/tasks/%s%s", scene->id, rest);
    return path;
}

void scene_change(struct scene *scene, const struct task_change *change)
{
    struct store_actor actor = {"gateway", "gateway"};
    store_task_change(scene->store, str_from(scene->id), change, &actor,
                      (struct store_call){scene->loop, store_answered, scene});
    await_store(scene);
}

int scene_ask(struct scene *scene, const char *method, const char *path, const char *headers,
              const char *body)
{
    struct peer peer;
    const char *host = strstr(headers, "Host:") ? "" : "Host: 127.0.0.1:7469\r\n";
    char *request =
        memory_format("%s %s HTTP/1.1\r\n%s%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                      method, path, host, headers, body ? strlen(body) : 0, body ? body : "");
    peer_connect(&peer, scene->loop, admin_port(scene->admin));
    peer_send_text(&peer, request);
    peer_await_close(&peer);
    free(request);
    free(scene->head);
    free(scene->body);
    char *response = buffer_take(&peer.received, NULL);
    char *end = strstr(response, "\r\n\r\n");
    ck_assert_msg(end != NULL, "no whole response to %s %s: %s", method, path, response);
    scene->head = memory_copy_str(str_slice(response, (size_t)(end - response) + 2));
    scene->body = memory_copy_text(end + 4);
    free(response);
    peer_close(&peer);
    ck_assert_int_eq(strncmp(scene->head, "HTTP/1.1 ", 9), 0);
    scene->http_status = (int)strtol(scene->head + 9, NULL, 10);
    return scene->http_status;
}

void scene_get(struct scene *scene, const char *path, int status)
{
    int actual = scene_ask(scene, "GET", path, AS("view"), NULL);
    ck_assert_msg(actual == status, "GET %s: %d, want %d: %s", path, actual, status, scene->body);
}

void scene_post(struct scene *scene, const char *path, const char *body, int status)
{
    int actual =
        scene_ask(scene, "POST", path, AS("decide") "Content-Type: application/json\r\n", body);
    ck_assert_msg(actual == status, "POST %s %s: %d, want %d: %s", path, body, actual, status,
                  scene->body);
}

void scene_has(const struct scene *scene, const char *text)
{
    ck_assert_msg(strstr(scene->body, text) != NULL, "no %s in %s", text, scene->body);
}

void scene_has_not(const struct scene *scene, const char *text)
{
    ck_assert_msg(strstr(scene->body, text) == NULL, "%s in %s", text, scene->body);
}
