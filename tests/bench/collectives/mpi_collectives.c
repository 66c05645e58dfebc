/* SPDX-License-Identifier: Apache-2.0
 * MPI as a subject, under its mpirun. Built once with OpenMPI's compiler and once with MPICH's.
 * `mpi_collectives BOARD_FILE RANKS ...` */
#include <mpi.h>
#include <unistd.h>

#include "harness.h"

static int own_rank;

static void *join(int rank, int ranks)
{
    int size = 0;
    (void)rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size == ranks ? &own_rank : NULL;
}

static bool run(void *self, const struct bench_call *call)
{
    int count = (int)call->count;
    int part = 0;
    int status = MPI_ERR_OTHER;
    (void)self;
    MPI_Comm_size(MPI_COMM_WORLD, &part);
    part = count / part;
    switch (call->operation) {
    case BENCH_ALL_REDUCE:
    case BENCH_FRESH:
        status = MPI_Allreduce(MPI_IN_PLACE, call->in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_REDUCE_SCATTER:
        status =
            MPI_Reduce_scatter_block(call->in, call->out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BENCH_BROADCAST:
        status = MPI_Bcast(call->in, count, MPI_FLOAT, call->root, MPI_COMM_WORLD);
        break;
    case BENCH_ALL_GATHER:
        status =
            MPI_Allgather(call->in, part, MPI_FLOAT, call->out, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case BENCH_BARRIER:
        status = MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
    return status == MPI_SUCCESS;
}

static void leave(void *self)
{
    (void)self;
}

int main(int argc, char **argv)
{
    static const struct bench_subject subject = {.join = join, .run = run, .leave = leave};
    struct bench_plan plan;
    alarm(BENCH_LIMIT_S); /* MPI_Init can hang too */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    if (argc < 2 || !bench_parse(argv + 2, &plan)) {
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    int status = bench_run_rank(&plan, &subject, own_rank, argv[1]);
    if (status != 0) {
        MPI_Abort(MPI_COMM_WORLD, status);
    }
    MPI_Finalize();
    return status;
}
