/* SPDX-License-Identifier: Apache-2.0
 * One step on the local replicas: admission to collectives, and whether all make the same ones.
 * Protocol, rule 1: a replica enters a step's first collective only when the coordinator has
 * released the step.
 *
 * The mesh checks that all replicas make the same call: each gives it a note, with a key of all
 * that must be equal and a text by which a difference is named. That no replica makes fewer calls
 * than another of its task is checked here, by counting; the mesh could only wait. */
#ifndef CADRE_RUNTIME_STEP_ADMISSION_H
#define CADRE_RUNTIME_STEP_ADMISSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "cadre/strategy.h"
#include "cadre/variable.h"
#include "common/base/error.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/runtime/replica/collective_list.h"
#include "worker/library/runtime/strategy/step_state.h"

/* Room for " (collective 4294967295 of step 18446744073709551615)" after the call. */
#define STEP_POSITION_TEXT_BYTES 56

/* Texts that a replica keeps: most programs make fewer different calls in a step. */
#define STEP_TEXTS 16

/* A replica's request for a collective. What is borrowed is read while the call begins. */
struct step_call {
    const char *function; /* as the program called it */
    uint64_t key;         /* of all that must be equal; `function` and the rest too */
    int64_t root;         /* the replica whose tensors all get; -1: none */
    size_t tensor_count;
    const cadre_tensor
        *first;          /* of the tensors; NULL: there is none, or they are not to be named */
    bool on_device;      /* they are in the memory of the replica's device */
    uint64_t timeout_us; /* 0: the job's */
};

/* The note of a call for the mesh. Not moved while it is used: `mesh` points to `text`. */
struct step_note {
    struct mesh_note mesh;
    char text[MESH_NOTE_BYTES];
};

/* "replica 3 calls cadre_broadcast from replica 0 with f32 [2]", made once and kept. */
struct step_text {
    uint64_t key; /* 0: empty */
    size_t length;
    char text[MESH_NOTE_BYTES - STEP_POSITION_TEXT_BYTES];
};

/* What a replica does, which it stores in `doing`. */
enum replica_activity {
    REPLICA_IDLE = 0, /* its part of the step is over, or not begun */
    REPLICA_RUNNING,  /* its function runs, or what follows it in a step; collectives too */
    REPLICA_IN_MERGE  /* in cadre_merge_call */
};

#define APPLY_MAX 8 /* functions of a replica in a step that the program may add */

/* A call that is made when the step counts. Not moved until the next step begins. */
struct apply_call {
    cadre_apply_function function;
    void *user;
    struct apply_call *next;
};

/* Of one replica, only used by the thread that runs it, or while none does. */
struct apply_list {
    struct apply_call calls[APPLY_MAX]; /* of cadre_on_apply; others are their makers' */
    uint32_t count;                     /* of these */
    struct apply_call *first;           /* of all, in order; NULL: none */
    struct apply_call *last;
    bool running; /* one of them is being called */
};

struct collective_queue;
struct cadre_buckets;

struct cadre_replica {
    cadre_strategy *strategy;
    uint32_t id;
    uint32_t local;
    struct device *device;   /* whose memory its tensors are in; NULL: the host's */
    uint8_t processor;       /* of the host, for what its function makes there */
    bool active;             /* its function is running */
    atomic_uint doing;       /* enum replica_activity */
    atomic_uint collectives; /* begun in this step */
    struct cadre_error
        collective_failed; /* the first refusal or failure of this step; code not OK */
    bool all_know;         /* its failure is one that every replica got in the same collective */
    bool piggyback;        /* what it consumes, and its digest, were sent in this step */
    uint64_t digest;       /* of its state before this step, to be sent; 0: it is not due */
    cadre_tensor *const *inputs;              /* of its function, while it runs */
    cadre_tensor *outputs[CADRE_OUTPUTS_MAX]; /* that its function made */
    uint64_t outputs_named;                   /* bit i: output i has a name */
    bool outputs_taken;                       /* their references are the library's */
    uint32_t output_count;                    /* then: the others are NULL */
    cadre_status status;                      /* of its part of the step */
    struct cadre_error error;
    struct collective_list list;    /* for calls of the thread that runs its function */
    struct collective_queue *queue; /* what it has started and not waited for; NULL: none yet */
    struct cadre_buckets *buckets;  /* kept from one use to the next; NULL: none yet */
    struct step_text texts[STEP_TEXTS];
    struct apply_list apply; /* what it added in this step */
    /* Of outputs that have a name, and of those that had one in a step before; kept. */
    const char *output_names[CADRE_OUTPUTS_MAX];
};

/* Prepares the step at the task's position; no replica is running. `own`: what this task consumes.
 */
void step_begin(cadre_strategy *strategy, uint64_t position, int64_t global_rows,
    uint32_t input_count, const char *const *input_names, const struct step_consumption *own);

/* The replicas have returned. */
void step_end(cadre_strategy *strategy);

/* FAILED_PRECONDITION for `function` called with a replica whose function is not running: for calls
 * that any thread may make while the function waits for it. */
cadre_status step_require(
    const cadre_replica *replica, const char *function, struct cadre_error *error);

/* The same for what counts in the order of a replica's calls: also in any thread but the one that
 * runs its function. Never reads the memory of another replica, which may be freed. */
cadre_status step_require_own_thread(
    const cadre_replica *replica, const char *function, struct cadre_error *error);

/* Keeps a refusal that the program may not look at, because replicas that went on would not be
 * equal. Nothing for a replica that is not the calling thread's. */
void step_record_refusal(cadre_replica *replica, const struct cadre_error *error);

/* The replica whose step the calling thread is in, also in a merge call or an update: a refusal is
 * kept with it. NULL: none. */
cadre_replica *step_current_replica(void);

/* A replica's collective begins, in the order of its calls: counts it, without any wait. *ret_note
 * is the note for each call of the mesh that the collective makes. INVALID_ARGUMENT when another
 * local replica has returned with fewer collectives, or waits for this one in a merge call. */
cadre_status step_collective_begin(cadre_replica *replica, const struct step_call *call,
    struct step_note *ret_note, struct cadre_error *error);

/* Before the mesh is called for a local replica, in any thread: waits until the coordinator has
 * released the step, once a step (protocol, rule 1). */
cadre_status step_admit(cadre_strategy *strategy, uint32_t local, struct cadre_error *error);

/* After each collective of a replica, in its thread: a failure is kept, because the function may
 * not look at it. INVALID_ARGUMENT is one that all replicas have got. Returns `status`. */
cadre_status step_collective_end(
    cadre_replica *replica, cadre_status status, struct cadre_error *error);

/* After a replica's function returned OK, or failed as all others do: INVALID_ARGUMENT when another
 * has begun more collectives. */
cadre_status step_replica_end(cadre_replica *replica, struct cadre_error *error);

/* --- verified_position.c: the newest position at which all replicas' states were equal --- */

/* They were, by digests that are all `digest`: kept, and reported to the coordinator. No replica
 * runs, or this is the thread of the first. */
void verified_position_record(cadre_strategy *strategy, uint64_t position, uint64_t digest);

#endif
