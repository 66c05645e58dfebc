/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/random/mapped_element.h"

#include <inttypes.h>

#include "worker/library/device/argument.h"
#include "worker/library/random/random.h"

static _Thread_local struct mapped_element *current;

struct mapped_element *mapped_enter(struct mapped_element *element)
{
    struct mapped_element *before = current;
    current = element;
    return before;
}

static cadre_status need_ids(struct mapped_element *element, struct cadre_error *error)
{
    if (element == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no element here whose random numbers these could be: call it from a map "
            "function that cadre_dataset_map calls");
    }
    if (element->repeated) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "repeat stands before this map, and each of its passes would draw the same; put the "
            "map before repeat");
    }
    if (element->find != NULL) {
        CADRE_TRY(element->find(element, error));
        element->find = NULL;
    }
    return element->count > 0 ? CADRE_OK
                              : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                                    "the element is made of no sample, so there is nothing to draw "
                                    "for");
}

cadre_status mapped_random(uint64_t seed, const char *name, uint64_t row, cadre_random *ret_random,
    struct cadre_error *error)
{
    const struct mapped_element *element = current;
    CADRE_TRY(need_ids(current, error));
    if (row < element->count) {
        *ret_random =
            random_stream(RANDOM_OF_SAMPLE, seed, name, element->epoch, element->ids[row]);
        return CADRE_OK;
    }
    const cadre_random last = random_stream(
        RANDOM_OF_SAMPLE, seed, name, element->epoch, element->ids[element->count - 1]);
    *ret_random = cadre_random_split(&last, row);
    return CADRE_OK;
}

cadre_status cadre_random_for_element(
    uint64_t seed, const char *name, uint64_t row, cadre_random *ret_random)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_random, __func__, "ret_random", &error);
    if (status == CADRE_OK) {
        status = mapped_random(seed, name, row, ret_random, &error);
    }
    if (status != CADRE_OK) {
        error.code = status;
        cadre_error_publish(&error);
    }
    return status;
}
