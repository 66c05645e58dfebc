/* SPDX-License-Identifier: Apache-2.0
 * What is read out of a manifest, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/content.h"
#include "tests/lib/test.h"

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEAD "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":120,\"generation\":3,"
#define FILE_OF(name, bytes)                                                                       \
    "\"file\":{\"name\":\"" name "\",\"bytes\":" bytes ",\"sha256\":\"" HASH "\"},"
#define BLOCK(offset, bytes)                                                                       \
    "{\"offset\":" offset ",\"bytes\":" bytes ",\"crc32c\":\"89abcdef\",\"sha256\":\"" HASH "\"}"

static cadre_status read_text(
    const char *text, struct checkpoint_content *content, struct cadre_error *error)
{
    *error = (struct cadre_error){0};
    return checkpoint_content_read(text, strlen(text), content, error);
}

static void a_manifest_is_read(void **state)
{
    (void)state;
    struct checkpoint_content content;
    struct cadre_error error;
    assert_ok(read_text(HEAD FILE_OF("c.safetensors", "\"4194305\"") "\"blocks\":[" BLOCK(
                            "0", "4194304") "," BLOCK("4194304", "\"1\"") "],\"strings\":{}}",
                  &content, &error),
        &error);
    assert_int_equal(content.position, 120);
    assert_string_equal(content.file_name, "c.safetensors");
    assert_int_equal(content.file_bytes, 4194305);
    assert_int_equal(content.block_count, 2);
    assert_int_equal(content.blocks[1].offset, 4194304);
    assert_int_equal(content.blocks[1].bytes, 1);
    assert_int_equal(content.blocks[0].sha256[1], 0x11);
    assert_true(content.has_file_hash);
    assert_int_equal(content.file_sha256[31], 0xff);
    checkpoint_content_free(&content);

    assert_ok(read_text("{\"format\":\"cadre-checkpoint\",\"version\":2,\"position\":120,"
                        "\"file\":{\"name\":\"c\",\"bytes\":1},\"blocks\":[" BLOCK("0", "1") "]}",
                  &content, &error),
        &error);
    assert_false(content.has_file_hash);
    assert_int_equal(content.block_count, 1);
    checkpoint_content_free(&content);
}

static void a_file_may_be_empty(void **state)
{
    (void)state;
    struct checkpoint_content content;
    struct cadre_error error;
    assert_ok(read_text(HEAD FILE_OF("c", "0") "\"blocks\":[]}", &content, &error), &error);
    assert_int_equal(content.block_count, 0);
    checkpoint_content_free(&content);
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *part;
    } bad[] = {
        {"", "no manifest"},
        {"[]", "format"},
        {"{\"format\":\"other\"}", "format"},
        {"{\"format\":\"cadre-checkpoint\",\"version\":3}", "version"},
        {"{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":-1}", "position"},
        {"{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":\"18446744073709551615\"}",
            "position"},
        {"{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":\"4611686018427387904\"}",
            "position"},
        {"{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":\"12 steps\"}", "position"},
        {"{\"format\":\"cadre-checkpoint\",\"format\":\"cadre-checkpoint\",\"version\":1}",
            "duplicate"},
        {HEAD "\"blocks\":[]}", "\"name\""},
        {HEAD FILE_OF("../c", "0") "\"blocks\":[]}", "\"name\""},
        {HEAD FILE_OF("/etc/passwd", "0") "\"blocks\":[]}", "\"name\""},
        {HEAD FILE_OF("..", "0") "\"blocks\":[]}", "\"name\""},
        {HEAD FILE_OF("", "0") "\"blocks\":[]}", "\"name\""},
        {HEAD FILE_OF("c", "-1") "\"blocks\":[]}", "\"bytes\""},
        {HEAD FILE_OF("c", "68719476737") "\"blocks\":[]}", "\"bytes\""},
        {HEAD FILE_OF("c", "\"x\"") "\"blocks\":[]}", "\"bytes\""},
        {HEAD FILE_OF("c", "\"99999999999999999999999\"") "\"blocks\":[]}", "\"bytes\""},
        {HEAD "\"file\":{\"name\":\"c\",\"bytes\":0,\"sha256\":\"00\"}}", "sha256"},
        {HEAD "\"file\":{\"name\":\"c\",\"bytes\":0},\"blocks\":[]}", "no \"sha256\""},
        {HEAD FILE_OF("c", "0") "\"blocks\":3}", "no list"},
        {HEAD FILE_OF("c", "1") "\"blocks\":[]}", "as long"},
        {HEAD FILE_OF("c", "1") "\"blocks\":[" BLOCK("0", "2") "]}", "as long"},
        {HEAD FILE_OF("c", "1") "\"blocks\":[" BLOCK("1", "1") "]}", "block 0"},
        {HEAD FILE_OF("c", "2") "\"blocks\":[" BLOCK("0", "1") "," BLOCK("0", "1") "]}", "block 1"},
        {HEAD FILE_OF("c", "8388609") "\"blocks\":[" BLOCK("0", "8388609") "]}", "block 0"},
        {HEAD FILE_OF("c", "0") "\"blocks\":[" BLOCK("0", "0") "]}", "block 0"},
        {HEAD FILE_OF("c", "0") "\"blocks\":[7]}", "block 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct checkpoint_content content;
        struct cadre_error error;
        assert_error(
            read_text(bad[i].text, &content, &error), CADRE_INVALID_ARGUMENT, &error, bad[i].part);
        assert_null(content.blocks);
    }
}

/* A manifest that ends anywhere is refused, never read beyond its end. */
static void no_part_of_one_is_one(void **state)
{
    (void)state;
    static const char text[] = HEAD FILE_OF("c", "1") "\"blocks\":[" BLOCK("0", "1") "]}";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        struct checkpoint_content content;
        struct cadre_error error = {0};
        assert_int_equal(
            checkpoint_content_read(text, size, &content, &error), CADRE_INVALID_ARGUMENT);
    }
}

/* A reader holds it whole. */
static void one_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    static const char text[] = HEAD FILE_OF("c", "1") "\"blocks\":[" BLOCK("0", "1") "]}";
    struct checkpoint_content content;
    struct cadre_error error = {0};
    size_t size = LIMIT_MANIFEST_BYTES;
    char *padded = malloc(size + 1);
    assert_non_null(padded);
    memset(padded, ' ', size + 1);
    memcpy(padded, text, sizeof text - 1);
    assert_ok(checkpoint_content_read(padded, size, &content, &error), &error);
    checkpoint_content_free(&content);
    assert_error(checkpoint_content_read(padded, size + 1, &content, &error),
        CADRE_INVALID_ARGUMENT, &error, "over the limit");
    free(padded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_manifest_is_read),
        cmocka_unit_test(a_file_may_be_empty), cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(no_part_of_one_is_one), cmocka_unit_test(one_beyond_the_limit_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
