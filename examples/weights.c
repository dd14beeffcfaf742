/* What an attention call can return besides its output: the weights of chosen rows, summaries of all rows,
 * gradients. It runs in memory that the caller provides, and draws the weights as a heat map.
 *
 *     cc weights.c $(pkg-config --cflags --libs attend) -o weights && ./weights
 * */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attend.h>

enum { N = 4, D = 2 };

int main(void)
{
    static const float x[N][D] = {{1, 0}, {1, 1}, {0, 2}, {2, 1}};
    static const float ones[N][D] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
    float out[N][D], weights[2][N], entropy[N], grad[N][D];
    int32_t argmax[N];
    const int64_t rows[2] = {1, 3};

    at_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.window = "causal";

    at_call call;
    memset(&call, 0, sizeof call);
    call.batch = 1;
    call.queries = call.keys = N;
    call.query_width = call.key_width = call.value_width = D;
    call.query = call.key = call.value = &x[0][0];
    call.out = &out[0][0];
    call.weights = &weights[0][0]; /* of two rows: the [N,N] matrix is never computed */
    call.rows = rows;
    call.row_count = 2;
    call.argmax = argmax;
    call.entropy = entropy;
    call.grad_out = &ones[0][0]; /* dL/d out, for L = the sum of the output */
    call.grad_value = &grad[0][0];

    at_error error;
    memset(&error, 0, sizeof error);
    at_attend(&settings, &call, &error);

    /* The same call in caller-provided memory, as a loop without allocation would use: the first call has measured
     * the size. */
    void *memory = aligned_alloc(64, (call.memory_used + 63) / 64 * 64);
    call.memory = memory;
    call.memory_size = call.memory_used;
    if (!memory || !at_attend(&settings, &call, &error)) {
        fprintf(stderr, "weights: %s\n", memory ? error.text : "out of memory");
        free(memory);
        return error.code != AT_OK ? error.code : AT_MEMORY;
    }
    free(memory);

    for (int i = 0; i < N; i++)
        printf("query %d: output %.2f %.2f, most weight on key %d, entropy %.2f, dL/dv %.2f\n", i, (double)out[i][0],
               (double)out[i][1], (int)argmax[i], (double)entropy[i], (double)grad[i][0]);

    static const char *const row_names[] = {"query 1", "query 3"};
    at_heatmap map;
    memset(&map, 0, sizeof map);
    map.rows = 2;
    map.columns = N;
    map.values = &weights[0][0];
    map.row_names = row_names;
    char *text = at_heatmap_text(&map, &error);
    printf("%s", text ? text : "");
    at_text_free(text);
    return error.code;
}
