/* SPDX-License-Identifier: Apache-2.0
 * The mesh peer for replicas on devices. It has a host mesh inside: all collectives of buffers in
 * the host's memory go there, and so does the agreement on each call, so that calls that differ are
 * named and never hang (protocol, rule 14). Data in devices' memory go one of two ways, the same on
 * all replicas of a generation:
 *
 *    connected   NCCL, one communicator rank a replica, enqueued on the device's comm stream
 *    otherwise   through the host: copied to page-locked memory, the host mesh, copied back. Then a
 *                replica's buffers may be in its device's memory and another's in the host's.
 *
 * All tasks of a generation use this table, or none does: calls of more than 8 MiB in a mesh that
 * is not connected begin with an exchange of all on whether any of them is on a device. A task
 * whose replicas are all on the host gives no devices.
 *
 * A replica that does not come to a collective is named to those that wait (`stalled`, the timeout)
 * as on the host, since the agreement is there. Once all have come, mesh_device_synchronize waits,
 * and calls `stalled` with the own rank while the devices of all local replicas are in a collective
 * that others' are not done with; a task whose device is still at its own work does not call it.
 * When the time is over, the error names the replica whose device did not come, if it is one.
 *
 * Connected, sums have NCCL's order, which is not the canonical one: the same on all replicas, and
 * in each run with the same devices and settings. Types that NCCL does not reduce (i16, u16) are
 * staged.
 *
 * "In place" means for buffers on a device: in the order of its comm stream. The caller orders:
 * comm after what made the input, and what uses the result after comm (device_order). */
#ifndef CADRE_WORKER_MESH_MESH_DEVICE_H
#define CADRE_WORKER_MESH_MESH_DEVICE_H

#include "worker/library/device/device.h"
#include "worker/library/mesh/mesh.h"

extern const struct mesh_ops mesh_device_ops;

/* Sets whether any replica of the generation is on a device. Until that is agreed, a mesh of
 * several tasks gets `false` and takes host memory only, as the host mesh does; then all tasks set
 * the same, between two collectives. A new mesh assumes true. No effect on any other mesh. */
void mesh_device_expect(struct mesh *mesh, bool devices);

/* The key of what a task can do, which all tasks exchange when a generation begins: equal keys of
 * all tasks, other than 0, mean that the mesh may be connected. 0: a local replica is on the host,
 * two are on one device, or there is no library; *ret_reason (static) is which. */
uint64_t mesh_device_offer(struct device *const devices[], uint32_t count, const char **ret_reason);

/* Connects the replicas' devices: all local replicas of all tasks call it, once, before any other
 * use of the mesh at the same time. The id is made by the task of rank 0, new for each generation
 * (protocol, rule 13), and is sent through the host mesh, whose connections are proven; it is never
 * written anywhere. CADRE_OK also when the devices cannot be connected, for a reason that all tasks
 * have (two tasks use one GPU, NCCL refuses, or is not ready within `timeout_us`):
 * mesh_device_reason returns it, and the other way is taken. Anything else as of a collective:
 * ABORTED, DEADLINE_EXCEEDED (`timeout_us`), ... */
cadre_status mesh_device_connect(
    struct mesh *mesh, uint32_t local_replica, uint64_t timeout_us, struct cadre_error *error);

/* "" when it is connected, or no mesh for devices; else why not, as text for people. Final, and for
 * any thread that has seen mesh_device_connect return. */
const char *mesh_device_reason(const struct mesh *mesh);

/* Waits until all that this replica enqueued is done on its device, comm and compute streams alike;
 * after that a step may be committed (protocol, rule 10). CADRE_OK; how it failed; the mesh's fault
 * when it is aborted meanwhile; DEADLINE_EXCEEDED when a collective is not done within the mesh's
 * time. Of any other mesh CADRE_OK at once. */
cadre_status mesh_device_synchronize(
    struct mesh *mesh, uint32_t local_replica, struct cadre_error *error);

/* The same, and for the compute streams of `count` other devices that the replica uses. */
cadre_status mesh_device_synchronize_all(struct mesh *mesh, uint32_t local_replica,
    struct device *const others[], uint32_t count, struct cadre_error *error);

/* After an abort: waits until the communicators are destroyed and the devices' streams idle, at
 * most `timeout_us`. False: a device hangs, and nothing in this process can end that. */
bool mesh_device_await_idle(struct mesh *mesh, uint64_t timeout_us);

/* NCCL's handle of this replica, which the program may use until mesh_device_comm_returned: for so
 * long, but at most 2 s, its communicators are not aborted. FAILED_PRECONDITION, with
 * mesh_device_reason, when there is none. In the thread that calls for the replica. */
cadre_status mesh_device_comm(
    struct mesh *mesh, uint32_t local_replica, void **ret_comm, struct cadre_error *error);

/* The program uses no handle any more, if it had one. `well` false, it failed: the error of the
 * communicators, or the mesh's fault, because that may be the cause. */
cadre_status mesh_device_comm_returned(
    struct mesh *mesh, uint32_t local_replica, bool well, struct cadre_error *error);

/* --- groups: replicas that use several devices, and communicators of these for the program's own
 * calls. They have the lifetime of the mesh's own, whose devices are connected. --- */

enum mesh_device_group_kind {
    MESH_DEVICE_ACROSS, /* one device of each replica; of number 0 the replicas' communicator */
    MESH_DEVICE_WITHIN  /* all devices of one replica, in each replica */
};

struct mesh_device_group {
    enum mesh_device_group_kind kind;
    uint32_t number; /* ACROSS: which one of them */
    uint32_t each;   /* devices of each replica, at most DEVICES_MAX */
    /* [local replica][each]; the first is the replica's own, and none is listed twice. Borrowed for
     * the call. */
    struct device *const *devices;
};

/* Whether this replica has called mesh_device_form for this group in this mesh: then all have. True
 * of a group that needs no forming, and where there can be none. */
bool mesh_device_formed(
    struct mesh *mesh, uint32_t local_replica, const struct mesh_device_group *group);

/* All local replicas of all tasks call it, in the order of collectives, and with `note`, as of one.
 * An id that several tasks need is sent through the host mesh. CADRE_OK also where NCCL refuses, or
 * is not ready in time, or where two replicas would be on one device: then all have the reason. */
cadre_status mesh_device_form(struct mesh *mesh, uint32_t local_replica,
    const struct mesh_device_group *group, const struct mesh_note *note, struct cadre_error *error);

/* NCCL's handle of one of this replica's devices, which counts WITHIN. FAILED_PRECONDITION, with
 * the reason: there is none. */
cadre_status mesh_device_group_comm(struct mesh *mesh, uint32_t local_replica,
    const struct mesh_device_group *group, uint32_t device, void **ret_comm,
    struct cadre_error *error);

#endif
