/* SPDX-License-Identifier: Apache-2.0
 * The options of `cadre submit`, from the command line to those of the client. */
#ifndef CADRE_CLI_SUBMIT_H
#define CADRE_CLI_SUBMIT_H

#include "coordinator/cli/cli.h"
#include "coordinator/cli/file_list.h"
#include "coordinator/cli/job_options.h"
#include "coordinator/cli/restore_option.h"

struct submit_options {
    struct cli_common common;
    struct task_options task;
    uint64_t replicas;
    uint64_t gpus;
    struct option_list files;
    char *outputs;
    struct option_list environment;
    struct option_list environment_files;
    char *name;
    char *priority;
    char *strategy;
    bool detach;
    bool raw;
    bool terminal;
    uint64_t max_restarts;
    uint64_t wait_us;
    uint64_t stall_us;
    char *verify_state;
    bool verify_losses;
    uint64_t checkpoint_every;
    uint64_t checkpoints_kept;
    char *checkpoint_folder;
    char *restore;
    uint64_t memory_bytes;
    char *cpus;
    uint64_t pids;
    uint64_t time_limit_us;
};

extern const struct option_table submit_table;

/* The job to submit. Its texts are borrowed from the invocation. */
struct submit_request {
    cadre_submit_options options;
    struct file_list files;
    struct environment_list environment;
    struct restore_option restore;
    uint32_t tasks; /* that there will be, of whatever type */
};

/* Fills it from the options; submit_request_free() follows on success and on error. False:
 * *ret_exit, and the error was printed. */
bool submit_request_make(
    const struct invocation *invocation, struct submit_request *ret_request, int *ret_exit);
/* Frees what submit_request_make() allocated. */
void submit_request_free(struct submit_request *request);

/* ---- object_versions.c ---- */

/* Looks up the version of each object among the files, so that all tasks get what is there now,
 * with the settings of the job's environment, and credentials of this process where that has none.
 * What cannot be looked up from here is said on standard error, and stays without a version: then
 * the bytes count that a worker fetches first. False: *ret_exit, and the error was printed, because
 * workers would fail as well: no such object, or the job's own credentials are refused. */
bool object_versions_find(const struct invocation *invocation, struct file_list *files,
    const struct environment_list *environment, int *ret_exit);

/* A job that is followed. Made before the client and freed after it, which calls into it. */
struct follow;
/* `tasks`: how many the job has; `raw`: control characters are not escaped. NULL: out of
 * memory. */
struct follow *follow_new(size_t tasks, bool raw);
/* NULL is allowed. */
void follow_free(struct follow *follow);

/* The client's on_outage, with the follow as its user. */
void follow_on_outage(bool away, void *follow);

/* Follows a job that was submitted to its end; returns what to exit with. The first Ctrl-C cancels
 * the job and waits for its end, the second leaves it alone; after that only cadre_client_release()
 * may be called. */
int follow_job(
    struct follow *follow, const struct invocation *invocation, cadre_client *client, uint64_t job);

#endif
