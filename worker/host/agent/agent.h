/* SPDX-License-Identifier: Apache-2.0
 * A host's agent on a libuv loop: the pure agent core with its processes, task sockets and
 * pipes. The connection to the coordinator, files and logs are the business of its front: the
 * worker daemon (gRPC) and `cadre run` (in-process) are two fronts of the same agent.
 * Everything runs on the loop's thread. The agent never logs; what an operator should read goes
 * to callbacks->notice. */
#ifndef CADRE_WORKER_AGENT_H
#define CADRE_WORKER_AGENT_H

#include <sys/types.h>

#include "common/base/error.h"
#include "common/base/port_range.h"
#include "common/model/agent_message.h"
#include "worker/core/agent_core.h"
#include "worker/host/isolate/confine.h"

struct agent;
struct uv_loop_s;

struct agent_identity {
    const char *name; /* unique in the cluster */
    const char *host;
    uint64_t boot_nonce;
    uint32_t cpus;
    uint64_t memory_bytes;
    struct gpus gpus; /* what hellos report of the host's GPUs; borrowed: it outlives the agent */
};

struct agent_setup {
    struct agent_options core;
    struct agent_identity identity; /* copied */
    const char *mesh_host;          /* where tasks listen for their peers; copied */
    struct port_range mesh_ports;   /* and on which ports; zeroed: any */
    bool change_user;               /* start tasks as uid and gid, without supplementary groups */
    uid_t uid;
    gid_t gid;
    bool checks_peers; /* only processes of a task are served on its socket */
    /* By slot, CUDA_VISIBLE_DEVICES of the task that has it, "" for none; borrowed as the GPUs are.
     * NULL: tasks find GPUs by themselves. */
    char *const *gpu_shares;
};

/* How a prepared task is started. Copied. */
struct agent_launch {
    const char *program; /* path, absolute or relative to `folder`; never looked up in PATH */
    const char *folder;  /* the working folder */
    const char *output;  /* absolute: files in it are collected */
    const char *socket;  /* absolute: the path that `listener` is bound to */
    int listener; /* of listener_make: the agent's from now on, also when the start fails; its
                   * file stays the front's */
    const char *restore; /* absolute: the manifest of the checkpoint that the task goes on from;
                            NULL: none */
    /* Absolute: where it may keep blocks of objects, so many MiB (worker/library/input/objects);
     * NULL: nowhere. A job that names a folder of its own keeps that. */
    const char *object_folder;
    uint64_t object_mib;
    /* What its process does between fork and exec; NULL: setup's user. Its group is killed and
     * removed with the task. */
    const struct task_confinement *confinement;
    const char *temporary;    /* absolute: TMPDIR; NULL: the working folder */
    const char *keeper;       /* absolute, under 108 bytes: where agent_adopt finds its keeper after
                               * this process has exited; NULL: the task ends with this process */
    bool inherit_environment; /* this process's own first; else only PATH, HOME (= folder), LANG and
                                 TMPDIR */
};

enum agent_stream { AGENT_STDOUT = 1, AGENT_STDERR = 2 };

struct agent_callbacks {
    /* Sends to the coordinator. When it is not linked the message may be dropped: the core sends
     * it again. */
    void (*send)(void *user, const struct agent_up *up);
    /* Makes files and folders, checks that this host can run the program (executable_check),
     * binds the task's socket (listener_make), and fetches the checkpoint that it restores; then
     * agent_task_prepared or agent_task_failed, now or afterwards. `start` is valid until
     * `forget`. An earlier attempt of the same slot may still be collected: the two share no
     * file. */
    void (*prepare)(void *user, const struct agent_start *start);
    /* The task runs, or has ended, under a keeper that an earlier incarnation of this process
     * started: its files are where that one left them. False: there is no room for it. NULL:
     * never. */
    bool (*adopted)(void *user, const struct agent_start *start);
    /* Makes the checkpoint of `part`, which is in the task's output folder, readable without
     * this host; then agent_task_published, now or afterwards. A newer one replaces it, and only
     * the newer one is reported. `part` is valid during the call. */
    void (*publish)(void *user, struct task_ref task, const struct task_part *part);
    /* Output of the task. */
    void (*output)(void *user, struct task_ref task, enum agent_stream stream, const uint8_t *bytes,
        size_t size);
    /* The task has ended and its output was read: sends logs and outputs, removes folders; then
     * agent_task_collected. A publish that is under way ends first. Of a task that was stopped
     * while it was being prepared, preparing ends. */
    void (*collect)(void *user, struct task_ref task);
    /* Frees what belongs to the task, which is not needed any more. */
    void (*forget)(void *user, struct task_ref task);
    /* Drained: the program may end. */
    void (*drained)(void *user);
    /* A message for the operator's log. */
    void (*notice)(void *user, struct task_ref task, const char *text);
};

/* Opens the agent. Tasks are started by a keeper each (worker/host/keeper), which is a child of
 * this process, is found beside its program and ends with it unless the launch has a keeper
 * path. The process becomes a child subreaper, so that no descendant escapes it when a keeper is
 * killed, and ignores SIGPIPE unless it is handled: a task may close its socket at any time. All
 * children of the process count as the agent's while it is open. INVALID_ARGUMENT: slots or
 * heartbeat out of range. */
cadre_status agent_open(const struct agent_setup *setup, struct uv_loop_s *loop,
    const struct agent_callbacks *callbacks, void *user, struct agent **ret_agent,
    struct cadre_error *error);

/* Kills what still runs and closes all handles; `done` is called when all processes have ended
 * and the memory was freed. NULL agent: at once. Not from inside the callbacks. */
void agent_close(struct agent *agent, void (*done)(void *user), void *user);

/* Before the first link: takes over the task whose keeper listens at `keeper`, and serves it on
 * `socket` again. The nonce of the earlier incarnation becomes this one's: for the coordinator
 * the worker was only away. NOT_FOUND: no keeper is there; FAILED_PRECONDITION: it is of another
 * version, or its task is not `expected`; RESOURCE_EXHAUSTED: no slot, memory or descriptor.
 * After an error the task is as it was, and its keeper ends it unless a daemon connects. */
cadre_status agent_adopt(struct agent *agent, struct task_ref expected, const char *keeper,
    const char *socket, struct cadre_error *error);
/* Sets the newest coordinator that was accepted, and the newest entry of the log that is known of
 * it, for every hello from now on. */
void agent_set_term(struct agent *agent, const struct term *term, uint64_t log_index);
/* Whether anything is here that belongs to the cluster of that coordinator: a task that is not
 * forgotten, however it ended, or the memory of a parameter server. */
bool agent_is_occupied(const struct agent *agent);

/* Sets the address on which tasks that start from now on listen for their peers; those that run
 * keep theirs. */
cadre_status agent_set_mesh_host(struct agent *agent, const char *host, struct cadre_error *error);

/* The coordinator welcomed a stream. */
void agent_link_up(struct agent *agent);
/* The stream ended. */
void agent_link_down(struct agent *agent);
/* Takes a message of the coordinator, other than AGENT_DOWN_LOG_ACK. */
void agent_down(struct agent *agent, const struct agent_down *down);
/* Starts to drain; ends with callbacks->drained. */
void agent_drain(struct agent *agent);

/* Stops or continues reading the task's output, which stays in its pipes meanwhile; when its
 * process ends the pipes are read all the same. Nothing for a task that is not here. */
void agent_set_output_paused(struct agent *agent, struct task_ref task, bool held);
/* The answer to callbacks->prepare: starts the task. */
void agent_task_prepared(
    struct agent *agent, struct task_ref task, const struct agent_launch *launch);
/* The answer to callbacks->prepare when it failed: exit_code 126 (not usable) or 127 (not
 * found), as shells do; the code of `cause` becomes that of the job. */
void agent_task_failed(
    struct agent *agent, struct task_ref task, int exit_code, const struct cadre_error *cause);
/* The answer to callbacks->publish: OK, or why the newest checkpoint of the task could not be
 * published. */
void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text);
/* The answer to callbacks->collect: OK, or what could not be sent. */
void agent_task_collected(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text);

/* The number of tasks that run or are not yet collected. */
uint32_t agent_task_count(const struct agent *agent);

/* The process of a task. */
struct agent_process {
    pid_t pid;                       /* it leads a session of its own */
    const struct task_cgroup *group; /* until the next call of the agent; its kind may be none */
    int32_t gpu_slot;                /* the slot of this host that it has */
};

/* False: the task is not here, or its process does not run (any more). */
bool agent_task_process(
    struct agent *agent, struct task_ref task, struct agent_process *ret_process);

/* The socket file of a task. It is on a disk, which may block: so the thread that makes the
 * task's folders makes it, and the agent does not touch the file. */

/* Binds a socket to `path`, replacing a file there; only the task's user may open it. In any
 * thread. The descriptor is the caller's. INVALID_ARGUMENT: the path is too long for an address. */
cadre_status listener_make(const char *path, const struct task_confinement *user, int *ret_listener,
    struct cadre_error *error);

/* Whether the kernel of this host would run a file. exec itself does not report that: what it
 * cannot run, the C library hands to the shell, which then prints errors about the file's bytes. */

/* Checks the first bytes of `program` (relative to `folder` unless absolute): a script has to
 * begin with "#!", a program has to be of this host's architecture. INVALID_ARGUMENT, about
 * `name`, else. OK when the file cannot be read: then starting it fails with the reason. */
cadre_status executable_check(
    const char *folder, const char *program, const char *name, struct cadre_error *error);

#endif
