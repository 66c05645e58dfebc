/* SPDX-License-Identifier: Apache-2.0
 * Hashes of chunks in a device's memory: the bits that libxxhash gets on the host. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/pure/prng.h"
#include "plugin.h"
#include "worker/library/device/memory_hash.h"

#define CHUNKS     24
#define PIECES_MAX 300
#define GUARD      UINT64_C(0xc3c3c3c3c3c3c3c3)

static struct prng prng = {.state = 7};

static void *on_device(const void *from, size_t bytes, void *stream)
{
    void *memory = memory_of(0, bytes, stream);
    upload(memory, from, bytes, stream);
    return memory;
}

/* Of each kind of content that a sum, a carry or a product could get wrong. */
static void fill_chunk(uint8_t *chunk, uint64_t kind)
{
    memset(chunk, kind == 0 ? 0 : 0xff, HASH_CHUNK_BYTES);
    for (size_t i = 0; i < HASH_CHUNK_BYTES && kind > 1; i += sizeof(uint64_t)) {
        uint64_t drawn = kind == 2 ? i / sizeof(uint64_t) : prng_next(&prng);
        memcpy(chunk + i, &drawn, sizeof drawn);
    }
}

/* Pieces that were drawn are anywhere in the chunks, also one over the other. */
static void check(const struct device_chunks pieces[], const size_t firsts[], size_t count,
    const uint8_t *bytes, uint64_t *hashes, size_t hashed, void *stream)
{
    struct cadre_error error = {.code = CADRE_OK};
    uint64_t *got = calloc(hashed + 2, sizeof *got);
    uint64_t *wanted = calloc(hashed + 2, sizeof *wanted);
    assert_true(got != NULL && wanted != NULL);
    wanted[0] = GUARD;
    wanted[hashed + 1] = GUARD;
    size_t at = 1;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < pieces[i].count; k++) {
            size_t chunk = firsts[i] + k * pieces[i].stride;
            wanted[at++] = XXH3_64bits(bytes + chunk * HASH_CHUNK_BYTES, HASH_CHUNK_BYTES);
        }
    }
    assert_int_equal(at, hashed + 1);
    assert_ok(
        ops->fill(hashes, (uint8_t)GUARD, (hashed + 2) * sizeof *got, stream, &error), &error);
    assert_ok(ops->hash(pieces, count, stream, &error), &error);
    download(got, hashes, (hashed + 2) * sizeof *got, stream);
    assert_memory_equal(got, wanted, (hashed + 2) * sizeof *got);
    free(got);
    free(wanted);
}

static void draw_and_check(const uint8_t *bytes, const uint8_t *memory, size_t count, void *stream)
{
    static struct device_chunks pieces[PIECES_MAX];
    static size_t firsts[PIECES_MAX];
    size_t hashed = 0;
    uint64_t *hashes = memory_of(0, (PIECES_MAX * CHUNKS + 2) * sizeof *hashes, stream);
    for (size_t i = 0; i < count; i++) {
        size_t stride = 1 + prng_uniform(&prng, 9);
        firsts[i] = prng_uniform(&prng, CHUNKS);
        size_t most = count > 9 ? 1 : (CHUNKS - firsts[i] - 1) / stride + 1;
        pieces[i] = (struct device_chunks){.data = memory + firsts[i] * HASH_CHUNK_BYTES,
            .stride = stride,
            .count = prng_uniform(&prng, (uint32_t)most + 1),
            .hashes = hashes + 1 + hashed};
        hashed += pieces[i].count;
    }
    check(pieces, firsts, count, bytes, hashes, hashed, stream);
    ops->memory_give(0, hashes, stream);
}

static void test_the_bits_of_the_host(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 1, 2, 5, 9, 139, 140, 141, 281, PIECES_MAX};
    uint8_t *bytes = malloc(CHUNKS * HASH_CHUNK_BYTES);
    void *stream = stream_of(0);
    assert_non_null(bytes);
    for (size_t i = 0; i < CHUNKS; i++) {
        fill_chunk(bytes + i * HASH_CHUNK_BYTES, i);
    }
    void *memory = on_device(bytes, CHUNKS * HASH_CHUNK_BYTES, stream);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        draw_and_check(bytes, memory, counts[i], stream);
    }
    ops->memory_give(0, memory, stream);
    settle(stream);
    ops->stream_close(stream);
    free(bytes);
}

/* All chunks at once, each of which the kernel's blocks take by themselves; and one bit, wherever
 * it is in a chunk, makes another hash. */
static void test_each_bit_counts(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    uint8_t *bytes = malloc(CHUNKS * HASH_CHUNK_BYTES);
    uint64_t got[CHUNKS];
    void *stream = stream_of(0);
    assert_non_null(bytes);
    fill_chunk(bytes, 3);
    for (size_t i = 1; i < CHUNKS; i++) {
        memcpy(bytes + i * HASH_CHUNK_BYTES, bytes, HASH_CHUNK_BYTES);
        bytes[i * HASH_CHUNK_BYTES + (HASH_CHUNK_BYTES - 1) / (CHUNKS - 1) * i] ^= 128;
    }
    void *memory = on_device(bytes, CHUNKS * HASH_CHUNK_BYTES, stream);
    uint64_t *hashes = memory_of(0, sizeof got, stream);
    const struct device_chunks all = {
        .data = memory, .stride = 1, .count = CHUNKS, .hashes = hashes};
    assert_ok(ops->hash(&all, 1, stream, &error), &error);
    download(got, hashes, sizeof got, stream);
    for (size_t i = 0; i < CHUNKS; i++) {
        assert_int_equal(got[i], XXH3_64bits(bytes + i * HASH_CHUNK_BYTES, HASH_CHUNK_BYTES));
        assert_true(i == 0 || got[i] != got[0]);
    }
    ops->memory_give(0, memory, stream);
    ops->memory_give(0, hashes, stream);
    settle(stream);
    ops->stream_close(stream);
    free(bytes);
}

static void test_what_cannot_be_hashed(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    char *memory = memory_of(0, 2 * HASH_CHUNK_BYTES, stream);
    struct device_chunks piece = {
        .data = memory, .stride = 1, .count = 0, .hashes = (uint64_t *)(void *)memory};
    assert_ok(ops->hash(NULL, 0, stream, &error), &error);
    assert_ok(ops->hash(&piece, 1, stream, &error), &error);
    piece.count = 1;
    piece.data = memory + 8;
    assert_error(ops->hash(&piece, 1, stream, &error), CADRE_INVALID_ARGUMENT, &error, "aligned");
    int local = 0;
    assert_error(ops->hash(NULL, 0, &local, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    ops->memory_give(0, memory, stream);
    settle(stream);
    ops->stream_close(stream);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bits_of_the_host),
        cmocka_unit_test(test_each_bit_counts),
        cmocka_unit_test(test_what_cannot_be_hashed),
    };
    plugin_open_with_devices(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
