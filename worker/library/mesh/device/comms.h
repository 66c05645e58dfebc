/* SPDX-License-Identifier: Apache-2.0
 * The communicators of a task, and the thread that ends them (the ender): the replicas' own, and
 * those of groups, each in a slot. To abort a communicator may block, and no other thread may be
 * inside a call on it meanwhile: so calls go between comms_enter and comms_leave, which return soon
 * (nothing blocks there), and the ender waits for the calls inside, admits no more, and then ends
 * all of them, however long that takes. It wakes when the mesh has a fault, whichever thread raised
 * it.
 *
 *    open ── comms_enter/leave, lend/return ──┐
 *     │ fault, comms_end                      │ waits for the calls inside
 *     v                                       v
 *    closing: no call enters  ─> abort or destroy of each ─> ended
 *
 * An owner that cannot wait for `ended` leaves the whole to the ender, which frees it if it ever
 * ends: a hang in a library cannot be ended from within a process. */
#ifndef CADRE_WORKER_MESH_DEVICE_COMMS_H
#define CADRE_WORKER_MESH_DEVICE_COMMS_H

#include <stdbool.h>

#include "worker/library/device/device_ops.h"

struct comms;

/* One rank of a communicator, and the slot that it is to be in. */
struct comms_rank {
    uint32_t slot;
    uint32_t rank;
    uint32_t device;
};

/* With so many slots, all empty; starts the ender. `fault_fd` becomes readable with a fault; it is
 * duplicated. */
cadre_status comms_open(const struct device_comm_ops *ops, uint32_t slots, int fault_fd,
    struct comms **ret_comms, struct cadre_error *error);

/* Posts `count` ranks of one communicator (device_comm_ops.post) into slots that are empty: from
 * now on the ender ends them. ABORTED when it has begun. Any thread. */
cadre_status comms_post(struct comms *comms, const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world,
    const struct comms_rank ranks[], uint32_t count, struct cadre_error *error);

/* Removes it from use: it is aborted when the others are ended, in whatever way. */
void comms_drop(struct comms *comms, uint32_t slot);

/* The communicator, for one call; NULL: it was ended, or is about to be. Waits for another thread's
 * call on it. */
struct device_comm *comms_enter(struct comms *comms, uint32_t slot);
/* Ends that call. */
void comms_leave(struct comms *comms, uint32_t slot);

/* The communicator's state (device_comm_ops.test); ABORTED when it was ended. */
cadre_status comms_test(struct comms *comms, uint32_t slot, struct cadre_error *error);

/* The program gets handles of them, until comms_return: it may be inside of a call that is not
 * counted here. So they are not aborted before that, or only after 2 s. */
void comms_lend(struct comms *comms);
/* The program has no handles any more. */
void comms_return(struct comms *comms);

/* Ends them, at once or (`orderly`: all that was enqueued on them is done) in order. Returns at
 * once; the first call counts, but for a fault. NULL is allowed. */
void comms_end(struct comms *comms, bool orderly);

/* Waits for that until `until_us` on the monotonic clock; false: it hangs. True of NULL. */
bool comms_wait(struct comms *comms, uint64_t until_us);

/* Waits likewise and frees, or leaves all to the ender: false. No other thread uses it any more.
 * After comms_end; accepts NULL. */
bool comms_close(struct comms *comms, uint64_t until_us);

#endif
