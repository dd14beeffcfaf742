/* Training from a program: settings by the names of `attend train`, progress by a callback, Ctrl-C saves and ends.
 *
 *     cc train.c $(pkg-config --cflags --libs attend) -o train
 *     ./train SOURCE TARGET MODEL [NAME=VALUE...]          as in: ./train train.en train.de en-de.safetensors epochs=10
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <attend.h>

static volatile int stop;

static void interrupted(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

static void print_news(void *context, const at_train_news *news)
{
    (void)context;
    if (news->what == AT_NEWS_UPDATE)
        printf("epoch %lld, update %lld: loss %.3f per token\n", (long long)news->epoch, (long long)news->update,
               news->cost);
    else if (news->what == AT_NEWS_NOTE)
        printf("%s\n", news->text);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: train SOURCE TARGET MODEL [NAME=VALUE...]\n");
        return AT_USAGE;
    }
    at_error error;
    memset(&error, 0, sizeof error);
    at_training *training = at_training_new(&error);
    at_training_set(training, "source", argv[1], &error);
    at_training_set(training, "target", argv[2], &error);
    at_training_set(training, "output", argv[3], &error);
    for (int i = 4; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals)
            *equals = '\0';
        at_training_set(training, argv[i], equals ? equals + 1 : "true", &error);
    }

    at_train_result result;
    memset(&result, 0, sizeof result);
    signal(SIGINT, interrupted);
    if (at_training_run(training, print_news, NULL, &stop, &result, &error))
        printf("%lld updates of %lld parameters%s\n", (long long)result.updates, (long long)result.parameters,
               !result.interrupted ? ""
               : result.saved < 0  ? ", interrupted before the first save"
                                   : ", interrupted: set resume=true to continue");
    else
        fprintf(stderr, "train: %s\n", error.text);
    at_training_free(training);
    return error.code;
}
