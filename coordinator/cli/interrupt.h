/* SPDX-License-Identifier: Apache-2.0
 * Ctrl-C (and SIGTERM) as a number to look at. */
#ifndef CADRE_CLI_INTERRUPT_H
#define CADRE_CLI_INTERRUPT_H

/* From now on the two signals only count. */
void interrupt_watch(void);

/* How often one came since. */
unsigned interrupt_count(void);

#endif
