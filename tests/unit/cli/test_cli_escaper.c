/* SPDX-License-Identifier: Apache-2.0
 * What a terminal is given of any bytes, however they are cut into pieces. */
#include "tests/lib/test.h"

#include <string.h>

#include "coordinator/cli/render/terminal.h"

static size_t clean_in_pieces(const char *bytes, size_t size, size_t piece, char *out)
{
    struct escaper escaper = {0};
    size_t used = 0;
    for (size_t at = 0; at < size; at += piece) {
        size_t take = size - at < piece ? size - at : piece;
        used += escaper_add(&escaper, bytes + at, take, at + take == size, out + used);
    }
    return used;
}

static void check(const char *bytes, size_t size, const char *wanted)
{
    char out[1024];
    for (size_t piece = 1; piece <= size; piece++) {
        size_t used = clean_in_pieces(bytes, size, piece, out);
        out[used] = '\0';
        assert_string_equal(out, wanted);
    }
}

#define CHECK(literal, wanted) check(literal, sizeof literal - 1, wanted)

static void text_stays(void **state)
{
    (void)state;
    CHECK("plain\ttext\r\n", "plain\ttext\r\n");
    CHECK("\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x98\x80");
}

static void controls_become_visible(void **state)
{
    (void)state;
    CHECK("\x1b[31mred", "\\x1b[31mred");
    CHECK("\x1b]0;title\x07", "\\x1b]0;title\\x07");
    CHECK("\x1bPq\x1b\\", "\\x1bPq\\x1b\\");
    CHECK("a\0b\x7f\b", "a\\x00b\\x7f\\x08");
    CHECK("\x9b"
          "2J \xc2\x9b"
          "2J",
        "\\x9b2J \\xc2\\x9b2J");
    CHECK("\xe2\x80\xae\xe2\x81\xa6.", "\\xe2\\x80\\xae\\xe2\\x81\\xa6.");
}

static void broken_characters_become_visible(void **state)
{
    (void)state;
    CHECK("\xe2\x9c", "\\xe2\\x9c");
    CHECK("\xe2\x9c\x1b", "\\xe2\\x9c\\x1b");
    CHECK("\xe2\xc3\xa9", "\\xe2\xc3\xa9");
    CHECK("\xf0\x9f\x98z", "\\xf0\\x9f\\x98z");
    CHECK("\xc0\x9b\xff\x80", "\\xc0\\x9b\\xff\\x80");
    CHECK("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

/* No byte that acts on a terminal gets through, whatever the input. */
static void nothing_gets_through(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252U;
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        char out[ESCAPER_GROWTH * sizeof bytes + 16];
        for (size_t i = 0; i < sizeof bytes; i++) {
            static const char likely[] = "\x1b\x9b\xc2\xe2\x80\xae\x81\xa6\xf0[";
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes[i] = (seed & 256) != 0 ? likely[seed % 10] : (char)seed;
        }
        size_t used = clean_in_pieces(bytes, sizeof bytes, 1 + (size_t)round % 64, out);
        assert_true(used <= sizeof out);
        for (size_t i = 0; i < used; i++) {
            unsigned char byte = (unsigned char)out[i];
            assert_true(
                (byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t' || byte == '\r');
            assert_false(byte == 0xc2 && i + 1 < used && (unsigned char)out[i + 1] < 0xa0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays),
        cmocka_unit_test(controls_become_visible),
        cmocka_unit_test(broken_characters_become_visible),
        cmocka_unit_test(nothing_gets_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
