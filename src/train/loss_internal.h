/* The loss of a batch and its gradients: cross-entropy by teacher forcing, REINFORCE for hard attention, and the
 * cross-entropy of known alignments. */
#ifndef AT_LOSS_INTERNAL_H
#define AT_LOSS_INTERNAL_H

#include "models/pictures.h"
#include "text/corpus.h"

typedef struct at_loss_options {
    double label_smoothing;
    double word_dropout;          /* probability that a previous target token is unknown to the decoder */
    double r_drop;                /* factor of the divergence of two passes with different dropout; 0: one pass */
    double reinforce, entropy;    /* hard attention: the factors lambda_r and lambda_e of its two terms */
    double baseline;              /* hard attention: the decay of its moving average */
    double expectation;           /* hard attention: the share of batches with the expected context */
    const struct at_guide *guide; /* known alignments for the model's guided head; NULL: none */
    double guided_weight;         /* factor of their cross-entropy */
    double doubly_stochastic; /* factor of the penalty that asks for as much attention on every source unit; 0: none */
} at_loss_options;

typedef struct at_loss {
    const at_model *model;
    at_arena *arena;             /* of the tape; reset by every call */
    at_rng rng;                  /* of dropout and of hard attention's samples */
    const at_pictures *pictures; /* of the sources; NULL: they are text */
    double augment, elastic;     /* how much pictures are changed, with `learn` */
    at_probe *probe;             /* NULL, or variables whose gradients are wanted, also without `learn` */
    const at_watch *watch;       /* of the backward pass with `learn`; NULL: none */
    at_loss_options options;
    int64_t correct; /* of the last batch without `learn`: target tokens that had the largest logit */
    double baseline; /* hard attention: the moving average b of log p(y|s) of a sentence; every batch updates it */
} at_loss;

/* The summed cross-entropy of a batch in *sum. With `learn`, dropout and the options apply and the gradients are added
 * to those of the model's parameters; without, the loss changes nothing but the arena and `correct`. */
bool at_batch_loss(at_loss *loss, const at_batch *batch, bool learn, double *sum, at_error *error);

#endif
