/* SPDX-License-Identifier: Apache-2.0
 * The source whose elements a function of the program makes, one after the other. */
#include <inttypes.h>

#include "worker/library/device/argument.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/node/user_call.h"

struct generator_dataset {
    cadre_dataset base;
    cadre_generator generator;
    cadre_element_spec output;
};

struct generator_iterator {
    cadre_iterator base;
    void *pass;
    bool begun; /* and not ended */
    uint64_t count;
};

static const struct generator_dataset *dataset_of(const struct generator_iterator *iterator)
{
    return (const struct generator_dataset *)iterator->base.data;
}

/* The program frees what it holds as soon as it is not needed, and once. */
static void end_pass(struct generator_iterator *iterator)
{
    const cadre_generator *generator = &dataset_of(iterator)->generator;
    if (iterator->begun && generator->end != NULL) {
        generator->end(iterator->pass, generator->user);
    }
    iterator->begun = false;
}

/* The declared number of elements must be true: distributed input counts on it. */
static cadre_status check_count(
    const struct generator_iterator *iterator, bool ended, struct cadre_error *error)
{
    int64_t declared = dataset_of(iterator)->generator.cardinality;
    if (declared == 0 || (!ended && (declared < 0 || iterator->count < (uint64_t)declared)) ||
        (ended && iterator->count == (uint64_t)declared)) {
        return CADRE_OK;
    }
    if (declared < 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "generator: a pass ended after %" PRIu64
            " elements, and cadre_generator.cardinality says that none ends",
            iterator->count);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "generator: a pass has %s %" PRIu64
        " elements, and cadre_generator.cardinality says %" PRId64 "; give the true number, or 0",
        ended ? "only" : "more than", iterator->count, declared);
}

static cadre_status dataset_generate(
    struct generator_iterator *iterator, cadre_element *ret_element, struct cadre_error *error)
{
    const struct generator_dataset *data = dataset_of(iterator);
    cadre_element out = {0};
    user_call_begin();
    cadre_status status =
        argument_status(data->generator.next(iterator->pass, &out, data->generator.user));
    if (status == CADRE_OUT_OF_RANGE) {
        user_call_drop(&out);
        CADRE_TRY(check_count(iterator, true, error));
        return iterator_end(error);
    }
    out.names = NULL; /* those of the output are declared */
    status = user_call_end(status, "next", error);
    if (status == CADRE_OK) {
        status = user_call_check(&out, &data->output, "next", error);
    }
    if (status != CADRE_OK) {
        user_call_drop(&out);
        return cadre_error_wrap(error, status,
            "generator: element %" PRIu64 " (from 0) of epoch %" PRIu64, iterator->count,
            iterator->base.pass.epoch);
    }
    status = check_count(iterator, false, error);
    if (status != CADRE_OK) {
        user_call_drop(&out);
        return status;
    }
    *ret_element = out;
    return CADRE_OK;
}

static cadre_status generator_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct generator_iterator *iterator = (struct generator_iterator *)self;
    cadre_status status = dataset_generate(iterator, ret_element, error);
    if (status == CADRE_OK) {
        status = id_list_add(ids, iterator->count, error);
    }
    if (status != CADRE_OK) {
        end_pass(iterator);
        cadre_element_release(ret_element);
        return status;
    }
    iterator->count++;
    return CADRE_OK;
}

static void generator_free(cadre_iterator *self)
{
    end_pass((struct generator_iterator *)self);
}

static const struct iterator_ops generator_iterator_ops = {
    .next = generator_next,
    .destroy = generator_free,
};

static cadre_status generator_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    const cadre_generator *generator = &((struct generator_dataset *)self)->generator;
    CADRE_TRY(iterator_new(sizeof(struct generator_iterator), &generator_iterator_ops, self, pass,
        NULL, ret_iterator, error));
    struct generator_iterator *iterator = (struct generator_iterator *)*ret_iterator;
    if (generator->begin != NULL) {
        user_call_begin();
        cadre_status status = user_call_end(
            generator->begin(pass->epoch, &iterator->pass, generator->user), "begin", error);
        if (status != CADRE_OK) {
            cadre_iterator_release(*ret_iterator);
            *ret_iterator = NULL;
            return cadre_error_wrap(
                error, status, "generator: a pass over epoch %" PRIu64, pass->epoch);
        }
        iterator->begun = true;
    }
    return CADRE_OK;
}

static cadre_status generator_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    *ret_spec = ((struct generator_dataset *)self)->output;
    return CADRE_OK;
}

static void generator_describe(const cadre_dataset *self, struct description *text)
{
    const struct generator_dataset *data = (const struct generator_dataset *)self;
    description_add(text, "%" PRId64 " elements", data->generator.cardinality);
    for (uint32_t i = 0; i < data->output.count; i++) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        const cadre_tensor_spec *spec = &data->output.tensors[i];
        description_add(
            text, ", %s", tensor_shape_text(spec->dtype, spec->rank, spec->dims, shape));
    }
}

static const struct dataset_ops generator_ops = {
    .name = "generator",
    .describe = generator_describe,
    .spec = generator_spec,
    .iterate = generator_iterate,
};

static cadre_status check_output(const cadre_element_spec *output, struct cadre_error *error)
{
    if (output->count < 1 || output->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "generator: %" PRIu32 " components declared; an element has 1 to %d", output->count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < output->count; i++) {
        const cadre_tensor_spec *spec = &output->tensors[i];
        if (cadre_dtype_bytes(spec->dtype) == 0 || spec->rank > CADRE_RANK_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "generator: component %" PRIu32 " is declared with type %d and rank %" PRIu32
                ", which no tensor has",
                i, (int)spec->dtype, spec->rank);
        }
        for (uint32_t axis = 0; axis < spec->rank; axis++) {
            if (spec->dims[axis] < CADRE_DIMENSION_ANY) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "generator: dimension %" PRIu32 " of component %" PRIu32
                    " is declared as %" PRId64,
                    axis, i, spec->dims[axis]);
            }
        }
    }
    return composite_spec_check(output, "generator: component", error);
}

static cadre_status check_generator(
    const cadre_generator *generator, const char *const **ret_names, struct cadre_error *error)
{
    if (generator == NULL || generator->next == NULL || generator->output == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "generator: %s",
            generator == NULL ? "the description is NULL"
            : generator->next == NULL
                ? "cadre_generator.next is NULL"
                : "cadre_generator.output is NULL; say what the elements look "
                  "like");
    }
    if (generator->cardinality < 0 && generator->cardinality != CADRE_CARDINALITY_INFINITE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "generator: %" PRId64
            " elements declared; give their number, CADRE_CARDINALITY_INFINITE, or 0 if it is not "
            "known",
            generator->cardinality);
    }
    CADRE_TRY(check_output(generator->output, error));
    return generator->output->names == NULL
               ? CADRE_OK
               : component_names_intern(generator->output->names, generator->output->count,
                     "generator", ret_names, error);
}

cadre_dataset *cadre_dataset_generator(const cadre_generator *generator)
{
    struct cadre_error error = {0};
    const char *const *names = NULL;
    if (check_generator(generator, &names, &error) != CADRE_OK) {
        return dataset_failed(NULL, &error);
    }
    struct generator_dataset *data = dataset_new(sizeof *data, &generator_ops, NULL);
    if (data == NULL) {
        return NULL;
    }
    data->base.indexable = false;
    data->base.cardinality =
        generator->cardinality == 0 ? CADRE_CARDINALITY_UNKNOWN : generator->cardinality;
    data->generator = *generator;
    data->output = *generator->output;
    data->output.names = names;
    data->base.has_names = names != NULL;
    data->generator.output = &data->output;
    return &data->base;
}
