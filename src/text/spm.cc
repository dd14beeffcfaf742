#include "text/spm_internal.h"

#include <atomic>
#include <climits>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <string>
#include <string_view>
#include <unordered_map>

/* In the library but in none of its installed headers; it would write to stderr otherwise. */
namespace sentencepiece::logging
{
void SetMinLogLevel(int level);
}

struct at_spm {
    sentencepiece::SentencePieceProcessor processor;
};

namespace
{

enum { SILENT = 3, LONGEST = 4000 /* bytes of a training line; longer ones are cut at blanks */ };

void be_silent()
{
    static std::once_flag once;
    std::call_once(once, [] { sentencepiece::logging::SetMinLogLevel(SILENT); });
}

/* The message of a status without the source file and line that it begins with. */
const char *message_of(const sentencepiece::util::Status &status)
{
    const char *text = status.error_message(), *prefix_end = strstr(text, "] ");
    return prefix_end ? prefix_end + 2 : text;
}

void no_memory(at_error *error)
{
    at_no_memory(error, "a SentencePiece model");
}

/* ---- Out of memory ---------------------------------------------------------------------------------------------- */

/* SentencePiece and its protobuf do not survive an exception of operator new: destructors of messages that are not yet
 * complete crash or abort. So inside of a call none is thrown: the handler of operator new jumps back to the call, and the
 * memory that SentencePiece took during the call is lost. */
struct Call {
    std::jmp_buf out;
};
thread_local Call *this_call = nullptr;

std::mutex handler_lock;
int calls = 0;                                 /* in all threads; the handler is installed while there are any */
std::atomic<std::new_handler> program_handler; /* of everything else */

/* Training has threads of its own, which nothing can jump out of. They take little; the reserve lets them end. */
enum { RESERVE = 1 << 20 };
std::atomic<void *> reserve;

void on_no_memory()
{
    if (this_call)
        std::longjmp(this_call->out, 1);
    if (void *held = reserve.exchange(nullptr)) {
        free(held);
        return; /* operator new tries again */
    }
    std::new_handler handler = program_handler;
    if (!handler)
        throw std::bad_alloc();
    handler();
}

void begin_call(Call *call)
{
    std::lock_guard<std::mutex> hold(handler_lock);
    if (calls++ == 0)
        program_handler = std::set_new_handler(on_no_memory);
    this_call = call;
}

void end_call()
{
    std::lock_guard<std::mutex> hold(handler_lock);
    this_call = nullptr;
    if (--calls == 0 && std::get_new_handler() == on_no_memory)
        std::set_new_handler(program_handler);
}

/* Calls the function; false if out of memory. Not inlined, so that after a jump the caller's variables are in memory. */
template <typename Function> __attribute__((noinline)) bool survive(Function function)
{
    Call call;
    begin_call(&call);
    bool done = setjmp(call.out) == 0;
    if (done) {
        try {
            function();
        } catch (...) {
            done = false;
        }
    }
    end_call();
    return done;
}

/* Lines, one after the other. */
class Lines : public sentencepiece::SentenceIterator
{
  public:
    Lines(const char *text, size_t size) : at_(text), end_(text + size)
    {
        Next();
    }
    bool done() const override
    {
        return done_;
    }
    const std::string &value() const override
    {
        return line_;
    }
    sentencepiece::util::Status status() const override
    {
        return {};
    }

    void Next() override
    {
        do {
            done_ = at_ == end_;
            if (done_)
                return;
            const char *stop = static_cast<const char *>(memchr(at_, '\n', end_ - at_));
            stop = stop ? stop : end_;
            const char *next = stop < end_ ? stop + 1 : end_;
            if (stop - at_ > LONGEST) {
                stop = next = cut(at_ + LONGEST);
            }
            line_.assign(at_, stop - at_);
            at_ = next;
        } while (line_.find_first_not_of(' ') == std::string::npos); /* the trainer fails on empty lines */
    }

  private:
    /* The last blank before `stop`, or at least a boundary of code points. */
    const char *cut(const char *stop) const
    {
        for (const char *blank = stop; blank > at_; blank--)
            if (*blank == ' ')
                return blank;
        while ((static_cast<unsigned char>(*stop) & 0xc0) == 0x80)
            stop--;
        return stop;
    }

    const char *at_, *end_;
    std::string line_;
    bool done_ = false;
};

/* Why a model of so many pieces cannot be trained. */
void refuse(const char *why, int64_t pieces, at_error *error)
{
    const char *most = strstr(why, "value <= "), *least = strstr(why, " vs ");
    long long number;
    if (most && sscanf(most, "value <= %lld", &number) == 1)
        at_fail(error, AT_USAGE, "the text allows %lld pieces at most, so 'spm:%lld' is too many", number,
                static_cast<long long>(pieces));
    else if (least && sscanf(least, " vs %lld", &number) == 1)
        at_fail(error, AT_USAGE,
                "the text has so many different characters that 'spm:%lld' is too small; it needs at least %lld",
                static_cast<long long>(pieces), number);
    else
        at_fail(error, AT_FAILED, "SentencePiece cannot train a model of %lld pieces on the text: %s",
                static_cast<long long>(pieces), why);
}

std::unordered_map<std::string, std::string> trainer_settings(int64_t pieces, bool bpe, double coverage, size_t size)
{
    char share[32];
    snprintf(share, sizeof share, "%.6f", coverage);
    return {
        {"model_type", bpe ? "bpe" : "unigram"},
        {"vocab_size", std::to_string(pieces)},
        {"character_coverage", share},
        {"normalization_rule_name", "identity"}, /* ours is applied before, and is an option */
        {"num_threads", "1"},                    /* sums of several threads would differ with their number */
        {"shuffle_input_sentence", "false"},
        {"unk_id", "0"}, /* begin, end and padding are ours */
        {"bos_id", "-1"},
        {"eos_id", "-1"},
        {"pad_id", "-1"},
        {"train_extremely_large_corpus", size > INT_MAX / 2 ? "true" : "false"},
        {"minloglevel", std::to_string(SILENT)},
    };
}

} // namespace

extern "C" at_spm *at_spm_load(const unsigned char *bytes, size_t size, at_error *error)
{
    if (error->code != AT_OK)
        return nullptr;
    at_spm *spm = nullptr;
    bool loaded = false;
    const bool done = survive([&] {
        be_silent();
        spm = new at_spm;
        auto status = spm->processor.LoadFromSerializedProto({reinterpret_cast<const char *>(bytes), size});
        loaded = status.ok();
        if (!loaded)
            at_fail(error, AT_FORMAT, "SentencePiece cannot use this model: %s", message_of(status));
    });
    if (!done)
        no_memory(error); /* and what is there of it cannot be deleted */
    else if (!loaded)
        delete spm;
    return loaded ? spm : nullptr;
}

extern "C" void at_spm_free(at_spm *spm)
{
    delete spm;
}

extern "C" bool at_spm_encode(const at_spm *spm, const char *line, size_t size, at_spm_on_piece *on_piece,
                              void *context)
{
    bool taken = false;
    return survive([&] {
               sentencepiece::ImmutableSentencePieceText text;
               auto status = spm->processor.Encode(std::string_view(line, size), text.mutable_proto());
               if (!status.ok()) {
                   at_spm_found all = {spm->processor.unk_id(), 0, static_cast<int32_t>(size), line, size};
                   taken = on_piece(context, &all);
                   return;
               }
               taken = true;
               for (size_t i = 0, count = text.pieces_size(); taken && i < count; i++) {
                   auto piece = text.pieces(static_cast<int>(i));
                   at_spm_found found = {static_cast<int32_t>(piece.id()), static_cast<int32_t>(piece.begin()),
                                         static_cast<int32_t>(piece.end()), piece.piece().data(), piece.piece().size()};
                   taken = on_piece(context, &found);
               }
           }) &&
           taken;
}

extern "C" unsigned char *at_spm_train(const char *lines, size_t size, int64_t pieces, bool bpe, double coverage,
                                       size_t *model_size, at_error *error)
{
    if (error->code != AT_OK)
        return nullptr;
    unsigned char *bytes = nullptr;
    free(reserve.exchange(malloc(RESERVE)));
    const bool done = survive([&] {
        Lines iterator(lines, size);
        std::string model;
        auto status = sentencepiece::SentencePieceTrainer::Train(trainer_settings(pieces, bpe, coverage, size),
                                                                 &iterator, &model);
        if (!status.ok()) {
            refuse(message_of(status), pieces, error);
            return;
        }
        bytes = static_cast<unsigned char *>(malloc(model.size() + 1));
        if (!bytes)
            throw std::bad_alloc();
        memcpy(bytes, model.data(), model.size());
        *model_size = model.size();
    });
    free(reserve.exchange(nullptr));
    if (!done)
        no_memory(error);
    return bytes;
}
