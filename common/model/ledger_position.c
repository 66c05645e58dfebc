/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/ledger_position.h"

#include "common/pure/text.h"

void ledger_position_write(
    const struct ledger_position *position, char ret_text[LEDGER_POSITION_BYTES])
{
    struct text text = text_begin(ret_text, LEDGER_POSITION_BYTES);
    text_add_u64(&text, position->cluster);
    text_add(&text, ".");
    text_add_u64(&text, position->term);
    text_add(&text, ".");
    text_add_u64(&text, position->index);
}

/* The digits at `*at`, which it passes. */
static bool read_number(const char *text, size_t length, size_t *at, uint64_t *ret_number)
{
    size_t first = *at;
    uint64_t number = 0;
    bool fits = true;
    for (; *at < length && text[*at] >= '0' && text[*at] <= '9'; ++*at) {
        fits = fits && !__builtin_mul_overflow(number, UINT64_C(10), &number) &&
               !__builtin_add_overflow(number, (uint64_t)(text[*at] - '0'), &number);
    }
    *ret_number = number;
    return fits && *at > first;
}

bool ledger_position_read(const char *text, size_t length, struct ledger_position *ret_position)
{
    uint64_t numbers[3];
    size_t at = 0;
    bool good = true;
    *ret_position = (struct ledger_position){0};
    for (size_t i = 0; i < 3 && good; i++) {
        good = read_number(text, length, &at, &numbers[i]);
        if (good && i < 2) {
            good = at < length && text[at] == '.';
            at++;
        }
    }
    good = good && at == length && numbers[1] > 0;
    if (good) {
        *ret_position = (struct ledger_position){
            .cluster = numbers[0], .term = numbers[1], .index = numbers[2]};
    }
    return good;
}
