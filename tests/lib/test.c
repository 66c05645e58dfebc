/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/files.h"
#include "tests/lib/speed.h"

#define FOLDERS_MAX  64
#define POLL_US      500
#define SKIPPED_EXIT 77

static char folders[FOLDERS_MAX][64];
static size_t folder_count;
static pid_t owner; /* a forked child must not remove its parent's folders */

static void remove_folders(void)
{
    for (size_t i = 0; getpid() == owner && i < folder_count; i++) {
        struct cadre_error error;
        if (tree_remove(folders[i], &error) != CADRE_OK) {
            fprintf(stderr, "test: %s\n", error.text);
        }
    }
}

const char *test_temp_dir(void)
{
    assert_true(folder_count < FOLDERS_MAX);
    const char *base = getenv("TMPDIR");
    if (base == NULL || strlen(base) > 40) {
        base = "/tmp";
    }
    char *folder = folders[folder_count];
    snprintf(folder, sizeof folders[0], "%s/cadre-test-XXXXXX", base);
    if (mkdtemp(folder) == NULL) {
        fail_msg("cannot make a temporary folder in %s", base);
    }
    if (folder_count++ == 0) {
        owner = getpid();
        atexit(remove_folders);
    }
    return folder;
}

const char *test_path(char buffer[TEST_PATH_BYTES], const char *folder, const char *name)
{
    int length = snprintf(buffer, TEST_PATH_BYTES, "%s/%s", folder, name);
    assert_true(length > 0 && length < TEST_PATH_BYTES);
    return buffer;
}

bool test_wait(bool (*condition)(void *data), void *data, uint64_t deadline_us)
{
    struct patience patience = patience_begin(deadline_us);
    while (!condition(data)) {
        if (patience_is_over(&patience)) {
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = POLL_US * 1000}, NULL);
    }
    return true;
}

_Noreturn void test_skip(const char *reason)
{
    fprintf(stderr, "skipped: %s\n", reason);
    exit(SKIPPED_EXIT);
}

void test_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        fail_msg("cannot write %s", path);
    }
}

void test_check_error(cadre_status status, cadre_status wanted, const struct cadre_error *error,
    const char *part, const char *call, const char *file, int line)
{
    if (status == CADRE_OK) {
        print_error("%s succeeded, %s was wanted\n", call, cadre_status_name(wanted));
        _fail(file, line);
    }
    if (status != wanted || error->code != status || strstr(error->text, part) == NULL) {
        print_error("%s: %s \"%s\", wanted %s with \"%s\"\n", call, cadre_status_name(status),
            error->text, cadre_status_name(wanted), part);
        _fail(file, line);
    }
}
