/* SPDX-License-Identifier: Apache-2.0
 * A host's agent on a libuv loop: the pure agent core with its processes, task sockets and pipes.
 * It does not know how the coordinator is reached or where files and logs go; that is its front's:
 * the worker daemon (gRPC) and `cadre run` (in-process) are two fronts of the same agent.
 *
 * Everything runs on the loop's thread. The agent never logs; what an operator should know goes to
 * front->notice. */
#ifndef CADRE_WORKER_AGENT_H
#define CADRE_WORKER_AGENT_H

#include <sys/types.h>

#include "common/base/error.h"
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
    struct gpus gpus; /* what is told of the host's; only borrowed: it outlives the agent */
};

struct agent_setup {
    struct agent_options core;
    struct agent_identity identity; /* copied */
    const char *mesh_host;          /* where tasks listen for their peers; copied */
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
    const char *output;  /* absolute: what is left here is collected */
    const char *socket;  /* absolute: the path that `listener` is bound to */
    int listener; /* of listener_make: the agent's from now on, whatever becomes of the task; its
                     file stays the front's */
    const char *restore; /* absolute: the manifest of the checkpoint that the task goes on from;
                            NULL: none */
    /* What its process makes of itself before it runs the program; NULL: setup's user. Its group is
     * killed and removed with the task. */
    const struct task_confinement *confinement;
    const char *temporary; /* absolute: TMPDIR; NULL: the working folder */
    const char *keeper; /* absolute, below 108 bytes: where its keeper is found by agent_adopt when
                           this process was gone; NULL: the task ends with it */
    bool inherit_environment; /* this process's own first; else only PATH, HOME (= folder), LANG and
                                 TMPDIR */
};

enum agent_stream { AGENT_STDOUT = 1, AGENT_STDERR = 2 };

struct agent_callbacks {
    /* To the coordinator. When it is not linked the message may be dropped: the core says it again.
     */
    void (*send)(void *user, const struct agent_up *up);
    /* Make files and folders, look whether this host can run the program (executable_check), bind
     * the task's socket (listener_make), and when it restores have the checkpoint at hand; then
     * agent_task_prepared or agent_task_failed, now or later. `start` lives until `forget`. An
     * older life of the same slot may still be collected: nothing of the two may be shared. */
    void (*prepare)(void *user, const struct agent_start *start);
    /* The task runs, or has ended, under a keeper that an earlier life of this process started: its
     * files are where that life left them. False: there is no room for it. NULL: never. */
    bool (*adopted)(void *user, const struct agent_start *start);
    /* Make the checkpoint of `part`, which lies in the task's output folder, readable without this
     * host; then agent_task_published, now or later. A newer one takes its place, and only that one
     * is told. `part` lives for the call. */
    void (*publish)(void *user, struct task_ref task, const struct task_part *part);
    /* What the task wrote. */
    void (*output)(void *user, struct task_ref task, enum agent_stream stream, const uint8_t *bytes,
        size_t size);
    /* The task is gone and wrote its last: hand logs and outputs over, remove folders; then
     * agent_task_collected. A publish that is under way ends first. Of one that was stopped while
     * it was being prepared, preparing ends. */
    void (*collect)(void *user, struct task_ref task);
    /* Nothing of the task is needed any more. */
    void (*forget)(void *user, struct task_ref task);
    /* Drained: the program may end. */
    void (*drained)(void *user);
    /* Something an operator should know. */
    void (*notice)(void *user, struct task_ref task, const char *text);
};

/* Tasks are started by a keeper each (worker/host/keeper), which is a child of this process, is
 * found beside its program and ends with it unless the launch says otherwise. The process becomes a
 * child subreaper, so that nothing escapes it when a keeper is killed, and ignores SIGPIPE unless
 * it is handled: a task may close its socket at any time. All children of the process are taken for
 * the agent's while it is open. INVALID_ARGUMENT: slots or heartbeat out of range. */
cadre_status agent_open(const struct agent_setup *setup, struct uv_loop_s *loop,
    const struct agent_callbacks *callbacks, void *user, struct agent **ret_agent,
    struct cadre_error *error);

/* Kills what still runs and closes all handles; `done` is called when nothing runs any more and the
 * memory is free. NULL agent: at once. Not from inside the front's functions. */
void agent_close(struct agent *agent, void (*done)(void *user), void *user);

/* Before the first link: takes over the task whose keeper listens at `keeper`, and serves it on
 * `socket` again. The nonce of the earlier life becomes this one's: for the coordinator the worker
 * was only away. NOT_FOUND: no keeper is there; FAILED_PRECONDITION: it is of another version, or
 * what it keeps is not of the task `expected`; RESOURCE_EXHAUSTED: no place, memory or descriptor.
 * After an error the task is as it was, and who holds it is gone soon. */
cadre_status agent_adopt(struct agent *agent, struct task_ref expected, const char *keeper,
    const char *socket, struct cadre_error *error);
/* The newest coordinator that was obeyed, as every hello says it from now on. */
void agent_set_term(struct agent *agent, const struct term *term);
/* Whether anything is here that only the cluster of that coordinator can be told of: a task that is
 * not forgotten, however it ended, or the memory of a parameter server. */
bool agent_is_occupied(const struct agent *agent);

/* Where tasks that start from now on listen for their peers; those that run stay where they are. */
cadre_status agent_set_mesh_host(struct agent *agent, const char *host, struct cadre_error *error);

void agent_link_up(struct agent *agent);
void agent_link_down(struct agent *agent);
/* A message of the coordinator but AGENT_DOWN_LOG_ACK. */
void agent_down(struct agent *agent, const struct agent_down *down);
void agent_drain(struct agent *agent);

/* What the task writes is left in its pipes, until it is not held any more; of one whose process
 * ended what is in them comes all the same. A task that is not here: nothing. */
void agent_set_output_paused(struct agent *agent, struct task_ref task, bool held);
void agent_task_prepared(
    struct agent *agent, struct task_ref task, const struct agent_launch *launch);
/* exit_code 126 (not usable) or 127 (not found), as shells do. */
void agent_task_failed(struct agent *agent, struct task_ref task, int exit_code, const char *text);
/* OK, or why the newest checkpoint of the task could not be published. */
void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text);
void agent_task_collected(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text);

/* Tasks that run or are not yet collected. */
uint32_t agent_task_count(const struct agent *agent);

#endif
