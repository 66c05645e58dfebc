/* SPDX-License-Identifier: Apache-2.0
 * See shard_mark.h. It looks like a shard until it is read, so that whatever can stand on one can
 * stand on it. */
#include "worker/input/shard_mark.h"

static cadre_status refuse(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "shard: the number of shards is CADRE_SHARD_BY_HINT, which only distribution by "
        "CADRE_SHARD_HINT replaces; distribute the dataset so, or give a number");
}

static int64_t mark_cardinality(const cadre_dataset *self)
{
    (void)self;
    return CADRE_CARDINALITY_UNKNOWN;
}

static uint64_t mark_samples(const cadre_dataset *self)
{
    (void)self;
    return 0;
}

static cadre_status mark_prepare(cadre_dataset *self, struct cadre_error *error)
{
    (void)self;
    return refuse(error);
}

static cadre_status mark_at(cadre_dataset *self, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    (void)self;
    (void)place;
    (void)ret_element;
    (void)ids;
    return refuse(error);
}

static cadre_status mark_ids_at(cadre_dataset *self, const struct place places[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    (void)self;
    (void)places;
    (void)count;
    (void)ids;
    return refuse(error);
}

static cadre_status mark_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    (void)self;
    (void)pass;
    (void)ret_iterator;
    return refuse(error);
}

static cadre_dataset *mark_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    (void)self;
    return dataset_usable(inputs[0]) ? shard_mark(inputs[0]) : inputs[0];
}

static void mark_describe(const cadre_dataset *self, struct description *text)
{
    (void)self;
    description_add(text, "by hint");
}

static const struct dataset_ops mark_ops = {
    .name = "shard",
    .rebuild = mark_rebuild,
    .describe = mark_describe,
    .cardinality = mark_cardinality,
    .samples = mark_samples,
    .prepare = mark_prepare,
    .at = mark_at,
    .ids_at = mark_ids_at,
    .iterate = mark_iterate,
    .keeps_elements = true,
};

cadre_dataset *shard_mark(cadre_dataset *data)
{
    return dataset_new(sizeof *data, &mark_ops, data);
}

bool dataset_is_shard_mark(const cadre_dataset *data)
{
    return data->ops == &mark_ops;
}
