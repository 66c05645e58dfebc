/* SPDX-License-Identifier: Apache-2.0
 * Counts Ctrl-C (and SIGTERM). */
#ifndef CADRE_CLI_INTERRUPT_H
#define CADRE_CLI_INTERRUPT_H

/* From now on the two signals only count. */
void interrupt_watch(void);

/* How many came since. */
unsigned interrupt_count(void);

#endif
