/* SPDX-License-Identifier: Apache-2.0
 * An engine between a store and a sink that both write down, in one transcript and in the order in
 * which it happened, what they were asked to do; and agents made of messages. */
#ifndef CADRE_TESTS_UNIT_ENGINE_STAGE_H
#define CADRE_TESTS_UNIT_ENGINE_STAGE_H

#include "coordinator/engine/engine.h"
#include "tests/lib/test.h"

#define SECOND UINT64_C(1000000)

/* Passes everything on to `inner` but its close, which is the test's. */
struct watched_store {
    struct store base;
    struct store *inner;
    struct stage *stage;
    unsigned commits;
    unsigned failing_commit; /* which one of them fails, from 1; 0: none */
    bool full;               /* every commit of records fails for want of room */
    cadre_status commit_is;  /* every commit fails so; CADRE_OK: not */
    bool removals_full;      /* every commit that removes something fails for want of room */
    uint8_t secret[STORE_SECRET_BYTES];
};

struct stage {
    struct engine_options options;
    struct watched_store store;
    struct engine *engine;
    uint64_t now_us;
    struct cadre_error error;
    struct engine_log log; /* after stage_share: */
    unsigned appended;
    size_t events;                    /* of the history, in these entries */
    cadre_status append_is;           /* every append fails so; CADRE_OK: not */
    uint8_t key[LIMIT_JOB_KEY_BYTES]; /* of the last plan that was sent */
    struct generation generation;     /* of it */
    uint64_t roster[8];               /* of it: the incarnations, by rank */
    uint64_t incarnations_before;     /* of a job's first tasks: see below */
    char transcript[32768];
    size_t length;
};

/* On a memory store of its own; `stage_reopen` keeps the store and opens another engine on it. */
struct stage *stage_open(void);
void stage_reopen(struct stage *stage);
void stage_close(struct stage *stage);
/* Opens another engine on the store, whose records go into a log. */
void stage_share(struct stage *stage);
/* So many entries of the log are stored; ends the turn. */
void stored(struct stage *stage, uint64_t entry);

/* Ends the turn, which must succeed. */
void flush(struct stage *stage);

/* Everything since the last question must be this text. */
#define expect_output(stage, expected) stage_expect((stage), (expected), __FILE__, __LINE__)
void stage_expect(struct stage *stage, const char *expected, const char *file, int line);
void stage_skip(struct stage *stage);

struct job_spec spec_of(uint32_t tasks);
void submit_spec(struct stage *stage, uint64_t call, const struct job_spec *spec);
void submit(struct stage *stage, uint64_t call, uint32_t tasks);
void cancel(struct stage *stage, uint64_t call, uint64_t job);

/* Messages of agents. Incarnations are what the core gives: slot + 1 behind those before. */
void join(struct stage *stage, uint64_t link, const char *name, uint32_t slots);
/* The same daemon after the coordinator was restarted: it lists tasks that it still holds. */
void rejoin(struct stage *stage, uint64_t link, const char *name, uint32_t slots, uint64_t job,
    uint32_t first, size_t count);
void heartbeat(struct stage *stage, uint64_t link);
void started(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot);
void gone(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, int32_t code,
    const char *text);
void collected(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot);
void task_hello(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot);
/* Of one that runs in the generation of the last plan. */
void task_hello_again(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot,
    uint64_t position, uint64_t released);
/* Stream 1, "train". */
void distributed(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t samples);
/* A checkpoint that the chief, task 0, wrote. */
void part(struct stage *stage, uint64_t link, uint64_t job, uint64_t position);
void report(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    enum report_reason reason);
/* The task waits in this step for the task of another slot. */
void stalled(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint32_t other);
/* As arrived(), with the consumption. */
void consumed(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied, const struct cursor *cursor, const struct consumption *consumption);
void shards(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot,
    const struct shards_report *report);
void progress(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t epoch);
/* As arrived(); the states after `verified.position` steps were compared. */
void compared(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    struct verified verified);
void arrived(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to);

/* Two workers of two slots on links 1 and 2, a job of three tasks; all of them said hello, and
 * everything about that is said. */
struct stage *stage_formed(void);
void stage_form(struct stage *stage); /* the same on one that is open */

#endif
