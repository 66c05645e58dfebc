/* SPDX-License-Identifier: Apache-2.0
 * Groups of the tasks of a plain program (cadre/plain.h): collectives and messages among some of
 * them. Eight tasks as two pipelines of four stages, each stage of which sums its gradients with
 * that of the other pipeline:
 *
 *     cadre_plain_group *pipeline;
 *     cadre_plain_group *stage;
 *     CADRE_CHECK(cadre_plain_split(cadre_rank() / 4, 0, &pipeline));
 *     CADRE_CHECK(cadre_plain_split(cadre_rank() % 4, 0, &stage));
 *     ...
 *     CADRE_CHECK(cadre_plain_group_all_reduce(stage, NULL, gradient, n, CADRE_F32, CADRE_SUM));
 *
 *     MPI_Comm_split(comm, color, key, &sub)   cadre_plain_split, cadre_plain_group_split
 *     MPI_Comm_rank, MPI_Comm_size             cadre_plain_group_rank, cadre_plain_group_size
 *     MPI_Allreduce(..., sub)                  cadre_plain_group_all_reduce(sub, ...)
 *     MPI_Comm_free(&sub)                      cadre_plain_group_close(sub)
 *
 * The functions do among the tasks of a group what those of cadre/plain.h do among all, and ranks
 * in their arguments are those of the group. The rules there hold here: all tasks of a group make
 * the same calls of it in the same order; where they disagree all of the group get
 * INVALID_ARGUMENT. Calls of different groups are not compared, so two tasks that call those of two
 * groups in different orders wait for each other, until CADRE_COLLECTIVE_TIMEOUT_S is over. Errors
 * name tasks by cadre_rank(). The loss of any task of the job ends the calls of all groups.
 *
 * A group has connections of its own, whose key is made from the job's, and in each task a thread.
 * INVALID_ARGUMENT is also a group that is NULL or was closed. Calls are made by one thread at a
 * time, as those of cadre/plain.h. */
#ifndef CADRE_PLAIN_GROUP_H
#define CADRE_PLAIN_GROUP_H

#include "cadre/plain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Some of the tasks of a program, this one among them, with ranks from 0 on. */
typedef struct cadre_plain_group cadre_plain_group;

/* The color of a task that is to be in no group. (MPI_UNDEFINED.) */
#define CADRE_PLAIN_NO_GROUP UINT32_MAX

/* Divides all tasks of the job into groups: those that give the same `color` are one. Their ranks
 * are in the order of `key`, of equal keys in that of the ranks in the job. Collective over all
 * tasks. *ret_group is NULL where `color` is CADRE_PLAIN_NO_GROUP; else it is the caller's to
 * close, and cadre_plain_finish closes those that are left. (MPI_Comm_split.) */
CADRE_API cadre_status cadre_plain_split(
    uint32_t color, uint32_t key, cadre_plain_group **ret_group);

/* Divides the tasks of a group: collective over it. (MPI_Comm_split.) */
CADRE_API cadre_status cadre_plain_group_split(
    cadre_plain_group *group, uint32_t color, uint32_t key, cadre_plain_group **ret_group);

/* The rank of this task in the group; 0 also after misuse, then cadre_error_message says why.
 * (MPI_Comm_rank.) */
CADRE_API uint32_t cadre_plain_group_rank(const cadre_plain_group *group);

/* How many tasks the group has; 0 after misuse. (MPI_Comm_size.) */
CADRE_API uint32_t cadre_plain_group_size(const cadre_plain_group *group);

/* cadre_plain_barrier among the tasks of the group. */
CADRE_API cadre_status cadre_plain_group_barrier(cadre_plain_group *group);

/* cadre_plain_broadcast from rank `root` of the group to all of it. */
CADRE_API cadre_status cadre_plain_group_broadcast(
    cadre_plain_group *group, void *data, size_t count, cadre_dtype dtype, uint32_t root);

/* cadre_plain_all_reduce among the tasks of the group. */
CADRE_API cadre_status cadre_plain_group_all_reduce(cadre_plain_group *group, const void *from,
    void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op);

/* cadre_plain_all_gather among the tasks of the group: `into` holds cadre_plain_group_size() times
 * `count` elements. */
CADRE_API cadre_status cadre_plain_group_all_gather(
    cadre_plain_group *group, const void *from, void *into, size_t count, cadre_dtype dtype);

/* cadre_plain_reduce_scatter among the tasks of the group: `from` holds cadre_plain_group_size()
 * times `count` elements. */
CADRE_API cadre_status cadre_plain_group_reduce_scatter(cadre_plain_group *group, const void *from,
    void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op);

/* cadre_plain_send to rank `to` of the group. Messages of a group are apart from those that the two
 * tasks exchange outside of it. */
CADRE_API cadre_status cadre_plain_group_send(
    cadre_plain_group *group, const void *data, size_t count, cadre_dtype dtype, uint32_t to);

/* cadre_plain_recv from rank `from` of the group. */
CADRE_API cadre_status cadre_plain_group_recv(
    cadre_plain_group *group, void *data, size_t count, cadre_dtype dtype, uint32_t from);

/* cadre_plain_send_recv with ranks of the group. */
CADRE_API cadre_status cadre_plain_group_send_recv(cadre_plain_group *group, const void *sent,
    size_t sent_count, uint32_t to, void *received, size_t received_count, uint32_t from,
    cadre_dtype dtype);

/* Ends the group for this task. The others' next call of it is ABORTED, which ends their program's
 * calls as the loss of a task does: so all close it after the same call. Groups that were made of
 * it stay. Accepts NULL. (MPI_Comm_free.) */
CADRE_API void cadre_plain_group_close(cadre_plain_group *group);

#ifdef __cplusplus
}
#endif
#endif
