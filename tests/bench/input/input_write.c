/* SPDX-License-Identifier: Apache-2.0
 * input_write PREFIX FILES RECORDS BYTES: TFRecord files PREFIX-0, PREFIX-1, ...; record r goes to
 * file r % FILES and holds its number, then pseudo-random bytes from a fixed seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "frame.h"

#define FILES_MAX 64

static int fail(const char *what)
{
    perror(what);
    return 1;
}

int main(int argc, char **argv)
{
    FILE *files[FILES_MAX];
    if (argc != 5) {
        fprintf(stderr, "usage: input_write PREFIX FILES RECORDS BYTES\n");
        return 2;
    }
    size_t count = strtoul(argv[2], NULL, 10);
    uint64_t records = strtoull(argv[3], NULL, 10);
    uint64_t bytes = strtoull(argv[4], NULL, 10);
    uint8_t *record = malloc(bytes + 8);
    if (record == NULL || count < 1 || count > FILES_MAX || bytes < 8) {
        return fail("input_write");
    }
    for (size_t i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s-%zu", argv[1], i);
        files[i] = fopen(name, "wb");
        if (files[i] == NULL) {
            return fail(name);
        }
    }
    struct prng prng = {.state = 7};
    for (uint64_t r = 0; r < records; r++) {
        for (uint64_t i = 8; i < bytes; i += 8) {
            uint64_t word = prng_next(&prng);
            memcpy(record + i, &word, 8);
        }
        memcpy(record, &r, 8);
        uint8_t head[FRAME_HEAD_BYTES];
        memcpy(head, &bytes, 8);
        memcpy(head + 8, &(uint32_t){frame_crc(&bytes, 8)}, 4);
        uint32_t check = frame_crc(record, bytes);
        FILE *file = files[r % count];
        if (fwrite(head, sizeof head, 1, file) != 1 || fwrite(record, bytes, 1, file) != 1 ||
            fwrite(&check, 4, 1, file) != 1) {
            return fail(argv[1]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (fclose(files[i]) != 0) {
            return fail(argv[1]);
        }
    }
    free(record);
    return 0;
}
