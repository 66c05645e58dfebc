/* SPDX-License-Identifier: Apache-2.0
 * The hash against values of libfarmhash, and against buckets that TensorFlow documents. */
#include "tests/lib/test.h"

#include <string.h>

#include "worker/library/preprocessing/fingerprint.h"

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 37 + 11);
}

static void it_gives_what_farmhash_gives(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        uint64_t hash;
    } known[] = {
        {0, UINT64_C(0x9ae16a3b2f90404f)},
        {3, UINT64_C(0x373a2b2a12e0c581)},
        {7, UINT64_C(0x960838fbc6d9c975)},
        {8, UINT64_C(0x7d507025ed4eecfd)},
        {13, UINT64_C(0x89b134a12b79b165)},
        {16, UINT64_C(0xd836480326a974d6)},
        {17, UINT64_C(0x5cded6cb65c9dac6)},
        {32, UINT64_C(0xa03300e1b2be6da7)},
        {33, UINT64_C(0x839154ca67815696)},
        {41, UINT64_C(0x9cbfc6912b40224a)},
        {64, UINT64_C(0x000f03eac52d3535)},
        {65, UINT64_C(0xfb360c5023f60db6)},
        {66, UINT64_C(0x43e8938ea69c43f4)},
        {128, UINT64_C(0x33ef435f17af1739)},
        {129, UINT64_C(0xc30a81b637d2e4dd)},
        {151, UINT64_C(0x15c0cae0e7f9abb6)},
        {200, UINT64_C(0x51320a19a60cbd6e)},
    };
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = byte_at(i);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(fingerprint64(bytes, known[i].size), known[i].hash);
    }
}

/* Every size from 0 to 999, folded into one number. */
static void it_gives_it_at_every_size(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    uint64_t folded = 0;
    for (size_t size = 0; size < sizeof bytes; size++) {
        folded = folded * 31 + fingerprint64(bytes, size);
        bytes[size] = byte_at(size);
    }
    assert_int_equal(folded, UINT64_C(0xc986548c2088ab3c));
}

/* The examples of tf.strings.to_hash_bucket_fast and of StringLookup. */
static void buckets_are_those_of_tensorflow(void **state)
{
    (void)state;
    assert_int_equal(fingerprint64("Hello", 5) % 3, 0);
    assert_int_equal(fingerprint64("TensorFlow", 10) % 3, 2);
    assert_int_equal(fingerprint64("2.x", 3) % 3, 2);
    assert_int_equal(fingerprint64("m", 1) % 2, 0);
    assert_int_equal(fingerprint64("z", 1) % 2, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_what_farmhash_gives),
        cmocka_unit_test(it_gives_it_at_every_size),
        cmocka_unit_test(buckets_are_those_of_tensorflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
