/* Per source a map of skills, and of each the last definitions. */
#include "skill_files.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/pins.h"
#include "taskgate/policy/uri.h"
#include "taskgate/store/definitions.h"

/* Those that may be accepted, and the present one. */
#define MOST_VERSIONS (STORE_DEFINITION_DIGESTS + 1)
#define SCHEME STR("skill:")

struct skill_file_row {
    char *uri;                     /* normalized */
    char digest[DIGEST_HEX_BYTES]; /* "": none that can be compared */
    uint64_t size;
};

struct skill_version {
    struct skill_version *older;
    char digest[DIGEST_HEX_BYTES];
    bool is_dynamic; /* it names no files, and may have any */
    struct skill_file_row *rows;
    size_t count;
};

struct skill {
    struct skill_version *newest;
    char *folder; /* the normalized URI up to its last slash: of files that nothing names */
    char name[];
};

struct source_skills {
    struct map *skills; /* name -> struct skill */
    size_t count;       /* of versions and their files */
};

struct read_uri {
    char *name, *uri;
};

struct skill_files {
    pthread_mutex_t lock;
    struct map *sources;                     /* id -> struct source_skills */
    struct read_uri reads[SKILL_READS_MOST]; /* at the place that the name hashes to */
};

static void destroy_version(struct source_skills *source, struct skill_version *version)
{
    ASSERT_NUMBERS(source->count, >, version->count);
    source->count -= 1 + version->count;
    for (size_t i = 0; i < version->count; i++)
        free(version->rows[i].uri);
    free(version->rows);
    free(version);
}

static void destroy_source(void *value)
{
    struct source_skills *source = value;
    size_t position = 0;
    void *item;
    while (map_next(source->skills, &position, NULL, &item)) {
        struct skill *skill = item;
        while (skill->newest) {
            struct skill_version *version = skill->newest;
            skill->newest = version->older;
            destroy_version(source, version);
        }
        free(skill->folder);
        free(skill);
    }
    map_destroy(source->skills, NULL);
    free(source);
}

struct skill_files *skill_files_create(void)
{
    struct skill_files *files = memory_alloc(sizeof *files);
    pthread_mutex_init(&files->lock, NULL);
    files->sources = map_create();
    return files;
}

void skill_files_destroy(struct skill_files *files)
{
    if (!files)
        return;
    map_destroy(files->sources, destroy_source);
    for (size_t i = 0; i < SKILL_READS_MOST; i++) {
        free(files->reads[i].name);
        free(files->reads[i].uri);
    }
    pthread_mutex_destroy(&files->lock);
    free(files);
}

/* ---- what servers define ---- */

static char *normal(struct str uri)
{
    struct buffer text;
    buffer_init(&text);
    uri_normalize(&text, uri);
    return buffer_take(&text, NULL);
}

/* "sha256:" and 64 hexadecimal digits. */
static void read_digest(char digest[DIGEST_HEX_BYTES], struct str text)
{
    struct str algorithm, hex;
    digest[0] = '\0';
    if (!str_cut(text, ':', &algorithm, &hex) || !str_equal(algorithm, STR("sha256")) ||
        hex.length != DIGEST_HEX_BYTES - 1)
        return;
    for (size_t i = 0; i < hex.length; i++)
        digest[i] = (char)tolower((unsigned char)hex.bytes[i]);
    digest[hex.length] = '\0';
}

static void read_row(struct skill_file_row *row, const struct str members[3])
{
    OWNED_BUFFER(text);
    if (json_decode_string(members[0], &text))
        read_digest(row->digest, buffer_str(&text));
    buffer_clear(&text);
    if (!str_to_u64(members[1], &row->size))
        row->digest[0] = '\0';
    if (json_decode_string(members[2], &text))
        row->uri = normal(buffer_str(&text));
    else
        row->uri = memory_copy_text("");
}

static struct skill_version *skill_files_read_version(const struct skill_entry *entry)
{
    static const char *const keys[] = {"digest", "size", "uri"};
    struct skill_version *version = memory_alloc(sizeof *version);
    struct str resources = json_member(entry->raw, "resources"), item, members[3];
    memcpy(version->digest, entry->digest, sizeof version->digest);
    version->is_dynamic = json_type(resources) != JSON_ARRAY;
    if (version->is_dynamic)
        return version;
    version->rows = memory_alloc_array(json_count(resources) + 1, sizeof *version->rows);
    for (size_t position = 0;
         json_next_element_members(resources, &position, &item, keys, 3, members);)
        read_row(&version->rows[version->count++], members);
    return version;
}

static struct source_skills *source_of(struct skill_files *files, struct str id)
{
    struct source_skills *source = map_get(files->sources, id);
    if (!source) {
        source = memory_alloc(sizeof *source);
        source->skills = map_create();
        map_put(files->sources, id, source);
    }
    return source;
}

static struct skill *skill_of(struct source_skills *source, struct str name)
{
    struct skill *skill = map_get(source->skills, name);
    if (skill)
        return skill;
    skill = memory_alloc(sizeof *skill + name.length + 1);
    memcpy(skill->name, name.bytes, name.length);
    skill->folder = normal(name);
    char *slash = strrchr(skill->folder, '/');
    (slash ? slash : skill->folder)[slash ? 1 : 0] = '\0';
    map_put(source->skills, name, skill);
    return skill;
}

static bool is_accepted(struct str source, const struct skill *skill,
                        const struct skill_version *version)
{
    const struct pin_name pin = {source, DEFINITION_SKILL, str_from(skill->name)};
    return pins_has_accepted(&pin, version->digest);
}

/* Of a skill whose definitions go on changing those that nobody accepted go, the newest but one
 * and older ones; then the oldest. */
static void trim(struct source_skills *source, struct str id, struct skill *skill)
{
    size_t kept = 1;
    struct skill_version **place = &skill->newest->older;
    while (*place) {
        struct skill_version *version = *place;
        if (kept < MOST_VERSIONS && is_accepted(id, skill, version)) {
            kept++;
            place = &version->older;
        } else {
            *place = version->older;
            destroy_version(source, version);
        }
    }
}

static struct skill_version *skill_files_take_out(struct skill *skill, const char *digest)
{
    struct skill_version **place = &skill->newest;
    while (*place && strcmp((*place)->digest, digest) != 0)
        place = &(*place)->older;
    struct skill_version *version = *place;
    if (version)
        *place = version->older;
    return version;
}

void skill_files_put(struct skill_files *files, const struct skill_entry *entry)
{
    pthread_mutex_lock(&files->lock);
    struct source_skills *source = source_of(files, entry->source);
    struct skill *skill = map_get(source->skills, entry->name);
    struct skill_version *version = skill ? skill_files_take_out(skill, entry->digest) : NULL;
    if (!version) {
        version = skill_files_read_version(entry);
        source->count += 1 + version->count;
    }
    if (source->count > SKILL_FILES_MOST) {
        destroy_version(source, version);
    } else {
        skill = skill_of(source, entry->name);
        version->older = skill->newest;
        skill->newest = version;
        trim(source, entry->source, skill);
    }
    pthread_mutex_unlock(&files->lock);
}

/* ---- contents ---- */

struct content {
    struct str source, uri; /* normalized */
    struct str bytes;
    char digest[DIGEST_HEX_BYTES]; /* "": not yet computed */
    bool fits, misfits, is_free;   /* by any skill */
};

static bool fits(struct content *content, const struct skill_file_row *row)
{
    if (!*row->digest || row->size != content->bytes.length ||
        row->size > (uint64_t)SKILL_FILE_BYTES)
        return false;
    if (!*content->digest)
        digest_sha256_hex(content->bytes, content->digest);
    return strcmp(content->digest, row->digest) == 0;
}

/* Each skill that names the file must have an accepted definition that has this content: a new
 * skill, which is accepted at first sight, gives away no file of another one. */
static void skill_files_look(struct content *content, const struct skill *skill)
{
    bool is_named = false, is_good = false, has_free = false;
    for (const struct skill_version *version = skill->newest; version; version = version->older) {
        bool counts = is_accepted(content->source, skill, version);
        has_free = has_free || (version->is_dynamic && counts);
        for (size_t i = 0; i < version->count; i++) {
            if (!str_equal(str_from(version->rows[i].uri), content->uri))
                continue;
            is_named = true;
            is_good = is_good || (counts && fits(content, &version->rows[i]));
        }
    }
    bool is_below = *skill->folder && str_starts_with(content->uri, str_from(skill->folder));
    content->fits = content->fits || is_good;
    content->misfits = content->misfits || (is_named && !is_good && !has_free);
    content->is_free = content->is_free || (has_free && (is_named || is_below));
}

static void look_at_all(struct skill_files *files, struct content *content)
{
    size_t position = 0;
    void *skill;
    pthread_mutex_lock(&files->lock);
    const struct source_skills *source = map_get(files->sources, content->source);
    while (source && map_next(source->skills, &position, NULL, &skill))
        skill_files_look(content, skill);
    pthread_mutex_unlock(&files->lock);
}

enum skill_file skill_files_judge(struct skill_files *files, struct str source, struct str uri,
                                  struct str content)
{
    char *spelled = normal(uri);
    struct content looked = {.source = source, .uri = str_from(spelled), .bytes = content};
    look_at_all(files, &looked);
    bool is_unknown = str_starts_with(looked.uri, SCHEME) && !looked.fits && !looked.is_free;
    free(spelled);
    if (looked.misfits || is_unknown)
        return SKILL_FILE_MISFITS;
    return looked.fits ? SKILL_FILE_FITS : SKILL_FILE_FREE;
}

bool skill_files_has(struct skill_files *files, struct str source, struct str uri)
{
    /* Nothing fits that is larger than all files, and nothing is read of it. */
    return skill_files_judge(files, source, uri, str_slice(NULL, SIZE_MAX)) == SKILL_FILE_MISFITS;
}

/* ---- reads ---- */

/* A key has no line break. */
static char *skill_files_name_of(const struct skill_read *read)
{
    return memory_format("%.*s\n%.*s", STR_ARGS(read->client), STR_ARGS(read->id));
}

static struct read_uri *skill_files_place_of(struct skill_files *files, const char *name)
{
    return &files->reads[str_hash(str_from(name)) % SKILL_READS_MOST];
}

void skill_files_note_read(struct skill_files *files, const struct skill_read *read, struct str uri)
{
    char *name = skill_files_name_of(read), *asked = memory_copy_str(uri);
    if (uri.length <= SKILL_READ_URI_BYTES && read->id.length <= SKILL_READ_URI_BYTES) {
        pthread_mutex_lock(&files->lock);
        struct read_uri *place = skill_files_place_of(files, name), before = *place;
        *place = (struct read_uri){name, asked};
        pthread_mutex_unlock(&files->lock);
        name = before.name;
        asked = before.uri;
    }
    free(name);
    free(asked);
}

bool skill_files_find_read(struct skill_files *files, const struct skill_read *read,
                           struct buffer *uri)
{
    char *name = skill_files_name_of(read);
    pthread_mutex_lock(&files->lock);
    const struct read_uri *place = skill_files_place_of(files, name);
    bool is_known = place->name && strcmp(place->name, name) == 0;
    if (is_known)
        buffer_append_text(uri, place->uri);
    pthread_mutex_unlock(&files->lock);
    free(name);
    return is_known;
}
