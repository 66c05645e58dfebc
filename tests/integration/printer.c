/* SPDX-License-Identifier: Apache-2.0
 * Prints text lines to standard output and waits for a file between them: a line that a test sees
 * before it makes that file was not kept in a buffer. Argument: the path of the file. */
#include <cadre/cadre.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("printer: give the path of the file that it waits for\n", stderr);
        return 2;
    }
    printf("before cadre_init\n");
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    printf("after cadre_init\n");
    while (access(argv[1], F_OK) != 0) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    printf("at the end\n");
    return cadre_plain_finish();
}
