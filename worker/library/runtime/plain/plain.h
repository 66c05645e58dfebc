/* SPDX-License-Identifier: Apache-2.0
 * A plain program inside: a task that is in one generation for all of its life. It is never told
 * that its state is whole until it has come to its end, so a job that loses a task finds no state
 * to go on from and begins anew, all tasks together. Nothing of steps, replicas or strategies. */
#ifndef CADRE_RUNTIME_PLAIN_H
#define CADRE_RUNTIME_PLAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cadre/plain.h"
#include "worker/library/runtime/task/membership.h"
#include "worker/library/runtime/plain/plain_report.h"

/* Who calls the program's function when all is over. */
struct plain_abort_watch {
    bool runs;
    bool stop; /* under the task's lock */
    pthread_t thread;
    struct task *task;
    cadre_abort_function function;
    void *user;
};

struct plain {
    const struct environment *environment;
    struct mesh_listener *listener;
    struct task *task;
    struct task_roster roster;
    struct mesh *mesh;
    _Atomic(const char *) busy; /* the function that is under way; NULL: none */
    struct cadre_error failed;  /* code not OK: final, given by all that follows */
    uint64_t note_key;          /* of note_text */
    const char *note_function;  /* too; NULL: there is no text yet */
    char note_text[MESH_NOTE_BYTES];
    struct plain_abort_watch watch;
    struct plain_report report;
};

/* The process is a task of that plain program from now on, and stands there for good; and its end,
 * after which nothing can be called. */
struct plain_ranks;
void plain_current_begin(struct plain *plain, const struct plain_ranks *at);
void plain_current_end(struct plain *plain);

/* Whether the calling thread is the one of cadre_on_abort. */
bool plain_is_abort_watch(void);

/* Begins a call of `function`: FAILED_PRECONDITION before the beginning, behind the end, and while
 * another is under way. Ends with plain_leave, on success. */
cadre_status plain_enter(const char *function, struct plain **ret_plain, struct cadre_error *error);
void plain_leave(struct plain *plain);
/* The same for the last call, also when the program has failed. */
cadre_status plain_enter_last(
    const char *function, struct plain **ret_plain, struct cadre_error *error);

/* A collective of `plain` came to `status`: what is a peer's or the mesh's is final from now on,
 * and the coordinator hears of it. Returns the status. */
cadre_status plain_end_collective(
    struct plain *plain, cadre_status status, struct cadre_error *error);

/* Waits for all tasks; they must be at a call of the same `key`, which reads `text` to those that
 * are at another one. */
cadre_status plain_barrier(
    struct plain *plain, uint64_t key, const char *text, struct cadre_error *error);

/* Ends the thread of cadre_on_abort, if there is one. */
void plain_abort_watch_close(struct plain_abort_watch *watch);

/* Where this task stands, when the process is one of a plain program, also after its end. */
struct plain_ranks {
    uint32_t rank;
    uint32_t tasks;
    uint32_t local_rank;
    uint32_t local_tasks;
};
bool plain_get_ranks(struct plain_ranks *ret_standing);

#endif
