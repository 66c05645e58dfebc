/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C: published values, and the same sum in whatever pieces the bytes come. */
#include "tests/lib/test.h"

#include <string.h>

#include "worker/library/checksum/crc32c.h"
#include "worker/library/checksum/crc32c_inline.h"

/* RFC 3720, appendix B.4, and the check value of the catalogue of CRCs. */
static void published_values(void **state)
{
    uint8_t bytes[32];
    (void)state;
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, NULL, 0), 0);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, sizeof bytes), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(0, bytes, sizeof bytes), 0x62a8ab43u);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    assert_int_equal(crc32c(0, bytes, sizeof bytes), 0x46dd794eu);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(sizeof bytes - 1 - i);
    }
    assert_int_equal(crc32c(0, bytes, sizeof bytes), 0x113fdb5cu);
}

/* By its definition, a bit at a time. */
static uint32_t add_byte(uint32_t crc, uint8_t byte)
{
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) {
        crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
    return crc;
}

static void any_size_at_any_place(void **state)
{
    uint8_t bytes[5000];
    uint32_t crc = UINT32_MAX;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 31 >> 2);
    }
    for (size_t size = 0; size < sizeof bytes - 9; size++) {
        uint32_t half = crc32c(0, bytes, size / 3);
        assert_int_equal(crc32c(0, bytes, size), ~crc);
        assert_int_equal(crc32c(half, bytes + size / 3, size - size / 3), ~crc);
        assert_int_equal(~crc32c_library(UINT32_MAX, bytes, size), ~crc);
        crc = add_byte(crc, bytes[size]);
    }
    for (size_t at = 1; at < 9; at++) {
        uint32_t head = crc32c(0, bytes, at);
        assert_int_equal(crc32c(head, bytes + at, 4000), crc32c(0, bytes, 4000 + at));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(any_size_at_any_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
