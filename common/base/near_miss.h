/* SPDX-License-Identifier: Apache-2.0
 * Which known name a user meant by an unknown one: options, verbs, workers, jobs, files. */
#ifndef CADRE_BASE_NEAR_MISS_H
#define CADRE_BASE_NEAR_MISS_H

#include <stdbool.h>
#include <stddef.h>

#define NEAR_MISS_BYTES 256 /* longer names are near to none */

/* The search for the candidate that is nearest to `word`. */
struct near_miss {
    const char *word;
    size_t limit; /* a candidate with fewer changes than this is nearer than all before */
    char best[NEAR_MISS_BYTES]; /* "": none is near */
};

/* `word` is borrowed until the search is over. */
void near_miss_begin(struct near_miss *search, const char *word);

/* Compares one more candidate. One change is a letter that is missing, added or another, or two
 * neighbours that are exchanged; upper and lower case are the same. Near are at most two changes
 * (one in names of under four letters), fewer than the word has letters; and, where nothing else
 * is, a candidate that begins with the word. */
void near_miss_offer(struct near_miss *search, const char *candidate);

/* The entry of `candidates` (ended by NULL) that is nearest to `word`; NULL when none is near. */
const char *near_miss_find(const char *word, const char *const *candidates);

#define NEAR_MISS_PATH_BYTES 4096

/* The file beside `path`, a path that does not exist, whose name is nearest to its last part: "./x"
 * for a program (`executable`) of the working folder. False: none is near. */
bool near_miss_file(const char *path, bool executable, char ret_path[NEAR_MISS_PATH_BYTES]);

#endif
