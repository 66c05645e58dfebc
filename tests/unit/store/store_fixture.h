/* SPDX-License-Identifier: Apache-2.0
 * Records to write, and everything that a store holds as one text to compare. */
#ifndef CADRE_TESTS_UNIT_STORE_FIXTURE_H
#define CADRE_TESTS_UNIT_STORE_FIXTURE_H

#include "coordinator/store/store.h"
#include "tests/lib/test.h"

struct core_record record_job(uint64_t job, uint32_t tasks);
/* That goes on from a checkpoint "origin". */
struct core_record record_restoring_job(uint64_t job, uint32_t tasks, uint64_t position);
struct core_record record_started(uint64_t job, uint64_t incarnation_max);
struct core_record record_task(uint64_t job, uint32_t slot, uint64_t incarnation);
struct core_record record_backed(uint64_t job, uint32_t slot, uint64_t incarnation, uint64_t by);
struct core_record record_plan(uint64_t job, uint64_t generation, uint64_t resume);
struct core_record record_control(
    uint64_t job, uint64_t generation, enum halt_kind kind, uint64_t halt_at);
struct core_record record_watermark(uint64_t job, uint64_t generation, uint64_t up_to);
/* Begun at half its run's begin; of 8 samples a step. */
struct core_record record_consumed(
    uint64_t job, uint32_t stream, uint64_t epoch, uint64_t begin, uint64_t steps);
struct core_record record_stream(uint64_t job, uint32_t stream, const char *name);
struct core_record record_end_of_data(uint64_t job, uint64_t epoch);
struct core_record record_checkpoint(uint64_t job, uint64_t position, const char *path);
/* That is compared. */
struct core_record record_checkpoint_of(
    uint64_t job, uint64_t position, const char *path, uint64_t digest);
struct core_record record_verified(uint64_t job, uint64_t position, uint64_t digest);
struct core_record record_done(uint64_t job, uint64_t position);
struct core_record record_task_exit(
    uint64_t job, uint32_t slot, uint64_t incarnation, int32_t code, const char *text);
struct core_record record_ending(uint64_t job, enum job_state state, const char *text);
struct core_record record_ended(uint64_t job, enum job_state state, const char *text);
struct core_record record_dropped(uint64_t job, uint64_t position);
struct core_record record_forgotten(uint64_t job);
struct core_record record_term(uint64_t start);

/* What the ending of any job says that it had committed. */
#define ENDING_COMMITTED 3

/* One commit of `count` records, with wall times and specs that follow from the job. */
cadre_status commit(struct store *store, bool sync, const struct core_record *records, size_t count,
    struct cadre_error *error);
/* With the first `placed` slots (at most 3) started, and in the rosters of plans; else it is one.
 */
cadre_status commit_placed(struct store *store, bool sync, const struct core_record *records,
    size_t count, size_t placed, struct cadre_error *error);

#define COMMIT(store, sync, error, ...)                                                            \
    commit((store), (sync), (const struct core_record[]){__VA_ARGS__},                             \
        sizeof((const struct core_record[]){__VA_ARGS__}) / sizeof(struct core_record), (error))

/* Everything that it tells, in words; free() it. */
char *store_text(struct store *store);
void assert_store_text(struct store *store, const char *wanted);
/* The same of a store that may be damaged: a job that is says only so. free() it on success. */
cadre_status store_try_text(struct store *store, char **ret_text, struct cadre_error *error);

/* How many names in the folder begin so. */
unsigned count_names(const char *folder, const char *begin);

/* A story of several commits, of every kind of record. */
#define STORY_COMMITS 8
cadre_status story_commit(struct store *store, unsigned index, struct cadre_error *error);

/* What a store holds after the first `commits` of the story; free() it. */
char *story_text(unsigned commits);

#endif
