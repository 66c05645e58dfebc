/* SPDX-License-Identifier: Apache-2.0
 * Private to the agent: shared by the files of this folder only. */
#ifndef CADRE_WORKER_AGENT_STATE_H
#define CADRE_WORKER_AGENT_STATE_H

#include <uv.h>

#include "common/base/log.h"
#include "common/wire/frame.h"
#include "common/wire/mailbox.h"
#include "worker/host/agent/agent.h"
#include "worker/host/keeper/messages.h"
#include "worker/host/keeper/packed_launch.h"

/* A task's last line on stderr, kept for the report of its end. */
struct last_text_line {
    char text[LIMIT_TEXT_BYTES];
    size_t size;
    bool ended; /* the next byte starts a new text line */
};

/* One end of a connection between a program and us, from accept to the end of its closing. */
struct task_connection {
    struct task_connection *next;
    uv_pipe_t pipe;
    struct agent_task *task;
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    size_t preamble_size;
    struct frame_reader reader;
    uint64_t frames_sent;
    uint64_t frames_handled;
    struct job_mailboxes *mailboxes; /* NULL: none were sent to the program */
    uint32_t mailbox;                /* index of its own among those of the arrivals */
    uint64_t arrival_seen;           /* serial of the newest that was taken */
    struct mailbox_of_task *releases;
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
    char *restore;       /* NULL: from the beginning */
    char *object_folder; /* NULL: none */
    uint64_t object_mib;
    int memory; /* of a parameter server, the agent's; -1: none */
    int32_t
        gpu_slot; /* the slot of this host whose GPUs it has, while its process runs; -1: none */
    char *keeper_path; /* where its keeper listens for the next incarnation of this daemon; NULL:
                        * the task ends with us */
    bool inherit_environment;
    int bound; /* the socket of socket_path, until the loop listens on it; -1: none */
    uv_pipe_t listener;
    bool listening;
    struct task_connection *connections; /* all, also those that are being refused */
    struct task_connection *connection;  /* the one that is served */
    struct log_ratelimit log_ratelimit;  /* of what it does on its socket */
    uv_poll_t keeper;                    /* of keeper_socket */
    int keeper_socket;                   /* -1: no keeper, or its connection ended */
    pid_t keeper_pid;                    /* 0: the child of an earlier incarnation of the daemon */
    bool has_process;                    /* and it has not ended */
    bool reaped;
    bool swept; /* no process that it left behind runs any more */
    pid_t pid;
    struct task_exit exit;
    uv_pipe_t pipes[2]; /* stdout, stderr */
    unsigned pipes_open;
    bool output_paused; /* they are not read */
    uv_timer_t drain;   /* after the exit: how long pipes may stay open and strays may run */
    bool drained;       /* the drain timer has expired */
    bool reported;      /* its end was reported to the core */
    struct last_text_line last_text_line;
    unsigned handles; /* open uv handles in this struct: freed at 0 once forgotten */
    bool forgotten;
};

/* A completion that came while actions were carried out: it is handled after them. */
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
    struct term term;   /* of the coordinator that was accepted last */
    uint64_t log_index; /* highest in that term */
    void *core_memory;
    struct agent_core *core;
    struct agent_action *actions;
    size_t action_capacity;
    struct task_ref *refs;           /* of a hello */
    struct job_id *kept;             /* the same */
    struct ps_memory *memories;      /* ps_memory.c; the newest first */
    struct job_mailboxes *mailboxes; /* mailboxes.c */
    bool acting;
    struct deferred *deferred;
    struct deferred **deferred_tail;
    struct agent_task *tasks;
    uv_timer_t tick;
    uint64_t armed_us; /* the deadline of `tick`; 0: it is not armed yet */
    char *keeper_program;
    uv_signal_t child;        /* SIGCHLD: keepers, and strays of one that was killed */
    bool strays;              /* there may be some */
    struct wire_arena *arena; /* of the frame that is handled */
    struct wire_buffer frame; /* being packed */
    bool closing;
    unsigned handles;
    void (*closed)(void *user);
    void *closed_user;
};

/* agent.c: one event into the core, its actions carried out. */
void agent_step(struct agent *agent, struct agent_event *event);
/* The same for an event that may have come out of the actions of another: then it is handled
 * after them. It borrows nothing. */
void agent_step_after(struct agent *agent, const struct agent_event *event);
/* Starts the timer for the core's next deadline. */
void agent_arm_tick(struct agent *agent);
/* Removes the task; it is freed when its handles are closed. */
void agent_forget(struct agent *agent, struct task_ref ref);
/* The task; NULL when it is not here. */
struct agent_task *agent_task_find(struct agent *agent, struct task_ref ref);
/* Sends a formatted message to callbacks->notice. */
void agent_notice(struct agent *agent, struct task_ref task, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* lifetime.c counts handles: a forgotten task is freed with its last one, a closing agent with
 * its last one. This adds one. */
void agent_task_handle_opened(struct agent_task *task);
/* Subtracts a handle of the task. */
void agent_task_handle_closed(struct agent_task *task);
/* Frees a forgotten task without open handles. */
void agent_task_free_if_closed(struct agent_task *task);
/* Subtracts a handle that belongs to no task. */
void agent_handle_closed(struct agent *agent);

/* agent.c: copies the start into the task's arena. */
cadre_status agent_copy_start(
    struct agent_task *task, const struct agent_start *start, struct cadre_error *error);

/* adopt.c: the note with which the next incarnation of this daemon takes the task over. */
cadre_status adopt_note(
    const struct agent_task *task, struct wire_buffer *note, struct cadre_error *error);

/* gpu_slots.c: the first slot that no other task has; only when all are taken, one of a task's.
 * Slots of tasks whose end was reported are free. */
int32_t gpu_slot_choose(const struct agent *agent);

/* process.c. Starts a keeper for the task; it reports afterwards whether the task runs. */
cadre_status process_spawn(struct agent_task *task, struct cadre_error *error);
/* The keeper reported that it runs; the descriptors of its output are ours now. */
void process_started(struct agent_task *task, pid_t pid, const int fds[2]);
/* The keeper reported its end; `status` as of waitpid. */
void process_ended(struct agent_task *task, int status);
/* The keeper reported that no process of the task is left. */
void process_swept(struct agent_task *task);
/* The error for `errnum` of launch_process(). */
cadre_status process_explain(const struct agent_task *task, int errnum, struct cadre_error *error);
/* Reports an end to the core, once nothing of the task is left. */
bool process_finish(struct agent_task *task);
/* Sends a signal to the task; a stopped (SIGSTOP) task is continued with it, so that every
 * signal has its effect. */
void process_signal(struct agent_task *task, int signal);
/* Stops or continues reading the task's pipes. */
void process_set_output_paused(struct agent_task *task, bool held);
/* Makes the keeper end what is left of the task, and exit. */
void process_close(struct agent_task *task);

/* task_socket.c */
/* Listens on the socket that is bound. */
cadre_status task_socket_listen(struct agent_task *task, struct cadre_error *error);
/* Reads from the connected program, once the core has the task as running: a program may connect
 * before its keeper has reported that it runs. */
void task_socket_read(struct agent_task *task);
/* Sends to the program; drops it when no program is connected. */
void task_socket_send(struct agent_task *task, const struct task_down *down);
/* Sends the reason of a refusal, and closes the connection. */
void task_socket_refuse(struct agent_task *task, cadre_status code, const char *text);
/* Closes the connection, if there is one. */
void task_socket_drop(struct agent_task *task);
/* Closes the listener and the connection. */
void task_socket_close(struct agent_task *task);

/* mailboxes.c: memory that is shared with the tasks of a job, see common/wire/mailbox.h. Without
 * it, as when descriptors are short, everything is sent by frames. */
/* What it calls: `take` when the connection may have a new arrival, `closed` as
 * agent_handle_closed(). */
struct mailboxes_callbacks {
    void (*take)(struct task_connection *connection);
    void (*closed)(struct agent *agent);
};
/* Sends the preamble with the descriptors of a mailbox for this program; false: nothing was sent.
 */
bool mailboxes_greet(
    struct task_connection *connection, const struct mailboxes_callbacks *callbacks);
/* The new arrival of the connection, if there is one. */
enum mailbox_read mailboxes_next(
    struct task_connection *connection, struct task_arrive *ret_arrive);
/* Writes a release for the program; false: it uses no mailbox, so that a frame is due. */
bool mailboxes_release(struct task_connection *connection, const struct task_release *release);
/* Wakes the programs for which releases were written. */
void mailboxes_wake(struct agent *agent);
/* The connection ends. */
void mailboxes_leave(struct task_connection *connection);

/* The connection to a task's keeper, on our loop: messages to it and from it. */

/* Starts a keeper and connects to it. */
cadre_status keeper_link_start(
    struct agent_task *task, const struct keeper_launch *launch, struct cadre_error *error);
/* Attaches to a keeper that runs already; `socket` is the link's from now on. */
cadre_status keeper_link_attach(struct agent_task *task, int socket, struct cadre_error *error);
/* Sends a message to the keeper; drops it without a connection. */
void keeper_link_send(struct agent_task *task, uint32_t type, int64_t value);
/* Tells the keeper to end its task and exit; the link closes when it has. */
void keeper_link_end(struct agent_task *task);

/* The environment that a task starts with. */

/* A NULL-terminated list of "NAME=value", each one malloc'ed. {0} is an empty one. */
struct environment {
    char **items;
    size_t count;
    size_t capacity;
};

/* In rising precedence: this process's own (only when the launch asks for it) or PATH, HOME,
 * LANG and TMPDIR, and the GPU settings of the host's operator (CADRE_PLUGIN, CADRE_NCCL,
 * CUDA_DEVICE_ORDER, NCCL_*); the job's; Cadre's CADRE_* variables and CUDA_VISIBLE_DEVICES,
 * which a job cannot override. */
cadre_status environment_of_task(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error);
/* Frees the list. */
void environment_free(struct environment *environment);

/* The variable that shows to which task a stray process belongs:
 * "CADRE_TASK=<job>.<slot>.<incarnation>". */
#define ENVIRONMENT_TASK "CADRE_TASK"

#endif
