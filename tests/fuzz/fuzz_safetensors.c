/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a safetensors file. What is accepted lies inside of the file, no
 * byte is two tensors', and it comes out the same when it is written again. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/state/format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With the same data in another order, perhaps: by names everything is what it was. */
static void write_again(struct safetensors_entry *entries, size_t count, uint64_t position)
{
    struct cadre_error error = {0};
    struct safetensors_list again = {0};
    char *header = NULL;
    size_t header_bytes = 0;
    size_t data_bytes = safetensors_set_offsets(entries, count);
    cadre_status status =
        safetensors_header(entries, count, position, &header, &header_bytes, &error);
    CADRE_ASSERT(status == CADRE_OK);
    if (header_bytes <= SAFETENSORS_HEADER_BYTES_MAX) {
        status = safetensors_decode_header(
            header, header_bytes, header_bytes + data_bytes, &again, &error);
        CADRE_ASSERT(status == CADRE_OK);
        CADRE_ASSERT(again.count == count);
        CADRE_ASSERT(again.data_at == header_bytes);
    }
    for (size_t i = 0; i < again.count; i++) {
        size_t at = 0;
        while (at < count && strcmp(entries[at].name, again.entries[i].name) != 0) {
            at++;
        }
        CADRE_ASSERT(at < count);
        CADRE_ASSERT(entries[at].offset == again.entries[i].offset);
        CADRE_ASSERT(entries[at].bytes == again.entries[i].bytes);
        CADRE_ASSERT(entries[at].dtype == again.entries[i].dtype);
        CADRE_ASSERT(strcmp(entries[at].variable, again.entries[i].variable) == 0);
    }
    free(again.entries);
    free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_entry *entries = NULL;
    struct cadre_error error = {0};
    size_t count = 0;
    uint64_t position = 0;
    cadre_status status = safetensors_decode(data, size, &entries, &count, &position, &error);
    if (status != CADRE_OK) {
        CADRE_ASSERT(status == CADRE_DATA_LOSS);
        CADRE_ASSERT(error.code == status && error.text[0] != '\0');
        return 0;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = entries[i].data;
        CADRE_ASSERT(from >= data && from + entries[i].bytes <= data + size);
        CADRE_ASSERT(entries[i].rank <= CADRE_RANK_MAX);
        bytes += entries[i].bytes;
    }
    CADRE_ASSERT(bytes <= size);
    write_again(entries, count, position);
    free(entries);
    return 0;
}
