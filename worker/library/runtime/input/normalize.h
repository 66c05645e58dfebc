/* SPDX-License-Identifier: Apache-2.0
 * Mean and variance of a whole dataset, found by all tasks together.
 *
 * The elements are numbered; so many in a row are a *block*, and so many blocks a *round*: both
 * depend on the number of features alone. A round is one collective outside of steps: each replica
 * finds the moments of its blocks, all get those of all, and merge them in the order of the blocks.
 * So the bits do not depend on who read what; and when a task is lost, only its blocks of the round
 * are read again, by others.
 *
 *     elements   0 1 2 3 | 4 5 6 7 | 8 ...            a block: NORMALIZE_BLOCK elements
 *     replica       0    |    1    | 2 ...            block b is for replica b modulo their number
 */
#ifndef CADRE_RUNTIME_NORMALIZE_H
#define CADRE_RUNTIME_NORMALIZE_H

#define NORMALIZE_BLOCK      4   /* elements */
#define NORMALIZE_BLOCKS_MAX 256 /* of a round */
#define NORMALIZE_BLOCKS_MIN 8
#define NORMALIZE_ROUND_WORDS                                                                      \
    (1 << 20) /* numbers that are told in a round, where that gives more                           \
                 than the fewest blocks */

/* Who waits for another task for a second says so, and who is waited for too long is replaced. So
 * all meet about this often while they read. */
#define NORMALIZE_MEET_US (CADRE_US_PER_S / 4)

#endif
