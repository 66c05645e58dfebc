/* SPDX-License-Identifier: Apache-2.0
 * The node of a shard that distribution requires, and the node that only declares a spec. Called by
 * auto_shard.c, which rewrites a pipeline for one worker. */
#include "worker/library/input/sharding/required_shard.h"

#include <inttypes.h>

#include "common/pure/assert.h"

struct required_shard {
    cadre_dataset base;
    uint64_t shards;
    uint64_t index;
    cadre_shard_policy policy;
};

struct required_iterator {
    cadre_iterator base;
    uint64_t read; /* elements of the input, also those passed over */
};

static const struct required_shard *shard_of(const cadre_dataset *self)
{
    return (const struct required_shard *)self;
}

static cadre_status too_few(
    const struct required_shard *shard, uint64_t there, struct cadre_error *error)
{
    if (shard->policy == CADRE_SHARD_FILE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu64 " file%s cannot be shared out among %" PRIu64
            " workers by CADRE_SHARD_FILE; split into more files, or use CADRE_SHARD_DATA",
            there, there == 1 ? "" : "s", shard->shards);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%" PRIu64 " element%s cannot be shared out among %" PRIu64
        " workers; give at least one to each, or use CADRE_SHARD_OFF",
        there, there == 1 ? "" : "s", shard->shards);
}

/* --- by index: a maker, as it can fail --- */

static cadre_status check_enough(const cadre_dataset *self, struct cadre_error *error)
{
    const struct required_shard *shard = shard_of(self);
    int64_t elements = dataset_cardinality(self->input);
    bool few = elements >= 0 && (uint64_t)elements < shard->shards;
    return few ? too_few(shard, (uint64_t)elements, error) : CADRE_OK;
}

static struct element_position position_in_input(
    const cadre_dataset *self, struct element_position position)
{
    const struct required_shard *shard = shard_of(self);
    position.index = shard->index + position.index * shard->shards;
    return position;
}

static cadre_status shard_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_TRY(check_enough(self, error));
    return dataset_at(self->input, position_in_input(self, position), ret_element, ids, error);
}

static cadre_status shard_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct element_position position = position_in_input(self, positions[i]);
        CADRE_TRY(dataset_ids_at(self->input, &position, 1, ids, error));
    }
    return CADRE_OK;
}

/* --- in order --- */

/* Goes on until element `next` of the input comes next; false at the end. */
static cadre_status pass_over(
    struct required_iterator *iterator, uint64_t next, bool *ret_there, struct cadre_error *error)
{
    uint64_t skipped = 0;
    CADRE_ASSERT(next >= iterator->read);
    CADRE_TRY(iterator_skip(iterator->base.input, next - iterator->read, &skipped, error));
    iterator->read += skipped;
    *ret_there = iterator->read == next;
    return CADRE_OK;
}

/* The first shard position from `read` on. */
static uint64_t pipelines_next(const struct required_shard *shard, uint64_t read)
{
    uint64_t turn = read % shard->shards;
    return read + (shard->index + shard->shards - turn) % shard->shards;
}

static cadre_status shard_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct required_iterator *iterator = (struct required_iterator *)self;
    const struct required_shard *shard = shard_of(self->data);
    bool there = false;
    CADRE_TRY(pass_over(iterator, pipelines_next(shard, iterator->read), &there, error));
    if (!there) {
        return iterator_end(error);
    }
    CADRE_TRY(iterator_next(self->input, ret_element, ids, error));
    iterator->read++;
    if (iterator->read >= shard->shards) {
        return CADRE_OK;
    }
    cadre_status status = pass_over(iterator, shard->shards, &there, error);
    if (status == CADRE_OK && !there) {
        status = too_few(shard, iterator->read, error);
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status;
}

static cadre_status shard_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    return iterator_state_write_number(writer, ((struct required_iterator *)self)->read, error);
}

static cadre_status shard_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t read = 0;
    CADRE_TRY(iterator_state_read_number(reader, &read, error));
    if (read > INT64_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position is behind element %" PRIu64 ", and no dataset has so many", read);
    }
    ((struct required_iterator *)self)->read = read;
    return CADRE_OK;
}

static const struct iterator_ops shard_iterator_ops = {
    .next = shard_next,
    .save = shard_save,
    .restore = shard_restore,
};

static cadre_status shard_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct required_iterator), &shard_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

/* --- the node --- */

static int64_t shard_cardinality(const cadre_dataset *self)
{
    const struct required_shard *shard = shard_of(self);
    int64_t elements = dataset_cardinality(self->input);
    if (elements < 0) {
        return elements;
    }
    uint64_t all = (uint64_t)elements;
    return all <= shard->index ? 0 : (int64_t)((all - 1 - shard->index) / shard->shards + 1);
}

static cadre_dataset *shard_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct required_shard *shard = shard_of(self);
    return dataset_required_shard(
        inputs[0], (uint32_t)shard->shards, (uint32_t)shard->index, shard->policy);
}

static void shard_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "%" PRIu64 " of %" PRIu64, shard_of(self)->index, shard_of(self)->shards);
}

static const struct dataset_ops required_shard_ops = {
    .name = "shard",
    .rebuild = shard_rebuild,
    .describe = shard_describe,
    .cardinality = shard_cardinality,
    .at = shard_at,
    .ids_at = shard_ids_at,
    .iterate = shard_iterate,
    .keeps_elements = true,
};

cadre_dataset *dataset_required_shard(
    cadre_dataset *data, uint32_t shards, uint32_t index, cadre_shard_policy policy)
{
    CADRE_ASSERT(index < shards);
    if (!dataset_usable(data)) {
        return data;
    }
    struct required_shard *shard = dataset_new(sizeof *shard, &required_shard_ops, data);
    if (shard == NULL) {
        return NULL;
    }
    shard->shards = shards;
    shard->index = index;
    shard->policy = policy;
    return &shard->base;
}

/* --- what is known of the elements --- */

struct known_dataset {
    cadre_dataset base;
    cadre_element_spec spec;
};

static cadre_status known_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    *ret_spec = ((const struct known_dataset *)self)->spec;
    return CADRE_OK;
}

static cadre_dataset *known_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return dataset_with_spec(inputs[0], &((const struct known_dataset *)self)->spec);
}

static void known_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    (void)self;
    (void)positions;
    (void)count;
}

static const struct dataset_ops known_ops = {
    .name = "with_spec",
    .rebuild = known_rebuild,
    .spec = known_spec,
    .spec_alone = true,
    .locate = known_locate,
    .keeps_elements = true,
};

cadre_dataset *dataset_with_spec(cadre_dataset *data, const cadre_element_spec *spec)
{
    if (!dataset_usable(data)) {
        return data;
    }
    struct known_dataset *known = dataset_new(sizeof *known, &known_ops, data);
    if (known == NULL) {
        return NULL;
    }
    known->spec = *spec;
    return &known->base;
}
