/* SPDX-License-Identifier: Apache-2.0
 * Memory for the list of buffers of a collective, kept from one call to the next: a collective in
 * the steady state allocates none. */
#ifndef CADRE_RUNTIME_COLLECTIVE_LIST_H
#define CADRE_RUNTIME_COLLECTIVE_LIST_H

#include <stddef.h>

#include "common/base/error.h"
#include "worker/library/mesh/mesh.h"

/* Zeroed: empty. One thread at a time. */
struct collective_list {
    struct mesh_buffer *buffers;
    size_t capacity;
};

/* Room for `count` buffers, valid until the next call or collective_list_free. The buffer before
 * the first one is free as well, for the piggyback of collective_reduce. RESOURCE_EXHAUSTED. */
cadre_status collective_list_room(struct collective_list *list, size_t count,
    struct mesh_buffer **ret_buffers, struct cadre_error *error);

/* Frees it; empty afterwards. */
void collective_list_free(struct collective_list *list);

#endif
