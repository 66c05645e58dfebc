/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as frames, as an index of records, and as a TFRecord file, plain or
 * compressed (the first byte chooses; its upper bits are the rules). What is accepted lies inside;
 * in order, record by record and passed over, a file has the same records. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/input/files/record_index.h"
#include "worker/library/input/files/record_reader.h"

#define RECORD_BYTES  (1 << 16)
#define RECORDS_MAX   64
#define READINGS_MOST 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_frames(const uint8_t *data, size_t size, const struct record_rules *rules)
{
    cadre_string records[RECORDS_MAX];
    uint64_t starts[RECORDS_MAX];
    struct record_walk frames = record_walk_frames(data, size, RECORDS_MAX, rules, records);
    struct record_walk headers = record_walk_headers(data, size, RECORDS_MAX, rules, 0, starts);
    CADRE_ASSERT(frames.used <= size && frames.count <= headers.count);
    for (size_t i = 0; i < frames.count; i++) {
        CADRE_ASSERT(records[i].size <= RECORD_BYTES);
        CADRE_ASSERT((const uint8_t *)records[i].bytes == data + starts[i] + RECORD_HEADER_BYTES);
        CADRE_ASSERT(starts[i] + records[i].size + RECORD_FRAME_BYTES <= frames.used);
    }
}

static void fuzz_index(const uint8_t *data, size_t size)
{
    struct record_index index = {0};
    struct cadre_error error = {0};
    struct record_index_file file = {0};
    if (size >= 32) { /* of the file that it says it is of */
        memcpy(&file.bytes, data + 16, sizeof file.bytes);
        memcpy(&file.modified_ns, data + 24, sizeof file.modified_ns);
    }
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    CADRE_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    if (size >= RECORD_INDEX_HEADER_BYTES) { /* with a checksum that is right */
        uint32_t crc = crc32c(0, bytes, RECORD_INDEX_HEADER_BYTES - sizeof crc);
        crc = crc32c(crc, bytes + RECORD_INDEX_HEADER_BYTES, size - RECORD_INDEX_HEADER_BYTES);
        memcpy(bytes + RECORD_INDEX_HEADER_BYTES - sizeof crc, &crc, sizeof crc);
    }
    if (record_index_unpack(bytes, size, &file, &index, &error) != CADRE_OK) {
        CADRE_ASSERT(error.code != CADRE_OK && error.text[0] != '\0');
        return;
    }
    for (uint64_t i = 0; i < index.count; i++) {
        uint64_t offset = record_index_offset(&index, i);
        CADRE_ASSERT(record_index_offset(&index, i + 1) - offset >= RECORD_FRAME_BYTES);
        CADRE_ASSERT(offset < file.bytes);
    }
    record_index_clear(&index);
}

enum way { VIEWS, BLOCKS, HEADERS };

/* Number of records to the end or to the first failure, and their bytes. */
static uint64_t read_file(const char *path, const struct record_options *options, enum way way,
    cadre_status *ret_status, uint64_t *ret_bytes)
{
    struct record_reader *reader = NULL;
    struct cadre_error error = {0};
    CADRE_ASSERT(record_reader_open(path, options, &reader, &error) == CADRE_OK);
    size_t count = 1;
    *ret_status = CADRE_OK;
    for (int i = 0; i < READINGS_MOST && *ret_status == CADRE_OK && count > 0; i++) {
        const cadre_string *records = NULL;
        cadre_tensor *block = NULL;
        uint64_t skipped = 0;
        if (way == VIEWS) {
            *ret_status = record_reader_next(reader, 3, &records, &count, &error);
        } else if (way == BLOCKS) {
            *ret_status = record_reader_next_block(reader, 2, &records, &count, &block, &error);
        } else {
            *ret_status = record_reader_skip(reader, 1, NULL, &skipped, &error);
            count = skipped;
        }
        uint8_t sum = 0;
        for (size_t r = 0; r < count && records != NULL; r++) {
            for (size_t byte = 0; byte < records[r].size; byte++) {
                sum = (uint8_t)(sum + records[r].bytes[byte]);
            }
        }
        __asm__ volatile("" : : "r"(sum)); /* every byte is looked at */
        cadre_tensor_release(block);
    }
    CADRE_ASSERT(*ret_status == CADRE_OK || (error.code == *ret_status && error.text[0] != '\0'));
    CADRE_ASSERT(*ret_status != CADRE_OUT_OF_RANGE);
    uint64_t number = record_reader_number(reader);
    *ret_bytes = record_reader_offset(reader);
    record_reader_close(reader);
    return number;
}

static void fuzz_file(const uint8_t *data, size_t size, const struct record_options *options)
{
    cadre_status status[3];
    uint64_t bytes[3];
    char path[64];
    int fd = memfd_create("fuzz.tfrecord", MFD_CLOEXEC);
    CADRE_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    uint64_t views = read_file(path, options, VIEWS, &status[0], &bytes[0]);
    uint64_t blocks = read_file(path, options, BLOCKS, &status[1], &bytes[1]);
    uint64_t headers = read_file(path, options, HEADERS, &status[2], &bytes[2]);
    /* How far a damaged compressed stream is read depends on how much is asked for at a time. */
    bool all_sound = status[0] == CADRE_OK && status[1] == CADRE_OK;
    bool ended = views < READINGS_MOST && headers < READINGS_MOST;
    if (ended && (all_sound || options->compression == CADRE_COMPRESSION_NONE)) {
        CADRE_ASSERT(status[0] == status[1] && views == blocks && bytes[0] == bytes[1]);
        CADRE_ASSERT(headers >= views);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    uint8_t choice = data[0];
    struct record_options options = {
        .rules = {.record_bytes = RECORD_BYTES, .skip_checksums = (choice & 0x10) != 0},
        .buffer_bytes = (choice & 0x20) != 0 ? 40 : 1 << 16,
    };
    data++;
    size--;
    switch (choice % 5) {
    case 0:
        fuzz_frames(data, size, &options.rules);
        break;
    case 1:
        fuzz_index(data, size);
        break;
    default:
        options.compression = (cadre_compression)(choice % 5 - 2);
        fuzz_file(data, size, &options);
    }
    return 0;
}
