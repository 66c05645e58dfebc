/* SPDX-License-Identifier: Apache-2.0
 * Reads the steps of a distributed input ahead, in order, on a thread of its own: bounded,
 * cancellable, and startable again at another (epoch, step). */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTION_INPUT_PREFETCHER_H
#define CADRE_WORKER_INPUT_DISTRIBUTION_INPUT_PREFETCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/device/tensor_memory.h"
#include "worker/library/input/distribution/distributed_input.h"

#define INPUT_PREFETCH_DEPTH_MAX 64 /* PREFETCH_DEPTH_MAX */

struct input_prefetcher;

/* Starts the thread; it reads nothing yet. `input` is borrowed, outlives the prefetcher and is read
 * by it alone. `depth` steps, up to INPUT_PREFETCH_DEPTH_MAX, are held ready, in the kind of memory
 * that their consumer copies from best; 0: a step is read when it is waited for, and not before. */
cadre_status input_prefetcher_create(struct distributed_input *input, uint32_t depth,
    enum tensor_memory_kind memory, struct input_prefetcher **ret_prefetcher,
    struct cadre_error *error);

/* Brings a batch that was read to where its consumer wants it. On an error what it did not do is
 * asked for again. */
typedef cadre_status (*input_stage)(
    void *user, struct distributed_batch *batch, struct cadre_error *error);

/* Has it called for the first `ahead` of the steps that are held ready, on the thread that reads;
 * or in a take, for one that it has not come to. Its error is that take's. Before the first start.
 */
void input_prefetcher_stage(
    struct input_prefetcher *prefetcher, uint32_t ahead, input_stage stage, void *user);

/* Reads on from `step` of `epoch`; what was read for another position is dropped, and a cancel is
 * forgotten. Never waits. At the end of an epoch nothing is read until the next start. */
void input_prefetcher_start(struct input_prefetcher *prefetcher, uint64_t epoch, uint64_t step);

/* The next step: waits for it. OUT_OF_RANGE at the end of the epoch; CANCELLED after a cancel;
 * FAILED_PRECONDITION when never started; else the error of the read. End and errors are given
 * again on each call until the next start. On success the batch is the caller's to clear; on error
 * it is zeroed. */
cadre_status input_prefetcher_take(struct input_prefetcher *prefetcher,
    struct distributed_batch *ret_batch, struct cadre_error *error);

/* Waits until a take would not wait, at most so long: false when it still would. */
bool input_prefetcher_await(struct input_prefetcher *prefetcher, uint64_t wait_us);

/* Wakes a waiting take with CANCELLED and stops reading after the step at hand. Any thread, any
 * time. */
void input_prefetcher_cancel(struct input_prefetcher *prefetcher);

/* Cancels, waits for the read at hand, frees. NULL is allowed. */
void input_prefetcher_free(struct input_prefetcher *prefetcher);

#endif
