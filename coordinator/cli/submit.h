/* SPDX-License-Identifier: Apache-2.0
 * The options of `cadre submit`, from the command line to those of the client. */
#ifndef CADRE_CLI_SUBMIT_H
#define CADRE_CLI_SUBMIT_H

#include "coordinator/cli/cli.h"
#include "coordinator/cli/ps_options.h"
#include "coordinator/cli/environment_options.h"

struct submit_options {
    struct cli_common common;
    char *workers;
    uint64_t replicas;
    uint64_t gpus;
    struct option_list files;
    struct option_list environment;
    struct option_list environment_files;
    char *name;
    char *priority;
    char *strategy;
    struct ps_options ps_job;
    bool detach;
    bool raw;
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

/* The job that was asked for, released by submit_request_free() on success and on error. Its texts
 * are those of the invocation. False: *ret_exit, and the error was printed. */
struct submit_request {
    cadre_submit_options options;
    cadre_file *files;
    struct environment_list environment;
    uint32_t tasks; /* that there will be, of whatever type */
};
bool submit_request_make(
    const struct invocation *invocation, struct submit_request *ret_request, int *ret_exit);
void submit_request_free(struct submit_request *request);

/* A job that is followed. Made before the client and freed after it, which calls into it. */
struct follow;
struct follow *follow_new(size_t tasks, bool raw); /* NULL: out of memory */
void follow_free(struct follow *follow);           /* accepts NULL */

/* The client's on_outage, with the follow as its user. */
void follow_on_outage(bool away, void *follow);

/* Follows a job that was submitted to its end; returns what to exit with. The first Ctrl-C cancels
 * the job and waits for its end, the second leaves it alone; then only closing the client is left
 * to do. */
int follow_job(
    struct follow *follow, const struct invocation *invocation, cadre_client *client, uint64_t job);

#endif
