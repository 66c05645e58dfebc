/* SPDX-License-Identifier: Apache-2.0
 * The full screen of a terminal; its former contents are restored afterwards. */
#ifndef CADRE_CLI_RENDER_FULL_SCREEN_H
#define CADRE_CLI_RENDER_FULL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the terminal of standard input and output; false: they are none, or a
 * dumb one. Ended by
 * full_screen_close(), also when a signal ends the process. One at a time. */
bool full_screen_open(void);
/* Restores the terminal; without full_screen_open() it does nothing. */
void full_screen_close(void);

/* Shows text, as many of its lines as fit, in place of what was shown. */
void full_screen_show(const char *text, size_t size);

/* Waits; returns the key that was pressed, or 0 when `wait_us` passed, the window got another size
 * (*ret_resized) or a signal came. */
int full_screen_key(uint64_t wait_us, bool *ret_resized);

#endif
