/* SPDX-License-Identifier: Apache-2.0
 * What a daemon sets in a program's environment. Absent variables mean a program started by hand.
 *
 *     CADRE_SOCKET      path of the daemon's Unix socket for this task; absent: by hand
 *     CADRE_JOB         number of the job
 *     CADRE_SLOT        this task of the job, from 0
 *     CADRE_INCARNATION number of this process among those of the task, from 1
 *     CADRE_TASKS       tasks of the job, default 1
 *     CADRE_TASKS_MIN   the fewest that it trains with, default CADRE_TASKS
 *     CADRE_REPLICAS    local replicas; 0 or absent: the program's own choice
 *     CADRE_STRATEGY    for cadre_strategy_default: mirrored, multi_worker_mirrored; "" or absent:
 *                       by the number of tasks
 *     CADRE_MESH_HOST   address for the mesh's listener, default 127.0.0.1
 *     CADRE_MESH_PORTS  its port is the first free one of these, "47000:47099"; absent: any
 *     CADRE_OUTPUT_DIR  where the checkpoint goes, default "."; by hand the last one is written
 *                       only if this or one of the last four is set, or the program saved
 *     CADRE_DAEMON_PID  of the daemon, whose SIGTERM is no notice of preemption
 *     CADRE_DAEMON_RETURNS
 *                       1: it may be restarted while the task runs; the task waits for one that is
 *                       absent
 *     CADRE_TASK_FRAME  version of the daemon's frames
 *     CADRE_RESTORE     manifest of the checkpoint to go on from, or by hand a folder of which the
 *                       newest whole one is taken; either may be in an object store; absent: from
 *                       the beginning
 *     CADRE_CHECKPOINT_EVERY
 *                       steps between checkpoints; 0 or absent: only at the end and on demand
 *     CADRE_CHECKPOINT_DIR
 *                       folder for checkpoints on all hosts, or "s3://bucket/key"; absent: the
 *                       output folder
 *     CADRE_CHECKPOINTS_KEPT
 *                       how many are kept, default 3
 *
 * The last four may be set by hand too.
 *
 * A task of a job with parameter servers receives its type. Its CADRE_TASKS is 1, because in the
 * ledger the chief is the only task.
 *
 *     CADRE_TASK_TYPE   chief, worker, ps or evaluator; absent: the job has no parameter servers
 *     CADRE_TASK_INDEX  which one of its type, from 0
 *     CADRE_WORKERS     tasks of these types
 *     CADRE_SERVERS
 *     CADRE_EVALUATORS  0 or 1, default 0
 *     CADRE_SERVER_BACKUPS
 *                       1: each server holds a copy of another one's variables; default 0
 *     CADRE_SERVER_MEMORY
 *                       of a ps: number of the descriptor of the memory that the daemon keeps for
 *                       it; absent: it ends with the process
 *
 * By hand CADRE_WORKERS and CADRE_SERVERS (1 to 64, default 1) are the numbers of threads of the ps
 * job that cadre_strategy_parameter_server makes inside the program.
 *
 * And what a user may set always:
 *
 *     CADRE_PREEMPTION  on or off: whether SIGTERM is a notice of preemption; absent: it is one
 *                       under a daemon
 *
 *     CADRE_VERIFY_STATE
 *                       steps from one comparison of the replicas' states to the next, or off;
 *                       absent: as often as costs a hundredth of the training's time
 *     CADRE_VERIFY_LOSSES
 *                       on: when a task is lost the job goes on from the newest state that was
 *                       compared: a task's if one is at that position, else a checkpoint's;
 *                       default off
 *
 *     CADRE_EVENTS      TensorBoard's event files: off, on, or the absolute path of their folder;
 *                       absent: in the folder events of the output folder, if one was asked for
 *
 *     CADRE_BACKTRACE   0: a crash is not reported on stderr (worker/library/crash); default 1
 *
 *     CADRE_OBJECT_MEMORY_MIB
 *                       mebibytes that datasets may keep of objects in memory, 8 to 1048576 (read
 *                       by worker/library/input/objects); default: a sixteenth of the machine's
 *                       memory, 1024 at most
 *     CADRE_CACHE_FOLDER
 *                       folder on this host's disk for what was read of objects, absolute; absent:
 *                       none is kept there
 *     CADRE_CACHE_MIB   mebibytes that it may take, 64 or more; default 16384
 *
 *     CADRE_OBJECT_NEIGHBOURS
 *                       on: the tasks of a job read each byte of an object from the store once, all
 *                       together, and the others take it from the task that did
 *                       (worker/library/neighbours); default off
 *
 *     CADRE_COLLECTIVE_TIMEOUT_S  how long a collective waits for a replica that does not come, in
 *                                 seconds, default 1800; 0: for ever
 *
 * Programs that are started by hand on the addresses of a cluster (cluster_member.h) take it from
 * TF_CONFIG, else from what Slurm sets for the tasks of srun. The variables of a daemon have
 * precedence over all of that, without a message. They also read:
 *
 *     CADRE_CLUSTER          auto (default), or none: TF_CONFIG and Slurm's variables are passed
 *                            over, and the program is the whole job
 *     CADRE_CLUSTER_PORT     under Slurm: the port of the first task on each host, default 8888;
 *                            tasks of two steps on one host need different ones
 *     CADRE_CLUSTER_WAIT_S   how long all tasks are waited for at the start, default 300
 *     CADRE_CLUSTER_GRACE_S  how long another program is waited for in place of a task that was
 *                            lost, default 30; 0: there is no wait
 *     CADRE_CLUSTER_KEY_FILE a file of 32 bytes or more, the same for all: tasks prove to each
 *                            other that they have it. Needed where they are not all on loopback
 *     CADRE_CLUSTER_INSECURE 1: go without such a file all the same: any process that can connect
 *                            to the ports can join the job
 *     CADRE_MESH_HOST        as above; default: the host of the task's own address in the cluster.
 *                            The first task listens for the others there too
 *     CADRE_MESH_PORTS       as above; the ports in the cluster's own addresses are not of them */
#ifndef CADRE_RUNTIME_API_ENVIRONMENT_H
#define CADRE_RUNTIME_API_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/port_range.h"
#include "common/model/ps_job.h"
#include "common/model/limits.h"

#define ENVIRONMENT_SOCKET_BYTES 108 /* sun_path of struct sockaddr_un */
#define ENVIRONMENT_FOLDER_BYTES 4096

enum event_setting {
    EVENTS_BESIDE_OUTPUTS = 0, /* where an output folder was asked for */
    EVENTS_OFF,
    EVENTS_ON
};

struct environment {
    bool attached; /* other tasks may be there: under a daemon, or in a cluster */
    bool by_hand;  /* no daemon started this program: what people are to see is shown here */
    char socket_path[ENVIRONMENT_SOCKET_BYTES];
    uint64_t job;
    uint32_t slot;
    uint64_t incarnation;
    uint32_t tasks;
    uint32_t tasks_min;
    uint32_t replicas;
    char strategy[LIMIT_NAME_BYTES];
    char mesh_host[LIMIT_ADDRESS_BYTES];
    struct port_range mesh_ports;
    char output_folder[ENVIRONMENT_FOLDER_BYTES];
    bool output_asked;              /* for: by the daemon, or CADRE_OUTPUT_DIR is set */
    bool checkpoints_asked;         /* for: by the daemon, or a variable of checkpoints is set */
    uint64_t collective_timeout_us; /* 0: none */
    char restore_path[ENVIRONMENT_FOLDER_BYTES];      /* "": none */
    char checkpoint_folder[ENVIRONMENT_FOLDER_BYTES]; /* "": the output folder */
    bool checkpoint_own; /* what it goes on from is in the folder where it writes: the same run */
    uint64_t checkpoint_every;
    uint32_t checkpoints_kept;
    bool mesh_host_given;
    bool cluster_ignored;
    bool cluster_insecure;
    char cluster_key_path[ENVIRONMENT_FOLDER_BYTES]; /* "": none */
    uint32_t cluster_port;                           /* 0: the default */
    uint64_t cluster_wait_us;
    uint64_t cluster_grace_us;
    bool verify_off;        /* the replicas' states are not compared */
    bool verify_losses;     /* when a task is lost the job goes on from what was compared */
    uint64_t verify_every;  /* steps; 0: as measured */
    bool object_neighbours; /* bytes of objects come from other tasks, too */
    enum event_setting events;
    char events_folder[ENVIRONMENT_FOLDER_BYTES]; /* "": in the output folder */
    bool backtrace;                               /* of a crash */
    bool preemption;                              /* SIGTERM is a notice */
    int64_t daemon_pid;                           /* 0: none */
    bool daemon_returns;
    enum role role;       /* of this task; NONE: of no ps job */
    uint32_t index;       /* of its role */
    struct ps_job ps_job; /* without a role: what is made by hand */
    int server_memory;    /* a descriptor; -1: none */
};

/* All but what TF_CONFIG and Slurm set. INVALID_ARGUMENT names the variable, its value and the
 * values that are allowed; FAILED_PRECONDITION when the daemon's frames have another version. */
cadre_status environment_read(struct environment *ret_environment, struct cadre_error *error);

/* The environment of a strategy that is the whole job by itself, whatever job the program is a task
 * of: one task of `replicas` replicas, without a checkpoint before or after. */
void environment_alone(
    const struct environment *of, uint32_t replicas, struct environment *ret_environment);

#endif
