/* SPDX-License-Identifier: Apache-2.0
 * Single elements kept as bytes, for nodes that hold many. All of them are alike: they have the
 * types and shapes of one spec, in which every dimension is known; strings may be of any length.
 *
 *     | values of the components of fixed size | size of each string but the last | their bytes |
 *
 * Their memory comes from a slab_allocator.h, packed: what is held lies in the nearest cache that
 * can hold it. */
#ifndef CADRE_WORKER_INPUT_SHUFFLE_ROW_SLOT_H
#define CADRE_WORKER_INPUT_SHUFFLE_ROW_SLOT_H

#include "worker/library/input/node/node.h"
#include "worker/library/input/shuffle/slab_allocator.h"

/* What is asked for ahead of a slot; the processor finds what follows by itself. */
#define ROW_SLOT_BYTES_AHEAD 512

/* How an element lies in a slot. */
struct row_layout {
    cadre_element_spec spec;
    size_t bytes[CADRE_ELEMENT_TENSORS_MAX];   /* of a component's values; 0 for strings */
    size_t strings[CADRE_ELEMENT_TENSORS_MAX]; /* of a component */
    size_t fixed_bytes;                        /* all values but strings */
    size_t string_count;
    size_t size_bytes; /* of the strings' sizes */
    uint32_t string_components;
};

/* `spec` is uniform (element_spec_is_uniform). RESOURCE_EXHAUSTED: larger than can be addressed. */
cadre_status row_layout_init(
    struct row_layout *layout, const cadre_element_spec *spec, struct cadre_error *error);

/* Zeroed: empty. */
struct row_slot {
    char *memory;
    size_t bytes;        /* at `memory` */
    uint64_t id;         /* of its sample, */
    struct id_list *ids; /* or, where that is not just one, all */
};

/* `count` elements stacked, as they come from a dataset. */
struct row_block {
    const char *values[CADRE_ELEMENT_TENSORS_MAX];
};

/* Looks at `rows` stacked elements, which stay the caller's. INVALID_ARGUMENT: they are not as the
 * layout says. */
cadre_status row_block_init(struct row_block *block, const struct row_layout *layout,
    const cadre_element *element, size_t rows, struct cadre_error *error);

/* Copies row `row` of the block to the slot, which is empty. */
cadre_status row_slot_put(struct row_slot *slot, const struct row_layout *layout,
    const struct row_block *block, size_t row, struct slab_allocator *memory,
    struct cadre_error *error);

/* Asks the processor for what the slot holds. */
static inline void row_slot_prefetch(const struct row_slot *slot)
{
    for (size_t at = 0; at < slot->bytes && at < ROW_SLOT_BYTES_AHEAD; at += 64) {
        __builtin_prefetch(slot->memory + at);
    }
}

/* The elements of `count` >= 1 slots, stacked; or that of one, as it is. Copies. */
cadre_status row_slots_stack(const struct row_slot slots[], size_t count,
    const struct row_layout *layout, cadre_element *ret_element, struct cadre_error *error);
cadre_status row_slot_element(const struct row_slot *slot, const struct row_layout *layout,
    cadre_element *ret_element, struct cadre_error *error);

/* For a slot that has no ids yet; `count` is not 1 (then it is `id`). */
cadre_status row_slot_set_ids(
    struct row_slot *slot, const uint64_t *ids, size_t count, struct cadre_error *error);

/* Appends the ids of `count` slots. `ids` may be NULL. */
cadre_status row_slots_add_ids(
    const struct row_slot slots[], size_t count, struct id_list *ids, struct cadre_error *error);

/* Frees the list of a slot that has one. */
void row_slot_clear_ids(struct row_slot *slot);

/* Releases what the slot has. It is filled again afterwards, or dropped. */
static inline void row_slot_clear(struct row_slot *slot, struct slab_allocator *memory)
{
    if (slot->memory != NULL) {
        slab_free(memory, slot->memory, slot->bytes);
        slot->memory = NULL;
    }
    if (slot->ids != NULL) {
        row_slot_clear_ids(slot);
    }
}

#endif
