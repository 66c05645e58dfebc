/* SPDX-License-Identifier: Apache-2.0
 * How long a lookup takes a token, and how much memory: bench_lookup [TOKENS]. Tokens are looked up
 * in a random order, one in eight of them unknown. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cadre/preprocessing.h"
#include "common/pure/prng.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static size_t heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* The best of five rounds over all of `tokens`. */
static double round_ns(const cadre_lookup *lookup, const cadre_tensor *tokens)
{
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        cadre_tensor *ids;
        double from = now();
        CADRE_CHECK(cadre_lookup_apply(lookup, tokens, &ids));
        double took = (now() - from) * 1e9 / (double)cadre_tensor_count(tokens);
        best = took < best ? took : best;
        cadre_tensor_release(ids);
    }
    return best;
}

static void measure(const char *name, const cadre_tensor *list, const cadre_tensor *asked)
{
    cadre_lookup *lookup;
    size_t before = heap();
    double from = now();
    CADRE_CHECK(cadre_lookup_create(list, NULL, &lookup));
    double made = now() - from;
    double count = (double)cadre_tensor_count(list);
    printf("%s: %.0f tokens, made in %.2f s, %.1f bytes a token, %.1f ns a token\n", name, count,
        made, (double)(heap() - before) / count, round_ns(lookup, asked));
    cadre_lookup_release(lookup);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    count = count < 8 ? 8 : count;
    size_t tokens = (size_t)count;
    char(*names)[32] = calloc(tokens, sizeof *names);
    cadre_string *strings = calloc(2 * tokens, sizeof *strings);
    int64_t *numbers = calloc(2 * tokens, sizeof *numbers);
    if (names == NULL || strings == NULL || numbers == NULL) {
        return 1;
    }
    struct prng prng = {.state = 1};
    for (size_t i = 0; i < tokens; i++) {
        snprintf(names[i], sizeof names[i], "token-%zu", i);
        strings[i] = (cadre_string){names[i], strlen(names[i])};
        numbers[i] = (int64_t)i * 1000003;
        size_t asked = (size_t)prng_uniform(&prng, tokens);
        size_t cut = prng_uniform(&prng, 8) == 0 ? 1 : 0;
        strings[tokens + i] = (cadre_string){names[asked] + cut, 0};
        numbers[tokens + i] = (int64_t)asked * 1000003 + (int64_t)cut;
    }
    for (size_t i = tokens; i < 2 * tokens; i++) {
        strings[i].size = strlen(strings[i].bytes);
    }
    const int64_t rows = (int64_t)tokens;
    cadre_tensor *list;
    cadre_tensor *asked;
    CADRE_CHECK(cadre_tensor_from_data(CADRE_STRING, 1, &rows, strings, &list));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_STRING, 1, &rows, strings + tokens, &asked));
    measure("strings", list, asked);
    cadre_tensor_release(list);
    cadre_tensor_release(asked);
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I64, 1, &rows, numbers, &list));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I64, 1, &rows, numbers + tokens, &asked));
    measure("integers", list, asked);
    cadre_tensor_release(list);
    cadre_tensor_release(asked);
    free(names);
    free(strings);
    free(numbers);
    return 0;
}
