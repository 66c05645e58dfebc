/* SPDX-License-Identifier: Apache-2.0
 * What the codec_*.c share. Private to common/wire.
 *
 *   pack:   model struct --fill_x()--> protobuf-c struct --packer_finish()--> wire_buffer
 *   unpack: bytes --taker_open()--> protobuf-c struct in the arena --take_x()--> model struct
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

struct packer {
    struct wire_buffer *buffer;
    struct cadre_error *error;
    struct wire_arena *scratch; /* made when first needed: never for arrivals and releases */
    cadre_status status;
};

/* Zeroed, until packer_finish. NULL: count is 0, or memory is out and the status says so. */
void *packer_array(struct packer *packer, size_t count, size_t item_bytes);

/* A text for people in the form every border accepts: bad bytes become "?", control characters " ",
 * too long ones are cut. Mostly `text` itself. NULL is "". */
char *packer_text(struct packer *packer, const char *text);

/* Packs at the buffer's end, or fails as wire.h says; frees the scratch in any case. */
cadre_status packer_finish(
    struct packer *packer, const ProtobufCMessage *message, size_t limit_bytes);

/* ---- unpacking ---- */

struct taker {
    struct wire_arena *arena;
    struct cadre_error *error;
    const char *list; /* while its entries are taken, for messages: "JobSpec.files"; else NULL */
    size_t entry;
    cadre_status status;
};

/* The protobuf-c struct of `descriptor`, or NULL with the status set. */
void *taker_open(struct taker *taker, const ProtobufCMessageDescriptor *descriptor,
    const void *bytes, size_t size, size_t limit_bytes);

/* Each `field` is "Message.field". All return something harmless when they fail. */
void taker_fail(struct taker *taker, cadre_status code, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool take_present(struct taker *taker, const char *field, const void *message);
bool take_count(struct taker *taker, const char *field, size_t count, size_t limit);
void *take_array(struct taker *taker, size_t count, size_t item_bytes);
uint64_t take_number(
    struct taker *taker, const char *field, uint64_t value, uint64_t least, uint64_t most);
uint32_t take_u32(
    struct taker *taker, const char *field, uint32_t value, uint32_t least, uint32_t most);
int32_t take_i32(
    struct taker *taker, const char *field, int32_t value, int32_t least, int32_t most);
uint64_t take_position(struct taker *taker, const char *field, uint64_t value);
/* Of a dataset; 0 and anything but STREAM_ANY, which is told by its absence. */
uint32_t take_stream(struct taker *taker, const char *field, uint32_t value);
/* A span of microseconds. */
uint64_t take_span(struct taker *taker, const char *field, uint64_t value);
struct job_id take_job_id(struct taker *taker, const char *field, uint64_t value);
void take_fixed_bytes(struct taker *taker, const char *field, ProtobufCBinaryData value,
    uint8_t *ret_bytes, size_t size);
void take_data(struct taker *taker, const char *field, ProtobufCBinaryData value, size_t limit,
    const uint8_t **ret_bytes, size_t *ret_size);

/* Without control characters, shorter than LIMIT_NAME_BYTES. */
const char *take_name(struct taker *taker, const char *field, char *value);
const char *take_name_or_empty(struct taker *taker, const char *field, char *value);
/* The same with limits of their own; may be "". */
const char *take_address(struct taker *taker, const char *field, char *value);
const char *take_text(struct taker *taker, const char *field, char *value);
/* A relative path. */
const char *take_path(struct taker *taker, const char *field, char *value);
const char *take_path_or_empty(struct taker *taker, const char *field, char *value);
/* An absolute one, or "". */
const char *take_folder_or_empty(struct taker *taker, const char *field, char *value);
/* Any UTF-8. */
const char *take_argument(struct taker *taker, const char *field, char *value);
/* Of the environment: NAME=value; an error shows the name alone. */
const char *take_assignment(struct taker *taker, const char *field, char *value);

/* ---- parts that several families use; the fill_ ones leave pointers into `message` and `storage`
 * ---- */

void fill_task_ref(Cadre__V1__TaskRef *wire, struct task_ref ref);
struct task_ref take_task_ref(
    struct taker *taker, const char *field, const Cadre__V1__TaskRef *wire);

/* NULL is nothing, and so is a cluster of 0. */
Cadre__V1__Term *fill_term(Cadre__V1__Term *wire, const struct term *term);
struct term take_term(struct taker *taker, const Cadre__V1__Term *wire);

void fill_generation(Cadre__V1__Generation *wire, struct generation generation);
struct generation take_generation(
    struct taker *taker, const char *field, const Cadre__V1__Generation *wire);

void fill_cursor(Cadre__V1__Cursor *wire, const struct cursor *cursor);
struct cursor take_cursor(struct taker *taker, const Cadre__V1__Cursor *wire);

struct wire_feed {
    Cadre__V1__Feed feed;
    Cadre__V1__FeedExpected expected;
};
void fill_feed(struct wire_feed *storage, const struct feed *feed);
struct feed take_feed(struct taker *taker, const Cadre__V1__Feed *wire);
/* NULL when nothing was compared. */
Cadre__V1__Verified *fill_verified(Cadre__V1__Verified *storage, const struct verified *verified);
struct verified take_verified(struct taker *taker, const Cadre__V1__Verified *wire);

void fill_task_exit(struct packer *packer, Cadre__V1__TaskExit *wire, const struct task_exit *end);
void take_task_exit(
    struct taker *taker, const Cadre__V1__TaskExit *wire, struct task_exit *ret_exit);

void fill_refused(
    struct packer *packer, Cadre__V1__Refused *wire, const struct task_refused *refused);
void take_refused(
    struct taker *taker, const Cadre__V1__Refused *wire, struct task_refused *ret_refused);

void fill_progress(
    struct packer *packer, Cadre__V1__Progress *wire, const struct progress *progress);
void take_progress(
    struct taker *taker, const Cadre__V1__Progress *wire, struct progress *ret_progress);

void fill_shards(
    struct packer *packer, Cadre__V1__DatasetShards *wire, const struct shards_report *shards);
void take_shards(
    struct taker *taker, const Cadre__V1__DatasetShards *wire, struct shards_report *ret_shards);
void fill_shards_list(struct packer *packer, Cadre__V1__JobInfo *wire, const struct job_info *info);
void take_shards_list(
    struct taker *taker, const Cadre__V1__JobInfo *wire, struct job_info *ret_info);

void fill_crew(Cadre__V1__Crew *wire, const struct crew *crew);
/* NULL is that of a job whose tasks are all alike. */
struct crew take_crew(struct taker *taker, const Cadre__V1__Crew *wire);

/* `wire` itself, or NULL where there is nothing to tell. */
Cadre__V1__Gpus *fill_gpus(struct packer *packer, Cadre__V1__Gpus *wire, const struct gpus *gpus);
/* NULL is none. `whole`: nothing may be omitted. */
struct gpus take_gpus(struct taker *taker, const Cadre__V1__Gpus *wire, bool whole);

void fill_job_limits(Cadre__V1__JobLimits *wire, const struct job_limits *limits);
/* NULL: none. */
struct job_limits take_job_limits(struct taker *taker, const Cadre__V1__JobLimits *wire);

struct wire_job_spec {
    Cadre__V1__JobSpec spec;
    Cadre__V1__JobFile program;
    Cadre__V1__Crew crew;
    Cadre__V1__JobLimits limits;
};
void fill_job_spec(
    struct packer *packer, struct wire_job_spec *storage, const struct job_spec *spec);
void take_job_spec(struct taker *taker, const Cadre__V1__JobSpec *wire, struct job_spec *ret_spec);

void fill_checkpoint_ref(Cadre__V1__CheckpointRef *wire, const struct checkpoint_ref *checkpoint);
void take_checkpoint_ref(struct taker *taker, const Cadre__V1__CheckpointRef *wire,
    struct checkpoint_ref *ret_checkpoint);

void fill_job_info(struct packer *packer, Cadre__V1__JobInfo *wire, const struct job_info *info);
void take_job_info(struct taker *taker, const Cadre__V1__JobInfo *wire, struct job_info *ret_info);

struct wire_task_up {
    Cadre__V1__TaskUp up;
    Cadre__V1__Generation generation;
    Cadre__V1__Cursor cursor;
    struct wire_feed feed;
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
void fill_task_up(struct packer *packer, struct wire_task_up *storage, const struct task_up *up);
void take_task_up(struct taker *taker, const Cadre__V1__TaskUp *wire, struct task_up *ret_up);

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
        Cadre__V1__TaskBye bye;
        Cadre__V1__TaskSuperseded superseded;
        Cadre__V1__Refused refused;
    };
};
void fill_members(struct packer *packer, Cadre__V1__TaskMembers *wire,
    Cadre__V1__Generation *generation, const struct task_members *members);
void take_members(
    struct taker *taker, const Cadre__V1__TaskMembers *wire, struct task_members *ret_members);
void fill_task_down(
    struct packer *packer, struct wire_task_down *storage, const struct task_down *down);
void take_task_down(
    struct taker *taker, const Cadre__V1__TaskDown *wire, struct task_down *ret_down);

#endif
