/* SPDX-License-Identifier: Apache-2.0
 * A program that keeps its own loop, as it was written for MPI: cadre/plain.h. Here it is two tasks
 * of a job, each this program again. A whole one: deploy/examples/perceptron. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "documents.h"
#include "tests/unit/runtime/job.h"

static const char *self;

/* Another task is lost: ends what this one waits for. */
static void get_out(cadre_status status, const char *reason, void *user)
{
    (void)status;
    (void)user;
    fprintf(stderr, "%s\n", reason);
}

/* In a task: the first thing that is wrong ends it. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "not so: %s (%s)\n", #condition, cadre_error_message());               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Between two tasks, each of which has two numbers of its own. */
static void messages(void)
{
    const float own[2] = {(float)cadre_rank(), 10 + (float)cadre_rank()};
    float other[2];

    /* MPI_Send, MPI_Recv: the two meet */
    float message = 3;
    if (cadre_rank() == 0) {
        CADRE_CHECK(cadre_plain_send(&message, 1, CADRE_F32, 1));
    } else {
        CADRE_CHECK(cadre_plain_recv(&message, 1, CADRE_F32, 0));
    }

    /* MPI_Sendrecv: around a ring, and in a row that has ends */
    const uint32_t next = (cadre_rank() + 1) % cadre_world_size();
    const uint32_t before = next; /* there are two */
    CADRE_CHECK(cadre_plain_send_recv(own, 2, next, other, 2, before, CADRE_F32));
    MUST(other[0] == 1 - own[0]);
    CADRE_CHECK(cadre_plain_send_recv(own, 2, cadre_rank() == 0 ? 1 : CADRE_PLAIN_NO_TASK, other, 2,
        cadre_rank() == 1 ? 0 : CADRE_PLAIN_NO_TASK, CADRE_F32));
    MUST(other[0] == (cadre_rank() == 1 ? 0 : 1));
}

/* MPI_Comm_split: all tasks in the opposite order, and each of that group alone. */
static void groups(void)
{
    cadre_plain_group *all;
    cadre_plain_group *alone;
    int32_t value = 5;
    int32_t pair[2] = {1, 2};
    CADRE_CHECK(cadre_plain_split(0, 2 - cadre_rank(), &all));
    MUST(cadre_plain_group_size(all) == 2);
    const uint32_t rank = cadre_plain_group_rank(all);
    MUST(rank == 1 - cadre_rank());
    CADRE_CHECK(cadre_plain_group_split(all, rank, 0, &alone));
    CADRE_CHECK(cadre_plain_group_all_reduce(alone, NULL, &value, 1, CADRE_I32, CADRE_SUM));
    MUST(value == 5);
    CADRE_CHECK(cadre_plain_group_reduce_scatter(all, pair, &value, 1, CADRE_I32, CADRE_SUM));
    MUST(value == 2 * pair[rank]);
    CADRE_CHECK(cadre_plain_group_all_gather(all, &value, pair, 1, CADRE_I32));
    CADRE_CHECK(cadre_plain_group_broadcast(all, pair, 2, CADRE_I32, 0));
    if (rank == 0) {
        CADRE_CHECK(cadre_plain_group_send(all, pair, 2, CADRE_I32, 1));
    } else {
        CADRE_CHECK(cadre_plain_group_recv(all, pair, 2, CADRE_I32, 0));
    }
    CADRE_CHECK(
        cadre_plain_group_send_recv(all, pair, 1, 1 - rank, &value, 1, 1 - rank, CADRE_I32));
    CADRE_CHECK(cadre_plain_group_barrier(all));
    cadre_plain_group_close(alone);
    cadre_plain_group_close(all);
}

static int task(int argc, char **argv)
{
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    MUST(cadre_world_size() == 2);

    /* which of the tasks of this host: both are here */
    MUST(cadre_plain_local_size() == 2);
    MUST(cadre_plain_local_rank() == cadre_rank());

    /* memory that the tasks of a host share, so that nothing is copied */
    float *values = cadre_plain_alloc(4 * sizeof(float));
    MUST(values != NULL);

    /* MPI_Bcast: task 1's to all */
    values[0] = cadre_rank() == 1 ? 7 : 0;
    CADRE_CHECK(cadre_plain_broadcast(values, 1, CADRE_F32, 1));
    MUST(values[0] == 7);

    /* MPI_Allgather: two of each task, in order of ranks */
    const float own[2] = {(float)cadre_rank(), 10 + (float)cadre_rank()};
    float own_copy[2];
    CADRE_CHECK(cadre_plain_all_gather(own, values, 2, CADRE_F32));
    MUST(values[0] == 0 && values[1] == 10 && values[2] == 1 && values[3] == 11);

    /* MPI_Reduce_scatter_block: a part of the sum for each task, here one element */
    const float parts[2] = {1 + (float)cadre_rank(), 10};
    CADRE_CHECK(cadre_plain_reduce_scatter(parts, values, 1, CADRE_F32, CADRE_SUM));
    MUST(values[0] == (cadre_rank() == 0 ? 3 : 20));
    cadre_plain_free(values);

    messages();
    groups();

    /* any bytes: here the id that rank 0 has made, all that NCCL needs of a bootstrap */
    char id[128] = {0};
    if (cadre_rank() == 0) {
        snprintf(id, sizeof id, "made by rank 0");
    }
    CADRE_CHECK(cadre_plain_broadcast(id, sizeof id, CADRE_U8, 0));
    MUST(strcmp(id, "made by rank 0") == 0);

    /* a program that waits in NCCL has to be got out of there when a task is lost; there is one
     * such function */
    CADRE_CHECK(cadre_on_abort(get_out, NULL));
    MUST(cadre_on_abort(get_out, NULL) == CADRE_FAILED_PRECONDITION);

    /* what the job keeps for the tasks that come after these: nothing yet, so this is the begin */
    void *bytes;
    size_t size;
    uint32_t tasks;
    MUST(cadre_plain_load("model", 0, &bytes, &size) == CADRE_NOT_FOUND);
    CADRE_CHECK(cadre_plain_saved_tasks(&tasks));
    MUST(tasks == 0);
    if (cadre_plain_load("model", 0, &bytes, &size) == CADRE_OK) {
        free(bytes);
    }

    /* rank 0's weights, whole or not at all, whatever is killed */
    const float weights[2] = {0.5f, 2};
    bool chief = cadre_rank() == 0;
    CADRE_CHECK(cadre_plain_save("model", chief ? weights : NULL, chief ? sizeof weights : 0));

    /* several parts of one state, piece by piece: each task's own */
    cadre_plain_state *state;
    CADRE_CHECK(cadre_plain_state_begin(&state));
    CADRE_CHECK(cadre_plain_state_write(state, "moments", own, sizeof own[0]));
    CADRE_CHECK(cadre_plain_state_write(state, "moments", own + 1, sizeof own[1]));
    CADRE_CHECK(cadre_plain_state_write(state, "step", &tasks, sizeof tasks));
    CADRE_CHECK(cadre_plain_state_commit(state));

    /* to be read by those that are started from it: here there is none */
    uint64_t bytes_of_part;
    MUST(cadre_plain_state_open("moments", 1, &state, &bytes_of_part) == CADRE_NOT_FOUND);
    MUST(cadre_plain_state_read(NULL, own_copy, sizeof own_copy, &size) == CADRE_INVALID_ARGUMENT);
    cadre_plain_state_close(NULL);

    /* MPI_Barrier, MPI_Finalize */
    CADRE_CHECK(cadre_plain_barrier());
    return cadre_plain_finish();
}

static void two_tasks_are_one_program(void **state)
{
    (void)state;
    job_must_succeed(self, "task", 2, 1);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "task") == 0) {
        return task(argc, argv);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_tasks_are_one_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
