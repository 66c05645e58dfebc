/* SPDX-License-Identifier: Apache-2.0
 * Jobs of tasks that run pipelines_program, and what they counted. */
#ifndef CADRE_TESTS_RUNTIME_PIPELINES_JOBS_H
#define CADRE_TESTS_RUNTIME_PIPELINES_JOBS_H

#include "pipelines_program.h"
#include "stage.h"
#include "tests/lib/test.h"

/* "FILES=" and the folder, for the environment. */
extern char pipelines_files[TEST_PATH_BYTES + 16];

/* Writes the files. `program` is what a job's tasks run: main with one argument and CADRE_SOCKET
 * set calls pipelines_program. */
void pipelines_jobs_open(const char *program);

/* That program as a job of so many tasks. */
struct stage_job job_of(uint32_t tasks, uint32_t replicas, const char *const *environment);

/* What there is to see of a job, for a test that fails. */
void show(const struct stage_end *end);

struct counted {
    long long records;
    long long least;
    long long most;
    unsigned long long order;
    unsigned long long position;
};

/* What a task printed at its end. */
bool read_counted(const char *printed, struct counted *ret_counted);

/* Runs it; all attempts that run to its end have counted the same. `dead`: an attempt that does
 * not; UINT32_MAX: none. */
struct counted run(const struct stage_job *job, uint32_t dead, struct stage_end *ret_end);

/* Every record once in each epoch. */
void check_exact(
    const struct stage_job *job, uint32_t dead, struct stage_end *ret_end, const char *what);

/* How tasks die, in turn. */
extern const char *const losses[4];

/* One task dies there. */
void check_loss(const char *kind, const char *fault, uint32_t attempt, uint64_t position,
    uint32_t tasks, uint32_t replicas);

/* Runs a job of which one task dies at step 2, and the other when the checkpoint of `position` is
 * published; `path` gets its manifest's. `policy`: for the environment, or NULL. */
void leave_checkpoint(
    const char *kind, const char *policy, uint64_t position, char path[TEST_PATH_BYTES]);

#endif
