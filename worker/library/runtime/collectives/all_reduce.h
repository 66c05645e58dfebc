/* SPDX-License-Identifier: Apache-2.0
 * One all-reduce in replica context, in two halves: it is made in the replica's thread, and done
 * there or in another thread while the replica goes on. */
#ifndef CADRE_RUNTIME_ALL_REDUCE_H
#define CADRE_RUNTIME_ALL_REDUCE_H

#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/replica/collective_list.h"

struct all_reduce {
    cadre_strategy *strategy;
    uint32_t local;
    enum mesh_op op;
    bool mean;
    cadre_tensor *const *results;
    struct mesh_buffer *buffers; /* of a collective_list_room */
    size_t count;
    size_t bytes_per_pack;
    struct device *device; /* in whose memory all buffers are; NULL: the host's */
    void *begun;           /* event that comm waits for; NULL: what is on compute when it is done */
    void *done;            /* event that is recorded after it; NULL: compute waits for it itself */
    struct step_call call;
    struct step_note note; /* filled in when the step has counted the call */
};

/* Checks everything and fills all but the note. `from` and `into` are borrowed until it is done;
 * they may be equal. */
cadre_status all_reduce_make(struct all_reduce *ret_all_reduce, cadre_replica *replica,
    cadre_reduce_op op, cadre_tensor *const from[], cadre_tensor *const into[], size_t count,
    const cadre_collective_options *options, struct collective_list *list,
    struct cadre_error *error);

/* Carries it out, after the admission of the step. */
cadre_status all_reduce_do(const struct all_reduce *all_reduce, struct cadre_error *error);

/* The mesh's operation of an op; MEAN is a sum, divided afterwards. INVALID_ARGUMENT for a number
 * that is no op. */
cadre_status all_reduce_op(cadre_reduce_op op, enum mesh_op *ret_op, struct cadre_error *error);
/* The mesh's type of tensor `index`; MEAN requires a floating type. */
cadre_status all_reduce_dtype(cadre_reduce_op op, const cadre_tensor *tensor, size_t index,
    enum mesh_dtype *ret_dtype, struct cadre_error *error);

#endif
