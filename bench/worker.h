/* Rivals in other languages: each is a process that answers line by line (see torch_worker.py). */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "measure.h"
#include "model_case.h"

/* The case to run. Q = K unless decoding. */
typedef struct attention_case {
    int64_t B, H, Q, K, D;
    bool causal, backward;
    int64_t shaw;     /* Shaw's k; 0: no relative positions */
    int64_t additive; /* A of the additive score; 0: the scaled one */
} attention_case;

/* Convolutions with relu, such as "16x5s2,32x3", of pictures [pictures,height,width,channels]. */
typedef struct conv_case {
    const char *layers;
    int64_t pictures, height, width, channels;
    bool backward;
} conv_case;

/* Starts the workers that can be started; the others are named on stderr. Once, however many benches want them. */
void workers_start(void);
void workers_stop(void);

/* Every worker that can do the case joins the race, or only the one called `who` if that is not NULL. `checksum` and
 * `size` are of our result (see data.h); a worker whose own differs is left out and named. Released by workers_free. */
void workers_add(race *r, const char *who, const attention_case *what, double checksum, double size);
void workers_add_convolution(race *r, const conv_case *what, double checksum, double size);
/* The same for a training step of a model. A worker whose step does another number of flops is left out and named. */
void workers_add_training(race *r, const model_case *what, double flops);
/* The same for greedy decoding of the batch: each of a call's length x rows tokens. ONNX Runtime does the decoder's
 * steps alone, without the encoder and the search around them; the second is the same with weights of int8, the first
 * with float32. */
void workers_add_decoding(race *r, const model_case *what, double flops);
void workers_add_decoding_int8(race *r, const model_case *what, double flops);
/* Greedy decoding by CTranslate2. Folders for it are to be written where the first says, each name starting so and
 * ending in a dot and the type of its weights; NULL: it does not run. Such a folder also has the file `line`, a text.
 * workers_free removes it. CTranslate2 is left out and named if it does not decode so many tokens. */
const char *workers_export_folder(void);
void workers_add_exported(race *r, const char *folder, int64_t tokens);
/* Flops of one call of a contestant added so, as it counts them itself. */
double workers_flops(const contestant *c);
/* MB that the whole process of a contestant added here had at most, over two more calls; NAN if it does not report
 * it. */
double workers_peak(const contestant *c);
void workers_free(void);

#endif
