/* SPDX-License-Identifier: Apache-2.0
 * The agent's inside, shared by its files only. */
#ifndef CADRE_WORKER_AGENT_STATE_H
#define CADRE_WORKER_AGENT_STATE_H

#include <uv.h>

#include "common/wire/frame.h"
#include "worker/agent/agent.h"

/* A task's last line on stderr, kept for the sentence about its end. */
struct last_line {
    char text[LIMIT_TEXT_BYTES];
    size_t size;
    bool ended; /* the next byte starts a new line */
};

/* One end of a connection between a program and us, from accept to the end of its closing. */
struct task_connection {
    struct task_connection *next;
    uv_pipe_t pipe;
    struct agent_task *task;
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    size_t preamble_size;
    struct frame_reader reader;
};

struct agent_task {
    struct agent_task *next;
    struct agent *agent;
    struct task_ref ref;
    struct wire_arena *arena; /* of start */
    struct agent_start start;
    char *program;
    char *folder;
    char *output;
    char *socket_path;
    char *restore; /* NULL: from the beginning */
    int memory;    /* of a parameter server, the agent's; -1: none */
    int32_t place; /* the slot of this host whose GPUs it has, while its process lives; -1: none */
    bool inherit_environment;
    uv_pipe_t listener;
    bool listening;
    struct task_connection *connections; /* all, also those that are being refused */
    struct task_connection *connection;  /* the one that is served */
    bool has_process;                    /* and it is not reaped */
    bool reaped;
    pid_t pid;
    struct task_exit exit;
    uv_pipe_t pipes[2]; /* stdout, stderr */
    unsigned pipes_open;
    uv_timer_t drain; /* after the exit: how long pipes may stay open and strays may live */
    bool drained;     /* it has run out */
    bool told;        /* the core knows how it ended */
    struct last_line last_line;
    unsigned handles; /* open uv handles in this struct: freed at 0 once forgotten */
    bool forgotten;
};

/* A completion that came while actions were carried out: done right after. */
struct deferred {
    struct deferred *next;
    struct agent_event event;
    char text[LIMIT_TEXT_BYTES];
};

struct agent {
    uv_loop_t *loop;
    struct agent_front front;
    void *user;
    struct agent_setup setup;
    char *name;
    char *host;
    char *mesh_host;
    void *core_memory;
    struct agent_core *core;
    struct agent_action *actions;
    size_t action_capacity;
    struct task_ref *refs;        /* of a hello */
    struct job_id *kept;          /* the same */
    struct kept_memory *memories; /* kept_memory.c; the newest first */
    bool acting;
    struct deferred *deferred;
    struct deferred **deferred_tail;
    struct agent_task *tasks;
    uv_timer_t tick;
    uv_signal_t child; /* SIGCHLD: tasks, and strays that ended by themselves */
    uv_timer_t sweep;  /* until the next pass */
    bool sweeping;
    uint64_t sweep_pause_ms;
    struct wire_arena *arena; /* of the frame in hand */
    struct wire_buffer frame; /* being packed */
    bool closing;
    unsigned handles;
    void (*closed)(void *user);
    void *closed_user;
};

/* agent.c: one event into the core, its actions carried out. */
void agent_step(struct agent *agent, struct agent_event *event);
/* The same for one that may have come out of the actions of another: then it is done after them. It
 * borrows nothing. */
void agent_step_after(struct agent *agent, const struct agent_event *event);
void agent_arm_tick(struct agent *agent);
/* Nothing of the task is needed any more; it is freed when its handles are closed. */
void agent_forget(struct agent *agent, struct task_ref ref);
struct agent_task *agent_task_find(struct agent *agent, struct task_ref ref);
void agent_notice(struct agent *agent, struct task_ref task, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* lifetime.c: handles are counted: a forgotten task is freed with its last one, a closing agent
 * with its last one. */
void agent_task_handle_opened(struct agent_task *task);
void agent_task_handle_closed(struct agent_task *task);
void agent_task_free_if_closed(struct agent_task *task);

/* lifetime.c: told by sweep.c when nothing is left to kill. */
void agent_swept(struct agent *agent);

/* descriptors.c: marks all but the standard streams close-on-exec. */
void descriptors_keep_from_tasks(void);

/* places.c: the first slot that no other task has; only when all are taken, one of a task's.
 * Places of tasks that are told to be gone are free. */
int32_t place_choose(const struct agent *agent);

/* process.c. NOT_FOUND: the program is not there. */
cadre_status process_spawn(struct agent_task *task, struct cadre_error *error);
/* Tells the core of an end, once nothing of the task is left. */
bool process_finish(struct agent_task *task);
/* One that is stopped goes on with the signal: none can be out of its reach. */
void process_signal(struct agent_task *task, int signal);
/* Some children are dead: tells how those that are tasks ended. */
void process_reap(struct agent *agent);
/* Closes the handles of a task whose process is gone, killed or never started. */
void process_close(struct agent_task *task);

/* sweep.c: kills and reaps children of ours that belong to no task that runs. When that takes a
 * moment agent->sweeping is true, and agent_swept follows. */
void sweep_strays(struct agent *agent);
/* Reaps strays that are dead already. */
void sweep_dead(struct agent *agent);

/* task_socket.c */
cadre_status task_socket_listen(struct agent_task *task, struct cadre_error *error);
void task_socket_send(struct agent_task *task, const struct task_down *down);
void task_socket_refuse(struct agent_task *task, cadre_status code, const char *text);
void task_socket_drop(struct agent_task *task);  /* the connection, if there is one */
void task_socket_close(struct agent_task *task); /* the listener, the connection and the file */

#endif
