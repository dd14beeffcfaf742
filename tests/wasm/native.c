/* native MODEL <CASES: runs the functions of wasm/attend_wasm.c as a program of this machine, and prints the bytes of all
 * that they compute; tests/wasm/module.mjs prints the same from the module. A case is a line:
 *     attention SCORE NORMALISER WINDOW POSITION HEADS QUERIES KEYS WIDTH
 *     translate BEAM LINE */
#include <stdio.h>

#include "../../wasm/attend_wasm.c"

static void print_bytes(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%02x", ((const unsigned char *)bytes)[i]);
    putchar('\n');
}

/* Numbers from -1 to 1 that are the same everywhere. */
static float *numbers(int count, int salt)
{
    float *made = malloc((size_t)count * sizeof *made);
    for (int i = 0; i < count; i++)
        made[i] = (float)((i * 7919 + salt * 104729) % 2003) / 1001.0f - 1.0f;
    return made;
}

static void attention(const char *line)
{
    char name[4][32];
    int heads, queries, keys, width;
    sscanf(line, "attention %31s %31s %31s %31s %d %d %d %d", name[0], name[1], name[2], name[3], &heads, &queries,
           &keys, &width);
    const int sizes[] = {queries * width, keys * width, keys * width, queries * width, heads * queries * keys};
    float *in[4], *out[5];
    for (int i = 0; i < 4; i++)
        in[i] = numbers(sizes[i], i + 1);
    for (int i = 0; i < 5; i++)
        out[i] = numbers(sizes[i], 0);
    if (!wasm_attention(name[0], name[1], name[2], name[3], heads, queries, keys, width, in[0], in[1], in[2], out[3],
                        out[4], in[3], out[0], out[1], out[2]))
        puts(wasm_error());
    for (int i = 0; i < 5; i++)
        print_bytes(out[i], (size_t)sizes[i] * sizeof(float));
    for (int i = 0; i < 4; i++)
        free(in[i]);
    for (int i = 0; i < 5; i++)
        free(out[i]);
}

static void translate(char *line)
{
    int beam, used;
    sscanf(line, "translate %d %n", &beam, &used);
    line[strcspn(line, "\n")] = '\0';
    puts(wasm_translate(line + used, beam) ? wasm_target() : wasm_error());
    const double score = wasm_score();
    print_bytes(&score, sizeof score);
    for (int i = 0; wasm_map(i); i++)
        print_bytes(wasm_map(i),
                    (size_t)(wasm_map_size(i, 2) * wasm_map_size(i, 3) * wasm_map_size(i, 4)) * sizeof(float));
}

int main(int argc, char **argv)
{
    static char line[4096], model[16 << 20];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    if (!wasm_load(model, fread(model, 1, sizeof model, file)))
        puts(wasm_error());
    while (fgets(line, sizeof line, stdin))
        if (strncmp(line, "attention", 9) == 0)
            attention(line);
        else
            translate(line);
    return fclose(file) != 0;
}
