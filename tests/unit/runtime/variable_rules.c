/* SPDX-License-Identifier: Apache-2.0 */
#include "variable_rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INITIAL 10.0
#define LITERAL 3.0
#define WHOLE   24.0 /* what is assigned in cross-replica context */
#define AFTER   5.0  /* what each replica adds after a merge call */

/* The arguments of one call, and its context. */
enum giver {
    REPLICA_TENSOR,  /* x_r = id + 1 */
    REPLICA_LITERAL, /* LITERAL */
    CROSS_TENSOR,    /* WHOLE */
    CROSS_LITERAL,   /* LITERAL */
    CROSS_VALUES,    /* x_r */
    CROSS_UPDATE,    /* x_r, in an update */
    MERGE_TENSOR,    /* WHOLE, in a merge call */
    MERGE_UPDATE,    /* x_r, in an update in a merge call */
    GIVERS
};

static const char *const giver_names[] = {"tensor in replica context", "number in replica context",
    "tensor in cross-replica context", "number in cross-replica context",
    "values in cross-replica context", "update", "tensor in a merge call",
    "update in a merge call"};
static const char *const how_names[] = {"assign", "add", "sub"};

struct row {
    cadre_synchronization synchronization;
    cadre_aggregation aggregation;
    enum giver giver;
    cadre_assignment how;
    bool later; /* after the first step, where it makes a difference */
    cadre_variable *variable;
};

/* --- what is to be --- */

static double own(double id)
{
    return id + 1;
}

static double aggregated(const struct row *row, double id, double n)
{
    switch (row->aggregation) {
    case CADRE_AGGREGATION_SUM:
        return n * (n + 1) / 2;
    case CADRE_AGGREGATION_MEAN:
        return (n + 1) / 2;
    case CADRE_AGGREGATION_ONLY_FIRST_REPLICA:
        return own(0);
    default:
        return own(id);
    }
}

static bool is_on_read(const struct row *row)
{
    return row->synchronization == CADRE_SYNC_ON_READ;
}

static bool is_shared(const struct row *row)
{
    return cadre_variable_kind(row->variable) == CADRE_VARIABLE_AGGREGATING;
}

static bool adds_around(const struct row *row)
{
    return row->giver == MERGE_TENSOR && is_on_read(row) && !is_shared(row) &&
           row->how == CADRE_ASSIGN;
}

/* The expected component of replica `id`. */
static double given(const struct row *row, double id, double n)
{
    bool assigned = is_on_read(row) && !is_shared(row) && row->aggregation == CADRE_AGGREGATION_SUM;
    switch (row->giver) {
    case REPLICA_TENSOR:
        return is_on_read(row) && !is_shared(row) ? own(id) : aggregated(row, id, n);
    case REPLICA_LITERAL:
    case CROSS_LITERAL:
        return row->giver == CROSS_LITERAL && assigned ? LITERAL / n : LITERAL;
    case CROSS_TENSOR:
    case MERGE_TENSOR:
        return (assigned ? WHOLE / n : WHOLE) + (adds_around(row) ? AFTER : 0);
    default:
        return own(id);
    }
}

static double component(const struct row *row, double id, double n)
{
    double value = given(row, id, n);
    switch (row->how) {
    case CADRE_ASSIGN_ADD:
        return INITIAL + value;
    case CADRE_ASSIGN_SUB:
        return INITIAL - value;
    default:
        return value;
    }
}

/* Of variables that are combined when read what the aggregation makes of the components. */
static double cross_read(const struct row *row, double n)
{
    double sum = 0;
    if (!is_on_read(row) || is_shared(row) ||
        row->aggregation == CADRE_AGGREGATION_ONLY_FIRST_REPLICA) {
        return component(row, 0, n);
    }
    for (double id = 0; id < n; id++) {
        sum += component(row, id, n);
    }
    return row->aggregation == CADRE_AGGREGATION_SUM ? sum : sum / n;
}

/* The code that the row must be refused with. */
static cadre_status refusal(const struct row *row, double n)
{
    bool sum = row->aggregation == CADRE_AGGREGATION_SUM;
    bool none = row->aggregation == CADRE_AGGREGATION_NONE;
    if (is_shared(row)) {
        bool replica = row->giver == REPLICA_TENSOR || row->giver == REPLICA_LITERAL;
        bool several =
            row->giver == CROSS_VALUES || row->giver == CROSS_UPDATE || row->giver == MERGE_UPDATE;
        bool refused = (several && n > 1) || (replica && n > 1 && none) ||
                       (row->giver == REPLICA_LITERAL && sum && n > 1);
        return refused ? CADRE_INVALID_ARGUMENT : CADRE_OK;
    }
    if (is_on_read(row)) {
        bool cross =
            row->giver == CROSS_TENSOR || row->giver == CROSS_LITERAL || row->giver == MERGE_TENSOR;
        bool refused = sum && ((cross && row->how != CADRE_ASSIGN) || row->giver == CROSS_VALUES);
        return refused ? CADRE_INVALID_ARGUMENT : CADRE_OK;
    }
    return row->giver == REPLICA_LITERAL && sum && n > 1 ? CADRE_INVALID_ARGUMENT : CADRE_OK;
}

/* --- doing it --- */

static cadre_status assign(
    cadre_replica *replica, cadre_variable *variable, cadre_assignment how, double number)
{
    cadre_tensor *value = NULL;
    CADRE_TRY(cadre_tensor_from_f32((float)number, &value));
    cadre_status status = cadre_variable_assign(replica, variable, how, value);
    cadre_tensor_release(value);
    return status;
}

static cadre_status assign_number(
    cadre_replica *replica, cadre_variable *variable, cadre_assignment how)
{
    return cadre_variable_assign_literal(replica, variable, how, LITERAL);
}

static cadre_status assign_input(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    const struct row *row = user;
    const float *is = cadre_variable_read(NULL, variable);
    if (*is != (float)INITIAL) {
        return cadre_fail(CADRE_INTERNAL, "an update reads %g", (double)*is);
    }
    CADRE_TRY(assign(
        NULL, variable, row->how, (double)*(const float *)cadre_tensor_const_data(inputs[0])));
    is = cadre_variable_read(NULL, variable);
    return cadre_tensor_from_f32(*is, ret_output);
}

/* Inside a step. Before and after it each replica adds to an ON_READ sum: all of it counts. */
static cadre_status merged(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    struct row *row = user;
    (void)outputs;
    return row->giver == MERGE_TENSOR
               ? assign(NULL, row->variable, row->how, WHOLE)
               : cadre_variable_update(strategy, row->variable, assign_input, row, inputs[0], NULL);
}

static cadre_status in_merge(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct row *row = user;
    cadre_tensor *value;
    if (adds_around(row)) {
        CADRE_TRY(cadre_variable_assign_literal(replica, row->variable, CADRE_ASSIGN_ADD, 100));
    }
    CADRE_TRY(cadre_tensor_from_f32((float)own(cadre_replica_id(replica)), &value));
    cadre_status status = cadre_merge_call(replica, merged, row, &value, 1, 0, NULL);
    cadre_tensor_release(value);
    CADRE_TRY(status);
    return adds_around(row)
               ? cadre_variable_assign_literal(replica, row->variable, CADRE_ASSIGN_ADD, AFTER)
               : CADRE_OK;
}

static cadre_status in_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct row *row = user;
    return row->giver == REPLICA_TENSOR
               ? assign(replica, row->variable, row->how, own(cadre_replica_id(replica)))
               : assign_number(replica, row->variable, row->how);
}

static cadre_status own_value(const cadre_value_context *context, cadre_element *value, void *user)
{
    (void)user;
    value->count = 1;
    return cadre_tensor_from_f32((float)own(context->replica_id_in_sync_group), &value->tensors[0]);
}

/* What an update gives is what it wrote. */
static cadre_status update(
    cadre_strategy *strategy, struct row *row, const cadre_per_replica *values)
{
    cadre_per_replica *outputs = NULL;
    CADRE_TRY(cadre_variable_update(strategy, row->variable, assign_input, row, values, &outputs));
    uint32_t n = cadre_strategy_num_replicas_in_sync(strategy);
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < cadre_per_replica_count(outputs); i++) {
        const float *in = cadre_tensor_const_data(cadre_local_results(values, 0)[i]);
        const float *is = cadre_tensor_const_data(cadre_local_results(outputs, 0)[i]);
        if (fabs((double)*is - component(row, (double)*in - 1, n)) > 1e-5) {
            status = cadre_fail(CADRE_INTERNAL, "update gave %g", (double)*is);
        }
    }
    cadre_per_replica_release(outputs);
    return status;
}

static cadre_status apply(cadre_strategy *strategy, struct row *row, cadre_per_replica *values)
{
    switch (row->giver) {
    case REPLICA_TENSOR:
    case REPLICA_LITERAL:
        return cadre_run(strategy, in_replica, row, NULL, 0, NULL);
    case CROSS_TENSOR:
        return assign(NULL, row->variable, row->how, WHOLE);
    case CROSS_LITERAL:
        return assign_number(NULL, row->variable, row->how);
    case CROSS_VALUES:
        return cadre_variable_assign_values(row->variable, row->how, values);
    case CROSS_UPDATE:
        return update(strategy, row, values);
    default:
        return cadre_run(strategy, in_merge, row, NULL, 0, NULL);
    }
}

/* --- looking --- */

static cadre_status differs(const struct row *row, const char *what, double is, double wanted)
{
    return cadre_fail(CADRE_INTERNAL,
        "synchronization %d, aggregation %d, %s, %s%s: %s is %g and should be %g",
        (int)row->synchronization, (int)row->aggregation, giver_names[row->giver],
        how_names[row->how], row->later ? ", after the first step" : "", what, is, wanted);
}

/* The function of a step that looks at all rows which are through. */
struct looking {
    const struct row *rows;
    size_t count;
};

static cadre_status look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct looking *looking = user;
    double n = cadre_replica_count(replica);
    for (size_t i = 0; i < looking->count; i++) {
        const struct row *row = &looking->rows[i];
        const float *is = cadre_variable_read(replica, row->variable);
        double wanted =
            refusal(row, n) != CADRE_OK ? INITIAL : component(row, cadre_replica_id(replica), n);
        if (fabs((double)*is - wanted) > 1e-5 * (1 + fabs(wanted))) {
            return differs(row, "a component", (double)*is, wanted);
        }
    }
    return CADRE_OK;
}

static cadre_status check_cross_reads(cadre_strategy *strategy, const struct looking *looking)
{
    double n = cadre_strategy_num_replicas_in_sync(strategy);
    for (size_t i = 0; i < looking->count; i++) {
        const struct row *row = &looking->rows[i];
        const float *is = cadre_variable_read(NULL, row->variable);
        double factor =
            is_on_read(row) && !is_shared(row) && row->aggregation == CADRE_AGGREGATION_SUM ? n : 1;
        double wanted = refusal(row, n) != CADRE_OK ? INITIAL * factor : cross_read(row, n);
        /* In cross-replica context the first local component is read, here that of a task that need
         * not be the first. */
        bool local = row->aggregation == CADRE_AGGREGATION_NONE && !is_shared(row);
        local = local || row->giver == CROSS_VALUES || row->giver == CROSS_UPDATE ||
                row->giver == MERGE_UPDATE;
        local = local && !is_on_read(row);
        if ((!local || cadre_strategy_is_chief(strategy)) &&
            fabs((double)*is - wanted) > 1e-5 * (1 + fabs(wanted))) {
            return differs(row, "the cross-replica read", (double)*is, wanted);
        }
    }
    return CADRE_OK;
}

/* --- the table --- */

static cadre_status create(cadre_strategy *strategy, struct row *row, size_t index)
{
    char name[64];
    snprintf(name, sizeof name, "v%zu", index);
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = INITIAL},
        .synchronization = row->synchronization,
        .aggregation = row->aggregation};
    return cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options, &row->variable);
}

#define ROWS_MAX (2 * 4 * GIVERS * 3 * 2)

/* All combinations; those that are changed in cross-replica context also before the first step. */
static size_t fill_in(struct row rows[ROWS_MAX])
{
    static const cadre_synchronization kinds[] = {CADRE_SYNC_AUTO, CADRE_SYNC_ON_READ};
    size_t count = 0;
    for (int later = 0; later < 2; later++) {
        for (size_t k = 0; k < 2; k++) {
            for (int aggregation = 0; aggregation < 4; aggregation++) {
                for (int giver = 0; giver < GIVERS; giver++) {
                    for (int how = 0; how < 3; how++) {
                        bool step = giver <= REPLICA_LITERAL || giver >= MERGE_TENSOR;
                        bool none = k == 1 && aggregation == CADRE_AGGREGATION_NONE;
                        if (!none && (later == 1 || !step)) {
                            rows[count++] = (struct row){.synchronization = kinds[k],
                                .aggregation = (cadre_aggregation)aggregation,
                                .giver = (enum giver)giver,
                                .how = (cadre_assignment)how,
                                .later = later == 1};
                        }
                    }
                }
            }
        }
    }
    return count;
}

static cadre_status try_row(cadre_strategy *strategy, struct row *row, cadre_per_replica *values)
{
    cadre_status wanted = refusal(row, cadre_strategy_num_replicas_in_sync(strategy));
    cadre_status status = apply(strategy, row, values);
    if (status == wanted) {
        return CADRE_OK;
    }
    if (status != CADRE_OK) {
        fprintf(stderr, "%s\n", cadre_error_message());
    }
    return differs(row, "the status", status, wanted);
}

cadre_status variable_rules(cadre_strategy *strategy, bool refusals)
{
    static struct row rows[ROWS_MAX];
    size_t count = fill_in(rows);
    cadre_per_replica *values = NULL;
    CADRE_TRY(cadre_values_from_function(strategy, own_value, NULL, &values));
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        status = create(strategy, &rows[i], i);
    }
    uint32_t n = cadre_strategy_num_replicas_in_sync(strategy);
    struct looking looking = {.rows = rows};
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        if (rows[i].later && cadre_strategy_position(strategy) == 0) {
            status = check_cross_reads(strategy, &looking);
            if (status == CADRE_OK) {
                status = cadre_run(strategy, look, &looking, NULL, 0, NULL);
            }
        }
        if (status == CADRE_OK && (refusals || refusal(&rows[i], n) == CADRE_OK)) {
            status = try_row(strategy, &rows[i], values);
        }
        looking.count++;
    }
    if (status == CADRE_OK) {
        status = check_cross_reads(strategy, &looking);
    }
    if (status == CADRE_OK) {
        status = cadre_run(strategy, look, &looking, NULL, 0, NULL);
    }
    cadre_per_replica_release(values);
    return status;
}
