/*
 * Between the readers of Cedar's JSON forms. The texts have passed json_check().
 */
#pragma once

#include "extension.h"
#include "value.h"

struct json_reader {
    struct cedar_heap *heap;
    struct buffer decoded; /* the string that is being read */
    struct error *error;
    const char *at; /* the place of the fault, after a refusal */
};

void json_reader_init(struct json_reader *reader, struct cedar_heap *heap, struct error *error);
void json_reader_finish(struct json_reader *reader);

/* Sets the place of the next text, for its errors. Missing text leaves the place as it was. */
void json_reader_look(struct json_reader *reader, struct str json);

bool read_value(struct json_reader *reader, struct str json, struct cedar_value *value);
/* An object with values as members, of any names. */
bool read_record(struct json_reader *reader, struct str json, struct cedar_value *value);
/* {"type": …, "id": …} */
bool read_uid_members(struct json_reader *reader, struct str object, struct cedar_uid *uid);

/* ---- json_entities.c ---- */
/* The same, also inside __entity, or the string Type::"id". */
bool read_uid(struct json_reader *reader, struct str json, struct cedar_uid *uid);
/* {"uid", "attrs", "parents", "tags"?} */
bool read_entity(struct json_reader *reader, struct cedar_entities *entities, struct str json);
/* {"principal", "action", "resource", "context"?} */
bool read_request(struct json_reader *reader, struct str json, struct cedar_request *request);
