/* Any lines as the settings of attention, score to kv_heads: an error message, or a call of the operator whose fused and
 * plain paths agree. Lines of the form name=value after them are settings of training. */
#include "attention/attention.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "train/train_internal.h"

enum { QUERIES = 3, KEYS = 4, SIZE = 4, MOST_HEADS = 4, INNER = 2, MOST_NUMBERS = 4096 };

/* Small numbers that differ, none of them equal or 0. */
static float *numbers(int64_t count)
{
    float *number = malloc((size_t)(count + 1) * sizeof *number);
    EXPECT(number);
    for (int64_t i = 0; i < count; i++)
        number[i] = (float)sin(1 + 0.7 * (double)i);
    return number;
}

/* The parameters that the settings declare, one set for all heads; false if one is too large for a fuzzer. */
static bool declare(const at_attention *attention, at_parameter *parameter, int *count)
{
    for (int axis = 0; axis < AT_AXES; axis++)
        for (int i = 0; i < attention->declared_count[axis]; i++) {
            const at_shape shape = at_parameter_shape(attention, axis, i, false, INNER, SIZE, SIZE);
            int64_t size = 1;
            for (int d = 0; d < shape.rank; d++)
                if (shape.dim[d] > MOST_NUMBERS || (size *= shape.dim[d]) > MOST_NUMBERS)
                    return false;
            if (shape.rank == 0)
                continue;
            at_parameter *p = &parameter[(*count)++];
            *p = (at_parameter){.name = attention->declared[axis][i].name, .rank = shape.rank, .value = numbers(size)};
            memcpy(p->dim, shape.dim, sizeof p->dim);
        }
    return true;
}

/* Both paths of one call, and their outputs are the same within rounding. */
static void attend(const at_settings *settings, const at_attention *attention)
{
    at_parameter parameter[AT_AXES * AT_MOST_PARAMETERS] = {0};
    const int64_t width = attention->heads * SIZE, kv_width = attention->kv_heads * SIZE;
    float *query = numbers(QUERIES * width), *key = numbers(KEYS * kv_width), *value = numbers(KEYS * kv_width);
    float out[2][QUERIES * MOST_HEADS * SIZE];
    int count = 0;
    bool done[2] = {false};
    if (declare(attention, parameter, &count))
        for (int plain = 0; plain < 2; plain++) {
            at_settings which = *settings;
            at_error error = {0};
            at_call call = {.batch = 1,
                            .queries = QUERIES,
                            .keys = KEYS,
                            .query_width = width,
                            .key_width = kv_width,
                            .value_width = kv_width,
                            .query = query,
                            .key = key,
                            .value = value,
                            .parameters = parameter,
                            .parameter_count = count,
                            .out = out[plain]};
            which.plain = plain;
            done[plain] = at_attend(&which, &call, &error);
            expect_message(done[plain], &error);
        }
    EXPECT(done[0] == done[1]);
    for (int64_t i = 0; done[0] && i < QUERIES * width; i++)
        EXPECT(fabsf(out[0][i] - out[1][i]) < 1e-4F);
    for (int i = 0; i < count; i++)
        free((void *)parameter[i].value);
    free(query);
    free(key);
    free(value);
}

static void train(char *rest)
{
    at_error error = {0};
    char *line;
    at_training *training = at_training_new(&error);
    while (training && (line = strsep(&rest, "\n"))) {
        char *value = strchr(line, '=');
        at_error wrong = {0};
        if (!value)
            continue;
        *value++ = '\0';
        expect_message(at_training_set(training, line, value, &wrong), &wrong);
    }
    at_training_free(training);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = text_of(bytes, size), *rest = text, *line[6] = {NULL};
    for (int i = 0; i < 6 && rest; i++)
        line[i] = strsep(&rest, "\n");
    const at_settings settings = {.score = line[0],
                                  .normaliser = line[1],
                                  .window = line[2],
                                  .position = line[3],
                                  .heads = line[4] ? atoi(line[4]) : 0,
                                  .kv_heads = line[5] ? atoi(line[5]) : 0};
    at_attention attention;
    at_error error = {0};
    at_threads_set(1);
    const bool parsed = at_attention_parse(&settings, &attention, &error);
    expect_message(parsed, &error);
    if (parsed && attention.heads <= MOST_HEADS)
        attend(&settings, &attention);
    if (rest)
        train(rest);
    free(text);
    return 0;
}
