/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a text file; the first byte says how it is compressed and how long
 * lines may be, the second how many are asked for at a time. Lines come out the same one by one and
 * many at a time, and what goes wrong is said. Of what is not compressed every byte is a line's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/library/input/files/inflate_stream.h"
#include "worker/library/input/files/line_reader.h"

#define WANTED_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All lines as one text, each behind a "<"; its length, and the status of the end. */
struct outcome {
    char *text;
    size_t bytes;
    cadre_status status;
};

static void add(struct outcome *outcome, const cadre_string *line)
{
    outcome->text = realloc(outcome->text, outcome->bytes + line->size + 1);
    CADRE_ASSERT(outcome->text != NULL);
    outcome->text[outcome->bytes++] = '<';
    memcpy(outcome->text + outcome->bytes, line->bytes, line->size);
    outcome->bytes += line->size;
}

static struct outcome read_lines(
    const char *path, cadre_compression compression, uint64_t longest, size_t wanted)
{
    struct outcome outcome = {.status = CADRE_OK};
    struct line_reader reader = {.stream = NULL};
    struct cadre_error error = {0};
    cadre_string lines[WANTED_MAX];
    size_t count = 1;
    outcome.status = line_reader_open(&reader, path, compression, longest, 0, &error);
    while (outcome.status == CADRE_OK && count > 0) {
        outcome.status = line_reader_next(&reader, lines, wanted, &count, &error);
        for (size_t i = 0; i < count; i++) {
            CADRE_ASSERT(lines[i].size <= longest);
            add(&outcome, &lines[i]);
        }
    }
    CADRE_ASSERT(
        outcome.status == error.code && (outcome.status == CADRE_OK || error.text[0] != '\0'));
    line_reader_free(&reader);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        CADRE_ASSERT(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (size < 2) {
        return 0;
    }
    cadre_compression compression = (cadre_compression)(data[0] % 3);
    uint64_t longest = data[0] >= 128 ? 8 : 1 << 20;
    size_t wanted = 1 + data[1] % WANTED_MAX;
    CADRE_ASSERT(ftruncate(fd, 0) == 0);
    CADRE_ASSERT(pwrite(fd, data + 2, size - 2, 0) == (ssize_t)(size - 2));
    struct outcome one = read_lines(path, compression, longest, 1);
    struct outcome many = read_lines(path, compression, longest, wanted);
    CADRE_ASSERT(one.status == CADRE_OK || one.status == CADRE_DATA_LOSS ||
                 one.status == CADRE_RESOURCE_EXHAUSTED || one.status == CADRE_UNIMPLEMENTED);
    CADRE_ASSERT(one.status == many.status && one.bytes == many.bytes);
    CADRE_ASSERT(one.bytes == 0 || memcmp(one.text, many.text, one.bytes) == 0);
    CADRE_ASSERT(
        compression != CADRE_COMPRESSION_NONE || one.status != CADRE_OK || one.bytes <= size - 1);
    free(one.text);
    free(many.text);
    return 0;
}
