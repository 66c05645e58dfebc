/* SPDX-License-Identifier: Apache-2.0
 * Variables that parameter servers hold, in this process: on the chief those that it created,
 * elsewhere those that were looked up. One never changes after its creation, and stays until the
 * ps job ends. */
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

/* The prefix of names that programs may not use: other notes on servers. */
#define SERVED_RESERVED "cadre/"

/* How many bytes of a variable are held at a time outside of the program's own memory: whole rows,
 * at least one. */
#define SERVED_PIECE_BYTES ((size_t)4 << 20)

#define SERVED_DEVICE_BYTES 64 /* "/job:ps/replica:0/task:1/device:CPU:0" */

struct checkpoint_reader;
struct read_versions;

/* The entries of a variable in checkpoints: its value, its synchronous steps of each shard, and
 * once it is trained its optimizer's slots and each shard's count of updates. */
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

/* What a variable on servers has besides its name, type and shape. */
struct served {
    struct served_variables *all;
    size_t row_bytes;
    uint64_t row_elements;
    struct partition_layout layout; /* a scalar is one row */
    struct optimizer_rule rule;     /* on the chief, once it is trained; OPTIMIZER_NONE before */
    _Atomic int kind; /* of that rule, as far as this process has read it; never another one
                       * afterwards */
    bool restored;    /* its value came from a checkpoint, which may have slots too */
    struct served_shard *shards; /* [layout.shards] */
    struct read_versions *views;
    struct served_part part; /* of a slot: which slot of which variable; else that is NULL */
    cadre_variable *slots[OPTIMIZER_SLOTS + 1]; /* its own, once they were looked up, then the count
                                                 * of updates; under all->lock */
};

struct served_variables {
    struct streamed streamed; /* how the writer of checkpoints reads them, on the chief */
    struct ps_job_state *ps_job;
    pthread_mutex_t lock;  /* over the list; all threads read the variables in it */
    cadre_variable **list; /* in order of creation */
    uint32_t count;
    uint32_t capacity;
    struct served_part *checkpoint_parts; /* of all variables, in order of creation */
    uint32_t part_count;
    uint32_t part_capacity;
    /* Of the chief's thread that creates variables. */
    uint64_t placed;                  /* variables and shards so far, for the round robin */
    bool unfinished;                  /* a creation failed half way: shards may not be zero */
    struct checkpoint_reader *reader; /* of the checkpoint that the job goes on from; NULL: not
                                       * opened */
};

/* One list in a process. Sets ps_job->served, after ps_job_connect. */
cadre_status served_begin(struct ps_job_state *ps_job, struct cadre_error *error);
/* Frees all variables, after the checkpoints' writer and before the client ends. */
void served_end(struct ps_job_state *ps_job);

/* The list of this process; NULL: there is no ps job now. */
struct served_variables *served_current(void);
/* Sets the list of this process; NULL: none. */
void served_set_current(struct served_variables *all);

/* The role of the calling thread's task: by hand a worker is a thread. */
enum role served_role(const struct served_variables *all);

/* By name; NULL: not in the list. */
cadre_variable *served_lookup(struct served_variables *all, const char *name);
/* Variable i, in order; NULL behind the last. */
cadre_variable *served_at(struct served_variables *all, uint32_t i);

/* A variable with room for so many shards, in no list. INVALID_ARGUMENT: no valid shape;
 * RESOURCE_EXHAUSTED. Freed by variable_free. */
cadre_status served_new(struct served_variables *all, const struct variable_plan *plan,
    uint64_t shards, cadre_variable **ret_variable, struct cadre_error *error);

/* NULL is allowed. */
void served_free(struct served *served);

/* Sets the server of a shard. */
void served_set_shard(struct served *served, uint64_t shard, uint32_t server);

/* Adds it to the list, which owns it; when the name is there already, that variable is returned
 * instead. On error it is freed. */
cadre_status served_add(
    struct served_variables *all, cadre_variable **variable, struct cadre_error *error);

/* --- the table of ../variables/remote_variable.h; see there --- */

/* Creates it on its servers, fills it, and stores its note on server 0. */
cadre_status served_create(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);
/* In the list, else by its note on server 0. NOT_FOUND. */
cadre_status served_find(
    const char *name, cadre_variable **ret_variable, struct cadre_error *error);
/* Reads rows from the shards; with a synchronous step it waits until they have applied it. */
cadre_status served_read(const cadre_variable *variable, const struct variable_rows *rows,
    uint64_t step, void *into, struct cadre_error *error);
/* Makes one push, with one request for each shard. */
cadre_status served_push(
    const cadre_variable *variable, const struct variable_push *push, struct cadre_error *error);

/* Its slot, or "updates", as a variable that ends with it; `name` is one of a rule's.
 * FAILED_PRECONDITION: its optimizer on the servers has no such slot. */
cadre_status served_slot(cadre_variable *variable, const char *name, cadre_variable **ret_slot,
    struct cadre_error *error);
/* The largest count of updates among its shards. */
cadre_status served_updates(
    const cadre_variable *variable, int64_t *ret_updates, struct cadre_error *error);
/* As served_read, of a slot. */
cadre_status served_slot_read(const cadre_variable *slot, const struct variable_rows *rows,
    uint64_t step, void *into, struct cadre_error *error);

/* push->trust: NaN where the ratio of LAMB's norms has to be found first, over all shards; else
 * 0. */
cadre_status served_set_trust(
    const cadre_variable *variable, struct push *push, struct cadre_error *error);

/* An array with a version for each shard, all READ_VERSION_NONE; the caller frees it. */
cadre_status served_versions(
    const cadre_variable *variable, uint64_t **ret_versions, struct cadre_error *error);

/* INVALID_ARGUMENT: NULL. FAILED_PRECONDITION: it was released, or lies in this process; `instead`
 * is what to do with such a variable. */
cadre_status served_require(const cadre_variable *variable, const char *function,
    const char *instead, struct cadre_error *error);

/* FAILED_PRECONDITION: it is a slot, which only updates change. */
cadre_status served_require_no_slot(const cadre_variable *variable, struct cadre_error *error);

/* --- entries in checkpoints: any thread --- */

/* Adds the value and steps of a new variable, or the slots and updates of one that is trained.
 * RESOURCE_EXHAUSTED. */
cadre_status served_checkpoint_parts_add(
    cadre_variable *variable, bool trained, struct cadre_error *error);
/* Entry i in order; none is removed or moved. False: there is none. */
bool served_part_at(struct served_variables *all, uint32_t i, struct served_part *ret_part);
/* "w", "w/steps", "w/m", "w/updates", ...: the name of the entry. */
const char *served_part_name(const struct served_part *part, char ret_name[SAFETENSORS_NAME_BYTES]);
/* ALREADY_EXISTS: another entry has the name of one that would be added. */
cadre_status served_checkpoint_parts_check(const struct cadre_strategy *strategy, const char *name,
    const struct optimizer_rule *rule, struct cadre_error *error);

/* On the chief: gives its shards the rule, once, and the slots' values from the checkpoint.
 * Elsewhere it does nothing, because the chief does it. INVALID_ARGUMENT, ALREADY_EXISTS (another
 * rule). */
cadre_status served_train(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error);

/* The rule that the servers have; OPTIMIZER_NONE: none. */
cadre_status served_find_rule(
    const cadre_variable *variable, struct optimizer_rule *ret_rule, struct cadre_error *error);

extern const struct streamed_ops served_streamed_ops; /* served_stream.c */

#endif
