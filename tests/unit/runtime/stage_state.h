/* SPDX-License-Identifier: Apache-2.0
 * The inside of the stage: its attempts (processes and sockets), and the coordinator that sends to
 * them. */
#ifndef CADRE_TESTS_RUNTIME_STAGE_STATE_H
#define CADRE_TESTS_RUNTIME_STAGE_STATE_H

#include "common/wire/frame.h"
#include "stage.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"

enum attempt_phase {
    ATTEMPT_STARTED = 1,
    ATTEMPT_WARM,
    ATTEMPT_JOINS,
    ATTEMPT_RUNS,
    ATTEMPT_REPORTED,
    ATTEMPT_GONE
};

/* One attempt of a task. */
struct attempt {
    enum attempt_phase phase;
    uint32_t slot;
    uint64_t incarnation;
    struct program program;
    int listen_fd;
    int fd; /* -1: not connected */
    bool greeted;
    struct frame_reader reader;
    char path[TEST_PATH_BYTES];
    char mesh_address[LIMIT_ADDRESS_BYTES];
    bool member;
    bool dropped; /* lost for the job; its process runs */
    uint32_t join_stream;
    struct task_arrive arrived;
    bool has_arrived;
    struct task_report report;
};

struct stage {
    const struct stage_job *job;
    struct stage_end *end;
    const char *folder;
    struct wire_arena *arena;
    struct attempt attempts[STAGE_TASKS_MAX];
    uint32_t attempt_count;
    uint64_t incarnations;
    struct generation generation;
    struct attempt *roster[STAGE_TASKS_MAX];
    uint32_t roster_count;
    uint64_t resume;
    bool collecting;
    bool failed;
    uint64_t released;
    uint64_t halt_at;
    uint32_t halt_stream;
    uint64_t lost_us; /* a task ended, and nothing was released since */
    bool grown;
    bool asked; /* one that came later has waited for a step */
    bool met;   /* those that the job grew by have been in it */
};

/* --- stage_attempts.c --- */

/* Starts an attempt of the task of that slot. */
void stage_start(struct stage *stage, uint32_t slot);
/* Sends a message to an attempt. */
void stage_send(struct attempt *attempt, const struct task_down *down);
/* Sends a plan: to each member only its own entry of the roster and those of its neighbours, but to
 * rank 0 all. */
void stage_send_parts(struct stage *stage, const struct task_down *down);
/* Makes the folder that all tasks share. */
void stage_make_folder(char folder[STAGE_FOLDER_BYTES]);
/* Waits for a message, and handles it. False when no attempt runs. */
bool stage_turn(struct stage *stage);
/* Waits for the ends of all. */
void stage_collect(struct stage *stage);

/* --- stage.c --- */

/* An attempt has sent a message. */
void stage_on_up(struct stage *stage, struct attempt *attempt, const struct task_up *up);
/* An attempt has ended. */
void stage_on_gone(struct stage *stage, struct attempt *attempt);

#endif
