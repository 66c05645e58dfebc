/* SPDX-License-Identifier: Apache-2.0
 * See inner_datasets.h. */
#include "tests/unit/input/inner_datasets.h"

int64_t value_of(const cadre_element *in)
{
    return *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
}

cadre_dataset *range(int64_t start, int64_t stop)
{
    return cadre_dataset_range(start, stop, 1);
}

cadre_status make_inner(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    struct inner *inner = user;
    int64_t value = value_of(in);
    atomic_fetch_add(&inner->calls, 1);
    *ret_data = range(100 * value, 100 * value + inner->lengths[value]);
    if (inner->sequential) {
        *ret_data = cadre_dataset_shuffle(*ret_data, 3, (uint64_t)value, NULL);
    }
    return CADRE_OK;
}

const cadre_interleave_options *turns(int64_t cycle, int64_t block, int32_t parallel)
{
    static cadre_interleave_options options;
    options = (cadre_interleave_options){
        .cycle_length = cycle, .block_length = block, .parallel = parallel};
    return &options;
}
