/* SPDX-License-Identifier: Apache-2.0
 * The devices of this process, over the table of a plugin: streams and memory that all strategies
 * share, copies that a thread waits for, tensors in a device's memory. A device is opened at its
 * first use, never before.
 *
 * A device has three streams:
 *    compute    kernels of the program (cadre_replica_stream), the home of the device's memory
 *    comm       collectives; waits for compute where a collective begins, and the other way round
 *    copy       batches that are copied to the device */
#ifndef CADRE_WORKER_DEVICE_DEVICE_H
#define CADRE_WORKER_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/device/device_ops.h"
#include "worker/library/device/tensor.h"

/* One device that is in use. Made once, for the rest of the process. */
struct device {
    const struct device_ops *ops;
    uint32_t index;
    void *compute;
    void *comm;
    void *copy;
    struct device_info info; /* as it was opened */
};

/* How many devices there are for this process. The first call searches for the plugin and opens it
 * (device_plugin.c has the folders), unless CADRE_DEVICES is "cpu" (CADRE_DEVICES_REASON, which a
 * worker sets, has the reason then). Any thread. */
uint32_t device_count(void);
/* Why device_count() is 0, in one sentence ("no GPU is used: ..."); "" otherwise. Any thread. */
const char *device_absence_reason(void);

/* The plugin's table; NULL where device_count() is 0. */
const struct device_ops *device_plugin(void);

/* The device of that number, opened by the first call; registers TENSOR_MEMORY_PINNED with the
 * first one. FAILED_PRECONDITION: there is none. Any thread. */
cadre_status device_open(uint32_t index, struct device **ret_device, struct cadre_error *error);

/* Copies between any two memories and waits until it is done. `to_on`, `from_on`: NULL for memory
 * of the host. What was enqueued on the compute streams of both before is done first. Pageable
 * memory goes through page-locked pieces. Any thread. */
cadre_status device_copy(void *to, struct device *to_on, const void *from, struct device *from_on,
    size_t bytes, struct cadre_error *error);

#define DEVICE_COPY_ENQUEUE_MAX ((size_t)64 << 20)
/* Enqueues a copy of the host's memory `from`, which may be changed when this returns: it goes
 * through page-locked memory of its own. Waits where there is none, and when it is more than
 * DEVICE_COPY_ENQUEUE_MAX. */
cadre_status device_copy_enqueue(struct device *device, void *stream, void *to, const void *from,
    size_t bytes, struct cadre_error *error);

/* A check that a wait makes now and then: any code but CADRE_OK ends the wait and is returned, with
 * its error. */
typedef cadre_status (*device_stop)(void *user, struct cadre_error *error);
/* Waits until `event` is done: spins for a while, then yields and sleeps in short intervals, with
 * calls of `stop` (may be NULL). DEADLINE_EXCEEDED after `timeout_us` (0: never). */
cadre_status device_wait_event(struct device *device, void *event, uint64_t timeout_us,
    device_stop stop, void *user, struct cadre_error *error);
/* The same for all that is on a stream now. */
cadre_status device_wait_stream(struct device *device, void *stream, uint64_t timeout_us,
    device_stop stop, void *user, struct cadre_error *error);

/* Makes `after` wait for all that is on `before` now. Never blocks. */
cadre_status device_order(
    struct device *device, void *before, void *after, struct cadre_error *error);

/* Begins a launch of kernels that wait for those of other devices of this process. The driver may
 * not launch on one device while a call waits for another one, as allocating and freeing
 * page-locked memory does: those calls wait until no launch is under way. Until device_launch_end a
 * thread allocates none, and waits for nothing but the other launches. */
void device_launch_begin(void);
/* All kernels of that launch are launched. */
void device_launch_end(void);

/* --- tensors in a device's memory. Number types and CADRE_BOOL; INVALID_ARGUMENT for strings.
 * cadre_tensor_data returns the device's address. Views work as of any tensor. --- */

/* The elements are not set. The memory is allocated on `stream` (NULL: compute) and freed on
 * compute: the caller orders other streams that still use it before that. */
cadre_status tensor_create_on(struct device *device, void *stream, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error);

/* The device that has the elements in its memory; NULL: the host. */
struct device *tensor_device(const cadre_tensor *tensor);

/* A copy of `tensor` on `device` (NULL: the host), complete when this returns. */
cadre_status tensor_copy_to(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* FAILED_PRECONDITION, with `function` and the next step, for a tensor that the host cannot
 * read. */
cadre_status tensor_require_host(
    const cadre_tensor *tensor, const char *function, struct cadre_error *error);

/* --- Tensors on devices beyond device.h: copies that are not waited for. --- */

/* A copy of `tensor`, from any memory, in the memory of `device`; in the order of its compute
 * stream. A tensor of the host must not be written to before the copy is done; a reference of it is
 * kept as long as it is read. One of another device is read in the order of that one's compute
 * stream too, independently of other work of `device`. */
cadre_status tensor_copy_begin(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* The tensor itself, with one reference more, or a copy in the host's memory, which is waited for.
 */
cadre_status tensor_on_host(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor, struct cadre_error *error);

#endif
