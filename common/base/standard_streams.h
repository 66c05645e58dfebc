/* SPDX-License-Identifier: Apache-2.0
 * For main(): descriptors 0, 1 and 2 are taken even if the program was started without them, so
 * that nothing that is opened later becomes a standard stream by accident. */
#ifndef CADRE_BASE_STANDARD_STREAMS_H
#define CADRE_BASE_STANDARD_STREAMS_H

/* To be called before anything is opened. Using a stream that was closed fails as before: with
 * EBADF. */
void standard_streams_reserve(void);

#endif
