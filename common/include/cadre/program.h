/* SPDX-License-Identifier: Apache-2.0
 * A program's beginning and end, and what it tells people in between.
 *
 * The same executable runs by hand (`./digits`: this process is the whole job, no network), under
 * `cadre run -n 2 ./digits`, and submitted to a cluster; it learns which from its environment.
 *
 * Programs that are started by hand on several addresses find each other without any daemon. Who
 * they are is read from TF_CONFIG (cadre/cluster_resolver.h), else from what Slurm sets for the
 * tasks of `srun`, or said by cadre_cluster_resolver_use. The cluster's chief and workers, if there
 * are several, are then one job of so many tasks, and task 0, the chief or worker 0, holds it
 * together: it listens on its address of the cluster, and the others connect there.
 *  - The strategy waits until all are there: CADRE_CLUSTER_WAIT_S seconds (300), then it fails
 *    with DEADLINE_EXCEEDED, which names those that are missing.
 *  - A program that ends or whose connection breaks is a task that is lost. The others wait for
 *    another program in its place for CADRE_CLUSTER_GRACE_S seconds (30), started by hand with
 *    the same settings, which joins them between two steps; then they fail with UNAVAILABLE,
 *    which names it. Without task 0 they fail at once. Nothing starts by itself.
 *  - Where not all addresses are of loopback, all must have the same file of at least 32 random
 *    bytes in CADRE_CLUSTER_KEY_FILE, and prove it to each other (UNAUTHENTICATED), or all
 *    CADRE_CLUSTER_INSECURE=1: then any client that reaches the ports can join it, read what it
 *    computes and change it. Else FAILED_PRECONDITION. In either case what is sent is not
 *    encrypted.
 *  - Two programs as one task are ALREADY_EXISTS; with other addresses than task 0 has, or
 *    another checkpoint in CADRE_RESTORE, FAILED_PRECONDITION.
 *  - Each task's replicas meet the others' on the host of its own address, or on CADRE_MESH_HOST
 *    (an address of this host by number). Under Slurm the ports begin with CADRE_CLUSTER_PORT
 *    (8888); when SLURM_PROCID and SLURM_NTASKS tell of several tasks, and no list of their
 *    hosts is set, cadre_init gives FAILED_PRECONDITION.
 *  - With "ps" tasks the strategy says which tasks the job has. One with parameter servers
 *    (cadre/parameter_server.h) has one chief, task 0, then the workers, then the ps tasks, then
 *    the evaluator when the cluster has that job; all are waited for at the start. What a ps held
 *    is lost with its process: no other keeps it. A multi-worker mirrored one is of the chief,
 *    if there is one, and the workers, and leaves the ps tasks out. Without a chief or a worker
 *    only the latter can be made; all else is FAILED_PRECONDITION, which says what is missing.
 *  - In a cluster without them an evaluator is a job by itself, and so is every program with
 *    CADRE_CLUSTER=none. Under a daemon all of this is passed over. */
#ifndef CADRE_PROGRAM_H
#define CADRE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/strategy.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First call of a program, once; FAILED_PRECONDITION the second time. Reads the environment
 * that a daemon set and connects to it. By hand these variables count: CADRE_REPLICAS, the
 * number of replicas, beside parameter servers of each worker (0 to 256; 0: what the program
 * asks for); CADRE_OUTPUT_DIR, the folder for checkpoints; CADRE_RESTORE, the manifest of a
 * checkpoint to go on from, or a folder of which the newest whole one is taken, with a warning
 * when a newer one is damaged; CADRE_CHECKPOINT_EVERY, _DIR and CADRE_CHECKPOINTS_KEPT
 * (cadre/checkpoint.h). Always CADRE_COLLECTIVE_TIMEOUT_S counts: how many seconds a
 * collective waits for a replica that does not come (default 1800, 0: for ever; a deadline in
 * time of no progress). By hand it fails then with DEADLINE_EXCEEDED, in a job the tasks form
 * a new generation without those that do not answer. A replica that the others of its own
 * process wait for is named on stderr after 10 s, in a job also by the coordinator; at that
 * limit and one second more at most, if it has not come until then, the process ends with
 * status 1 and that sentence, since a thread cannot be stopped (in a job the task is
 * replaced). CADRE_VERIFY_STATE is how many steps lie between two comparisons of the replicas'
 * states, or off; unless it is set, as many as make them cost a hundredth of the training's
 * time. All variables are compared (of those that are combined when read the totals) and
 * registered state, by a hash. Of variables that no step writes each comparison looks at an
 * eighth, so that all of them are compared within eight; and at all where a checkpoint is
 * taken. By hand a difference is DATA_LOSS, from the collective where it was found and all
 * that follows; it names the replica that is not as most, and what differs. In a job all tasks
 * are started again from the newest checkpoint. A task that joins or leaves a job is compared
 * before. What a task held that is lost is not: CADRE_VERIFY_LOSSES=on has the job go on from
 * what was compared, most often a checkpoint, instead of the others' position.
 * INVALID_ARGUMENT names the variable that holds a malformed value, or what is wrong in
 * TF_CONFIG; FAILED_PRECONDITION says which versions of the frames the program and the daemon
 * use when they differ; UNAVAILABLE when the daemon is not there. The arguments are left as
 * they are; both pointers may be NULL.
 *
 * Where standard output is a pipe, as in a task, each line is written when its newline is printed,
 * so that it is seen at once and is kept when the task is killed. C alone would keep 4 KiB back. A
 * program that has chosen its buffering before, by setvbuf or under stdbuf(1), or sets it
 * afterwards, has its own; so has one that writes to a file.
 *
 * From then on a program that dies of SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT says on stderr
 * where: the thread, the call stack, and in the last line, which a job's message then holds, the
 * signal and the function ("cadre: SIGSEGV at address 0x0 in train_step (digits+0x1234)"). Core
 * dump and exit status are as ever. A signal for which the program has a handler, before or after
 * this call, is left to it; CADRE_BACKTRACE=0: all are. Threads of Cadre can tell that their stack
 * overflowed; one that the program starts can when it has a sigaltstack(2). Functions are named
 * from the program's symbols (not after strip(1)), lines are named by addr2line as it says. */
CADRE_API cadre_status cadre_init(int *argc, char ***argv);

/* This task's rank, 0 to cadre_world_size() - 1, as it is now: it changes between steps when tasks
 * are lost or join. A task that has not joined yet is the last. Before there is a strategy the rank
 * is not decided: 0; after its end it stays what it was. Any context and thread. (MPI_Comm_rank;
 * tf.distribute.cluster_resolver.ClusterResolver.task_id.) */
CADRE_API uint32_t cadre_rank(void);

/* The number of tasks of the job, as it is now: it changes as ranks do. A task that has not joined
 * yet counts itself in. Any context and thread. (MPI_Comm_size.) */
CADRE_API uint32_t cadre_world_size(void);

/* Reports a number about the training to the user, under a name of 1 to 127 printable ASCII
 * characters without <, > and & (INVALID_ARGUMENT); at most 16 names (RESOURCE_EXHAUSTED, also
 * without memory). The newest value is shown beside the progress of the dataset whose epoch was
 * begun first (the count of steps, where there is none), at most four times a second: in the
 * progress bar of a program run by hand, in `cadre submit` and `cadre job` else.
 *
 * Of a submitted job each value is kept, with the number of steps that are applied: `cadre metrics`
 * shows them, and cadre_client_metrics(). The newest value of a step counts, and when steps are
 * undone and done again, those of the newest time. Any double; NaN is shown as such. What the chief
 * reports counts; when the other tasks report the same, nothing is lost with the chief.
 * Cross-replica context. (tf.summary.scalar.) */
CADRE_API cadre_status cadre_report(cadre_strategy *strategy, const char *name, double value);

/* Whether a program that was started by hand shows its progress on stderr: a bar on a terminal, one
 * line per epoch elsewhere. True at first. Cross-replica context. */
CADRE_API void cadre_show_progress(cadre_strategy *strategy, bool show);

/* The orderly end, collective over the tasks: the chief writes the variables to
 * checkpoint-<position>.safetensors in the output folder (CADRE_OUTPUT_DIR, by default the
 * working folder), then all wait until the coordinator has recorded the end. A program that was
 * started by hand leaves no such files unless this is set: by CADRE_OUTPUT_DIR or another variable
 * about checkpoints (cadre/checkpoint.h), or by a cadre_save before. When a task is lost meanwhile
 * the others end without it. Ends the strategy as cadre_strategy_release does, also on failure.
 * Functions of the program that read ahead are waited for, 10 s for each dataset: one that does not
 * return (a generator whose input does not come) is named on stderr and left alone; what it uses
 * must then not be freed. Returns what main should return: 0; CADRE_EXIT_PREEMPTED (42,
 * cadre/preemption.h) when the job was preempted, then it writes nothing; or 1 after printing to
 * stderr why not: a sticky error of a dataset, a last step that failed (what was before it is
 * saved), a failure of the end itself, or a call where it is not allowed (in a replica function,
 * while another call with the strategy has not returned, or with one that has ended), which ends
 * nothing. A program that ends with status 0 and without this call leaves no checkpoint, and a
 * warning on stderr says so. A task that was replaced in the meantime does not return: its process
 * ends with status 1, since what the program does after its loop is done by the task that replaced
 * it. */
CADRE_API int cadre_finish(cadre_strategy *strategy);

/* Says why a function that the program gave to Cadre (a replica, map or initializer function)
 * fails: leaves the reason, made as printf does, where cadre_error_message finds it, so that a
 * report of the failure gives the reason. Returns `status`, UNKNOWN for a number that is none; with
 * CADRE_OK it does nothing. Any thread; texts are cut at 511 bytes.
 *
 *     return cadre_fail(CADRE_INVALID_ARGUMENT, "label %d is not one of 0 to 9", label);
 */
CADRE_API cadre_status cadre_fail(cadre_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Version of the library that runs, as CADRE_VERSION_TEXT in cadre/version.h of the headers. */
CADRE_API const char *cadre_version(void);

#ifdef __cplusplus
}
#endif
#endif
