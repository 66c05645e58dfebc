/* SPDX-License-Identifier: Apache-2.0
 * What all tasks compute together by reading a dataset once: moments, a vocabulary.
 *
 * The elements are numbered; a number of consecutive ones is a *block*, a number of blocks a
 * *round*: both depend on the result, never on the tasks. A round is one collective outside of
 * steps: each replica computes its blocks, all receive all, and put them together. So the result
 * does not depend on which task read what; and when a task is lost, only its blocks of the round
 * are read again, by others.
 *
 *     elements   0 1 2 3 | 4 5 6 7 | 8 ...            a block of 4 elements
 *     replica       0    |    1    | 2 ...            block b is for replica b modulo their number
 */
#ifndef CADRE_RUNTIME_ADAPTION_H
#define CADRE_RUNTIME_ADAPTION_H

#include <stdatomic.h>

#include "cadre/dataset.h"
#include "worker/library/input/node/node.h"
#include "worker/library/runtime/strategy/strategy.h"

struct adaption;

/* `local` is a replica of this task; several of them call at once, for blocks of their own. */
struct adaption_ops {
    /* Empties what was found in a block. */
    void (*empty)(struct adaption *adaption, uint64_t block);

    /* Adds what element `number` holds to what was found in its block. */
    cadre_status (*add)(struct adaption *adaption, uint32_t local, uint64_t block,
        const cadre_element *element, uint64_t number, struct cadre_error *error);

    /* Makes what a replica sends, of the blocks of which adaption_owns_block. May be called again.
     */
    cadre_status (*prepare)(const cadre_strategy *strategy, struct adaption *adaption,
        uint32_t local, struct cadre_error *error);

    /* Sends it: a collective. Replica 0 keeps what all sent. */
    cadre_status (*exchange)(cadre_strategy *strategy, struct adaption *adaption, uint32_t local,
        uint64_t key, struct cadre_error *error);

    /* Once in a round, after the exchange. */
    cadre_status (*merge)(struct adaption *adaption, struct cadre_error *error);
};

/* The first part of each kind of adaption; the kind sets the upper half. */
struct adaption {
    const struct adaption_ops *ops;
    const char *name; /* of the public function */
    cadre_dataset *data;
    uint32_t component;
    int64_t block_elements;
    uint64_t blocks;            /* of a round */
    uint64_t key;               /* of all that must be equal on all tasks */
    const char *exchanged_text; /* for messages: "2 features" */

    uint64_t round;
    bool by_index;
    int64_t *counts; /* [blocks] elements of the round's that were read; -1: not read yet */

    /* Read in order: the iterator of the replica that reads, and its next element. */
    cadre_iterator *iterator;
    uint64_t next_element;

    int64_t elements; /* of the round, over all tasks */
    int64_t failures; /* replicas that could not read their part */
    struct cadre_error own;
    struct cadre_error theirs; /* of the task of the lowest rank that could not */
    atomic_flag *own_is_set;
};

/* The type and shape of the component. INVALID_ARGUMENT: there is none, or the data have no end. */
cadre_status adaption_check(
    const struct adaption *adaption, cadre_tensor_spec *ret_spec, struct cadre_error *error);

/* Reads all of the data, round by round. */
cadre_status adaption_run(
    cadre_strategy *strategy, struct adaption *adaption, struct cadre_error *error);

/* Whether a replica sends a block: it is its own, and read. */
bool adaption_owns_block(const cadre_strategy *strategy, const struct adaption *adaption,
    uint32_t local, uint64_t block);

/* Frees what adaption_run needed. The dataset is the caller's. */
void adaption_end(struct adaption *adaption);

#endif
