/* SPDX-License-Identifier: Apache-2.0
 * A worker that pushes without end, and writes the time when each push was acknowledged, so that
 * the script that kills the server can measure for how long pushes waited, and whether any was
 * lost.
 *
 *     bench_pushing FOLDER ELEMENTS
 *
 * Each push adds one to every element of an i64 variable. The worker appends (pushes so far,
 * CLOCK_MONOTONIC in ns) as two 64-bit numbers to FOLDER/pushes. Once there is FOLDER/stop the
 * chief compares, and writes the file FOLDER/lost, "<acknowledged> <lost> <twice>". */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cadre/cadre.h"

#define PUSHES 200 /* a closure */

static const char *folder;
static int file = -1;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static cadre_status push(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    static uint64_t done;
    cadre_variable *counts;
    cadre_tensor *ones;
    (void)closure;
    (void)user;
    CADRE_TRY(cadre_variable_find(NULL, "counts", &counts));
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, cadre_variable_dims(counts), &ones));
    int64_t *values = cadre_tensor_data(ones);
    for (int64_t i = 0; i < cadre_tensor_count(ones); i++) {
        values[i] = 1;
    }
    if (file < 0) {
        file = open(path_of("pushes"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    cadre_status status = CADRE_OK;
    for (int i = 0; status == CADRE_OK && i < PUSHES; i++) {
        status = cadre_variable_assign(NULL, counts, CADRE_ASSIGN_ADD, ones);
        uint64_t stamp[2] = {++done, now_ns()};
        if (status == CADRE_OK && write(file, stamp, sizeof stamp) != sizeof stamp) {
            status = cadre_fail(CADRE_RESOURCE_EXHAUSTED, "%s cannot be written", folder);
        }
    }
    cadre_tensor_release(ones);
    return status == CADRE_OK ? cadre_tensor_from_i64(PUSHES, &outputs[0]) : status;
}

/* More than `acknowledged` were applied twice, fewer were lost. */
static int compare(cadre_variable *counts, int64_t acknowledged)
{
    cadre_tensor *value;
    int64_t lost = 0;
    int64_t twice = 0;
    CADRE_CHECK(cadre_variable_value(NULL, counts, NULL, &value));
    const int64_t *found = cadre_tensor_const_data(value);
    for (int64_t i = 0; i < cadre_tensor_count(value); i++) {
        lost = acknowledged - found[i] > lost ? acknowledged - found[i] : lost;
        twice = found[i] - acknowledged > twice ? found[i] - acknowledged : twice;
    }
    cadre_tensor_release(value);
    FILE *out = fopen(path_of("lost.part"), "w");
    if (out == NULL) {
        return 1;
    }
    fprintf(out, "%" PRId64 " %" PRId64 " %" PRId64 "\n", acknowledged, lost, twice);
    fclose(out);
    char from[4096];
    snprintf(from, sizeof from, "%s", path_of("lost.part"));
    return rename(from, path_of("lost"));
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (argc != 3) {
        fprintf(stderr, "usage: bench_pushing FOLDER ELEMENTS\n");
        return 2;
    }
    folder = argv[1];
    CADRE_CHECK(cadre_function_register("push", push, NULL));
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    cadre_strategy *strategy;
    cadre_variable *counts;
    cadre_remote_value *value;
    int64_t acknowledged = 0;
    const int64_t dims[1] = {strtoll(argv[2], NULL, 10)};
    CADRE_CHECK(cadre_strategy_parameter_server(NULL, &strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "counts", CADRE_I64, 1, dims, NULL, &counts));
    while (access(path_of("stop"), F_OK) != 0) {
        cadre_tensor *pushes;
        uint32_t count;
        CADRE_CHECK(cadre_schedule(strategy, "push", NULL, 0, &value));
        CADRE_CHECK(cadre_fetch(value, &pushes, 1, &count));
        acknowledged += *(const int64_t *)cadre_tensor_const_data(pushes);
        cadre_tensor_release(pushes);
        cadre_remote_value_release(value);
    }
    CADRE_CHECK(cadre_join(strategy));
    int status = compare(counts, acknowledged);
    int finished = cadre_finish(strategy);
    return status != 0 ? status : finished;
}
