/* SPDX-License-Identifier: Apache-2.0
 * A task that wants more than it may have: `hungry memory` or `hungry processes`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "memory") == 0) {
        for (int i = 0; i < 512; i++) {
            char *piece = malloc(PIECE);
            if (piece == NULL) {
                return 3;
            }
            memset(piece, 1, PIECE);
        }
        puts("512 MiB were mine");
        return 0;
    }
    for (int i = 0; i < 200; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            printf("process %d is one too many\n", i);
            return 4;
        }
        if (pid == 0) {
            pause();
            _exit(0);
        }
    }
    puts("200 processes were mine");
    return 0;
}
