/* SPDX-License-Identifier: Apache-2.0
 * The parser of npy headers: what it reads, what it refuses and where, and many mutated headers
 * from a seed, which must be answered and neither crash nor read out of bounds (see it under a
 * sanitizer). */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/unit/input/npy_writing.h"
#include "worker/library/input/files/npy_header.h"

static cadre_status parse(
    const uint8_t *bytes, size_t size, struct npy_header *ret_header, struct cadre_error *error)
{
    /* A copy of the very size, so that a read beyond it is one beyond an allocation. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    cadre_status status = npy_header_parse(exact, size, "x.npy", ret_header, error);
    free(exact);
    return status;
}

static void accept(
    const char *dictionary, cadre_dtype dtype, uint32_t rank, int64_t first_dim, int64_t data_bytes)
{
    uint8_t bytes[512];
    struct npy_header header = {0};
    struct cadre_error error = {0};
    size_t size = npy_make(bytes, sizeof bytes, 1, dictionary, NULL, 0);
    ASSERT_OK(parse(bytes, size, &header, &error));
    assert_int_equal(header.spec.dtype, dtype);
    assert_int_equal(header.spec.rank, rank);
    assert_true(rank == 0 || header.spec.dims[0] == first_dim);
    assert_int_equal(header.data_offset, size);
    assert_int_equal(header.data_bytes, data_bytes);
}

static void headers_that_are_read(void **state)
{
    (void)state;
    accept("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", CADRE_F32, 2, 3, 48);
    accept("{'shape': (7,), 'fortran_order': True, 'descr': '|u1'}", CADRE_U8, 1, 7, 7);
    accept("{ \"descr\" : \"|b1\" , \"fortran_order\":False,\"shape\":( 2 , 0 ) }", CADRE_BOOL, 2,
        2, 0);
    accept("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", CADRE_I64, 0, 0, 8);
    accept("{'descr': '<f2', 'fortran_order': False, 'shape': (5L, 1L), }", CADRE_F16, 2, 5, 10);
    accept("{'descr': '<i2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,2), }", CADRE_I16, 8,
        1, 4);
    accept("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }", CADRE_U16, 1, 3, 6);
    accept("{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }", CADRE_U32, 1, 3, 12);
}

static void headers_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        cadre_status status;
        const char *message;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", CADRE_UNIMPLEMENTED,
            "x.npy: npy type '>f4' at byte 20"},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", CADRE_UNIMPLEMENTED,
            "'<c16'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", CADRE_UNIMPLEMENTED, "'|O'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", CADRE_DATA_LOSS,
            "byte 20, where a quoted string should be"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", CADRE_UNIMPLEMENTED,
            "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': 1, 'shape': (3, 2), }", CADRE_DATA_LOSS,
            "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
            CADRE_UNIMPLEMENTED, "more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", CADRE_DATA_LOSS, "a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            CADRE_DATA_LOSS, "a size below 2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }",
            CADRE_DATA_LOSS, "more bytes than can be addressed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", CADRE_DATA_LOSS, "parentheses"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }", CADRE_DATA_LOSS, "a comma"},
        {"{'descr': '<f4', 'fortran_order': False, }", CADRE_DATA_LOSS, "all of"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (3,), }", CADRE_DATA_LOSS, "one each of"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': '' }", CADRE_DATA_LOSS,
            "one each of"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } x", CADRE_DATA_LOSS,
            "nothing more"},
        {"{'descr': '<f4\\'', 'fortran_order': False", CADRE_DATA_LOSS, "a plain character"},
        {"{'descr", CADRE_DATA_LOSS, "a plain character"},
        {"{'descr' '<f4'", CADRE_DATA_LOSS, "a colon"},
        {"['descr']", CADRE_DATA_LOSS, "a dictionary in braces"},
        {"", CADRE_DATA_LOSS, "a dictionary in braces"},
        {"{", CADRE_DATA_LOSS, "a quoted string"},
        {"{}", CADRE_DATA_LOSS, "all of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[512];
        struct npy_header header = {0};
        struct cadre_error error = {0};
        size_t size = npy_make(bytes, sizeof bytes, 2, cases[i].dictionary, NULL, 0);
        bytes[6] = 1; /* format 1.0, whose length has two bytes: take the other two out */
        memmove(bytes + 10, bytes + 12, size - 12);
        if (parse(bytes, size - 2, &header, &error) != cases[i].status ||
            strstr(error.text, cases[i].message) == NULL) {
            fail_msg(
                "%s gave %s: %s", cases[i].dictionary, cadre_status_name(error.code), error.text);
        }
    }
}

static void prefixes_that_are_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    size_t size = 0;
    const uint8_t version[] = "\x93NUMPY\x03\x00\x10\x00\x00\x00";
    const uint8_t other[] = "PK\x03\x04..............";
    const uint8_t huge[] = "\x93NUMPY\x02\x00\xff\xff\xff\xff";
    assert_int_equal(npy_header_size(version, 12, "x.npy", &size, &error), CADRE_UNIMPLEMENTED);
    assert_non_null(strstr(error.text, "npy format 3.0"));
    assert_int_equal(npy_header_size(other, 12, "x.npy", &size, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, "not an npy file"));
    assert_int_equal(npy_header_size(huge, 12, "x.npy", &size, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, "4294967295 bytes"));
    assert_int_equal(npy_header_size(huge, 11, "x.npy", &size, &error), CADRE_DATA_LOSS);
    assert_int_equal(npy_header_size(huge, 0, "x.npy", &size, &error), CADRE_DATA_LOSS);
}

/* One to four random changes: a bit, a byte, a digit, a piece of another header, an end. */
static size_t mutate(uint8_t *bytes, size_t size, struct prng *prng)
{
    static const char tokens[] = "{}()',:\"\\L 0123456789<>|=fiubTrueFalse";
    for (uint64_t changes = 1 + prng_uniform(prng, 4); changes > 0 && size > 0; changes--) {
        size_t at = (size_t)prng_uniform(prng, size);
        switch (prng_uniform(prng, 5)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << prng_uniform(prng, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)prng_next(prng);
            break;
        case 2:
            bytes[at] = (uint8_t)tokens[prng_uniform(prng, sizeof tokens - 1)];
            break;
        case 3: {
            size_t from = (size_t)prng_uniform(prng, size);
            size_t most = size - (at > from ? at : from);
            memmove(bytes + at, bytes + from, (size_t)prng_uniform(prng, most + 1));
            break;
        }
        default:
            size = prng_chance(prng, 1, 8) ? at : size;
            break;
        }
    }
    return size;
}

static void mutated_headers_are_answered(void **state)
{
    (void)state;
    static const char *const seeds[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
        "{'descr': '|u1', 'fortran_order': True, 'shape': (1797, 8, 8), }",
        "{'shape': (), \"descr\": '<i8', 'fortran_order': False}",
    };
    struct prng prng = {.state = 20240229};
    uint32_t accepted = 0;
    uint32_t refused = 0;
    for (uint32_t run = 0; run < 60000; run++) {
        uint8_t bytes[512];
        struct npy_header header = {0};
        struct cadre_error error = {0};
        size_t size =
            npy_make(bytes, sizeof bytes, 1 + run % 2, seeds[run % 3], "12345678", run % 9);
        size = mutate(bytes, size, &prng);
        cadre_status status = parse(bytes, size, &header, &error);
        if (status == CADRE_OK) {
            accepted++;
            assert_true(header.spec.rank <= CADRE_RANK_MAX && header.data_bytes >= 0);
            assert_in_range(header.data_offset, 10, size);
        } else {
            refused++;
            assert_true(status == CADRE_DATA_LOSS || status == CADRE_UNIMPLEMENTED);
            assert_int_equal(error.code, status);
            assert_true(error.text[0] != '\0');
        }
    }
    /* Both happen often, or the mutations test nothing. */
    assert_true(accepted > 1000 && refused > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_that_are_read),
        cmocka_unit_test(headers_that_are_refused),
        cmocka_unit_test(prefixes_that_are_refused),
        cmocka_unit_test(mutated_headers_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
