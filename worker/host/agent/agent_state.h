/* SPDX-License-Identifier: Apache-2.0
 * The agent's inside, shared by its files only. */
#ifndef CADRE_WORKER_AGENT_STATE_H
#define CADRE_WORKER_AGENT_STATE_H

#include <uv.h>

#include "common/wire/frame.h"
#include "worker/host/agent/agent.h"
#include "common/base/log_ratelimit.h"

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
    char *temporary; /* NULL: the working folder */
    struct task_confinement confinement;
    char *restore; /* NULL: from the beginning */
    int memory;    /* of a parameter server, the agent's; -1: none */
    int32_t
        gpu_slot; /* the slot of this host whose GPUs it has, while its process lives; -1: none */
    char *keeper_path; /* where its keeper listens for the next life of this daemon; NULL: the task
                          ends with us */
    bool inherit_environment;
    int bound; /* the socket of socket_path, until the loop listens on it; -1: none */
    uv_pipe_t listener;
    bool listening;
    struct task_connection *connections; /* all, also those that are being refused */
    struct task_connection *connection;  /* the one that is served */
    struct log_ratelimit log_ratelimit;  /* of what it does on its socket */
    uv_poll_t keeper;                    /* of keeper_socket */
    int keeper_socket;                   /* -1: no keeper, or it is gone */
    pid_t keeper_pid;                    /* 0: it is not our child, an earlier life's */
    bool has_process;                    /* and it has not ended */
    bool reaped;
    bool swept; /* nothing that it left behind is left */
    pid_t pid;
    struct task_exit exit;
    uv_pipe_t pipes[2]; /* stdout, stderr */
    unsigned pipes_open;
    bool output_paused; /* they are not read */
    uv_timer_t drain;   /* after the exit: how long pipes may stay open and strays may live */
    bool drained;       /* it has run out */
    bool reported;      /* the core knows how it ended */
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
    struct agent_callbacks callbacks;
    void *user;
    struct agent_setup setup;
    char *name;
    char *host;
    char *mesh_host;
    struct term term; /* of the coordinator that was obeyed last */
    void *core_memory;
    struct agent_core *core;
    struct agent_action *actions;
    size_t action_capacity;
    struct task_ref *refs;      /* of a hello */
    struct job_id *kept;        /* the same */
    struct ps_memory *memories; /* ps_memory.c; the newest first */
    bool acting;
    struct deferred *deferred;
    struct deferred **deferred_tail;
    struct agent_task *tasks;
    uv_timer_t tick;
    char *keeper_program;
    uv_signal_t child;        /* SIGCHLD: keepers, and strays of one that was killed */
    bool strays;              /* there may be some */
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

/* agent.c: a copy of the start that lives as long as the task. */
cadre_status agent_copy_start(
    struct agent_task *task, const struct agent_start *start, struct cadre_error *error);

/* adopt.c: what the next life of this daemon has to know of the task. */
cadre_status adopt_note(
    const struct agent_task *task, struct wire_buffer *note, struct cadre_error *error);

/* gpu_slots.c: the first slot that no other task has; only when all are taken, one of a task's.
 * Places of tasks that are told to be gone are free. */
int32_t gpu_slot_choose(const struct agent *agent);

/* process.c. Starts a keeper for it; whether the task runs is told later. */
cadre_status process_spawn(struct agent_task *task, struct cadre_error *error);
/* It runs; the descriptors of its output are ours now. */
void process_started(struct agent_task *task, pid_t pid, const int fds[2]);
void process_ended(struct agent_task *task, int status);
void process_swept(struct agent_task *task);
/* Why it does not run, as launch_process says it. */
cadre_status process_explain(const struct agent_task *task, int errnum, struct cadre_error *error);
/* Tells the core of an end, once nothing of the task is left. */
bool process_finish(struct agent_task *task);
/* One that is stopped goes on with the signal: none can be out of its reach. */
void process_signal(struct agent_task *task, int signal);
void process_set_output_paused(struct agent_task *task, bool held);
/* Nothing of the task is needed any more: its keeper ends it, and goes. */
void process_close(struct agent_task *task);

/* task_socket.c */
/* On the socket that is bound. */
cadre_status task_socket_listen(struct agent_task *task, struct cadre_error *error);
/* Hears who is connected, once the core was told that the task runs: a program may be here before
 * its keeper has told us so. */
void task_socket_read(struct agent_task *task);
void task_socket_send(struct agent_task *task, const struct task_down *down);
void task_socket_refuse(struct agent_task *task, cadre_status code, const char *text);
void task_socket_drop(struct agent_task *task);  /* the connection, if there is one */
void task_socket_close(struct agent_task *task); /* the listener and the connection */

#endif
