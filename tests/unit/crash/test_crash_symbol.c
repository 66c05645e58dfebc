/* SPDX-License-Identifier: Apache-2.0
 * Names out of ELF files, and files that are none, or are damaged. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/library/crash/crash_internal.h"

static __attribute__((noinline)) int find_me(void)
{
    __asm__ volatile("");
    return 7;
}

static void a_static_function_is_found(void **state)
{
    (void)state;
    struct crash_location place;
    assert_int_equal(find_me(), 7);
    crash_location_find((uintptr_t)find_me, "me", &place);
    assert_string_equal(place.function, "find_me");
    assert_string_equal(place.module, "me");
    assert_true(place.in_program && !place.in_libc);
    crash_location_find((uintptr_t)8, "me", &place);
    assert_null(place.module);
    assert_int_equal(place.offset, 8);
}

/* The program itself with bytes changed, and cut: whatever is found, nothing is read beside it. */
static void damaged_files_are_read_with_care(void **state)
{
    (void)state;
    struct crash_location place;
    struct stat about;
    char name[CRASH_NAME_BYTES];
    char path[] = "/tmp/cadre-test-symbol-XXXXXX";
    crash_location_find((uintptr_t)find_me, "me", &place);
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(self >= 0 && fd >= 0 && fstat(self, &about) == 0);
    size_t size = (size_t)about.st_size;
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(pread(self, bytes, size, 0), size);
    assert_int_equal(pwrite(fd, bytes, size, 0), size);
    assert_true(crash_symbol_find(path, place.offset, name));
    assert_string_equal(name, "find_me");
    for (off_t at = 0; at < 64; at++) { /* the header */
        static const uint8_t values[] = {0x00, 0x7f, 0xff};
        for (size_t i = 0; i < sizeof values; i++) {
            assert_int_equal(pwrite(fd, &values[i], 1, at), 1);
            (void)crash_symbol_find(path, place.offset, name);
            assert_int_equal(pwrite(fd, &bytes[at], 1, at), 1);
        }
    }
    for (size_t cut = 0; cut < size; cut += size / 40 + 1) {
        assert_int_equal(ftruncate(fd, (off_t)(size - cut - 1)), 0);
        (void)crash_symbol_find(path, place.offset, name);
    }
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_false(crash_symbol_find(path, place.offset, name));
    unlink(path);
    assert_false(crash_symbol_find(path, place.offset, name));
    assert_false(crash_symbol_find("/", place.offset, name));
    close(fd);
    close(self);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_static_function_is_found),
        cmocka_unit_test(damaged_files_are_read_with_care),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
