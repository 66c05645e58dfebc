/* SPDX-License-Identifier: Apache-2.0
 * Variables that parameter servers hold, as this process knows them: on the chief those that it
 * created, elsewhere those that were looked up. What one is never changes, and it lives as long as
 * the crew. */
#ifndef CADRE_RUNTIME_SERVED_H
#define CADRE_RUNTIME_SERVED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/optimizer.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "worker/library/optimizer/rule.h"
#include "worker/library/ps/partition.h"
#include "worker/library/ps/store/store.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/state/format/safetensors.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/variables/remote_variable.h"

/* Names that programs do not give: what else is noted on servers. */
#define SERVED_RESERVED "cadre/"

/* What is held of a variable at a time, outside of the program's own memory: whole rows, one at
 * least. */
#define SERVED_PIECE_BYTES ((size_t)4 << 20)

#define SERVED_DEVICE_BYTES 64 /* "/job:ps/replica:0/task:1/device:CPU:0" */

struct checkpoint_reader;
struct read_versions;

/* What stands in checkpoints of a variable: its value, its synchronous steps of each shard, and
 * once it is trained what the optimizer remembers and how many updates each shard has had. */
enum served_kind { SERVED_VALUE, SERVED_STEPS, SERVED_SLOT, SERVED_UPDATES };
struct served_part {
    cadre_variable *variable;
    enum served_kind kind;
    uint32_t slot; /* of SERVED_SLOT */
};

struct served_shard {
    uint32_t server;
    uint32_t number;                  /* in that server's store */
    char device[SERVED_DEVICE_BYTES]; /* of that server */
};

/* What a variable has more than its name, type and shape. */
struct served {
    struct served_variables *all;
    size_t row_bytes;
    uint64_t row_elements;
    struct partition_layout layout; /* a scalar is one row */
    struct optimizer_rule rule;     /* on the chief, once it is trained; OPTIMIZER_NONE before */
    _Atomic int kind; /* of that rule, as far as this process knows; never another one then */
    bool restored;    /* its value came from a checkpoint, in which slots may be, too */
    struct served_shard *shards; /* [layout.shards] */
    struct read_versions *views;
    struct served_part part; /* of a slot: what it is of which variable; else that is NULL */
    cadre_variable *slots[OPTIMIZER_SLOTS + 1]; /* its own, once they were asked for, and how many
                                                   updates there were; under all->lock */
};

struct served_variables {
    struct streamed streamed; /* what checkpoints of the chief see of them */
    struct ps_job_state *ps_job;
    pthread_mutex_t lock;  /* over the list; the variables in it are read by all */
    cadre_variable **list; /* in order of creation */
    uint32_t count;
    uint32_t capacity;
    struct served_part *checkpoint_parts; /* of all, in the order in which they came */
    uint32_t part_count;
    uint32_t part_capacity;
    /* The chief's, of the thread that creates. */
    uint64_t placed;                  /* variables and shards so far: the round robin */
    bool unfinished;                  /* a creation failed half way: shards may not be zero */
    struct checkpoint_reader *reader; /* of what the job goes on from; NULL: not opened */
};

/* One crew in a process. Sets crew->served; its client is there. */
cadre_status served_begin(struct ps_job_state *ps_job, struct cadre_error *error);
/* After the checkpoints' writer, before the client. Nobody uses one any more. */
void served_end(struct ps_job_state *ps_job);

/* What this process knows; NULL: it has no crew now. */
struct served_variables *served_current(void);
void served_set_current(struct served_variables *all);

/* The role of the calling thread's task: by hand a worker is a thread. */
enum role served_role(const struct served_variables *all);

/* By name; NULL: not in the list. */
cadre_variable *served_lookup(struct served_variables *all, const char *name);
/* Variable i, in order; NULL behind the last. */
cadre_variable *served_at(struct served_variables *all, uint32_t i);

/* With room for so many shards, in no list. INVALID_ARGUMENT: no shape; RESOURCE_EXHAUSTED. Ended
 * by variable_free. */
cadre_status served_new(struct served_variables *all, const struct variable_plan *plan,
    uint64_t shards, cadre_variable **ret_variable, struct cadre_error *error);

void served_free(struct served *served); /* NULL is allowed */

/* Its shard is on that server. */
void served_set_shard(struct served *served, uint64_t shard, uint32_t server);

/* Takes it over into the list; when one of the name is there, that one is returned instead. On
 * error it is freed. */
cadre_status served_add(
    struct served_variables *all, cadre_variable **variable, struct cadre_error *error);

/* --- the table of ../variables/remote_variable.h --- */

cadre_status served_create(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);
cadre_status served_find(
    const char *name, cadre_variable **ret_variable, struct cadre_error *error);
cadre_status served_read(const cadre_variable *variable, const struct variable_rows *rows,
    uint64_t step, void *into, struct cadre_error *error);
cadre_status served_push(
    const cadre_variable *variable, const struct variable_push *push, struct cadre_error *error);

/* Its slot, or "updates", as a variable that lives as long as it does; `name` is one of a rule's.
 * FAILED_PRECONDITION: its optimizer on the servers has none of that name. */
cadre_status served_slot(cadre_variable *variable, const char *name, cadre_variable **ret_slot,
    struct cadre_error *error);
/* The most updates that a shard has counted. */
cadre_status served_updates(
    const cadre_variable *variable, int64_t *ret_updates, struct cadre_error *error);
/* As served_read, of a slot. */
cadre_status served_slot_read(const cadre_variable *slot, const struct variable_rows *rows,
    uint64_t step, void *into, struct cadre_error *error);

/* push->trust: NaN where the ratio of LAMB's norms has to be found before, over all shards; else 0.
 */
cadre_status served_set_trust(
    const cadre_variable *variable, struct push *push, struct cadre_error *error);

/* Room for a version of each shard, none of which is read yet (READ_VERSION_NONE); to be freed. */
cadre_status served_versions(
    const cadre_variable *variable, uint64_t **ret_versions, struct cadre_error *error);

/* INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: it is gone, or lies in this process; `instead` says
 * what to do with such a one. */
cadre_status served_require(const cadre_variable *variable, const char *function,
    const char *instead, struct cadre_error *error);

/* FAILED_PRECONDITION: it is a slot, and nothing but an update changes it. */
cadre_status served_require_no_slot(const cadre_variable *variable, struct cadre_error *error);

/* --- what stands in checkpoints: any thread --- */

/* Adds the value and steps of a new variable, or all that its optimizer has. RESOURCE_EXHAUSTED. */
cadre_status served_checkpoint_parts_add(
    cadre_variable *variable, bool trained, struct cadre_error *error);
/* False: there is none. In order; none ever goes, or moves. */
bool served_part_at(struct served_variables *all, uint32_t i, struct served_part *ret_part);
/* "w", "w/steps", "w/m", "w/updates", ...: as that part is called there. */
const char *served_part_name(const struct served_part *part, char ret_name[SAFETENSORS_NAME_BYTES]);
/* ALREADY_EXISTS: something else stands there under the name of a part that would be added. */
cadre_status served_checkpoint_parts_check(const struct cadre_strategy *strategy, const char *name,
    const struct optimizer_rule *rule, struct cadre_error *error);

/* On the chief: gives its shards the rule, once, and slots what a checkpoint has of them. Elsewhere
 * the chief has, and nothing is done. INVALID_ARGUMENT, ALREADY_EXISTS (another rule). */
cadre_status served_train(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error);

/* What the servers have; OPTIMIZER_NONE: it was given none. */
cadre_status served_find_rule(
    const cadre_variable *variable, struct optimizer_rule *ret_rule, struct cadre_error *error);

extern const struct streamed_ops served_streamed_ops; /* served_stream.c */

#endif
