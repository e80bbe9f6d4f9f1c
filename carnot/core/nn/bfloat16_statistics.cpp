#include "carnot/core/nn/bfloat16_statistics.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <vector>

#include "carnot/core/nn/logit_segments.h"
#include "carnot/core/nn/own_statistics.h"
#include "carnot/core/nn/products.h"
#include "carnot/core/nn/weight_gradients.h"

namespace carnot {
namespace {

using kernel::BFloat16;

// Logits of a block take 16 MiB, their gradients in bfloat16 8 MiB, and as much again to transpose them.
constexpr std::int64_t kStripColumns = 2048;
constexpr std::int64_t kBlockRows = 2048;
constexpr std::int64_t kStripPadding = 32;  // rows a multiple of a page apart would compete for few sets of the cache

/// Rows whose segments are kept at a time if their logits are not: 14 MiB for 151,936 tokens.
constexpr std::int64_t kRowsOfSegments = 4096;

class BFloat16Statistics {
 public:
  BFloat16Statistics(const StatisticsInputs& inputs, StatisticsOutputs& out)
      : inputs_(inputs),
        out_(out),
        width_(inputs.hidden_TH.size(1)),
        vocabulary_(inputs.head_VH.size(0)),
        strip_(std::min(inputs.tokens(), inputs.removed > 0 ? inputs.strip_rows() : kRowsOfSegments)) {
    segments_.resize(static_cast<std::size_t>(strip_ * kernel::segments_of(vocabulary_)));
    inverse_temperature_.assign(static_cast<std::size_t>(strip_), static_cast<float>(1 / inputs.temperature));
    if (inputs.removed > 0) logits_ = at::empty({strip_, vocabulary_}, computed_like<BFloat16>(inputs.hidden_TH));
  }

  void run() {
    const Packed<BFloat16>& head = packed_head<BFloat16>(inputs_, memory_of_head_);
    for (first_ = 0; first_ < inputs_.tokens(); first_ += strip_) {
      const std::int64_t rows = std::min(strip_, inputs_.tokens() - first_);
      const auto count = static_cast<std::size_t>(rows);
      float* logprob = out_.statistics.logprob_T.data_ptr<float>() + first_;
      measure_segments({data_of<BFloat16>(inputs_.hidden_TH) + first_ * width_, rows, width_}, head,
                       {.inverse_temperature_T = std::span(inverse_temperature_).first(count),
                        .logits_TV = data_or_null<float>(logits_),
                        .segments = std::span(segments_).first(count * segments_of_row()),
                        .targets_T = inputs_.targets_T.data_ptr<std::int64_t>() + first_,
                        .target_logits_T = logprob});
      for_logit_rows(rows, [&](std::int64_t r) { finish(r); });
    }
  }

 private:
  std::size_t segments_of_row() const { return static_cast<std::size_t>(kernel::segments_of(vocabulary_)); }

  /// Row r of the strip, whose log-probability is so far the target's logit.
  void finish(std::int64_t r) {
    const std::int64_t t = first_ + r;
    const kernel::RowStatistics row = kernel::statistics_of(
        std::span(segments_).subspan(static_cast<std::size_t>(r) * segments_of_row(), segments_of_row()));
    out_.statistics.logsumexp_T.data_ptr<float>()[t] = row.logsumexp;
    out_.statistics.entropy_T.data_ptr<float>()[t] = row.entropy;
    out_.statistics.logprob_T.data_ptr<float>()[t] -= row.logsumexp;
    if (inputs_.removed > 0) measure_kept(logits_.data_ptr<float>() + r * vocabulary_, inputs_, t, out_);
  }

  const StatisticsInputs& inputs_;
  StatisticsOutputs& out_;
  std::int64_t width_, vocabulary_, strip_;
  std::int64_t first_ = 0;
  std::vector<kernel::SegmentStatistics<float>> segments_;
  std::vector<float> inverse_temperature_;
  at::Tensor logits_;
  Packed<BFloat16> memory_of_head_;
};

class BFloat16StatisticsBackward {
 public:
  BFloat16StatisticsBackward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                             const StatisticsGradients& gradients)
      : inputs_(inputs),
        of_token_(saved, gradients),
        width_(inputs.hidden_TH.size(1)),
        stride_(std::min(kStripColumns, inputs.head_VH.size(0)) + kStripPadding) {
    if (inputs.packed != nullptr) head_ = &inputs.packed->cache().for_product<BFloat16>({&inputs.head_VH, 1});
    const std::int64_t rows = std::min(kBlockRows, inputs.tokens());
    logits_ = at::empty({rows, stride_}, computed_like<BFloat16>(inputs.hidden_TH));
    dlogits_ = at::empty({rows, stride_}, inputs.hidden_TH.options().requires_grad(false));
    dhidden_ = at::zeros({inputs.tokens(), width_}, logits_.options());
    if (gradients.of_head) begin_head_gradient(rows);
  }

  InputGradients run() {
    pack_hidden();
    const std::int64_t vocabulary = inputs_.head_VH.size(0);
    for (begin_ = 0; begin_ < vocabulary; begin_ += kStripColumns) {
      columns_ = std::min(kStripColumns, vocabulary - begin_);
      const auto rows = packed_rows<BFloat16>(data_of<BFloat16>(inputs_.head_VH) + begin_ * width_, columns_, width_);
      if (inputs_.packed != nullptr)
        for_logits_ = head_->view_of_columns(begin_, columns_);
      else
        for_logits_.pack_transposed({&rows, 1}, width_);
      for_hidden_.pack({&rows, 1}, width_);
      for (std::int64_t first = 0; first < inputs_.tokens(); first += kBlockRows)
        block(first, std::min(kBlockRows, inputs_.tokens() - first));
    }
    return {dhidden_.to(at::kBFloat16), adds_to_head_ ? at::Tensor() : begin_gradient(inputs_.head_VH, dhead_)};
  }

 private:
  void begin_head_gradient(std::int64_t rows) {
    dhead_ = gradient_to_add_to(inputs_.head_VH);
    adds_to_head_ = dhead_.defined();
    if (adds_to_head_) return;
    // The first block of rows is written, later ones are added.
    dhead_ = at::empty({inputs_.head_VH.size(0), width_}, logits_.options());
    if (rows == 0) dhead_.zero_();
  }

  const BFloat16* hidden_row(std::int64_t t) const { return data_of<BFloat16>(inputs_.hidden_TH) + t * width_; }

  /// The right-hand side of the products for the head's gradient, block by block.
  void pack_hidden() {
    if (!dhead_.defined()) return;
    for (std::int64_t first = 0; first < inputs_.tokens(); first += kBlockRows) {
      const auto rows =
          packed_rows<BFloat16>(hidden_row(first), std::min(kBlockRows, inputs_.tokens() - first), width_);
      packed_hidden_.emplace_back().pack({&rows, 1}, width_);
    }
  }

  /// Tokens [first, first + rows) with the columns of this strip.
  void block(std::int64_t first, std::int64_t rows) {
    multiply(MatrixRows<BFloat16>{hidden_row(first), rows, width_}, for_logits_,
             MatrixInto<float>{data_of<float>(logits_), stride_});
    for_logit_rows(rows, [&](std::int64_t r) { row_gradient(first + r, r); });
    const MatrixRows<BFloat16> gradients{data_of<BFloat16>(dlogits_), rows, stride_};
    multiply(gradients, for_hidden_, MatrixInto<float>{data_of<float>(dhidden_) + first * width_, width_, true});
    if (dhead_.defined())
      multiply_transposed(
          gradients, columns_, packed_hidden_[first / kBlockRows],
          MatrixInto<float>{data_of<float>(dhead_) + begin_ * width_, width_, adds_to_head_ || first > 0});
  }

  /// For row r, which belongs to token t.
  void row_gradient(std::int64_t t, std::int64_t r) {
    const auto inverse = static_cast<float>(1 / inputs_.temperature);
    float* row = data_of<float>(logits_) + r * stride_;
    kernel::KeptGradient<float> kept{};
    if (inputs_.removed > 0) {
      kept = of_token_.kept(t);
      kept.cut.tie_limit -= begin_;
    }
    kernel::kernel_table<float>().row_statistics_backward(columns_, inverse, row, of_token_.row(t),
                                                          inputs_.removed > 0 ? &kept : nullptr);
    const std::int64_t target = inputs_.targets_T.data_ptr<std::int64_t>()[t] - begin_;
    if (target >= 0 && target < columns_) row[target] += of_token_.g_logprob[t] * inverse;
    kernel::storage_table<BFloat16>().round(columns_, row, data_of<BFloat16>(dlogits_) + r * stride_);
  }

  const StatisticsInputs& inputs_;
  TokenGradients<float> of_token_;
  std::int64_t width_, stride_;
  std::int64_t begin_ = 0, columns_ = 0;  ///< of the strip
  bool adds_to_head_ = false;
  at::Tensor logits_, dlogits_, dhidden_, dhead_;
  const Packed<BFloat16>* head_ = nullptr;  ///< all of it, if kept
  Packed<BFloat16> for_logits_, for_hidden_;
  std::vector<Packed<BFloat16>> packed_hidden_;
};

}  // namespace

void bfloat16_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out) {
  BFloat16Statistics(inputs, out).run();
}

InputGradients bfloat16_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                            const StatisticsGradients& gradients) {
  return BFloat16StatisticsBackward(inputs, saved, gradients).run();
}

}  // namespace carnot
