/* SPDX-License-Identifier: Apache-2.0
 * A program that takes values out of a file, counts steps on top of them until a gate opens, and
 * exports what it has.
 *
 *     restorer restore|import|new FILE GATE EXPORT
 *
 * "w" is 3 numbers, to which each step adds 1. GATE: a file; when the first task sees it, the step
 * at hand is the last. It says what it has, with its pid. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct counting {
    cadre_variable *w;
    cadre_variable *over;
    const char *gate;
};

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const in[], cadre_tensor *out[], void *user)
{
    (void)in;
    struct counting *counting = user;
    bool first = cadre_replica_id(replica) == 0;
    CADRE_TRY(
        cadre_tensor_from_f32(first && access(counting->gate, F_OK) == 0 ? 1.0f : 0.0f, &out[0]));
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &out[0], 1, NULL));
    double *w = cadre_variable_write(replica, counting->w);
    float *over = cadre_variable_write(replica, counting->over);
    if (w == NULL || over == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < 3; i++) {
        w[i] += 1;
    }
    *over = *(const float *)cadre_tensor_const_data(out[0]);
    return CADRE_OK;
}

static void make_w(cadre_strategy *strategy, struct counting *counting)
{
    CADRE_CHECK(
        cadre_variable_create(strategy, "w", CADRE_F64, 1, &(int64_t){3}, NULL, &counting->w));
}

/* Where it has its values from. */
static void begin(
    cadre_strategy *strategy, const char *how, const char *file, struct counting *counting)
{
    cadre_restore_result found = {.path = "nothing"};
    if (strcmp(how, "import") == 0) {
        CADRE_CHECK(cadre_import(strategy, file));
        CADRE_CHECK(cadre_variable_find(strategy, "w", &counting->w));
    } else if (strcmp(how, "restore") == 0) {
        CADRE_CHECK(cadre_restore(strategy, file, &found));
        make_w(strategy, counting);
        CADRE_CHECK(cadre_restored(strategy, CADRE_RESTORED_EXISTING, &found));
    } else {
        make_w(strategy, counting);
    }
    CADRE_CHECK(cadre_variable_create(strategy, "over", CADRE_F32, 0, NULL, NULL, &counting->over));
    const double *w = cadre_variable_read(NULL, counting->w);
    printf("%ld has %g %g, %s\n", (long)getpid(), w[0], w[2],
        found.passed_over ? "passed over" : "its own");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_per_replica *sum;
    if (argc != 5) {
        fprintf(stderr, "usage: restorer restore|import|new FILE GATE EXPORT\n");
        return 2;
    }
    struct counting counting = {.gate = argv[3]};
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    begin(strategy, argv[1], argv[2], &counting);
    for (bool printed = false; *(const float *)cadre_variable_read(NULL, counting.over) == 0;) {
        CADRE_CHECK(cadre_run(strategy, step, &counting, NULL, 1, &sum));
        if (!printed) {
            printf("%ld steps\n", (long)getpid());
            fflush(stdout);
        }
        printed = true;
    }
    uint64_t steps = cadre_strategy_position(strategy);
    const double *w = cadre_variable_read(NULL, counting.w);
    printf(
        "%ld ends with %g after %" PRIu64 " steps\n", (long)getpid(), w[1] - (double)steps, steps);
    fflush(stdout);
    const cadre_signature signature = {"weights", "w"};
    CADRE_CHECK(cadre_export(strategy, argv[4], &signature, 1));
    return cadre_finish(strategy);
}
