/* SPDX-License-Identifier: Apache-2.0
 * The name of a run, by which a job finds the checkpoints that are its own. checkpoint.c and
 * plain/ call it. */
#include <stdio.h>
#include <sys/random.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"

cadre_status manifest_run_make(char ret_run[MANIFEST_RUN_BYTES], struct cadre_error *error)
{
    uint8_t bits[(MANIFEST_RUN_BYTES - 1) / 2];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the system gives no random bits to name this run by");
    }
    for (size_t i = 0; i < sizeof bits; i++) {
        snprintf(ret_run + 2 * i, 3, "%02x", (unsigned)bits[i]);
    }
    return CADRE_OK;
}

cadre_status checkpointer_name_run(struct checkpointer *checkpointer, struct cadre_error *error)
{
    CADRE_ASSERT(checkpointer->run[sizeof checkpointer->run - 1] == '\0');
    return checkpointer->run[0] != '\0' ? CADRE_OK : manifest_run_make(checkpointer->run, error);
}
