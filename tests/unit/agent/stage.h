/* SPDX-License-Identifier: Apache-2.0
 * An agent with a front that records its callbacks, on a loop that runs until something has
 * happened. */
#ifndef CADRE_TESTS_UNIT_AGENT_STAGE_H
#define CADRE_TESTS_UNIT_AGENT_STAGE_H

#include <uv.h>

#include "common/wire/wire.h"
#include "tests/lib/test.h"
#include "worker/host/agent/agent.h"

#define DEADLINE_US UINT64_C(10000000)
#define SLOTS_MAX   4
/* Two of each slot: attempt i is of slot i % SLOTS_MAX, with incarnation i + 1. */
#define ATTEMPTS_MAX 8
#define RELAYED_MAX  64

/* What became of one attempt of a task. */
struct played {
    bool started;
    uint32_t pid;
    bool gone;
    struct task_exit exit;
    cadre_status cause;
    bool collected;
    bool forgotten;
    struct wire_buffer output[2]; /* stdout, stderr */
    enum task_up_type relay_up[RELAYED_MAX];
    size_t relayed_count;
    uint64_t relayed_epoch; /* of the last progress */
    unsigned relayed_parts;
    uint64_t relayed_position;   /* of the last part */
    unsigned publishes;          /* calls of the front */
    uint64_t published_position; /* of the last one */
    char published_path[64];
    bool restores;
    bool adopted;
};

struct stage {
    uv_loop_t loop;
    uv_timer_t guard; /* so that the loop never sleeps for long */
    struct agent *agent;
    bool closed;
    struct cadre_error error;
    char folder[96]; /* program, sockets and tasks' folders are in here */
    struct played tasks[ATTEMPTS_MAX];
    unsigned hellos;
    uint64_t nonce; /* of the last hello */
    unsigned arrivals;
    uint64_t arrived_up_to; /* of the last one */
    bool drained;
    char notices[4096];
    struct task_confinement user; /* that tasks run as */
    /* How tasks are launched. */
    const char *program;     /* default: ./program */
    const char *socket_name; /* in `folder`, the slot is appended */
    const char *work;        /* default: <folder>/work */
    bool inherit_environment;
    bool fail_prepare;
    bool delay_prepare; /* agent_task_prepared is the test's */
    bool delay_collect;
    bool delay_publish;
    bool keep_tasks; /* attempt n is found at <folder>/k<n> by another agent */
    bool refuse_adopted;
    const char *restore; /* what the front found for a task that restores */
};

struct stage *stage_open(void);
/* Not linked yet; then stage_link. */
struct stage *stage_open_away(uint64_t nonce);
void stage_link(struct stage *stage);
/* With another user for tasks. */
struct stage *stage_open_as(bool change_user, uid_t uid, gid_t gid);
/* With GPUs of slots (SLOTS_MAX texts), or why there are none; the pointers outlive it. */
struct stage *stage_open_with_gpus(char *const *shares, const char *reason);
/* Kills what runs; the agent and the loop must end clean. */
void stage_close(struct stage *stage);

/* Runs the loop until it is true; fails the test at the deadline. */
void until(struct stage *stage, bool (*condition)(struct stage *stage));
void until_started(struct stage *stage, uint32_t attempt);
void until_gone(struct stage *stage, uint32_t attempt);
void until_collected(struct stage *stage, uint32_t attempt);
/* `part` was written to standard output. */
void until_printed(struct stage *stage, uint32_t attempt, const char *part);

/* The loop runs for a moment: for what must not happen. */
void linger(struct stage *stage);

/* Of job 1. */
struct task_ref task_of(uint32_t attempt);
void start(struct stage *stage, uint32_t attempt, const char *verb, const char *argument);
void start_spec(struct stage *stage, uint32_t attempt, const struct job_spec *spec);
void stop(struct stage *stage, uint32_t attempt, uint64_t grace_us);
void prepared(struct stage *stage, uint32_t attempt);

/* Starts and waits until it is collected. */
struct played *play(struct stage *stage, const char *verb, const char *argument);

/* What it printed, as text. */
const char *printed(struct played *task);

/* The number after "<what> " in the n-th line (from 0) of what it printed that begins so. */
long number_after(struct played *task, const char *what, unsigned n);

/* The process is not there any more, not even as a zombie. */
bool is_process_gone(long pid);

/* <folder>/<name> */
const char *path_in(struct stage *stage, const char *name);

#endif
