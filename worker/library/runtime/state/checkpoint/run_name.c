/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/random.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"

cadre_status checkpointer_name_run(struct checkpointer *checkpointer, struct cadre_error *error)
{
    CADRE_ASSERT(checkpointer->run[sizeof checkpointer->run - 1] == '\0');
    uint8_t bits[(MANIFEST_RUN_BYTES - 1) / 2];
    if (checkpointer->run[0] != '\0') {
        return CADRE_OK;
    }
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the system gives no random bits to name this run by");
    }
    for (size_t i = 0; i < sizeof bits; i++) {
        snprintf(checkpointer->run + 2 * i, 3, "%02x", (unsigned)bits[i]);
    }
    return CADRE_OK;
}
