/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/log_copy.h"

#include <inttypes.h>

cadre_status log_copy_check_next(
    const struct log_copy *copy, const struct store_position *at, struct cadre_error *error)
{
    if (at->index > copy->applied.index) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INTERNAL,
        "entry %" PRIu64
        " of the shared log is to be applied, and the store has those up to %" PRIu64
        ": the caller must read the position of the store",
        at->index, copy->applied.index);
}
