/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/test.h"

bool fault_due(const char *fault, uint64_t position)
{
    const char *value = getenv(fault);
    const char *attempt = getenv("STAGE_ATTEMPT");
    unsigned whose = 0;
    unsigned long long where = 0;
    return value != NULL && attempt != NULL && sscanf(value, "%u:%llu", &whose, &where) == 2 &&
           strtoul(attempt, NULL, 10) == whose && where == position;
}

void fault_die(const char *fault, uint64_t position)
{
    if (fault_due(fault, position)) {
        raise(SIGKILL);
    }
}

void fault_hang(const char *fault, uint64_t position)
{
    while (fault_due(fault, position)) {
        pause();
    }
}

static const char *marker(char path[TEST_PATH_BYTES], const char *what, uint64_t position)
{
    snprintf(path, TEST_PATH_BYTES, "%s/%s-%llu", getenv("CADRE_OUTPUT_DIR"), what,
        (unsigned long long)position);
    return path;
}

void mark_leave(const char *what, uint64_t position)
{
    char path[TEST_PATH_BYTES];
    FILE *file = fopen(marker(path, what, position), "w");
    if (file != NULL) {
        fclose(file);
    }
}

static bool is_marked(void *path)
{
    return access(path, F_OK) == 0;
}

void mark_await(const char *what, uint64_t position)
{
    char path[TEST_PATH_BYTES];
    test_wait(is_marked, (void *)(uintptr_t)marker(path, what, position), MARK_WAIT_US);
}
