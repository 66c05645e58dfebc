/* SPDX-License-Identifier: Apache-2.0
 * What the codec_*.c share. Private to common/wire.
 *
 *   pack:   model struct --encode_x()--> protobuf-c struct --encoder_finish()--> wire_buffer
 *   unpack: bytes --decoder_open()--> protobuf-c struct in the arena --decode_x()--> model struct
 *
 * Both sides carry a sticky status: the first failure stays, what follows does no harm, the end
 * looks once. */
#ifndef CADRE_WIRE_CODEC_H
#define CADRE_WIRE_CODEC_H

#include "cadre/v1/agent.pb-c.h"
#include "cadre/v1/common.pb-c.h"
#include "cadre/v1/jobs.pb-c.h"
#include "cadre/v1/task.pb-c.h"
#include "common/wire/wire.h"

/* ---- packing ---- */

struct encoder {
    struct wire_buffer *buffer;
    struct cadre_error *error;
    struct wire_arena *scratch; /* made when first needed: never for arrivals and releases */
    cadre_status status;
};

/* Zeroed, until encoder_finish. NULL: count is 0, or memory is out and the status says so. */
void *encoder_array(struct encoder *encoder, size_t count, size_t item_bytes);

/* A text for people in the form every border accepts: bad bytes become "?", control characters " ",
 * too long ones are cut. Mostly `text` itself. NULL is "". */
char *encoder_text(struct encoder *encoder, const char *text);

/* Packs at the buffer's end, or fails as wire.h says; frees the scratch in any case. */
cadre_status encoder_finish(
    struct encoder *encoder, const ProtobufCMessage *message, size_t limit_bytes);

/* ---- unpacking ---- */

struct decoder {
    struct wire_arena *arena;
    struct cadre_error *error;
    const char *list; /* while its entries are taken, for messages: "JobSpec.files"; else NULL */
    size_t entry;
    cadre_status status;
};

/* The protobuf-c struct of `descriptor`, or NULL with the status set. */
void *decoder_open(struct decoder *decoder, const ProtobufCMessageDescriptor *descriptor,
    const void *bytes, size_t size, size_t limit_bytes);

/* Each `field` is "Message.field". All return something harmless when they fail. */
void decoder_fail(struct decoder *decoder, cadre_status code, const char *field, const char *format,
    ...) __attribute__((format(printf, 4, 5)));
bool decode_present(struct decoder *decoder, const char *field, const void *message);
bool decode_count(struct decoder *decoder, const char *field, size_t count, size_t limit);
void *decode_array(struct decoder *decoder, size_t count, size_t item_bytes);
uint64_t decode_number(
    struct decoder *decoder, const char *field, uint64_t value, uint64_t least, uint64_t most);
uint32_t decode_u32(
    struct decoder *decoder, const char *field, uint32_t value, uint32_t least, uint32_t most);
int32_t decode_i32(
    struct decoder *decoder, const char *field, int32_t value, int32_t least, int32_t most);
uint64_t decode_position(struct decoder *decoder, const char *field, uint64_t value);
/* Of a dataset; 0 and anything but STREAM_ANY, which is told by its absence. */
uint32_t decode_stream(struct decoder *decoder, const char *field, uint32_t value);
/* A span of microseconds. */
uint64_t decode_duration(struct decoder *decoder, const char *field, uint64_t value);
struct job_id decode_job_id(struct decoder *decoder, const char *field, uint64_t value);
void decode_fixed_bytes(struct decoder *decoder, const char *field, ProtobufCBinaryData value,
    uint8_t *ret_bytes, size_t size);
void decode_data(struct decoder *decoder, const char *field, ProtobufCBinaryData value,
    size_t limit, const uint8_t **ret_bytes, size_t *ret_size);

/* Without control characters, shorter than LIMIT_NAME_BYTES. */
const char *decode_name(struct decoder *decoder, const char *field, char *value);
const char *decode_name_or_empty(struct decoder *decoder, const char *field, char *value);
/* The same with limits of their own; may be "". */
const char *decode_address(struct decoder *decoder, const char *field, char *value);
const char *decode_text(struct decoder *decoder, const char *field, char *value);
/* A relative path. */
const char *decode_path(struct decoder *decoder, const char *field, char *value);
const char *decode_path_or_empty(struct decoder *decoder, const char *field, char *value);
/* An absolute one, or "". */
const char *decode_folder_or_empty(struct decoder *decoder, const char *field, char *value);
/* Any UTF-8. */
const char *decode_argument(struct decoder *decoder, const char *field, char *value);
/* Of the environment: NAME=value; an error shows the name alone. */
const char *decode_assignment(struct decoder *decoder, const char *field, char *value);

/* ---- parts that several families use; the encode_ ones leave pointers into `message` and
 * `storage`
 * ---- */

void encode_task_ref(Cadre__V1__TaskRef *wire, struct task_ref ref);
struct task_ref decode_task_ref(
    struct decoder *decoder, const char *field, const Cadre__V1__TaskRef *wire);

/* NULL is nothing, and so is a cluster of 0. */
Cadre__V1__Term *encode_term(Cadre__V1__Term *wire, const struct term *term);
struct term decode_term(struct decoder *decoder, const Cadre__V1__Term *wire);

void encode_generation(Cadre__V1__Generation *wire, struct generation generation);
struct generation decode_generation(
    struct decoder *decoder, const char *field, const Cadre__V1__Generation *wire);

void encode_cursor(Cadre__V1__Cursor *wire, const struct cursor *cursor);
struct cursor decode_cursor(struct decoder *decoder, const Cadre__V1__Cursor *wire);

struct wire_consumption {
    Cadre__V1__Consumption consumption;
    Cadre__V1__ConsumptionExpected expected;
};
void encode_consumption(struct wire_consumption *storage, const struct consumption *consumption);
struct consumption decode_consumption(struct decoder *decoder, const Cadre__V1__Consumption *wire);
/* NULL when nothing was compared. */
Cadre__V1__Verified *encode_verified(Cadre__V1__Verified *storage, const struct verified *verified);
struct verified decode_verified(struct decoder *decoder, const Cadre__V1__Verified *wire);

void encode_task_exit(
    struct encoder *encoder, Cadre__V1__TaskExit *wire, const struct task_exit *end);
void decode_task_exit(
    struct decoder *decoder, const Cadre__V1__TaskExit *wire, struct task_exit *ret_exit);

void encode_refused(
    struct encoder *encoder, Cadre__V1__Refused *wire, const struct task_refused *refused);
void decode_refused(
    struct decoder *decoder, const Cadre__V1__Refused *wire, struct task_refused *ret_refused);

void encode_progress(
    struct encoder *encoder, Cadre__V1__Progress *wire, const struct progress *progress);
void decode_progress(
    struct decoder *decoder, const Cadre__V1__Progress *wire, struct progress *ret_progress);

void encode_shards(
    struct encoder *encoder, Cadre__V1__DatasetShards *wire, const struct shards_report *shards);
void decode_shards(struct decoder *decoder, const Cadre__V1__DatasetShards *wire,
    struct shards_report *ret_shards);
void encode_shards_list(
    struct encoder *encoder, Cadre__V1__JobInfo *wire, const struct job_info *info);
void decode_shards_list(
    struct decoder *decoder, const Cadre__V1__JobInfo *wire, struct job_info *ret_info);

void encode_ps_job(Cadre__V1__PsJob *wire, const struct ps_job *ps_job);
/* NULL is that of a job whose tasks are all alike. */
struct ps_job decode_ps_job(struct decoder *decoder, const Cadre__V1__PsJob *wire);

/* `wire` itself, or NULL where there is nothing to tell. */
Cadre__V1__Gpus *encode_gpus(
    struct encoder *encoder, Cadre__V1__Gpus *wire, const struct gpus *gpus);
/* NULL is none. `whole`: nothing may be omitted. */
struct gpus decode_gpus(struct decoder *decoder, const Cadre__V1__Gpus *wire, bool whole);

void encode_job_limits(Cadre__V1__JobLimits *wire, const struct job_limits *limits);
/* NULL: none. */
struct job_limits decode_job_limits(struct decoder *decoder, const Cadre__V1__JobLimits *wire);

struct wire_job_spec {
    Cadre__V1__JobSpec spec;
    Cadre__V1__JobFile program;
    Cadre__V1__PsJob ps_job;
    Cadre__V1__JobLimits limits;
};
void encode_job_spec(
    struct encoder *encoder, struct wire_job_spec *storage, const struct job_spec *spec);
void decode_job_spec(
    struct decoder *decoder, const Cadre__V1__JobSpec *wire, struct job_spec *ret_spec);

void encode_checkpoint_ref(Cadre__V1__CheckpointRef *wire, const struct checkpoint_ref *checkpoint);
void decode_checkpoint_ref(struct decoder *decoder, const Cadre__V1__CheckpointRef *wire,
    struct checkpoint_ref *ret_checkpoint);

void encode_job_info(
    struct encoder *encoder, Cadre__V1__JobInfo *wire, const struct job_info *info);
void decode_job_info(
    struct decoder *decoder, const Cadre__V1__JobInfo *wire, struct job_info *ret_info);

struct wire_task_up {
    Cadre__V1__TaskUp up;
    Cadre__V1__Generation generation;
    Cadre__V1__Cursor cursor;
    struct wire_consumption consumption;
    union {
        Cadre__V1__TaskHello hello;
        struct {
            Cadre__V1__TaskArrive arrive;
            Cadre__V1__Verified verified;
        };
        struct {
            Cadre__V1__TaskReport report;
            Cadre__V1__Divergence divergence;
        };
        Cadre__V1__TaskPart part;
        Cadre__V1__Progress progress;
        Cadre__V1__TaskJoin join;
        Cadre__V1__TaskStream stream;
        struct {
            Cadre__V1__TaskStall stall;
            Cadre__V1__TaskHang hang;
        };
        Cadre__V1__DatasetShards shards;
        Cadre__V1__TaskPreempt preempt;
        Cadre__V1__TaskBacked backed;
    };
};
void encode_task_up(
    struct encoder *encoder, struct wire_task_up *storage, const struct task_up *up);
void decode_task_up(struct decoder *decoder, const Cadre__V1__TaskUp *wire, struct task_up *ret_up);

struct wire_task_down {
    Cadre__V1__TaskDown down;
    Cadre__V1__Generation generation;
    union {
        Cadre__V1__TaskPlan plan;
        Cadre__V1__TaskRelease release;
        Cadre__V1__TaskWarm warm;
        Cadre__V1__TaskMembers members;
        Cadre__V1__TaskAbort abort;
        Cadre__V1__TaskReset reset;
        Cadre__V1__TaskGoodbye goodbye;
        Cadre__V1__TaskSuperseded superseded;
        Cadre__V1__Refused refused;
    };
};
void encode_members(struct encoder *encoder, Cadre__V1__TaskMembers *wire,
    Cadre__V1__Generation *generation, const struct task_members *members);
void decode_members(
    struct decoder *decoder, const Cadre__V1__TaskMembers *wire, struct task_members *ret_members);
void encode_task_down(
    struct encoder *encoder, struct wire_task_down *storage, const struct task_down *down);
void decode_task_down(
    struct decoder *decoder, const Cadre__V1__TaskDown *wire, struct task_down *ret_down);

#endif
