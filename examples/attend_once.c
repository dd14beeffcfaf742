/* One call of the attention operator on plain buffers: self-attention softmax(X Xᵀ) X of three words of size three.
 *
 *     cc attend_once.c $(pkg-config --cflags --libs attend) -o attend_once */
#include <attend.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const float x[3][3] = {{1, 3, 2}, {1, 1, 3}, {1, 2, 1}};
    float z[3][3];

    at_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.score = "dot"; /* fields left empty have their defaults: softmax over all keys, one head */

    at_call call;
    memset(&call, 0, sizeof call);
    call.batch = 1;
    call.queries = call.keys = 3;
    call.query_width = call.key_width = call.value_width = 3;
    call.query = call.key = call.value = &x[0][0];
    call.out = &z[0][0];

    at_error error;
    memset(&error, 0, sizeof error);
    if (!at_attend(&settings, &call, &error)) {
        fprintf(stderr, "attend_once: %s\n", error.text);
        return error.code;
    }
    for (int i = 0; i < 3; i++)
        printf("%.4f %.4f %.4f\n", z[i][0], z[i][1], z[i][2]);
    return 0;
}
