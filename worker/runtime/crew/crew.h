/* SPDX-License-Identifier: Apache-2.0
 * What a task of a job with parameter servers has besides a strategy: who else is there, its
 * connections, the parameters that it knows, and on the chief the closures. One in a process.
 *
 *     chief       a strategy of one replica; the crew hangs on it; schedules closures
 *     worker, ps  no strategy: cadre_serve, until the chief is done
 *     evaluator   no strategy: its own loop (cadre_next_evaluation), which reads parameters
 *     by hand     one process is all of them: servers and workers are threads of it */
#ifndef CADRE_RUNTIME_CREW_H
#define CADRE_RUNTIME_CREW_H

#include "cadre/parameter_server.h"
#include "worker/ps/client.h"
#include "worker/ps/directory.h"
#include "worker/ps/link.h"

struct parameters; /* worker/runtime/parameters */
struct scheduler;  /* worker/runtime/closures */

struct crew_state {
    enum role role;
    uint32_t index;
    struct directory *directory;
    struct link_terms terms;        /* once the key is known */
    struct link_listener *listener; /* of the chief and of servers; taken over by who serves it */
    struct client *client;          /* of the chief, workers and the evaluator */
    cadre_parameter_server_options options;
    struct parameters *parameters;
    struct scheduler *scheduler; /* of the chief */
};

/* The process's; NULL before it is one of a crew. */
struct crew_state *crew_current(void);

/* Closure numbers, for pushes: the chief's, from 1. Those below crew_done_below are done for good
 * (a worker knows it from the chief's last closure). Any thread. */
uint64_t crew_next_closure(void);
uint64_t crew_done_below(void);

/* On a worker: as the chief says with each closure. */
void crew_heard_done_below(uint64_t below);

/* On the chief: so many steps (joins) of the ledger are done. */
cadre_status crew_note_step(uint64_t step, struct cadre_error *error);

/* Of the calling thread: the closure that it runs and the next ordinal in it; outside of closures,
 * on the chief, a number of its own each time. FAILED_PRECONDITION: an evaluator pushes nothing.
 * What was taken outside of closures is given back by crew_push_done, with ok once it is
 * acknowledged; a closure's by its end. */
cadre_status crew_push_key(uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error);
void crew_push_done(uint64_t closure);

/* Set by the thread that runs closures; 0: none. */
void crew_enter_closure(uint64_t closure);

#endif
