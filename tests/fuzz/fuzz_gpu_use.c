/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a child's answer for the use of GPUs; the first byte says of how
 * many. What is accepted is within its limits, and written again it is read as the same. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/host/probe/use_child.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t write_again(const struct gpu_sample *samples, uint32_t count, char *text, size_t room)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        char percent[16] = "-";
        char bytes[32] = "-";
        if (samples[i].has_percent) {
            snprintf(percent, sizeof percent, "%" PRIu32, samples[i].percent);
        }
        if (samples[i].has_memory) {
            snprintf(bytes, sizeof bytes, "%" PRIu64, samples[i].memory_bytes);
        }
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s,%s", i > 0 ? " " : "", percent, bytes);
        CADRE_ASSERT(used < room);
    }
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpu_sample samples[LIMIT_GPUS_PER_WORKER];
    struct gpu_sample again[LIMIT_GPUS_PER_WORKER];
    char text[USE_ANSWER_BYTES_MAX + 1];
    struct cadre_error error = {0};
    if (size == 0) {
        return 0;
    }
    uint32_t count = data[0] % (LIMIT_GPUS_PER_WORKER + 1);
    if (use_answer_read((const char *)data + 1, size - 1, samples, count, &error) != CADRE_OK) {
        CADRE_ASSERT(error.text[0] != '\0');
        return 0;
    }
    size_t used = write_again(samples, count, text, sizeof text);
    CADRE_ASSERT(use_answer_read(text, used, again, count, &error) == CADRE_OK);
    for (uint32_t i = 0; i < count; i++) {
        CADRE_ASSERT(samples[i].percent <= 100 && samples[i].memory_bytes <= INT64_MAX);
        CADRE_ASSERT(samples[i].has_percent == again[i].has_percent);
        CADRE_ASSERT(samples[i].percent == again[i].percent);
        CADRE_ASSERT(samples[i].has_memory == again[i].has_memory);
        CADRE_ASSERT(samples[i].memory_bytes == again[i].memory_bytes);
    }
    return 0;
}
