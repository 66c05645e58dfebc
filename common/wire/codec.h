/* SPDX-License-Identifier: Apache-2.0
 * The walks over the tables. Private to common/wire.
 *
 *   pack:   model struct --packer_fill()--> protobuf-c struct --encoder_finish()--> wire_buffer
 *   unpack: bytes --decoder_open()--> protobuf-c struct in the arena --taker_take()--> model struct
 *
 * Both sides carry a sticky status: the first failure stays and ends the walk. */
#ifndef CADRE_WIRE_CODEC_H
#define CADRE_WIRE_CODEC_H

#include "cadre/v1/agent.pb-c.h"
#include "cadre/v1/common.pb-c.h"
#include "cadre/v1/coordinators.pb-c.h"
#include "cadre/v1/jobs.pb-c.h"
#include "cadre/v1/ledger.pb-c.h"
#include "cadre/v1/task.pb-c.h"
#include "common/wire/table.h"

/* ---- packing ---- */

#define PACKER_SPACE_BYTES 1024

struct encoder {
    struct wire_buffer *buffer;
    struct cadre_error *error;
    struct wire_arena *scratch; /* made when `space` is used up: not for arrivals and releases */
    cadre_status status;
    size_t space_used;
    size_t bytes_most; /* upper bound of the packed size, while it is_small: numbers alone */
    bool is_small;
    _Alignas(8) unsigned char space[PACKER_SPACE_BYTES];
};

/* Begins a message; `buffer` and `error` stay the caller's. */
void packer_open(struct encoder *encoder, struct wire_buffer *buffer, struct cadre_error *error);

/* The protobuf-c struct of a model struct; both must be valid until encoder_finish. NULL: memory is
 * out and the status is set. */
void *packer_fill(struct encoder *encoder, const struct wire_table *table, const void *model);

/* Packs at the buffer's end, or fails as wire.h says; frees the scratch in any case. */
cadre_status encoder_finish(
    struct encoder *encoder, const ProtobufCMessage *message, size_t limit_bytes);

/* ---- unpacking ---- */

/* What is being unpacked, for errors: "JobFile", of "JobSpec" "files" [entry]. */
struct field_path {
    const char *message;
    const char *list_of;
    const char *list; /* NULL: no list */
    size_t entry;
};

struct decoder {
    struct wire_arena *arena;
    struct cadre_error *error;
    struct field_path path;
    cadre_status status;
};

/* The protobuf-c struct of `descriptor`, or NULL with the status set. */
void *decoder_open(struct decoder *decoder, const ProtobufCMessageDescriptor *descriptor,
    const void *bytes, size_t size, size_t limit_bytes);

/* Fills *ret_model, which is zeroed. */
void taker_take(
    struct decoder *decoder, const struct wire_table *table, const void *wire, void *ret_model);

/* ---- checks of single fields, for rows and after_take functions ---- */

/* `field` is one of decoder->path.message; NULL is that message. On a failure all of them return 0,
 * "" or an empty array. */
void decoder_fail(struct decoder *decoder, cadre_status code, const char *field, const char *format,
    ...) __attribute__((format(printf, 4, 5)));
/* At most `limit` entries. */
bool decode_count(struct decoder *decoder, const char *field, size_t count, size_t limit);
/* An array of the model in the arena, zeroed; NULL when the check of `count` fails or memory is
 * out. */
void *decode_array(struct decoder *decoder, size_t count, size_t item_bytes);
/* From `least` to `most`. */
uint64_t decode_number(
    struct decoder *decoder, const char *field, uint64_t value, uint64_t least, uint64_t most);
/* The same with a sign. */
int32_t decode_i32(
    struct decoder *decoder, const char *field, int32_t value, int32_t least, int32_t most);

/* Without control characters, shorter than LIMIT_NAME_BYTES. */
const char *decode_name(struct decoder *decoder, const char *field, char *value);
/* As decode_name; may be "". */
const char *decode_name_or_empty(struct decoder *decoder, const char *field, char *value);
/* As decode_name with the limit of an address; may be "". */
const char *decode_address(struct decoder *decoder, const char *field, char *value);
/* As decode_name with the limit of a text; may be "". */
const char *decode_text(struct decoder *decoder, const char *field, char *value);
/* A relative path. */
const char *decode_path(struct decoder *decoder, const char *field, char *value);
/* As decode_path; may be "". */
const char *decode_path_or_empty(struct decoder *decoder, const char *field, char *value);
/* As decode_path; may be an object's, "s3://bucket/key". */
const char *decode_manifest(struct decoder *decoder, const char *field, char *value);
/* As decode_manifest; may be "". */
const char *decode_manifest_or_empty(struct decoder *decoder, const char *field, char *value);
/* An absolute one, or "". */
const char *decode_folder_or_empty(struct decoder *decoder, const char *field, char *value);
const char *decode_outputs_folder_or_empty(struct decoder *decoder, const char *field, char *value);
const char *decode_url_or_empty(struct decoder *decoder, const char *field, char *value);
/* Any UTF-8. */
const char *decode_argument(struct decoder *decoder, const char *field, char *value);
/* An entry of the environment: NAME=value; an error shows the name alone. */
const char *decode_assignment(struct decoder *decoder, const char *field, char *value);
/* The field `marks`: none, or of bytes from `offset` on, by rising offsets. */
void decode_log_marks(struct decoder *decoder, const struct log_mark *marks, size_t count,
    uint64_t offset, size_t size_bytes);

#endif
