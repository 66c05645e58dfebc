/* SPDX-License-Identifier: Apache-2.0
 * The memory of results: what cadre_result_release() releases; and what views have in common. */
#ifndef CADRE_VIEW_RESULT_H
#define CADRE_VIEW_RESULT_H

#include "cadre/client.h"
#include "common/wire/wire.h"

/* A result for cadre_result_release(): `bytes` of zeroed memory in front of which its owner keeps
 * `arena` (which it takes over on success; may be NULL) and, after result_array(), one array per
 * slot. NULL: out of memory. */
void *result_new(size_t bytes, struct wire_arena *arena);

#define RESULT_ARRAYS 4

/* Releases a result that failed half-way, but not its arena; accepts NULL. */
void result_discard(void *result);

/* A zeroed array that is freed with the result; `slot` is below RESULT_ARRAYS. NULL: out of
 * memory. */
void *result_array(void *result, unsigned slot, size_t count, size_t item_bytes);

/* What a task or a host uses. */
cadre_usage view_usage(const struct resource_usage *usage);

#endif
