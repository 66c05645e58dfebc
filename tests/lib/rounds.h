/* SPDX-License-Identifier: Apache-2.0
 * How many rounds of something random are made: all as shipped, a few where a sanitizer makes each
 * of them many times as long. Which ones does not differ. */
#ifndef CADRE_TESTS_LIB_ROUNDS_H
#define CADRE_TESTS_LIB_ROUNDS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_ROUNDS(count) ((count) / 5 + 1)
#else
#define TEST_ROUNDS(count) (count)
#endif

#endif
