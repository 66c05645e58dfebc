/* SPDX-License-Identifier: Apache-2.0
 * The floor: what a plain C loop needs to read TFRecord files from the page cache.
 *     input_floor read FILES...     frames and both checksums, records read in place
 *     input_floor shuffle FILES...  then through a shuffle buffer of 10,000 and into batches of 64
 * Reads once to warm up, then SECONDS long; the median pass counts. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "frame.h"

#define PASSES       7
#define READ_BYTES   ((size_t)1 << 20)
#define BUFFER_SLOTS 10000
#define BATCH        64

struct slot {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
};

static bool shuffles;
static uint64_t records;
static uint64_t total;
static uint64_t sum;
static struct prng prng = {.state = 1};
static struct slot slots[BUFFER_SLOTS];
static size_t held;
static uint8_t *batch;
static size_t batch_used;
static size_t batch_capacity;
static int batch_rows;

static void corrupt(const char *what)
{
    fprintf(stderr, "corrupt: %s\n", what);
    exit(1);
}

static void count_record(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, 8);
    sum += number;
}

static void emit(const struct slot *slot)
{
    if (batch_used + slot->count > batch_capacity) {
        batch_capacity = 2 * (batch_used + slot->count);
        batch = realloc(batch, batch_capacity);
    }
    memcpy(batch + batch_used, slot->bytes, slot->count);
    count_record(batch + batch_used);
    batch_used += slot->count;
    if (++batch_rows == BATCH) {
        batch_rows = 0;
        batch_used = 0;
    }
}

static void keep(struct slot *slot, const uint8_t *bytes, size_t count)
{
    if (count > slot->capacity) {
        free(slot->bytes);
        slot->bytes = malloc(count);
        slot->capacity = count;
    }
    memcpy(slot->bytes, bytes, count);
    slot->count = count;
}

static void take(const uint8_t *bytes, size_t count)
{
    records++;
    total += count + FRAME_BYTES;
    if (!shuffles) {
        count_record(bytes);
    } else if (held < BUFFER_SLOTS) {
        keep(&slots[held++], bytes, count);
    } else {
        struct slot *slot = &slots[prng_uniform(&prng, BUFFER_SLOTS)];
        emit(slot);
        keep(slot, bytes, count);
    }
}

static void drain(void)
{
    while (held > 0) {
        size_t drawn = prng_uniform(&prng, held);
        struct slot last = slots[held - 1];
        emit(&slots[drawn]);
        slots[held - 1] = slots[drawn];
        slots[drawn] = last;
        held--;
    }
}

/* Bytes of the first frame; 0: it is not whole. */
static size_t frame(const uint8_t *bytes, size_t count)
{
    uint64_t length;
    uint32_t check;
    if (count < FRAME_HEAD_BYTES) {
        return 0;
    }
    memcpy(&length, bytes, 8);
    memcpy(&check, bytes + 8, 4);
    if (check != frame_crc(bytes, 8)) {
        corrupt("length");
    }
    if (count < length + FRAME_BYTES) {
        return 0;
    }
    memcpy(&check, bytes + FRAME_HEAD_BYTES + length, 4);
    if (check != frame_crc(bytes + FRAME_HEAD_BYTES, length)) {
        corrupt("record");
    }
    take(bytes + FRAME_HEAD_BYTES, length);
    return length + FRAME_BYTES;
}

static void read_file(const char *path)
{
    static uint8_t *buffer;
    if (buffer == NULL) {
        buffer = malloc(2 * READ_BYTES);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    ssize_t got;
    while ((got = read(fd, buffer + have, READ_BYTES)) > 0) {
        have += (size_t)got;
        size_t at = 0;
        size_t used;
        while ((used = frame(buffer + at, have - at)) > 0) {
            at += used;
        }
        memmove(buffer, buffer + at, have - at);
        have -= at;
    }
    if (fd < 0 || got < 0 || have > 0) {
        corrupt(path);
    }
    close(fd);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double seconds[PASSES];
    if (argc < 3) {
        fprintf(stderr, "usage: input_floor read|shuffle FILES...\n");
        return 2;
    }
    shuffles = strcmp(argv[1], "shuffle") == 0;
    for (int pass = -1; pass < PASSES; pass++) {
        records = 0;
        total = 0;
        sum = 0;
        double begun = now();
        for (int i = 2; i < argc; i++) {
            read_file(argv[i]);
        }
        drain();
        if (pass >= 0) {
            seconds[pass] = now() - begun;
        }
    }
    if (sum != records * (records - 1) / 2) {
        corrupt("records are lost or doubled");
    }
    qsort(seconds, PASSES, sizeof seconds[0], compare);
    double median = seconds[PASSES / 2];
    printf("records_s=%.0f\nbytes_s=%.0f\n", (double)records / median, (double)total / median);
    return 0;
}
