/* SPDX-License-Identifier: Apache-2.0
 * The same under mpirun: prints when the first MPI_Allreduce was done. Built by measure.py where
 * mpicc is installed. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    float one = 1;
    float sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("first_all_reduce_ns=%lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    MPI_Finalize();
    return 0;
}
