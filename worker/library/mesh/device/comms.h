/* SPDX-License-Identifier: Apache-2.0
 * The communicators of a task, and the thread that ends them: the replicas' own, and those that
 * were formed beside them, each in a slot. To abort a communicator may block,
 * and nobody else may be inside a call on it meanwhile: so calls go between comms_enter and
 * comms_leave, which come back soon (nothing blocks there), and the ender waits for those that are
 * inside, lets nobody in any more, and then ends all of them, however long that takes. It wakes
 * when the mesh has a fault, whoever raised it.
 *
 *    open ── comms_enter/leave, lend/return ──┐
 *     │ fault, comms_end                      │ waits for who is inside
 *     v                          v
 *    closing: nobody enters  ─> abort or destroy of each ─> ended
 *
 * Who cannot wait for `ended` leaves the whole to the ender, which frees it if it ever gets there:
 * what a library hangs in cannot be ended from within a process. */
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
 * now on they are the ender's to end. ABORTED when it has begun. Any thread. */
cadre_status comms_post(struct comms *comms, const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world,
    const struct comms_rank ranks[], uint32_t count, struct cadre_error *error);

/* Nobody is to use it: it is aborted when the others are ended, in whatever way. */
void comms_drop(struct comms *comms, uint32_t slot);

/* The communicator, for one call; NULL: it is gone, or about to be. Waits for another thread's
 * call on it. */
struct device_comm *comms_enter(struct comms *comms, uint32_t slot);
void comms_leave(struct comms *comms, uint32_t slot);

/* How the communicator does (device_comm_ops.test); ABORTED when it is gone. */
cadre_status comms_test(struct comms *comms, uint32_t slot, struct cadre_error *error);

/* A program has handles of them, until they are back: it may be inside of a call that nobody here
 * sees. So they are not aborted before, or only after 2 s. */
void comms_lend(struct comms *comms);
void comms_return(struct comms *comms);

/* Has them ended, at once or (`orderly`: all that was enqueued on them is done) in order. Returns
 * at once; the first word counts, but for a fault. NULL is allowed. */
void comms_end(struct comms *comms, bool orderly);

/* Waits for that until `until_us` on the monotonic clock; false: it hangs. True of NULL. */
bool comms_wait(struct comms *comms, uint64_t until_us);

/* Waits likewise and frees, or leaves all to the ender: false. Nobody else uses it any more. After
 * comms_end; accepts NULL. */
bool comms_close(struct comms *comms, uint64_t until_us);

#endif
