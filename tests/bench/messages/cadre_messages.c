/* SPDX-License-Identifier: Apache-2.0
 * Cadre's subject, a plain program of two tasks. `bench_messages shared|private [BATCHES]`: memory
 * of cadre_plain_alloc, which the tasks of a host share, or any. */
#include <stdlib.h>
#include <string.h>

#include "cadre/plain.h"
#include "cadre/program.h"
#include "exchange.h"

static bool transfer(const char *from, size_t bytes)
{
    return cadre_plain_send(from, bytes, CADRE_U8, 1 - cadre_rank()) == CADRE_OK;
}

static bool receive(char *into, size_t bytes)
{
    return cadre_plain_recv(into, bytes, CADRE_U8, 1 - cadre_rank()) == CADRE_OK;
}

static bool both(const char *from, char *into, size_t bytes)
{
    const uint32_t other = 1 - cadre_rank();
    return cadre_plain_send_recv(from, bytes, other, into, bytes, other, CADRE_U8) == CADRE_OK;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    const bool shared = argc > 1 && strcmp(argv[1], "shared") == 0;
    const struct exchange_subject subject = {
        .sent = shared ? cadre_plain_alloc(EXCHANGE_BYTES_MAX) : malloc(EXCHANGE_BYTES_MAX),
        .received = shared ? cadre_plain_alloc(EXCHANGE_BYTES_MAX) : malloc(EXCHANGE_BYTES_MAX),
        .send = transfer,
        .receive = receive,
        .both = both};
    if (cadre_world_size() != 2 || subject.sent == NULL || subject.received == NULL ||
        exchange_run(&subject, (int)cadre_rank(), argc > 2 ? argv[2] : NULL) != 0) {
        return 1;
    }
    return cadre_plain_finish();
}
