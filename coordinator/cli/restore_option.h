/* SPDX-License-Identifier: Apache-2.0
 * What --restore of `cadre submit` names: a checkpoint of a job, or one in an object store. */
#ifndef CADRE_CLI_RESTORE_OPTION_H
#define CADRE_CLI_RESTORE_OPTION_H

#include "common/checkpoint/named.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/job_options.h"

struct restore_option {
    const char *path; /* "s3://bucket/key", the caller's; NULL: none */
    uint64_t job;     /* 0: none */
    uint64_t step;    /* with it; 0: the newest */
    /* In an object store: */
    bool is_stored;
    cadre_stored_checkpoint stored; /* its texts lie in `named` */
    struct checkpoint_named named;
};

/* Takes "3", "3@400" or "s3://bucket/key" (NULL: nothing), which is only looked at. False:
 * *ret_exit, and the error was printed. */
bool restore_option_parse(const struct invocation *invocation, const char *text,
    struct restore_option *ret_option, int *ret_exit);
/* Reads what lies in a store: the manifest, and whether the tensors are there, with their size. The
 * store and the credentials are those of `environment`, the job's, and for what that does not set
 * this command's own. False as above; restore_option_free() follows in both cases. */
bool restore_option_read(const struct invocation *invocation,
    const struct environment_list *environment, struct restore_option *option, int *ret_exit);
/* Accepts {0}. */
void restore_option_free(struct restore_option *option);

#endif
