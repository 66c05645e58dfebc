/* SPDX-License-Identifier: Apache-2.0
 * A job's number among the arguments. */
#include <errno.h>
#include <stdlib.h>

#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"

bool invocation_job(const struct invocation *invocation, int i, uint64_t *ret_job, int *ret_exit)
{
    if (i >= invocation_argument_count(invocation)) {
        *ret_exit = invocation_usage(invocation,
            "which job? Give its number: `%s 3`; `cadre jobs` lists them",
            invocation->table->program);
        return false;
    }
    const char *word = invocation_argument(invocation, i);
    char *end = NULL;
    errno = 0;
    uint64_t job = strtoull(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end != '\0' || errno != 0 || job == 0) {
        char hint[HINT_BYTES];
        hint_job_name(invocation, word, hint);
        *ret_exit = invocation_usage(
            invocation, "\"%s\" is not the number of a job: `cadre jobs` lists them%s", word, hint);
        return false;
    }
    *ret_job = job;
    return true;
}
