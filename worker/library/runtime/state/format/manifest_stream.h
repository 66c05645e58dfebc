/* SPDX-License-Identifier: Apache-2.0
 * A distributed dataset in the manifest: its position, the description of its pipeline, which of
 * its files were consumed, and the position of its iterator. See manifest.h. */
#ifndef CADRE_RUNTIME_FORMAT_MANIFEST_STREAM_H
#define CADRE_RUNTIME_FORMAT_MANIFEST_STREAM_H

#include <jansson.h>

#include "worker/library/runtime/input/input.h"

struct saved_stream {
    char name[LIMIT_NAME_BYTES];
    char of[LIMIT_NAME_BYTES]; /* the dataset whose iterator it is; "": it is a dataset */
    struct dataset_position at;
    int64_t steps;
    char *pipeline; /* owned; or NULL */
    struct dataset_received received;
};

/* Frees what it owns, and zeroes it. */
void saved_stream_clear(struct saved_stream *saved);

/* A number as JSON: digits in a string where it is over 2^63 - 1. */
json_t *manifest_number(uint64_t value);

/* A number from JSON. False: the member is absent or none. */
bool manifest_read_number(const json_t *object, const char *name, uint64_t *ret_value);
/* The same for counts of steps, which have a lower limit. */
bool manifest_read_count(const json_t *object, const char *name, uint64_t *ret_value);
/* A truth value from JSON. */
bool manifest_read_bool(const json_t *object, const char *name, bool *ret_value);

/* The dataset at its position. *state_room: bytes of iterators' positions that have room in the
 * manifest, less by what it takes. NULL without memory. */
json_t *manifest_stream(const cadre_distributed_dataset *dataset, size_t *state_room);

/* False: it is not such an object; *ret_saved is the caller's to clear in any case. Members that
 * may be absent are: in manifests of programs by hand, and of versions before them. */
bool manifest_read_stream(const json_t *object, struct saved_stream *ret_saved);

#endif
