/* SPDX-License-Identifier: Apache-2.0
 * Random numbers that belong to the training: a function of seed, name, step and replica, of
 * nothing else. (tf.random.Generator in a strategy's scope: each replica draws an independent
 * stream.)
 *
 * A stream is made again in each step and has no state that must be saved: the step's number is
 * where it begins. So a step that is done again (a task was lost) draws the same numbers, a job
 * that goes on from a checkpoint goes on with the same streams, and replica r draws the same
 * whether there are r + 1 replicas or a thousand. What must not depend on how the batch is spread
 * (dropout, augmentation) is drawn for each sample instead: cadre_random_for_sample, and
 * cadre_random_for_element where it is read.
 *
 * The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011), which tf.random uses too; the numbers are not those of TensorFlow. */
#ifndef CADRE_RANDOM_H
#define CADRE_RANDOM_H

#include <stdint.h>

#include "cadre/replica.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream of random numbers, to be kept on the stack: a plain value. A copy draws the same numbers
 * again. One thread at a time. */
typedef struct cadre_random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t drawn[4]; /* of the block at hand */
    uint32_t left;     /* of it */
} cadre_random;

/* Begins a stream: in replica context that of this replica and step. With `replica` NULL, in
 * cross-replica context: the stream of the step that comes next, the same on all tasks, and apart
 * from those of all replicas; `strategy` of the context is used (cadre/strategy.h). `name` (of any
 * length; NULL is "") separates several streams of one step: made twice with one name it draws the
 * same numbers twice. FAILED_PRECONDITION: the replica's function is not running; no strategy. */
CADRE_API cadre_status cadre_random_stream(
    const cadre_replica *replica, uint64_t seed, const char *name, cadre_random *ret_random);

/* The stream of one sample in one epoch: the same in whichever replica and step the sample comes.
 * Any thread, any context; a pure function. */
CADRE_API cadre_status cadre_random_for_sample(
    uint64_t seed, const char *name, uint64_t epoch, uint64_t sample, cadre_random *ret_random);

/* Begins a stream in a map function that a dataset calls (cadre_dataset_map): that of row `row` of
 * the element that it is called for, 0 of an element that is one sample. It is that of
 * cadre_random_for_sample for the sample in this row and the epoch that is read: the same whichever
 * task reads it, in whatever batch, with any number of tasks, and when it is read again; another in
 * each epoch. On the thread that was called. FAILED_PRECONDITION: no map function is running;
 * repeat comes before the map, whose passes would be alike (put it behind). In a dataset that the
 * function of cadre_dataset_flat_map or _interleave makes, and before cadre_dataset_cache, each
 * epoch is epoch 0. */
CADRE_API cadre_status cadre_random_for_element(
    uint64_t seed, const char *name, uint64_t row, cadre_random *ret_random);

/* A stream that is apart from `random` and from all others split off with another number.
 * (tf.random.Generator.split, jax.random.fold_in.) */
CADRE_API cadre_random cadre_random_split(const cadre_random *random, uint64_t number);

/* Draws 64 random bits. */
CADRE_API uint64_t cadre_random_u64(cadre_random *random);

/* Draws a number that is uniform in [0, 1), of 53 random bits. */
CADRE_API double cadre_random_f64(cadre_random *random);

/* Draws a number that is normal, with mean 0 and standard deviation 1 (Box and Muller). */
CADRE_API double cadre_random_normal(cadre_random *random);

/* Draws an integer that is uniform in [0, bound); 0 where `bound` is 0. */
CADRE_API uint64_t cadre_random_below(cadre_random *random, uint64_t bound);

/* Fills a tensor of the caller's, of a floating type: uniform in [low, high). INVALID_ARGUMENT:
 * another type, a bound that is not finite, low above high. (tf.random.Generator.uniform.) */
CADRE_API cadre_status cadre_random_fill_uniform(
    cadre_random *random, double low, double high, cadre_tensor *tensor);

/* Fills a tensor of the caller's, of a floating type: normal. INVALID_ARGUMENT: another type, a
 * number that is not finite, a negative deviation. (tf.random.Generator.normal.) */
CADRE_API cadre_status cadre_random_fill_normal(
    cadre_random *random, double mean, double stddev, cadre_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
