/* SPDX-License-Identifier: Apache-2.0
 * A bump allocator that protobuf-c unpacks into. For common/wire, common/etcd and
 * coordinator/replication. */
#ifndef CADRE_WIRE_ARENA_H
#define CADRE_WIRE_ARENA_H

#include <protobuf-c/protobuf-c.h>

#include "common/wire/wire.h"

/* Aligned for all wire and model types, not cleared. NULL: the budget is spent or memory is out
 * (wire_arena_is_spent). */
void *wire_arena_alloc(struct wire_arena *arena, size_t size);

/* The requested size of `taken`, a pointer from wire_arena_alloc. */
size_t wire_arena_size_of(const void *taken);

/* True when a take failed since the last reset: it exceeded the budget, or memory is out. */
bool wire_arena_is_spent(const struct wire_arena *arena);
/* The budget that the arena was made with. */
size_t wire_arena_budget(const struct wire_arena *arena);

/* For protobuf_c_message_unpack; owned by the arena. Its free gives back only the newest take. */
ProtobufCAllocator *wire_arena_allocator(struct wire_arena *arena);

#endif
