/* SPDX-License-Identifier: Apache-2.0
 * The inside of per-replica values. */
#ifndef CADRE_RUNTIME_VALUES_H
#define CADRE_RUNTIME_VALUES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/input.h"
#include "cadre/replica.h"
#include "common/base/error.h"
#include "common/pure/digest.h"
#include "worker/library/input/sharding/file_shares.h"

/* Which samples of which files are consumed in a step, and which files have no samples left after
 * it (FILE). */
struct consumed_samples {
    struct file_run *runs; /* owned */
    size_t run_count;
    uint64_t *done; /* owned */
    size_t done_count;
};

/* Frees the arrays. */
void consumed_samples_clear(struct consumed_samples *files);

/* The dataset and step of a batch. */
struct batch_source {
    cadre_distributed_dataset *dataset; /* NULL: not a batch */
    uint64_t epoch;
    uint64_t step;
    int64_t global_rows; /* also of a batch that is in no ledger (closures/worker_batches.h) */
    uint64_t present;    /* replicas of this task that have an element; the others have dummies */
    uint64_t own_rows;   /* of these replicas */
    uint64_t generation; /* in which all tasks agreed on the step; 0: in none */
    struct consumed_samples files; /* FILE: of this task ... */
    struct consumed_samples all;   /* ... and of all, as agreed on */
    uint64_t samples;              /* that this task consumes */
    struct digest consumed;        /* of them */
    struct digest expected;        /* provable: of all samples of the step, on the chief */
    bool provable;
    uint64_t cut; /* of the dataset's input that the batch is from */
    bool was_run; /* cadre_run has used it */
};

/* Components first .. first + count - 1 of another value, in a value made of others. */
struct value_part {
    cadre_per_replica *value;
    uint32_t first;
    uint32_t count;
};

/* After its end its memory is reused for another value, at the earliest after RESTING_LEAST others
 * have ended, and never for anything else: so an ended value can be recognised. */
struct cadre_per_replica {
    /* The number of references, 0: it has ended; from bit 32 on, how many of them are the
     * library's, which the program cannot release. */
    _Atomic uint64_t references;
    uint32_t replicas;
    uint32_t components;
    const char *const *names; /* of the components, kept (component_names.h); NULL: none */
    struct batch_source source;
    /* Of a value made of others: those, in order; it has no tensors itself. So a batch stays the
     * same batch, also when its tensors are replaced. */
    uint32_t part_count;
    struct value_part *sources;
    bool shown;              /* the references of `tensors` are the library's */
    cadre_tensor **tensors;  /* [component][replica]; references, or NULL while it is filled */
    cadre_per_replica *next; /* of the ended values */
};

/* Adds a reference of the library. NULL is allowed. */
cadre_per_replica *per_replica_keep(cadre_per_replica *value);
/* Drops a reference of the library. NULL is allowed. */
void per_replica_drop(cadre_per_replica *value);

/* The program receives it, with all its tensors, whose references are the library's from now on. */
void per_replica_show(cadre_per_replica *value);

/* The same, and its only reference is the library's, for per_replica_drop. */
void per_replica_lend(cadre_per_replica *value);

/* The first check of each public `function` for a value that was given as `argument`.
 * INVALID_ARGUMENT: it is NULL, or has ended. */
cadre_status per_replica_require(const cadre_per_replica *value, const char *function,
    const char *argument, struct cadre_error *error);

/* The value of local replica 0 as text: "f32 [2, 3]", "2 components, f32 [2] and i32 []". What does
 * not fit is replaced by a digest of the types and shapes. Returns `text`. */
const char *per_replica_text(const cadre_per_replica *value, char *text, size_t size);

/* All tensors NULL; one reference, the caller's. NULL: no memory. */
cadre_per_replica *per_replica_new(uint32_t replicas, uint32_t components);

/* The element of the array for one tensor. */
cadre_tensor **per_replica_at(cadre_per_replica *value, uint32_t component, uint32_t replica);

/* The tensors of one replica, borrowed. */
cadre_element per_replica_element(const cadre_per_replica *value, uint32_t replica);

/* Whether each component is the same tensor on all replicas. */
bool per_replica_all_plain(const cadre_per_replica *value);

/* The value with its tensors in the memory of the host: one more reference where all of them are,
 * else a new one with copies of those on devices, after waiting for them. */
cadre_status values_on_host(
    const cadre_per_replica *value, cadre_per_replica **ret_value, struct cadre_error *error);

/* A value to be made of at most `part_count` others, without any yet; the caller's. */
cadre_status per_replica_new_of(uint32_t replicas, uint32_t part_count,
    cadre_per_replica **ret_value, struct cadre_error *error);

/* Adds components of `value`, which it keeps from then on. */
void per_replica_add_part(
    cadre_per_replica *whole, cadre_per_replica *value, uint32_t first, uint32_t count);

/* cadre_values_join; the caller has entered. */
cadre_status values_join(const cadre_strategy *strategy, const cadre_argument arguments[],
    uint32_t argument_count, cadre_per_replica **ret_values, struct cadre_error *error);

/* Rows of the global batch that `value` is or has among its sources; 0: it is none. NULL is
 * allowed. */
int64_t per_replica_global_rows(const cadre_per_replica *value);

/* The batch that `value` is or has among its sources; NULL: none. NULL is allowed. */
cadre_per_replica *per_replica_batch(cadre_per_replica *value);

#endif
