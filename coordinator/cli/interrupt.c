/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/cli.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t count;

static void on_signal(int number)
{
    (void)number;
    if (count < 100) {
        count++;
    }
}

void interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

unsigned interrupt_count(void)
{
    return (unsigned)count;
}
