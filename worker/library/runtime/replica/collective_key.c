/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/replica/collective_key.h"

#include "common/pure/prng.h"
#include "worker/library/device/tensor.h"

uint64_t collective_key(uint64_t key, uint64_t number)
{
    return prng_mix(key ^ prng_mix(number));
}

uint64_t collective_key_text(uint64_t key, const char *text)
{
    for (; *text != '\0'; text++) {
        key = collective_key(key, (uint64_t)(unsigned char)*text);
    }
    return collective_key(key, 0);
}

uint64_t collective_key_tensor(uint64_t key, const cadre_tensor *tensor, uint32_t but)
{
    const int64_t *dims = cadre_tensor_dims(tensor);
    uint32_t rank = cadre_tensor_rank(tensor);
    uint64_t kind =
        ((uint64_t)tensor_composite(tensor) << 32) + (uint64_t)cadre_tensor_dtype(tensor);
    key = collective_key(key, kind * (CADRE_RANK_MAX + 1) + rank);
    for (uint32_t i = 0; i < rank; i++) {
        key = collective_key(key, i == but ? UINT64_MAX : (uint64_t)dims[i]);
    }
    return key;
}
