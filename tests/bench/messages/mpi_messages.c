/* SPDX-License-Identifier: Apache-2.0
 * MPI as a subject, under mpirun. */
#include <mpi.h>
#include <stdlib.h>

#include "exchange.h"

static int rank;

static bool transfer(const char *from, size_t bytes)
{
    return MPI_Send(from, (int)bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool receive(char *into, size_t bytes)
{
    return MPI_Recv(into, (int)bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS;
}

static bool both(const char *from, char *into, size_t bytes)
{
    return MPI_Sendrecv(from, (int)bytes, MPI_CHAR, 1 - rank, 0, into, (int)bytes, MPI_CHAR,
               1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const struct exchange_subject subject = {.sent = malloc(EXCHANGE_BYTES_MAX),
        .received = malloc(EXCHANGE_BYTES_MAX),
        .send = transfer,
        .receive = receive,
        .both = both};
    int status = subject.sent == NULL || subject.received == NULL ||
                 exchange_run(&subject, rank, argc > 1 ? argv[1] : NULL);
    MPI_Finalize();
    return status;
}
