/* SPDX-License-Identifier: Apache-2.0
 * The samples of a failure; see error_samples.h. */
#include "worker/library/input/node/error_samples.h"

#include <inttypes.h>
#include <stdio.h>

#include "worker/library/input/node/sample_id.h"

#define SHOWN_MAX  6
#define TEXT_BYTES 256

/* Numbers in the source; of nested datasets the number in the inner one, and of which it is. */
static size_t error_samples_append(
    char text[TEXT_BYTES], size_t at, const char *before, uint64_t id)
{
    uint64_t outer = 0;
    uint64_t ordinal = 0;
    sample_id_split(id, &outer, &ordinal);
    int added = outer == 0 ? snprintf(text + at, TEXT_BYTES - at, "%s%" PRIu64, before, id)
                           : snprintf(text + at, TEXT_BYTES - at,
                                 "%s%" PRIu64 " of input element %" PRIu64, before, ordinal, outer);
    return added < 0 || (size_t)added >= TEXT_BYTES - at ? TEXT_BYTES - 1 : at + (size_t)added;
}

static bool follow_each_other(const uint64_t *ids, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (ids[i] != ids[0] + i) {
            return false;
        }
    }
    return true;
}

cadre_status error_samples(
    cadre_status status, const struct id_list *ids, size_t first, struct cadre_error *error)
{
    char text[TEXT_BYTES];
    if (status == CADRE_OK || ids == NULL || ids->count <= first) {
        return status;
    }
    const uint64_t *shown = ids->ids + first;
    size_t count = ids->count - first;
    for (size_t i = 0; i < count; i++) {
        uint64_t outer;
        uint64_t ordinal;
        if (!sample_id_split(shown[i], &outer, &ordinal)) {
            return status; /* a hash, from which no number is found */
        }
    }
    size_t at = error_samples_append(text, 0, count == 1 ? "sample " : "samples ", shown[0]);
    if (count > 2 && follow_each_other(shown, count)) {
        at = error_samples_append(text, at, " to ", shown[count - 1]);
    } else {
        for (size_t i = 1; i < count && i < SHOWN_MAX; i++) {
            at = error_samples_append(text, at, ", ", shown[i]);
        }
        if (count > SHOWN_MAX) {
            snprintf(text + at, sizeof text - at, ", ... (%zu in all)", count);
        }
    }
    return cadre_error_wrap(error, status, "%s (from 0)", text);
}

cadre_status error_samples_at(cadre_status status, cadre_dataset *data,
    struct element_position position, struct cadre_error *error)
{
    struct id_list ids = {0};
    if (status != CADRE_OK && dataset_ids_at(data, &position, 1, &ids, NULL) == CADRE_OK) {
        error_samples(status, &ids, 0, error);
    }
    id_list_clear(&ids);
    return status;
}
