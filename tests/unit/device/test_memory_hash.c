/* SPDX-License-Identifier: Apache-2.0
 * The hash of memory equals its definition, in any order of hashing. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/device/memory_hash.h"

#define BYTES_MAX (5 * HASH_CHUNK_BYTES + 17)

static const size_t sizes[] = {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025,
    HASH_CHUNK_BYTES - 1, HASH_CHUNK_BYTES, HASH_CHUNK_BYTES + 1, 2 * HASH_CHUNK_BYTES,
    3 * HASH_CHUNK_BYTES + 240, BYTES_MAX};
static const struct hash_turn whole = {.first = 0, .stride = 1};

static uint8_t *random_bytes(void)
{
    struct prng prng = {.state = 7};
    uint8_t *bytes = malloc(BYTES_MAX);
    assert_non_null(bytes);
    for (size_t i = 0; i < BYTES_MAX; i++) {
        bytes[i] = (uint8_t)prng_next(&prng);
    }
    return bytes;
}

static void it_is_xxh3_of_chunks(void **state)
{
    (void)state;
    uint8_t *bytes = random_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t chunks[8];
        uint64_t wanted[8];
        size_t size = sizes[i];
        size_t count = 0;
        for (size_t at = 0; at < size || count == 0; at += HASH_CHUNK_BYTES) {
            size_t part = size - at < HASH_CHUNK_BYTES ? size - at : HASH_CHUNK_BYTES;
            wanted[count++] = XXH3_64bits(bytes + at, part);
        }
        assert_int_equal(hash_chunk_count(size), count);
        assert_int_equal(hash_chunks(bytes, size, whole, chunks), size);
        assert_memory_equal(chunks, wanted, count * sizeof chunks[0]);
        uint64_t all = count == 1 ? XXH3_64bits(bytes, size) : XXH3_64bits(wanted, 8 * count);
        assert_int_equal(hash_join(chunks, count), all);
    }
    assert_int_equal(hash_plain(NULL, 0), XXH3_64bits("", 0));
    assert_int_equal(hash_seeded("abc", 3, 5), XXH3_64bits_withSeed("abc", 3, 5));
    free(bytes);
}

/* Turns that begin one after the other come to all chunks, each once. */
static void turns_come_to_all(void **state)
{
    (void)state;
    uint8_t *bytes = random_bytes();
    for (size_t stride = 1; stride < 9; stride++) {
        uint64_t chunks[8] = {0};
        uint64_t wanted[8] = {0};
        size_t hashed = 0;
        for (size_t first = 0; first < stride; first++) {
            const struct hash_turn turn = {.first = first, .stride = stride};
            hashed += hash_chunks(bytes, BYTES_MAX, turn, chunks);
        }
        hash_chunks(bytes, BYTES_MAX, whole, wanted);
        assert_int_equal(hashed, BYTES_MAX);
        assert_memory_equal(chunks, wanted, sizeof chunks);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_xxh3_of_chunks),
        cmocka_unit_test(turns_come_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
