/* Keeps the demo databases, in memory or as files in a folder. */
#include "databases.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc.h"

static const char *const demo_names[] = {"analytics", "customers", "orders", "production",
                                         "staging"};
static const char suffix[] = ".db";

static bool make_folder(const char *folder);
static bool read_folder(struct databases *databases);

bool databases_open(struct databases *databases, const char *folder)
{
    *databases = (struct databases){.names = rpc_need(json_object()), .folder = folder};
    if (folder != NULL) {
        if ((mkdir(folder, 0700) == 0 ? make_folder(folder) : errno == EEXIST) &&
            read_folder(databases))
            return true;
        fprintf(stderr, "--data-dir %s: %s; give a folder that can be written\n", folder,
                strerror(errno));
        databases_free(databases);
        return false;
    }
    for (size_t i = 0; i < sizeof(demo_names) / sizeof(*demo_names); i++)
        json_object_set_new(databases->names, demo_names[i], json_true());
    return true;
}

void databases_free(struct databases *databases)
{
    json_decref(databases->names);
    databases->names = NULL;
}

static char *path_of(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", folder, name, suffix) == -1)
        rpc_out_of_memory();
    return path;
}

static bool make_folder(const char *folder)
{
    bool made = true;
    for (size_t i = 0; made && i < sizeof(demo_names) / sizeof(*demo_names); i++) {
        char *path = path_of(folder, demo_names[i]);
        FILE *file = fopen(path, "wxe");
        made = file != NULL && fclose(file) == 0;
        free(path);
    }
    return made;
}

static bool read_folder(struct databases *databases)
{
    DIR *folder = opendir(databases->folder);
    if (folder == NULL)
        return false;
    for (struct dirent *entry = NULL; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < sizeof(suffix) || strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
            continue;
        entry->d_name[length - strlen(suffix)] = '\0';
        json_object_set_new(databases->names, entry->d_name, json_true());
    }
    closedir(folder);
    return true;
}

bool databases_delete(struct databases *databases, const char *name)
{
    /* Only names read from the folder reach the file system, so a name is never a path. */
    if (json_object_get(databases->names, name) == NULL)
        return false;
    if (databases->folder != NULL) {
        char *path = path_of(databases->folder, name);
        bool removed = unlink(path) == 0 || errno == ENOENT;
        free(path);
        if (!removed)
            return false;
    }
    json_object_del(databases->names, name);
    return true;
}

char *databases_list(const struct databases *databases)
{
    char *list = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&list, &size);
    const char *name = NULL;
    json_t *value = NULL;
    const char *separator = "";
    if (text == NULL)
        rpc_out_of_memory();
    json_object_foreach(databases->names, name, value)
    {
        fprintf(text, "%s%s", separator, name);
        separator = ", ";
    }
    if (*separator == '\0')
        fputs("none", text);
    if (fclose(text) != 0)
        rpc_out_of_memory();
    return list;
}
