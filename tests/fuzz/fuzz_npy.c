/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as the beginning of an .npy file. The parser answers each with a
 * status and, when it accepts, with a shape that can exist. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/input/files/npy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy_header header = {0};
    struct cadre_error error = {0};
    size_t header_bytes = 0;
    cadre_status sized = npy_header_size(data, size, "fuzz.npy", &header_bytes, &error);
    cadre_status status = npy_header_parse(data, size, "fuzz.npy", &header, &error);
    if (status != CADRE_OK) {
        CADRE_ASSERT(status == CADRE_DATA_LOSS || status == CADRE_UNIMPLEMENTED);
        CADRE_ASSERT(error.code == status && error.text[0] != '\0');
        return 0;
    }
    CADRE_ASSERT(sized == CADRE_OK && header_bytes <= size);
    CADRE_ASSERT(header.data_offset == (int64_t)header_bytes && header.data_bytes >= 0);
    CADRE_ASSERT(header.spec.rank <= CADRE_RANK_MAX && header.spec.dtype != CADRE_DTYPE_NONE);
    for (uint32_t axis = 0; axis < header.spec.rank; axis++) {
        CADRE_ASSERT(header.spec.dims[axis] >= 0);
    }
    return 0;
}
