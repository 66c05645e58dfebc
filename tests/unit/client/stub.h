/* SPDX-License-Identifier: Apache-2.0
 * A coordinator with canned answers, on a loop and thread of its own. What it answers depends on
 * the number of the job that it is asked for. */
#ifndef CADRE_TESTS_CLIENT_STUB_H
#define CADRE_TESTS_CLIENT_STUB_H

#include <pthread.h>

#include "tests/lib/test.h"

#include "common/base/sha256.h"
#include "common/rpc/server.h"
#include "common/wire/wire.h"

/* Jobs that behave in a way of their own; any other one exists and runs to its end. */
#define JOB_NONE    404 /* NOT_FOUND */
#define JOB_OUTAGE  50  /* Watch and Logs break off once, then go on */
#define JOB_GONE    51  /* Watch and Logs are never there */
#define JOB_HANGS   60  /* no answer ever */
#define JOB_GARBAGE 61  /* answers that are no messages */

/* Jobs whose proof is not the usual one: three epochs of 1000 samples, each exact. */
#define JOB_TWICE       70 /* epoch 1 consumed a sample twice, and another never */
#define JOB_OTHER_EPOCH 71 /* epoch 1 has the digest of another epoch, not provable */
#define JOB_PARTLY      72 /* less than the source, less than the epoch, more than once */
#define JOB_UNKNOWN     73 /* nothing provable, for four reasons */
#define JOB_NOTHING     74 /* no epochs */
#define JOB_REWOUND     75 /* a generation begins before its forerunner */
#define JOB_RESTARTED   76 /* the same, and says why */
#define JOB_SHORT       77 /* ended with less committed than a generation began with */
#define JOB_MORE        78 /* more than an old coordinator sends */
#define JOB_SURPLUS     79 /* epochs of more steps than are committed */
#define JOB_FILES       81 /* by files: all, some dropped, not to the end, one consumed twice */
#define JOB_PAGED       82 /* pages, while it goes on */
#define JOB_PAGED_AGAIN 83 /* the same; it begins again at a checkpoint once, ... */
#define JOB_PAGED_NEVER 84 /* ... or always */
#define JOB_LARGE       85 /* epochs whose judging takes a moment */
#define JOB_UNDONE      80 /* a generation begins one step before its forerunner */

#define STUB_EPOCHS_MAX 5

#define STUB_BLOBS_MAX   8
#define STUB_REQUEST_IDS 8

struct stub_blob {
    struct sha256 hash;
    uint64_t announced_bytes;
    uint64_t got_bytes;
    bool whole; /* its end came, and the hash is that of the content */
};

/* What the stub saw; to be read between calls of the client. */
struct stub_seen {
    struct stub_blob blobs[STUB_BLOBS_MAX];
    size_t blob_count;
    int submits;
    uint8_t request_ids[STUB_REQUEST_IDS]
                       [LIMIT_REQUEST_ID_BYTES]; /* of the first of them; zeros: none */
    char
        spec[1024]; /* of the last: "name=... program=... args=a,b env=... files=x,y workers=..." */
    int watches;
    int logs;
    int drains;
    uint64_t tail_bytes; /* of the last */
    bool follow;
    char ledger[64]; /* what the newest call says that its client was answered from; "": nothing */
    bool stale;      /* it takes old answers */
};

struct stub {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ready;
    struct rpc_loop *loop;
    struct rpc_server *server;
    struct wire_arena *arena;
    struct wire_buffer packed;
    struct stub_seen seen; /* under the lock */
    unsigned audit_pages;  /* that were asked for, of jobs that have several */
    cadre_status submit_fails;
    bool request_ids;         /* it knows them, as it says when a client connects */
    bool objects;             /* likewise */
    int submit_losses;        /* so many of the next answers are lost */
    cadre_status watch_fails; /* and Logs */
    const char *ledger;       /* what answers say that they were made from; NULL: nothing */
    const char *age;          /* and how old that is */
    char address[160];
};

/* Starts it on a socket in a new folder, or, with `address`, on that one. */
void stub_open(struct stub *stub, const char *address);

/* Ends it with all its calls; the address stays. */
void stub_close(struct stub *stub);

/* A copy of what it saw. */
struct stub_seen stub_seen(struct stub *stub);

#define STUB_SEND(stub, call, type, message)                                                       \
    do {                                                                                           \
        struct cadre_error send_error;                                                             \
        wire_buffer_clear(&(stub)->packed);                                                        \
        if (wire_pack_##type((message), &(stub)->packed, &send_error) != CADRE_OK ||               \
            rpc_call_send((call), (stub)->packed.bytes, (stub)->packed.size, &send_error) !=       \
                CADRE_OK) {                                                                        \
            rpc_call_fail((call), &send_error);                                                    \
        }                                                                                          \
    } while (0)

/* Its answer about any job. */
struct job_info stub_job(uint64_t id, enum job_state state);

/* False: the call was answered otherwise, as the number of the job says. */
bool stub_has_job(struct rpc_call *call, struct job_id id);

/* Jobs.Verify, in stub_audits.c. */
extern const struct rpc_server_ops stub_verify_ops;

/* The methods, in stub_jobs.c. */
size_t stub_methods(struct stub *stub, struct rpc_method *ret_methods);
#define STUB_METHODS_MAX 16

#endif
