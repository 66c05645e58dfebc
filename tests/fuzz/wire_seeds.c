/* SPDX-License-Identifier: Apache-2.0
 * Writes a first corpus for fuzz_wire into a folder: every sample message, one file each. */
#include <stdio.h>

#include "tests/unit/wire/samples.h"

static int write_seed(const char *folder, size_t index)
{
    const struct sample *sample = &samples[index];
    struct wire_buffer buffer = {0};
    struct cadre_error error;
    char path[4096];
    snprintf(path, sizeof path, "%s/sample-%02zu", folder, index);
    if (sample->kind->pack(sample->message, &buffer, &error) != CADRE_OK) {
        fprintf(stderr, "%s: %s\n", sample->name, error.text);
        return 1;
    }
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        wire_buffer_free(&buffer);
        return 1;
    }
    fputc((int)(sample->kind - kinds), file);
    fwrite(buffer.bytes, 1, buffer.size, file);
    wire_buffer_free(&buffer);
    if (fclose(file) != 0) {
        perror(path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < sample_count; i++) {
        if (write_seed(argv[1], i) != 0) {
            return 1;
        }
    }
    return 0;
}
