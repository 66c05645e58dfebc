/* SPDX-License-Identifier: Apache-2.0
 * The public collectives of plain programs: among all tasks, and among those of a group. */
#include "worker/library/runtime/plain/plain_call.h"

/* --- among all tasks --- */

static cadre_status make_of_all(struct plain_call call)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *all = NULL;
    cadre_status entered = plain_enter_all(call.function, &all, &error);
    return plain_call_make(entered, all, &call, &error);
}

static cadre_status make_of_group(const cadre_plain_group *handle, struct plain_call call)
{
    struct cadre_error error = {0};
    struct cadre_plain_group *group = NULL;
    cadre_status entered = plain_enter_group(call.function, handle, &group, &error);
    return plain_call_make(entered, group, &call, &error);
}

cadre_status cadre_plain_barrier(void)
{
    return make_of_all((struct plain_call){.kind = PLAIN_BARRIER, .function = __func__});
}

cadre_status cadre_plain_broadcast(void *data, size_t count, cadre_dtype dtype, uint32_t root)
{
    return make_of_all((struct plain_call){.kind = PLAIN_BROADCAST,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .root = root,
        .into = data,
        .into_name = "data"});
}

cadre_status cadre_plain_all_reduce(
    const void *from, void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    return make_of_all((struct plain_call){.kind = PLAIN_ALL_REDUCE,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .op = op,
        .from = from,
        .into = into});
}

cadre_status cadre_plain_all_gather(const void *from, void *into, size_t count, cadre_dtype dtype)
{
    return make_of_all((struct plain_call){.kind = PLAIN_ALL_GATHER,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .from = from,
        .into = into});
}

cadre_status cadre_plain_reduce_scatter(
    const void *from, void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    return make_of_all((struct plain_call){.kind = PLAIN_REDUCE_SCATTER,
        .function = __func__,
        .count = count,
        .dtype = dtype,
        .op = op,
        .from = from,
        .into = into});
}

/* --- among the tasks of a group --- */

cadre_status cadre_plain_group_barrier(cadre_plain_group *group)
{
    return make_of_group(group, (struct plain_call){.kind = PLAIN_BARRIER, .function = __func__});
}

cadre_status cadre_plain_group_broadcast(
    cadre_plain_group *group, void *data, size_t count, cadre_dtype dtype, uint32_t root)
{
    return make_of_group(group, (struct plain_call){.kind = PLAIN_BROADCAST,
                                    .function = __func__,
                                    .count = count,
                                    .dtype = dtype,
                                    .root = root,
                                    .into = data,
                                    .into_name = "data"});
}

cadre_status cadre_plain_group_all_reduce(cadre_plain_group *group, const void *from, void *into,
    size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    return make_of_group(group, (struct plain_call){.kind = PLAIN_ALL_REDUCE,
                                    .function = __func__,
                                    .count = count,
                                    .dtype = dtype,
                                    .op = op,
                                    .from = from,
                                    .into = into});
}

cadre_status cadre_plain_group_all_gather(
    cadre_plain_group *group, const void *from, void *into, size_t count, cadre_dtype dtype)
{
    return make_of_group(group, (struct plain_call){.kind = PLAIN_ALL_GATHER,
                                    .function = __func__,
                                    .count = count,
                                    .dtype = dtype,
                                    .from = from,
                                    .into = into});
}

cadre_status cadre_plain_group_reduce_scatter(cadre_plain_group *group, const void *from,
    void *into, size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    return make_of_group(group, (struct plain_call){.kind = PLAIN_REDUCE_SCATTER,
                                    .function = __func__,
                                    .count = count,
                                    .dtype = dtype,
                                    .op = op,
                                    .from = from,
                                    .into = into});
}
