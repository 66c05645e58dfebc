/* SPDX-License-Identifier: Apache-2.0
 * Records with named features: cadre/example.h. Whole files of them: deploy/examples/records. */
#include "documents.h"

/* An image of two numbers and a label, as bytes. */
static cadre_tensor *serialized(void)
{
    static const char *const names[] = {"image", "label"};
    cadre_tensor *tensors[] = {floats(0.5, 1), integers(7)};
    cadre_tensor *example;
    OK(cadre_example_serialize(names, tensors, 2, &example));
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return example;
}

static cadre_example_parser *parser(void)
{
    static const cadre_feature features[] = {
        {.name = "label", .dtype = CADRE_I64},
        {.name = "image", .dtype = CADRE_F32, .rank = 1, .dims = {2}},
    };
    cadre_example_parser *made;
    OK(cadre_example_parser_create(features, 2, &made));
    return made;
}

/* One example is parsed into a component for each feature that was asked for, in that order. */
static void one_example_is_parsed(void **state)
{
    (void)state;
    cadre_tensor *example = serialized();
    cadre_example_parser *features = parser();
    const cadre_string *bytes = cadre_tensor_const_data(example);
    cadre_element element;
    OK(cadre_example_parse(features, bytes->bytes, bytes->size, &element));
    assert_int_equal(element.count, 2);
    assert_tensor(element.tensors[0], "7");
    assert_tensor(element.tensors[1], "[0.5 1]");
    cadre_element_release(&element);
    REFUSED(cadre_example_parse(features, "no", 2, &element), CADRE_DATA_LOSS, "");
    cadre_example_parser_release(features);
    cadre_tensor_release(example);
}

/* What parsing gives is known without an example: of one, and of a batch of any size. */
static void what_comes_is_known_before(void **state)
{
    (void)state;
    cadre_example_parser *features = parser();
    cadre_element_spec spec;
    OK(cadre_example_parser_spec(features, &spec));
    assert_int_equal(spec.count, 2);
    assert_int_equal(spec.tensors[0].rank, 0);
    assert_int_equal(spec.tensors[1].dims[0], 2);
    OK(cadre_example_parser_batch_spec(features, &spec));
    assert_int_equal(spec.tensors[0].rank, 1);
    assert_int_equal(spec.tensors[1].dims[0], CADRE_DIMENSION_ANY);
    assert_int_equal(spec.tensors[1].dims[1], 2);
    cadre_example_parser_release(features);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_example_is_parsed),
        cmocka_unit_test(what_comes_is_known_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
