/* SPDX-License-Identifier: Apache-2.0
 * Prints text lines to standard output and waits for a byte of a pipe between them: a line that a
 * test sees before it writes that byte was not kept in a buffer. Argument: the path of the pipe. */
#include <cadre/cadre.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("printer: give the path of the pipe that it reads a byte of\n", stderr);
        return 2;
    }
    printf("before cadre_init\n");
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    printf("after cadre_init\n");
    char byte;
    int gate = open(argv[1], O_RDONLY);
    if (gate < 0 || read(gate, &byte, 1) != 1) {
        perror(argv[1]);
        return 1;
    }
    printf("at the end\n");
    return cadre_plain_finish();
}
