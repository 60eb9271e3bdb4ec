/* One run of the program, captured. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

char *captured[2];
char config_path[] = "/tmp/taskgate-cli-XXXXXX";

static FILE *redirect(FILE *stream, int *saved)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    fflush(stream);
    *saved = dup(fileno(stream));
    ck_assert_int_ge(dup2(fileno(file), fileno(stream)), 0);
    return file;
}

static char *restore(FILE *stream, int saved, FILE *file)
{
    char chunk[4096];
    struct buffer text;
    buffer_init(&text);
    fflush(stream);
    ck_assert_int_ge(dup2(saved, fileno(stream)), 0);
    close(saved);
    rewind(file);
    for (size_t count; (count = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buffer_append(&text, str_slice(chunk, count));
    fclose(file);
    return buffer_take(&text, NULL);
}

void forget_run(void)
{
    for (int i = 0; i < 2; i++) {
        free(captured[i]);
        captured[i] = NULL;
    }
}

int run(const char *arguments)
{
    char *words = memory_copy_text(arguments), *rest = words, *argv[16] = {"taskgate"};
    int argc = 1, saved[2];
    for (char *word; (word = strsep(&rest, " ")) != NULL && argc < 15;) {
        if (*word)
            argv[argc++] = strcmp(word, "CONFIG") == 0 ? config_path : word;
    }
    forget_run();
    FILE *out = redirect(stdout, &saved[0]), *err = redirect(stderr, &saved[1]);
    int code = cli_main(argc, argv);
    captured[0] = restore(stdout, saved[0], out);
    captured[1] = restore(stderr, saved[1], err);
    free(words);
    return code;
}

void expect(int stream, const char *text)
{
    ck_assert_msg(strstr(captured[stream], text) != NULL, "no \"%s\" in \"%s\"", text,
                  captured[stream]);
}

/* ---- folders ---- */

static char folder[] = "/tmp/taskgate-policy-XXXXXX";

void enter_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/taskgate-policy-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

void leave_folder(void)
{
    char *command = memory_format("rm -rf %s", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
    free(command);
    forget_run();
}

void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}
