/* Which attention head a command uses: --head. */
#ifndef HEADS_H
#define HEADS_H

#include "console.h"

typedef struct cli_head {
    bool best;       /* to be chosen */
    int layer, head; /* 0: the mean of all */
    bool shift;      /* at the step that reads the word */
} cli_head;

/* The option --hard-decoding of the commands that decode. */
enum { HARD_DECODING_UNSET, HARD_DECODING_ARGMAX, HARD_DECODING_EXPECTATION };
extern const char *const hard_decodings[];
#define HARD_DECODING(options_)                                                                                        \
    {                                                                                                                  \
        AT_SETTING_CHOICE, "hard-decoding", "WAY", offsetof(options_, hard_decoding),                                  \
            .choices = hard_decodings,                                                                                 \
            .help =                                                                                                    \
                "hard attention trained with samples: argmax looks at the likeliest source unit, expectation at the "  \
                "mean of all by their weights (default: argmax)"                                                       \
    }
bool hard_decoding_set(int way, at_translator *translator, at_error *error);

/* `text` is average, L.H, or what `also` names: best, or all, which the caller has read; NULL: the head that training
 * guided, or the average. */
bool head_read(const char *text, const char *also, const at_translator *translator, cli_head *head, at_error *error);

/* What the best head is chosen by. */
typedef struct cli_head_data {
    const at_line_list *source, *target, *gold; /* gold: links, or NULL */
    bool by_unit, quiet;
    int64_t batch, max_source;
    bool shift; /* try each head also at the step that reads the word */
} cli_head_data;

/* The head with the lowest alignment error rate by the gold links. Without them the head that training guided, or else
 * the one whose two directions agree most: 2 * the pairs of a source and a target word that have each other's largest
 * weight / the words of both sides. With `shift` each head is tried twice, and none that training guided is taken for the
 * best. The choice is printed on stderr. */
bool head_choose(at_translator *translator, const cli_head_data *data, cli_head *head, at_error *error);

#endif
