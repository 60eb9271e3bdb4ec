/* Files as they were when they were read. */
#include "config_private.h"
#include "taskgate/core/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taskgate/core/memory.h"

#define MAX_FILE_BYTES ((size_t)8 << 20)

static void file_keep(struct config_file *file, const struct stat *status)
{
    file->device = status->st_dev;
    file->inode = status->st_ino;
    file->size = status->st_size;
    file->modified = status->st_mtim;
}

bool file_read(const char *path, struct buffer *text, struct config_file *file)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    *file = (struct config_file){0};
    if (descriptor < 0)
        return false;
    char chunk[65536];
    ssize_t count = fstat(descriptor, &status);
    if (count == 0)
        file_keep(file, &status);
    while (count >= 0 && (count = read(descriptor, chunk, sizeof chunk)) > 0 &&
           text->length <= MAX_FILE_BYTES)
        buffer_append(text, str_slice(chunk, (size_t)count));
    int saved = errno;
    close(descriptor);
    errno = text->length > MAX_FILE_BYTES ? EFBIG : saved;
    return count == 0;
}

void config_file_look(struct config_file *file)
{
    struct stat status;
    struct config_file now = {.path = file->path};
    /* Follows symlinks, so that a swap of the link shows as another inode. */
    if (stat(file->path, &status) == 0)
        file_keep(&now, &status);
    *file = now;
}

void config_files_digest(const struct config_file *files, size_t count,
                         char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(facts);
    OWNED_BUFFER(text);
    for (size_t i = 0; i < count; i++) {
        struct config_file now;
        char content[DIGEST_HEX_BYTES] = "";
        buffer_clear(&text);
        if (file_read(files[i].path, &text, &now))
            digest_sha256_hex(buffer_str(&text), content);
        buffer_append_format(&facts, "%s\n%llu %llu %lld %lld.%09ld %s\n", files[i].path,
                             (unsigned long long)now.device, (unsigned long long)now.inode,
                             (long long)now.size, (long long)now.modified.tv_sec,
                             (long)now.modified.tv_nsec, content);
    }
    digest_sha256_hex(buffer_str(&facts), digest);
}

char *config_path_beside(const char *file, const char *named)
{
    const char *slash = strrchr(file, '/');
    if (*named == '/' || !slash)
        return memory_copy_text(named);
    if (strncmp(named, "./", 2) == 0)
        named += 2;
    return memory_format("%.*s/%s", (int)(slash - file), file, named);
}
