/* SPDX-License-Identifier: Apache-2.0
 * The same training as a program that was ported to Cadre's plain calls: one all-reduce of all
 * gradients, in memory that the program has allocated itself, or in that of cadre_plain_alloc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"
#include "floor_peer.h"

void peer_open(struct peer *peer, size_t count)
{
    (void)count;
    CADRE_CHECK(cadre_plain_init(NULL, NULL));
    if (cadre_world_size() != 2) {
        fprintf(stderr, "train_plain: %u tasks, not 2\n", (unsigned)cadre_world_size());
        exit(1);
    }
    peer->rank = (int)cadre_rank();
}

float *peer_vector(const char *memory, size_t count)
{
    const size_t bytes = count * sizeof(float);
    float *vector = strcmp(memory, "arena") == 0 ? cadre_plain_alloc(bytes) : malloc(bytes);
    if (vector == NULL) {
        fprintf(stderr, "train_plain: no memory\n");
        exit(1);
    }
    return memset(vector, 0, bytes);
}

void peer_sum(struct peer *peer, float *vector, size_t count)
{
    (void)peer;
    CADRE_CHECK(cadre_plain_all_reduce(NULL, vector, count, CADRE_F32, CADRE_SUM));
}

int peer_end(struct peer *peer)
{
    (void)peer;
    return cadre_plain_finish();
}
