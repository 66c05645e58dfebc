/* SPDX-License-Identifier: Apache-2.0
 * Plain programs: what a program written for MPI, or for NCCL with a bootstrap of its own, needs to
 * be a job of Cadre, and nothing more. It is one process a task, keeps its own loop, memory and
 * checkpoints, and never sees a strategy, a step or a replica.
 *
 *     MPI_Init(&argc, &argv)              cadre_plain_init(&argc, &argv)
 *     MPI_Comm_rank, MPI_Comm_size        cadre_rank(), cadre_world_size()
 *     (MPI_COMM_TYPE_SHARED)              cadre_plain_local_rank(), cadre_plain_local_size()
 *     MPI_Barrier(MPI_COMM_WORLD)         cadre_plain_barrier()
 *     MPI_Bcast(x, n, MPI_FLOAT, 0, ...)  cadre_plain_broadcast(x, n, CADRE_F32, 0)
 *     MPI_Allreduce(x, y, n, ...)         cadre_plain_all_reduce(x, y, n, CADRE_F32, CADRE_SUM)
 *       (MPI_IN_PLACE)                      the same with NULL for x
 *     MPI_Allgather(x, n, ..., y, ...)    cadre_plain_all_gather(x, y, n, CADRE_F32)
 *     MPI_Reduce_scatter_block(x, y, ...) cadre_plain_reduce_scatter(x, y, n, CADRE_F32, CADRE_SUM)
 *     MPI_Send, MPI_Recv                  cadre_plain_send(x, n, CADRE_F32, to), cadre_plain_recv
 *     MPI_Sendrecv                        cadre_plain_send_recv
 *     MPI_Comm_split                      cadre_plain_split, in cadre/plain_group.h
 *     MPI_Finalize()                      return cadre_plain_finish()
 *
 * It runs by hand (alone), under `cadre run -n 4`, submitted, and on the addresses of TF_CONFIG or
 * Slurm, like any other program.
 *
 * All tasks make the same calls in the same order, with the same sizes and types. Where they
 * disagree all of them get INVALID_ARGUMENT, which names two that differ; no task gets a wrong sum.
 * A call with an invalid argument counts as one that differs, so no task waits for it. Results are
 * made in one order, that of the ranks and hosts: the same bits on all tasks and in every run,
 * other ones with another number of tasks.
 *
 * Loss. The job does not go on without a task: it has no state that others could take over. When
 * one is lost every call of the others returns ABORTED, which names it, and so does every later
 * one (the same for DEADLINE_EXCEEDED, a task that did not come in CADRE_COLLECTIVE_TIMEOUT_S, and
 * UNAVAILABLE, CANCELLED). What is left to do is to end with a status other than 0. As long as
 * `--max-restarts` allows, all tasks are then started again together, from the beginning of the
 * program, which goes on from the state that it saved (cadre_plain_save). All get SIGTERM at once,
 * and SIGKILL after the job's grace: a program that has to do something first handles SIGTERM. A
 * worker that is lost or drained is not counted. By hand nothing is started again.
 *
 * Calls are made by one thread at a time, of the program's main part; FAILED_PRECONDITION names
 * what is under way, or says that cadre_plain_init or cadre_plain_finish is before or behind it. */
#ifndef CADRE_PLAIN_H
#define CADRE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/status.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First call of a plain program, once: does what cadre_init does, unless that was called, and waits
 * until all tasks of the job are there. The arguments are left as they are; both may be NULL.
 * Errors are those of cadre_init and of cadre_strategy_default; FAILED_PRECONDITION also when the
 * job was started with several replicas in each task, or the process has a strategy: it has one of
 * the two, so afterwards none can be made (FAILED_PRECONDITION), nor behind cadre_plain_finish. A
 * task of an elastic job that comes when the others have begun waits here for their next save, at
 * which all begin again with it: this process then gets CANCELLED, which CADRE_CHECK exits with
 * CADRE_EXIT_PREEMPTED for, and is started again with the others. Their number is constant from
 * here on. (MPI_Init.) */
CADRE_API cadre_status cadre_plain_init(int *argc, char ***argv);

/* The number of this task among those of its host, from 0; 0 before cadre_plain_init. To choose a
 * GPU by, of those that the task can see: where a worker or `cadre run` shares them out, each task
 * sees its own only, the first of which is number 0. Any thread. (The rank in a communicator of
 * MPI_COMM_TYPE_SHARED.) */
CADRE_API uint32_t cadre_plain_local_rank(void);

/* How many tasks of the job are on this host; 1 before cadre_plain_init. Any thread. */
CADRE_API uint32_t cadre_plain_local_size(void);

/* Returns when all tasks have called it. (MPI_Barrier.) */
CADRE_API cadre_status cadre_plain_barrier(void);

/* From `data` of task `root` to `data` of all, `count` elements of any type but CADRE_STRING; of
 * CADRE_U8 any bytes: a secret, a struct. They travel over the job's own connections, which only
 * its tasks can make, and which are not encrypted. An id of rank 0 is all that NCCL needs of a
 * bootstrap:
 *
 *     ncclUniqueId id;
 *     int gpus;
 *     if (cadre_rank() == 0) { ncclGetUniqueId(&id); }
 *     CADRE_CHECK(cadre_plain_broadcast(&id, sizeof id, CADRE_U8, 0));
 *     cudaGetDeviceCount(&gpus);
 *     cudaSetDevice((int)cadre_plain_local_rank() % gpus);
 *     ncclCommInitRank(&comm, (int)cadre_world_size(), id, (int)cadre_rank());
 *
 * (MPI_Bcast.) */
CADRE_API cadre_status cadre_plain_broadcast(
    void *data, size_t count, cadre_dtype dtype, uint32_t root);

/* Combines `count` elements of all tasks, into `into` of each. `from`: apart from `into`, or NULL
 * for what lies there (MPI_IN_PLACE). Number types; CADRE_MEAN, the sum divided by the number of
 * tasks, needs a floating one. After an error `into` is undefined. (MPI_Allreduce.) */
CADRE_API cadre_status cadre_plain_all_reduce(
    const void *from, void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op);

/* `count` elements of each task, one task after the other, into `into` of all, which holds
 * cadre_world_size() times as many and does not overlap `from`. Any type but CADRE_STRING.
 * (MPI_Allgather.) */
CADRE_API cadre_status cadre_plain_all_gather(
    const void *from, void *into, size_t count, cadre_dtype dtype);

/* Combines the vectors of all tasks and shares the result out: `from` is cadre_world_size() parts
 * of `count` elements each, one for each task in the order of ranks; the combined part of this task
 * goes `into`, which holds `count` and does not overlap `from`. It has the bits that
 * cadre_plain_all_reduce gives there, for less to send: of a gradient each task gets the part whose
 * weights it keeps, and cadre_plain_all_gather puts the new weights together. Types and operations
 * are those of cadre_plain_all_reduce; `from` is not changed. After an error `into` is undefined.
 * (MPI_Reduce_scatter_block, ncclReduceScatter.) */
CADRE_API cadre_status cadre_plain_reduce_scatter(
    const void *from, void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op);

/* --- Messages between two tasks. Both name the same number of elements of the same type, and the
 * two meet: a send returns when the other task has the message, a receive when it has come.
 * Messages from one task to another arrive in the order in which they were sent. Where the two
 * differ, by their sizes or types or because both of them send, both get INVALID_ARGUMENT, which
 * names both calls; no task gets a message of another size. One that waits for a call that never
 * comes gets DEADLINE_EXCEEDED after CADRE_COLLECTIVE_TIMEOUT_S, which names the other task.
 *
 * Two tasks connect when they exchange their first message, and keep a connection and a thread for
 * it; on one host messages go through shared memory. A sum over many tasks is a collective: faster
 * than the messages that it would take. --- */

/* In the place of a task: there is none. Nothing is sent or received then, and the memory stays as
 * it is: at the ends of a row of tasks. (MPI_PROC_NULL.) */
#define CADRE_PLAIN_NO_TASK UINT32_MAX

/* `count` elements of any type but CADRE_STRING, to task `to`. INVALID_ARGUMENT: there is no such
 * task, or it is this one. (MPI_Ssend, ncclSend.) */
CADRE_API cadre_status cadre_plain_send(
    const void *data, size_t count, cadre_dtype dtype, uint32_t to);

/* The message of task `from` into `data`. After an error `data` is undefined. (MPI_Recv,
 * ncclRecv.) */
CADRE_API cadre_status cadre_plain_recv(void *data, size_t count, cadre_dtype dtype, uint32_t from);

/* Sends and receives at once: to the next of a ring and from the one before, or with the same task,
 * which makes this call too. Where each task sends first, all of them wait; with this call none
 * does. `sent` and `received` are apart. `to` and `from` may both be this task: a copy.
 * (MPI_Sendrecv; ncclSend and ncclRecv in one group.) */
CADRE_API cadre_status cadre_plain_send_recv(const void *sent, size_t sent_count, uint32_t to,
    void *received, size_t received_count, uint32_t from, cadre_dtype dtype);

/* Memory that tasks of this host share without the program's doing: collectives on it copy nothing
 * on the way. Any other memory does too, at the price of a copy: cadre_plain_all_reduce copies
 * straight between the tasks where the system lets them (process_vm_readv(2): processes of one
 * user, kernel.yama.ptrace_scope 0), through memory in between elsewhere. Aligned to
 * CADRE_TENSOR_ALIGN, not set; NULL: there is none. Any thread; it may outlive cadre_plain_finish.
 * (MPI_Alloc_mem.) */
CADRE_API void *cadre_plain_alloc(size_t bytes);

/* Frees what cadre_plain_alloc gave; NULL does nothing. Any thread. (MPI_Free_mem.) */
CADRE_API void cadre_plain_free(void *memory);

/* Called when a task is lost or the job has ended. `reason` is borrowed for the call. */
typedef void (*cadre_abort_function)(cadre_status status, const char *reason, void *user);

/* Has `function` called once, by a thread of the library, as soon as calls can only fail: for a
 * program that waits elsewhere, in a collective of NCCL, and has to be released from it
 * (ncclCommAbort). At once when that is so already; never when all goes well. While it runs the
 * program goes on: what both touch is theirs to guard. It may end the process (_exit); it makes no
 * calls of this header but those of any thread. cadre_plain_finish waits for it.
 * FAILED_PRECONDITION: there is one already. */
CADRE_API cadre_status cadre_on_abort(cadre_abort_function function, void *user);

/* Reports how far the program is: in `cadre submit`, `cadre job` and, by hand, on a terminal.
 * `steps`: of how many, no fewer than `step` (INVALID_ARGUMENT); 0: not known. At most four times a
 * second something is sent; of rank 0 only: what another task gives is not shown. */
CADRE_API cadre_status cadre_plain_progress(uint64_t step, uint64_t steps);

/* Reports a number under a name, as cadre_report does, in the same places and as often. Its step is
 * the one that cadre_plain_progress named last; without one it is how often the name was reported
 * that was reported most. When the named step goes back, the values of that step and of all after
 * it are replaced: so after a restart, and not in each epoch. TensorBoard's event files
 * (cadre/summary.h) have the same steps. */
CADRE_API cadre_status cadre_plain_report(const char *name, double value);

/* --- State that outlives the tasks. A job's tasks have a folder each, of one incarnation, so what
 * a program needs to go on from is kept by the job: at the coordinator (or in the job's checkpoint
 * folder), as a checkpoint is, on whatever hosts the tasks are afterwards. By hand it is kept in
 * the output folder (CADRE_OUTPUT_DIR).
 *
 *     void *state;
 *     size_t size;
 *     cadre_status status = cadre_plain_load("model", 0, &state, &size);
 *     if (status == CADRE_NOT_FOUND) { begin(); } else { CADRE_CHECK(status); go_on_from(state); }
 *     ...
 *     CADRE_CHECK(cadre_plain_save("model", cadre_rank() == 0 ? weights : NULL, bytes_of_rank_0));
 *
 * A state consists of parts, each of a task and with a name; it has what the tasks gave it in one
 * collective call, and counts as a whole or not at all: a task that is killed meanwhile leaves the
 * state before. The newest ones are kept (`--keep-checkpoints`). Each ends one step of the job, and
 * what follows the last one is a step more: the first is checkpoint-1.safetensors, whose tensors
 * are called "NAME/RANK", and .json. The job's tasks that are started again find the newest state,
 * and so do those of a job that is started with `cadre submit --restore JOB[@STEP]`, `cadre run
 * --restore FILE` and, by hand, CADRE_RESTORE, with any number of tasks. --- */

/* Makes `size` bytes of each task, under `name`, the state of the job; NULL and 0 for a task that
 * has none. Collective. On success it is kept and the one before may be removed; on any error, the
 * same on all tasks, that one still counts. `name`: 1 to 127 bytes of printable ASCII; tasks may
 * give different ones. INVALID_ARGUMENT names the task whose argument is refused;
 * RESOURCE_EXHAUSTED, PERMISSION_DENIED and others: rank 0 could not write it, with the file.
 *
 * CANCELLED, on all tasks: the state was saved, and the job goes on from it in other processes.
 * CADRE_CHECK and cadre_plain_finish end this one with CADRE_EXIT_PREEMPTED, which counts as no
 * failure. There are two messages:
 * "tasks join or leave, and all begin again: saved at step S": in an elastic job (`-n MIN:MAX`)
 * tasks have come to the others, all that came until now; or some have to leave their host (`cadre
 * drain`), and there is room elsewhere. All are started again, and come out of cadre_plain_init
 * with their new number. A program that never saves takes in no task.
 * "preempted: saved at step S": the job has to leave its hosts, and waits in the queue. A job that
 * comes to no save within the coordinator's `--grace` goes on from its newest state. */
CADRE_API cadre_status cadre_plain_save(const char *name, const void *bytes, size_t size);

/* The bytes that the task of `rank` gave under `name`, of the state that this task was started
 * with; what was saved since is not read back. *ret_bytes is the caller's to free(), and is not
 * NULL, also where *ret_size is 0. Not collective. NOT_FOUND: the job has no state, it begins from
 * the start, and nothing else is NOT_FOUND. DATA_LOSS: the state is damaged. INVALID_ARGUMENT: it
 * has no such name, or no such rank: the error says which there are. FAILED_PRECONDITION: it is of
 * a program with a strategy. PERMISSION_DENIED: the file may not be read. RESOURCE_EXHAUSTED. */
CADRE_API cadre_status cadre_plain_load(
    const char *name, uint32_t rank, void **ret_bytes, size_t *ret_size);

/* How many tasks gave the state that this task was started with: their ranks are 0 to one less.
 * *ret_tasks 0, and OK: the job has none. Errors are those of cadre_plain_load. */
CADRE_API cadre_status cadre_plain_saved_tasks(uint32_t *ret_tasks);

/* The same piece by piece, for a state that is not in memory at once, or that has several parts. */
typedef struct cadre_plain_state cadre_plain_state;

/* A state of this task that is to be saved. *ret_state is ended by cadre_plain_state_commit, or by
 * cadre_plain_state_close, which drops it. Not collective. */
CADRE_API cadre_status cadre_plain_state_begin(cadre_plain_state **ret_state);

/* Appends to the part `name`, which is the last one, or a new one of at most 256. The bytes go to a
 * file without a name in the output folder. After an error the commit fails on all tasks. */
CADRE_API cadre_status cadre_plain_state_write(
    cadre_plain_state *state, const char *name, const void *bytes, size_t size);

/* cadre_plain_save of all that was written, of this task and of the others. Collective; ends
 * `state`, whether it succeeds or not. NULL is a task that has nothing. */
CADRE_API cadre_status cadre_plain_state_commit(cadre_plain_state *state);

/* Opens a part to be read; *ret_size are its bytes. Errors are those of cadre_plain_load, but for
 * damage, which is found where it is read. */
CADRE_API cadre_status cadre_plain_state_open(
    const char *name, uint32_t rank, cadre_plain_state **ret_state, uint64_t *ret_size);

/* The next bytes of the part, at most `size`; *ret_read fewer only at its end, then 0. DATA_LOSS
 * names the block that is damaged. */
CADRE_API cadre_status cadre_plain_state_read(
    cadre_plain_state *state, void *into, size_t size, size_t *ret_read);

/* Ends one that is read, or drops one that was not committed. Accepts NULL. */
CADRE_API void cadre_plain_state_close(cadre_plain_state *state);

/* The end: waits until all tasks have come to it and the coordinator has recorded that. Returns
 * what main should return: 0, CADRE_EXIT_PREEMPTED after a preemption, or 1 after printing to
 * stderr why not. A program that returns from main with 0 and without this call has succeeded when
 * all tasks do that. (MPI_Finalize.) */
CADRE_API int cadre_plain_finish(void);

#ifdef __cplusplus
}
#endif
#endif
