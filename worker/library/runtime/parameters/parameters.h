/* SPDX-License-Identifier: Apache-2.0
 * The parameters that this process knows: on the chief those that it created, elsewhere those that
 * were looked up. What one is never changes, and it lives as long as the crew. */
#ifndef CADRE_RUNTIME_PARAMETERS_H
#define CADRE_RUNTIME_PARAMETERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/parameter.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/ps/partition.h"
#include "worker/library/ps/store.h"
#include "worker/library/runtime/crew/crew.h"
#include "worker/library/runtime/state/safetensors.h"
#include "worker/library/runtime/state/streamed.h"

/* Names that programs do not give: what else is noted on servers. */
#define PARAMETER_RESERVED "cadre/"

/* What is held of a parameter at a time, outside of the program's own memory: whole rows, one at
 * least. */
#define PARAMETER_PIECE_BYTES ((size_t)4 << 20)

struct checkpoint_reader;
struct parameter_views;

struct parameter_shard {
    uint32_t server;
    uint32_t number; /* in that server's store */
};

struct cadre_parameter {
    struct parameters *parameters;
    char name[LIMIT_NAME_BYTES];
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    size_t bytes;
    size_t row_bytes;
    uint64_t row_elements;
    struct partition_layout layout; /* a scalar is one row */
    struct store_training training;
    struct parameter_shard *shards; /* [layout.shards] */
    struct parameter_views *views;
};

struct parameters {
    struct streamed streamed; /* what checkpoints of the chief see of them */
    struct crew_state *crew;
    pthread_mutex_t lock;   /* over the list; the parameters in it are read by all */
    cadre_parameter **list; /* in order of creation */
    uint32_t count;
    uint32_t capacity;
    /* The chief's, of the thread that creates. */
    uint64_t placed;                  /* variables and shards so far: the round robin */
    bool unfinished;                  /* a creation failed half way: shards may not be zero */
    struct checkpoint_reader *reader; /* of what the job goes on from; NULL: not opened */
};

/* One crew in a process. Sets crew->parameters; its client is there. */
cadre_status parameters_begin(struct crew_state *crew, struct cadre_error *error);
/* After the checkpoints' writer, before the client. Nobody uses one any more. */
void parameters_end(struct crew_state *crew);

/* FAILED_PRECONDITION: there is no crew, so none of `function`. */
cadre_status parameters_require(
    const char *function, struct parameters **ret_parameters, struct cadre_error *error);

/* INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: it ended with its strategy. Looks into no other. */
cadre_status parameter_enter(
    const cadre_parameter *parameter, const char *function, struct cadre_error *error);

/* By name; NULL: not in the list. */
cadre_parameter *parameters_known(struct parameters *parameters, const char *name);
/* Parameter i, in order; NULL behind the last. */
cadre_parameter *parameters_at(struct parameters *parameters, uint32_t i);

/* With room for its shards, in no list. INVALID_ARGUMENT: no shape; RESOURCE_EXHAUSTED. */
struct parameter_plan {
    const char *name;
    cadre_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    uint64_t shards;
};
cadre_status parameter_new(struct parameters *parameters, const struct parameter_plan *plan,
    cadre_parameter **ret_parameter, struct cadre_error *error);
void parameter_free(cadre_parameter *parameter); /* NULL is allowed */

/* Takes it over into the list; when one of the name is there, that one is returned instead. On
 * error it is freed. */
cadre_status parameters_add(
    struct parameters *parameters, cadre_parameter **parameter, struct cadre_error *error);

/* What the optimizer remembers of each element: 0 to 2 numbers. */
uint32_t training_slots(const struct store_training *training);
/* "momentum", "accumulator", "m", "v": in checkpoints, behind the name. slot < training_slots. */
const char *training_slot_name(const struct store_training *training, uint32_t slot);
/* What a parameter stands as in checkpoints: its value, its slots, how many updates each shard has
 * seen (of an optimizer with slots), how many synchronous steps. */
enum parameter_part { PART_VALUE, PART_SLOT, PART_UPDATES, PART_STEPS, PART_NONE };
/* Part `part` in order, from 0; `ret_slot` where it is one. PART_NONE: behind the last. */
enum parameter_part parameter_part(
    const struct store_training *training, uint32_t part, uint32_t *ret_slot);
uint32_t parameter_parts(const struct store_training *training);
/* "w", "w/m", ...: as that part of parameter `name` is called there. */
const char *parameter_part_name(const char *name, const struct store_training *training,
    uint32_t part, char ret_name[SAFETENSORS_NAME_BYTES]);

/* What a program asked for, with the defaults. INVALID_ARGUMENT names the field. */
cadre_status training_of(const cadre_optimizer *optimizer, cadre_dtype dtype,
    struct store_training *ret_training, struct cadre_error *error);

extern const struct streamed_ops parameters_streamed_ops; /* parameter_stream.c */

#endif
