/* SPDX-License-Identifier: Apache-2.0
 * A plain program with a state of some size: saves it, or says how much of it was loaded; piece by
 * piece, and after its end too, where it is to stream.
 *
 *     bulky MIB
 *     bulky stream */
#include <cadre/cadre.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stream(void)
{
    static char piece[1 << 20];
    cadre_plain_state *state = NULL;
    uint64_t size = 0;
    size_t sum = 0;
    size_t got = 0;
    CADRE_CHECK(cadre_plain_state_open("bulk", 0, &state, &size));
    while (sum < size - sizeof piece) {
        CADRE_CHECK(cadre_plain_state_read(state, piece, sizeof piece, &got));
        sum += got;
    }
    int status = cadre_plain_finish();
    CADRE_CHECK(cadre_plain_state_read(state, piece, sizeof piece, &got));
    printf("streamed %zu MiB\n", (sum + got) >> 20);
    cadre_plain_state_close(state);
    exit(status);
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    if (argc > 1 && strcmp(argv[1], "stream") == 0) {
        stream();
    }
    size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1) << 20;
    void *bytes = NULL;
    cadre_status status = cadre_plain_load("bulk", 0, &bytes, &size);
    if (status == CADRE_NOT_FOUND) {
        bytes = calloc(1, size);
        CADRE_CHECK(cadre_plain_save("bulk", bytes, size));
        puts("saved");
    } else {
        CADRE_CHECK(status);
        printf("loaded %zu MiB\n", size >> 20);
    }
    free(bytes);
    return cadre_plain_finish();
}
