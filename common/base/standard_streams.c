/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void standard_streams_reserve(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            /* The lowest free number is `fd`. It is opened for the opposite direction, so that
             * using it fails. */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}
