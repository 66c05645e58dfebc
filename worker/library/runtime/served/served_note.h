/* SPDX-License-Identifier: Apache-2.0
 * The note of a variable, which server 0 keeps under its name for other tasks. Little-endian
 * numbers:
 *     "CDRP" | version 2 | dtype | rank | aggregation | rank lengths | optimizer | nesterov |
 *     6 numbers (f64 bits) | shards | of each shard: server, number there
 *
 * of 4 bytes each, but 8 of lengths, numbers and the count of shards. */
#ifndef CADRE_RUNTIME_SERVED_NOTE_H
#define CADRE_RUNTIME_SERVED_NOTE_H

#include "worker/library/runtime/served/served.h"

/* The caller frees *ret_bytes. RESOURCE_EXHAUSTED. */
cadre_status served_note_encode(
    const cadre_variable *variable, void **ret_bytes, size_t *ret_size, struct cadre_error *error);

/* Bytes of any origin. *ret_variable is in no list. DATA_LOSS: they are no such note. */
cadre_status served_note_decode(struct served_variables *all, const char *name, const void *bytes,
    size_t size, cadre_variable **ret_variable, struct cadre_error *error);

#endif
