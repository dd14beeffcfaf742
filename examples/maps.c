/* All attention weights of one translation: for every layer and head of the encoder, the decoder and between them, the
 * column with the largest weight of each row.
 *
 *     cc maps.c $(pkg-config --cflags --libs attend) -o maps
 *     ./maps de-en.safetensors "ich sehe das haus"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attend.h>

static const char *const kinds[] = {"encoder", "decoder", "cross"}; /* as at_attention_kind counts them */

static void print_head(const at_map *map, int head)
{
    const float *weights = map->weights + head * map->rows * map->columns; /* [rows, columns] */
    printf("%s %d.%d", kinds[map->kind], map->layer, head + 1);
    for (int64_t i = 0; i < map->rows; i++) {
        const float *row = weights + i * map->columns;
        int64_t most = 0;
        for (int64_t j = 1; j < map->columns; j++)
            if (row[j] > row[most])
                most = j;
        printf("  %s->%s %.2f", map->row_names[i], map->column_names[most], (double)row[most]);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: maps MODEL LINE\n");
        return AT_USAGE;
    }
    at_error error;
    memset(&error, 0, sizeof error);
    at_search_settings settings;
    memset(&settings, 0, sizeof settings);
    at_line source;
    source.text = argv[2];
    source.size = strlen(argv[2]);

    at_translator *translator = at_translator_load(argv[1], &error);
    at_maps *maps = translator ? at_maps_new(translator, &settings, &source, NULL, &error) : NULL;
    at_translator_free(translator); /* the maps do not need it any more */
    if (maps)
        printf("%s\n", at_maps_target(maps));
    const at_map *map;
    for (int i = 0; maps && (map = at_maps_at(maps, i)); i++)
        for (int head = 0; head < map->heads; head++)
            print_head(map, head);
    at_maps_free(maps);
    if (error.code != AT_OK)
        fprintf(stderr, "maps: %s\n", error.text);
    return error.code == AT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
