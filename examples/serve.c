/* A server in a program of your own: translates by the interface of LibreTranslate until the standard input ends.
 *
 *     cc serve.c $(pkg-config --cflags --libs attend) -o serve
 *     ./serve de-en.safetensors de en
 *     curl -d source=de -d target=en -d q='Guten Tag' http://127.0.0.1:PORT/translate
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attend_server.h>

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: serve MODEL SOURCE TARGET\n");
        return AT_USAGE;
    }
    at_error error;
    memset(&error, 0, sizeof error);
    at_server_model model;
    model.path = argv[1];
    model.source = argv[2];
    model.target = argv[3];

    at_server_settings settings;
    memset(&settings, 0, sizeof settings); /* 0 means the default */
    settings.models = &model;
    settings.model_count = 1;
    settings.port = -1; /* any free one */
    settings.beam = 4;
    at_server *server = at_server_new(&settings, &error);
    if (server) {
        printf("http://127.0.0.1:%d/translate\n", at_server_port(server));
        fflush(stdout);
        while (getchar() != EOF) /* the program's own work */
            ;
        at_server_drain(server, 30);
        at_server_free(server);
    }
    if (error.code != AT_OK)
        fprintf(stderr, "serve: %s\n", error.text);
    return error.code == AT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
