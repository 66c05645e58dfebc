/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/near_miss.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static size_t near_miss_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool near_miss_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The distance of Damerau and Levenshtein, without changes inside an exchanged pair; three rows of
 * its table are in memory. Both texts are shorter than NEAR_MISS_BYTES. */
static size_t near_miss_distance(const char *a, const char *b)
{
    size_t rows[3][NEAR_MISS_BYTES];
    size_t length = strlen(b);
    size_t i = 0;
    for (size_t j = 0; j <= length; j++) {
        rows[0][j] = j;
    }
    for (; a[i] != '\0'; i++) {
        const size_t *before = rows[(i + 2) % 3]; /* the row of a[i - 2], read from i = 1 on */
        const size_t *above = rows[i % 3];
        size_t *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t j = 1; j <= length; j++) {
            size_t changed = above[j - 1] + (near_miss_same(a[i], b[j - 1]) ? 0 : 1);
            row[j] = near_miss_least(changed, 1 + near_miss_least(above[j], row[j - 1]));
            if (i > 0 && j > 1 && near_miss_same(a[i], b[j - 2]) &&
                near_miss_same(a[i - 1], b[j - 1])) {
                row[j] = near_miss_least(row[j], before[j - 2] + 1);
            }
        }
    }
    return rows[i % 3][length];
}

void near_miss_begin(struct near_miss *search, const char *word)
{
    size_t length = strlen(word);
    *search = (struct near_miss){.word = word,
        .limit = length >= NEAR_MISS_BYTES ? 0
                 : length < 4              ? 2
                                           : 3};
    search->limit = near_miss_least(search->limit, length);
}

void near_miss_offer(struct near_miss *search, const char *candidate)
{
    size_t length = strlen(search->word);
    if (search->limit == 0 || strlen(candidate) >= NEAR_MISS_BYTES) {
        return;
    }
    size_t changes = near_miss_distance(search->word, candidate);
    bool begins = length >= 3 && strncasecmp(candidate, search->word, length) == 0;
    if (changes < search->limit || (begins && search->best[0] == '\0')) {
        snprintf(search->best, sizeof search->best, "%s", candidate);
        search->limit = near_miss_least(search->limit, changes);
    }
}

const char *near_miss_find(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    struct near_miss search;
    near_miss_begin(&search, word);
    for (; *candidates != NULL; candidates++) {
        size_t limit = search.limit;
        bool first = search.best[0] == '\0';
        near_miss_offer(&search, *candidates);
        if (search.limit < limit || (first && search.best[0] != '\0')) {
            best = *candidates;
        }
    }
    return best;
}
