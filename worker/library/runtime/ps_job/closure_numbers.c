/* SPDX-License-Identifier: Apache-2.0
 * A ring of bits, one for each number from the least that is not done to the newest. */
#include "worker/library/runtime/ps_job/closure_numbers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/pure/assert.h"

#define BITS       64
#define FIRST_BITS ((uint64_t)BITS * 64)

struct closure_numbers {
    pthread_mutex_t lock;
    uint64_t least;    /* all smaller numbers are done */
    uint64_t next;     /* the next new number */
    uint64_t capacity; /* of the ring, in bits: a power of two */
    uint64_t *done;    /* bit (number mod capacity), of least .. next - 1; the others are 0 */
    bool blind;        /* there was no memory to grow: the watermark rises no more */
};

cadre_status closure_numbers_new(struct closure_numbers **ret_numbers, struct cadre_error *error)
{
    struct closure_numbers *numbers = calloc(1, sizeof *numbers);
    uint64_t *done = calloc(FIRST_BITS / BITS, sizeof *done);
    *ret_numbers = numbers;
    if (numbers == NULL || done == NULL) {
        free(numbers);
        free(done);
        *ret_numbers = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the numbers of closures");
    }
    pthread_mutex_init(&numbers->lock, NULL);
    numbers->least = 1;
    numbers->next = 1;
    numbers->capacity = FIRST_BITS;
    numbers->done = done;
    return CADRE_OK;
}

void closure_numbers_free(struct closure_numbers *numbers)
{
    if (numbers != NULL) {
        pthread_mutex_destroy(&numbers->lock);
        free(numbers->done);
        free(numbers);
    }
}

static bool is_done(const uint64_t *done, uint64_t capacity, uint64_t number)
{
    uint64_t at = number & (capacity - 1);
    return (done[at / BITS] >> (at % BITS) & 1) != 0;
}

static void closure_numbers_flip(uint64_t *done, uint64_t capacity, uint64_t number)
{
    uint64_t at = number & (capacity - 1);
    done[at / BITS] ^= UINT64_C(1) << (at % BITS);
}

/* The caller holds the lock. */
static void closure_numbers_grow(struct closure_numbers *numbers)
{
    CADRE_ASSERT(numbers->next - numbers->least == numbers->capacity);
    uint64_t capacity = 2 * numbers->capacity;
    uint64_t *done = calloc(capacity / BITS, sizeof *done);
    if (done == NULL) {
        numbers->blind = true;
        return;
    }
    for (uint64_t number = numbers->least; number < numbers->next; number++) {
        if (is_done(numbers->done, numbers->capacity, number)) {
            closure_numbers_flip(done, capacity, number);
        }
    }
    free(numbers->done);
    numbers->done = done;
    numbers->capacity = capacity;
}

uint64_t closure_numbers_next(struct closure_numbers *numbers)
{
    pthread_mutex_lock(&numbers->lock);
    if (!numbers->blind && numbers->next - numbers->least == numbers->capacity) {
        closure_numbers_grow(numbers);
    }
    uint64_t number = numbers->next++;
    CADRE_ASSERT(numbers->blind || numbers->next - numbers->least <= numbers->capacity);
    pthread_mutex_unlock(&numbers->lock);
    return number;
}

void closure_numbers_done(struct closure_numbers *numbers, uint64_t number)
{
    pthread_mutex_lock(&numbers->lock);
    CADRE_ASSERT(numbers->least <= numbers->next);
    bool out = number >= numbers->least && number < numbers->next;
    if (out && !numbers->blind && !is_done(numbers->done, numbers->capacity, number)) {
        closure_numbers_flip(numbers->done, numbers->capacity, number);
        while (numbers->least < numbers->next &&
               is_done(numbers->done, numbers->capacity, numbers->least)) {
            closure_numbers_flip(numbers->done, numbers->capacity, numbers->least);
            numbers->least++;
        }
    }
    pthread_mutex_unlock(&numbers->lock);
}

uint64_t closure_numbers_watermark(struct closure_numbers *numbers)
{
    pthread_mutex_lock(&numbers->lock);
    uint64_t least = numbers->least;
    pthread_mutex_unlock(&numbers->lock);
    return least;
}

uint64_t closure_numbers_count(struct closure_numbers *numbers)
{
    pthread_mutex_lock(&numbers->lock);
    uint64_t count = numbers->next - 1;
    pthread_mutex_unlock(&numbers->lock);
    return count;
}
