/* SPDX-License-Identifier: Apache-2.0
 * On the CPU, what cadre/gpu.h and cadre/buckets.h promise: stands here until libcadre has them. */
#include <stdlib.h>

#include <cadre/buckets.h>
#include <cadre/cadre.h>
#include <cadre/gpu.h>

struct cadre_buckets {
    cadre_replica *replica;
    cadre_reduce_op op;
    cadre_tensor *const *tensors;
    size_t count;
};

cadre_status cadre_enable_gpus(void)
{
    return CADRE_OK;
}

void *cadre_replica_stream(const cadre_replica *replica)
{
    (void)replica;
    return NULL;
}

cadre_status cadre_replica_synchronize(cadre_replica *replica)
{
    (void)replica;
    return CADRE_OK;
}

cadre_status cadre_tensor_create_on(cadre_replica *replica, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor)
{
    (void)replica;
    return cadre_tensor_create(dtype, rank, dims, ret_tensor);
}

cadre_status cadre_tensor_copy_to(
    cadre_replica *replica, const cadre_tensor *tensor, cadre_tensor **ret_tensor)
{
    (void)replica;
    return cadre_tensor_copy(tensor, ret_tensor);
}

cadre_status cadre_tensor_copy_to_host(const cadre_tensor *tensor, cadre_tensor **ret_tensor)
{
    return cadre_tensor_copy(tensor, ret_tensor);
}

cadre_status cadre_buckets_begin(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_bucket_options *options,
    cadre_buckets **ret_buckets)
{
    (void)options;
    *ret_buckets = malloc(sizeof **ret_buckets);
    if (*ret_buckets == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory");
    }
    **ret_buckets = (cadre_buckets){replica, op, tensors, count};
    return CADRE_OK;
}

cadre_status cadre_buckets_ready(cadre_buckets *buckets, size_t index)
{
    (void)buckets;
    (void)index;
    return CADRE_OK;
}

cadre_status cadre_buckets_wait(cadre_buckets *buckets)
{
    const cadre_status status =
        cadre_all_reduce(buckets->replica, buckets->op, buckets->tensors, buckets->count, NULL);
    free(buckets);
    return status;
}
