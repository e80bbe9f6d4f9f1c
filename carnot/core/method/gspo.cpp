// method/gspo.cpp -- Group Sequence Policy Optimization, arXiv:2507.18071
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kGspoPresets[] = {
    {Preset::Paper, "one ratio per sequence, clip 3e-4 and 4e-4, sequence_mean_token_mean, no dual clip"},
};

class Gspo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kGspoPresets);
    sequence_field(keys.visit, sequence_);
    keys.add(base_);
  }

  void compose(Method& method) const override {
    start_group_base(method, base_);
    method.objective = {.ratio = RatioLevel::Sequence, .sequence = sequence_, .clip_low = 3e-4, .clip_high = 4e-4};
    mean_over_sequences(method.objective);
  }

  SequenceUnit sequence_ = SequenceUnit::Trajectory;
  GroupBaseOptions base_{};
};

}  // namespace

std::unique_ptr<MethodOptions> gspo() { return std::make_unique<Gspo>(); }

}  // namespace carnot
