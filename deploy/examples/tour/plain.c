/* SPDX-License-Identifier: Apache-2.0
 * Without any distribution: a dataset is read element by element, in a loop of the program's own.
 * An element has two components here, features and labels. */
#include <cadre/cadre.h>
#include <stdio.h>

#include "show.h"

/* labels - 0.3 * features, row by row. */
static cadre_status train_step(
    const cadre_tensor *features, const cadre_tensor *labels, cadre_tensor **ret_loss)
{
    CADRE_TRY(cadre_tensor_copy(labels, ret_loss));
    const float *x = cadre_tensor_const_data(features);
    float *loss = cadre_tensor_data(*ret_loss);
    for (int64_t i = 0; i < cadre_tensor_count(features); i++) {
        loss[i] -= 0.3f * x[i];
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    cadre_tensor *one, *loss;
    cadre_iterator *iterator;
    cadre_element element;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){1}, (float[]){1}, &one));
    cadre_dataset *data = cadre_dataset_tensors((cadre_tensor *[]){one, one}, 2);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, 100), 16, false);
    CADRE_CHECK(cadre_dataset_iterate(data, 0, &iterator));
    cadre_status status;
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        CADRE_CHECK(train_step(element.tensors[0], element.tensors[1], &loss));
        show(loss);
        printf("\n");
        cadre_tensor_release(loss);
        cadre_element_release(&element);
    }
    CADRE_CHECK(status == CADRE_OUT_OF_RANGE ? CADRE_OK : status); /* the end is no failure */
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    cadre_tensor_release(one);
    return 0;
}
