/* SPDX-License-Identifier: Apache-2.0
 * A plain program with a state of some size: saves it, or says how much of it was loaded.
 *
 *     bulky MIB */
#include <cadre/cadre.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
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
