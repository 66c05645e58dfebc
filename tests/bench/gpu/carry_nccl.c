/* SPDX-License-Identifier: Apache-2.0
 * An all-reduce of 64 MiB on one rank, out of place: through Cadre and by NCCL alone, on the
 * communicator that Cadre formed; microseconds of one, of ten in a row. */
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/gpu/rows.h"

#define FLOATS ((int64_t)1 << 24)
#define TIMES  10

static cadre_strategy *used;
static ncclResult_t (*all_reduce)(
    const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);

/* The library that is loaded already, by the plugin. */
static void find_nccl(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "ncclAllReduce");
    if (symbol == NULL) {
        fprintf(stderr, "bench_gpu: libnccl.so.2 is not found; name its folder by "
                        "LD_LIBRARY_PATH\n");
        exit(1);
    }
    memcpy(&all_reduce, &symbol, sizeof all_reduce);
}

struct part {
    bool bare;
    double took_us;
};

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct part *part = user;
    cadre_tensor *from;
    cadre_tensor *into;
    void *comm;
    CADRE_CHECK(cadre_tensor_create_on(replica, CADRE_F32, 1, &(int64_t){FLOATS}, &from));
    CADRE_CHECK(cadre_tensor_create_on(replica, CADRE_F32, 1, &(int64_t){FLOATS}, &into));
    CADRE_CHECK(cadre_replica_nccl_comm(replica, &comm));
    CADRE_CHECK(cadre_replica_synchronize(replica));
    double began_s = bench_now_s();
    cadre_status status = CADRE_OK;
    for (int i = 0; i < TIMES && status == CADRE_OK; i++) {
        if (!part->bare) {
            status = cadre_all_reduce_into(replica, CADRE_SUM, &from, 1, &into, NULL);
        } else if (all_reduce(cadre_tensor_const_data(from), cadre_tensor_data(into),
                       (size_t)FLOATS, ncclFloat32, ncclSum, comm,
                       cadre_replica_stream(replica)) != ncclSuccess) {
            status = cadre_fail(CADRE_INTERNAL, "NCCL refused an all-reduce");
        }
    }
    if (status == CADRE_OK) {
        status = cadre_replica_synchronize(replica);
    }
    part->took_us = (bench_now_s() - began_s) * 1e6 / TIMES;
    cadre_tensor_release(from);
    cadre_tensor_release(into);
    return status;
}

static double carry_us(void *user)
{
    CADRE_CHECK(cadre_run(used, step, user, NULL, 0, NULL));
    return ((struct part *)user)->took_us;
}

void bench_carry(cadre_strategy *strategy)
{
    static struct part parts[2] = {{.bare = true}, {.bare = false}};
    used = strategy;
    find_nccl();
    bench_add("carry_bare_us", carry_us, &parts[0]);
    bench_add("carry_cadre_us", carry_us, &parts[1]);
}
