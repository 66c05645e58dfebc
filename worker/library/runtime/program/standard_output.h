/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CADRE_RUNTIME_PROGRAM_STANDARD_OUTPUT_H
#define CADRE_RUNTIME_PROGRAM_STANDARD_OUTPUT_H

/* Has stdout written at each newline where it is a pipe or socket, unless the program chose its
 * buffering (setvbuf, stdbuf(1)). What it printed before is written. */
void standard_output_begin(void);

#endif
