/*
 * Agents that come and go: each opens a session, calls a tool once and deletes its session. Ten
 * after one another share a connection. One line of JSON.
 *
 *     churn PORT CYCLES
 */
#include "http.h"
#include "loopback.h"

#define CYCLES_PER_CONNECTION 10

/* Asks `verb` with `body`; the answer's head and body are in `answer`, ended by a NUL. */
static void ask(int fd, const char *verb, const char *session, const char *body, char *answer,
                size_t size)
{
    char question[2048];
    int n = snprintf(question, sizeof question,
                     "%s /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, "
                     "text/event-stream\r\nContent-Type: application/json\r\n%s%s%sContent-Length: "
                     "%zu\r\n\r\n%s",
                     verb, session ? "Mcp-Session-Id: " : "", session ? session : "",
                     session ? "\r\n" : "", strlen(body), body);
    write_all(fd, question, (size_t)n);
    size_t length = 0, head = 0;
    do {
        ssize_t got = read(fd, answer + length, size - 1 - length);
        if (got <= 0)
            die("churn: read");
        length += (size_t)got;
        head = http_head_end(answer, length);
    } while (head == 0 || (long)(length - head) < http_body_length(answer, head));
    answer[length] = '\0';
    if (strncmp(answer + 9, "20", 2) != 0) {
        fprintf(stderr, "churn: %s\n", answer);
        exit(1);
    }
}

static void cycle(int fd)
{
    char answer[8192], session[80] = "";
    ask(fd, "POST", NULL,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"churn\",\"version\":\"1\"}}"
        "}",
        answer, sizeof answer);
    const char *given = http_find(answer, http_head_end(answer, strlen(answer)), "mcp-session-id");
    if (!given || sscanf(given, "%79[^\r\n]", session) != 1)
        die("churn: the session");
    ask(fd, "POST", session,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"read\","
        "\"arguments\":{}}}",
        answer, sizeof answer);
    ask(fd, "DELETE", session, "", answer, sizeof answer);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: churn PORT CYCLES\n");
        return 2;
    }
    long cycles = strtol(argv[2], NULL, 10);
    int64_t began = now_ns();
    for (long done = 0; done < cycles;) {
        int fd = loopback_connect(strtol(argv[1], NULL, 10), 0);
        for (int i = 0; i < CYCLES_PER_CONNECTION && done < cycles; i++, done++)
            cycle(fd);
        close(fd);
    }
    printf("{\"cycles\":%ld,\"seconds\":%.4f}\n", cycles,
           (double)(now_ns() - began) / NS_PER_SECOND);
    return 0;
}
