/* SPDX-License-Identifier: Apache-2.0
 * The containers of the cores against plain models of themselves, over random operations. */
#include <string.h>

#include "common/pure/heap.h"
#include "common/pure/list.h"
#include "common/pure/map.h"
#include "common/pure/object_path.h"
#include "common/pure/philox.h"
#include "common/pure/prng.h"
#include "common/pure/text.h"
#include "tests/lib/test.h"

#define ITEMS  24
#define ROUNDS 20000

static void heap_gives_the_earliest(void **state)
{
    (void)state;
    struct heap_entry entries[ITEMS];
    uint32_t places[ITEMS];
    struct heap heap;
    uint64_t due[ITEMS];
    bool armed[ITEMS] = {false};
    struct prng prng = {.state = 1};
    heap_init(&heap, entries, places, ITEMS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t item = (uint32_t)prng_uniform(&prng, ITEMS);
        if (prng_chance(&prng, 1, 3)) {
            heap_remove(&heap, item);
            armed[item] = false;
        } else {
            due[item] = prng_uniform(&prng, 8); /* few values: ties are common */
            armed[item] = true;
            heap_set(&heap, item, due[item]);
        }
        uint32_t earliest = ITEMS;
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (armed[i] && (earliest == ITEMS || due[i] < due[earliest])) {
                earliest = i;
            }
        }
        struct heap_entry top;
        assert_int_equal(heap_top(&heap, &top), earliest != ITEMS);
        if (earliest != ITEMS) {
            assert_int_equal(top.item, earliest);
            assert_int_equal(top.due_us, due[earliest]);
        }
    }
}

/* Eight keys with up to four values each in 64 places: long runs of probes, around the end too. */
static void map_finds_what_was_added(void **state)
{
    (void)state;
    struct map_entry entries[64];
    struct map map;
    bool added[8][4] = {{false}};
    struct prng prng = {.state = 2};
    assert_int_equal(map_capacity(1), 8);
    assert_int_equal(map_capacity(32), 64);
    map_init(&map, entries, 64);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t key = prng_uniform(&prng, 8);
        uint32_t value = (uint32_t)prng_uniform(&prng, 4);
        if (added[key][value]) {
            map_remove(&map, key, value);
        } else {
            map_add(&map, key, value);
        }
        added[key][value] = !added[key][value];
        for (uint64_t k = 0; k < 8; k++) {
            unsigned seen = 0;
            unsigned wanted = 0;
            for (uint32_t at = map_first(&map, k); at != MAP_NONE; at = map_next(&map, k, at)) {
                assert_true(added[k][map.entries[at].value]);
                seen |= 1u << map.entries[at].value;
            }
            for (unsigned v = 0; v < 4; v++) {
                wanted |= (added[k][v] ? 1u : 0) << v;
            }
            assert_int_equal(seen, wanted);
        }
    }
    assert_int_equal(map_get(&map, 99), MAP_NONE);
}

static void list_keeps_its_order(void **state)
{
    (void)state;
    struct list_node nodes[ITEMS];
    struct list list;
    list_init(&list, nodes);
    assert_int_equal(list_take(&list), LIST_NONE);
    list_append(&list, 3);
    list_append(&list, 5);
    list_insert(&list, 5, 4);
    list_insert(&list, 3, 2);
    list_append(&list, 6);
    list_remove(&list, 4);
    list_remove(&list, 6);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.last, 5);
    assert_int_equal(list_take(&list), 2);
    assert_int_equal(list_take(&list), 3);
    assert_int_equal(list_take(&list), 5);
    assert_int_equal(list.first, LIST_NONE);
    assert_int_equal(list.last, LIST_NONE);
}

static void text_is_cut_not_overrun(void **state)
{
    (void)state;
    char buffer[32];
    struct text text = text_begin(buffer, sizeof buffer);
    text_add(&text, "w");
    text_add_u64(&text, UINT64_MAX);
    text_add(&text, " ");
    text_add_i64(&text, INT64_MIN);
    assert_string_equal(buffer, "w18446744073709551615 -92233720");
    text = text_begin(buffer, 1);
    text_add(&text, "x");
    assert_string_equal(buffer, "");
    text = text_begin(buffer, 8);
    text_add_u64(&text, 0);
    text_add_i64(&text, 7);
    assert_string_equal(buffer, "07");
}

/* Values that anybody can compute from the published algorithm: seeds must mean the same for ever.
 */
static void draws_are_fixed(void **state)
{
    (void)state;
    struct prng prng = {.state = 1234567};
    assert_int_equal(prng_next(&prng), UINT64_C(6457827717110365317));
    assert_int_equal(prng_next(&prng), UINT64_C(3203168211198807973));
    unsigned counts[5] = {0};
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t drawn = prng_uniform(&prng, 5);
        assert_true(drawn < 5);
        counts[drawn]++;
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_in_range(counts[i], 850, 1150);
    }
}

/* The answers that its authors publish with it (Random123, kat_vectors). */
static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t bits[4];
    } known[] = {
        {{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, {UINT32_MAX, UINT32_MAX},
            {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t bits[4];
        philox(known[i].counter, known[i].key, bits);
        assert_memory_equal(bits, known[i].bits, sizeof bits);
    }
}

static void assert_fault(const char *fault, const char *expected)
{
    if (expected == NULL) {
        assert_null(fault);
    } else {
        assert_non_null(fault);
        assert_non_null(strstr(fault, expected));
    }
}

/* "s3://bucket/" and a key of so many bytes. */
static const char *path_of_key(size_t bytes)
{
    static char path[2048];
    memcpy(path, "s3://bucket/", 12);
    memset(path + 12, 'k', bytes);
    path[12 + bytes] = '\0';
    return path;
}

static void object_paths_have_a_form(void **state)
{
    (void)state;
    static const char *const none[] = {
        "", "s3:", "s3:/b/k", "S3://b/k", "/s3://b/k", "https://h/k"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_false(object_path_is(none[i]));
    }
    static const struct {
        const char *path;
        const char *fault; /* of the bucket */
    } paths[] = {{"s3://bucket/a key/\xc3\xa9+%", NULL}, {"s3://a.b-3/../x", NULL},
        {"s3://", "names no bucket"}, {"s3:///key", "names no bucket"},
        {"s3://ab/k", "of 3 to 63 bytes"},
        {"s3://0123456789012345678901234567890123456789012345678901234567890123/k",
            "of 3 to 63 bytes"},
        {"s3://Bucket/k", "small letters"}, {"s3://b_cket/k", "small letters"},
        {"s3://b..t/k", "single"}, {"s3://-bucket/k", "begin and end"},
        {"s3://bucket./k", "begin and end"}};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_true(object_path_is(paths[i].path));
        assert_fault(object_path_fault(paths[i].path), paths[i].fault);
        assert_fault(object_folder_fault(paths[i].path), paths[i].fault);
    }
    assert_fault(object_path_fault("s3://bucket"), "has no key");
    assert_fault(object_path_fault("s3://bucket/"), "has no key");
    assert_fault(object_folder_fault("s3://bucket"), NULL);
    assert_fault(object_folder_fault("s3://bucket/"), NULL);
    assert_fault(object_path_fault(path_of_key(1024)), NULL);
    assert_fault(object_path_fault(path_of_key(1025)), "over 1,024 bytes");
    assert_fault(object_folder_fault(path_of_key(960)), NULL);
    assert_fault(object_folder_fault(path_of_key(961)), "over 960 bytes");
}

static void what_is_written_has_no_other_scheme(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *fault;
    } paths[] = {{"/a/b", NULL}, {"a", NULL}, {"", NULL}, {"a:b/c", NULL}, {"./gs://b/x", NULL},
        {"://x", NULL}, {"1://x", NULL}, {"s3", NULL}, {"s3:x", NULL}, {"gs://b/x", "begins with"},
        {"file:///a", "begins with"}, {"S3://b/x", "begins with"}, {"s3:/b/x", "begins with"},
        {"HTTPS://h/x", "begins with"}, {"https:/h/x", "begins with"},
        {"https://host/path", "is read only"}, {"http://host/path", "is read only"}};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_fault(object_folder_fault(paths[i].path), paths[i].fault);
    }
}

static void objects_that_are_read_have_a_form(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *fault;
        size_t shown;
    } paths[] = {{"s3://bucket/a?b#c", NULL, 17}, {"https://host/a/b", NULL, 16},
        {"https://host/a?b=secret", NULL, 14}, {"http://host:9000/a#b", NULL, 18},
        {"s3://bucket", "has no key", 11}, {"s3://bucket/a/", "names a folder", 14},
        {"https://host", "no host and path", 12}, {"https://", "no host and path", 8},
        {"https:///a", "no host and path", 10}, {"https://?/a", "no host and path", 8},
        {"https://host/a b", "encode them", 16}, {"https://host/\xc3\xa9", "encode them", 15}};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_true(object_url_is(paths[i].path));
        assert_fault(object_url_fault(paths[i].path), paths[i].fault);
        assert_int_equal(object_url_shown(paths[i].path), paths[i].shown);
    }
    static const char *const none[] = {
        "", "a", "/s3://b/k", "HTTPS://h/k", "https:/h/k", "ftp://h/k"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_false(object_url_is(none[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_gives_the_earliest),
        cmocka_unit_test(object_paths_have_a_form),
        cmocka_unit_test(what_is_written_has_no_other_scheme),
        cmocka_unit_test(objects_that_are_read_have_a_form),
        cmocka_unit_test(map_finds_what_was_added),
        cmocka_unit_test(list_keeps_its_order),
        cmocka_unit_test(text_is_cut_not_overrun),
        cmocka_unit_test(draws_are_fixed),
        cmocka_unit_test(philox_gives_the_known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
