/* SPDX-License-Identifier: Apache-2.0
 * A parameter as server 0 notes it under its name: what others find. Little-endian numbers:
 *
 *     "CDRP" | version 1 | dtype | rank | rank lengths | optimizer | nesterov | 6 numbers (f64
 * bits) | shards | of each shard: server, number there
 *
 * of 4 bytes each, but 8 of lengths, numbers and the count of shards. */
#ifndef CADRE_RUNTIME_PARAMETER_NOTE_H
#define CADRE_RUNTIME_PARAMETER_NOTE_H

#include "worker/library/runtime/parameters/parameters.h"

/* *ret_bytes is the caller's to free. RESOURCE_EXHAUSTED. */
cadre_status parameter_note_encode(const cadre_parameter *parameter, void **ret_bytes,
    size_t *ret_size, struct cadre_error *error);

/* Bytes of any origin. *ret_parameter is in no list. DATA_LOSS: they are no such note. */
cadre_status parameter_note_decode(struct parameters *parameters, const char *name,
    const void *bytes, size_t size, cadre_parameter **ret_parameter, struct cadre_error *error);

#endif
