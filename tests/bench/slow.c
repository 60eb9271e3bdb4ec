/*
 * A client that sends one request and reads the answer at so many bytes a second, or as fast as it
 * can for 0. Few unread bytes wait in the kernel. One line of JSON.
 *
 *     slow PORT FILE BYTES_PER_SECOND
 *
 * FILE holds the bytes of the request.
 */
#include <errno.h>
#include <stdbool.h>

#include "http.h"
#include "loopback.h"

#define RECEIVE_BYTES 65536

static void pace(int64_t began_ns, size_t taken, long bytes_per_second)
{
    if (bytes_per_second == 0)
        return;
    int64_t due = began_ns + (int64_t)((double)taken / (double)bytes_per_second * NS_PER_SECOND);
    struct timespec until = {.tv_sec = due / NS_PER_SECOND, .tv_nsec = due % NS_PER_SECOND};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: slow PORT FILE BYTES_PER_SECOND\n");
        return 2;
    }
    static char bytes[65536];
    size_t length, taken = 0, head = 0;
    char *question = read_file(argv[2], &length);
    long left = 0, rate = strtol(argv[3], NULL, 10);
    int fd = loopback_connect(strtol(argv[1], NULL, 10), RECEIVE_BYTES);
    int64_t began = now_ns();
    write_all(fd, question, length);
    for (bool is_over = false; !is_over;) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0) {
            fprintf(stderr, "slow: the answer ended after %zu bytes: %s\n", taken,
                    n < 0 ? strerror(errno) : "closed");
            return 1;
        }
        taken += (size_t)n;
        if (head == 0) { /* it comes in one piece, with the bytes after it */
            head = http_head_end(bytes, (size_t)n);
            left = http_body_length(bytes, head) + (long)head;
            if (head == 0 || strncmp(bytes + 9, "200", 3) != 0) {
                fprintf(stderr, "slow: the answer begins with %.*s\n", n < 500 ? (int)n : 500,
                        bytes);
                return 1;
            }
        }
        bool is_chunked = left < (long)head;
        is_over = is_chunked ? n >= 5 && memcmp(bytes + n - 5, "0\r\n\r\n", 5) == 0
                             : taken >= (size_t)left;
        pace(began, taken, rate);
    }
    printf("{\"bytes\":%zu,\"seconds\":%.4f}\n", taken, (double)(now_ns() - began) / NS_PER_SECOND);
    close(fd);
    free(question);
    return 0;
}
