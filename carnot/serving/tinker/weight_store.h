// serving/tinker/weight_store.h -- the folder of saved weights, and what they are called: tinker://MODEL/weights/NAME
// (with the optimizer's state) and tinker://MODEL/sampler_weights/NAME.
//
// Weights are there whole or not at all, and on the disk once save() has returned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct SavedWeights {
  std::string model_id{};
  bool for_sampler = false;
  std::string name{};

  /// "weights/NAME", as the client names it within its model.
  std::string checkpoint_id() const;
  /// "tinker://MODEL/weights/NAME"
  std::string path() const;
};

/// The error says what a path looks like. Names have up to 128 letters, digits and ._:- and do not begin with a dot.
Result<SavedWeights> parse_weights_path(std::string_view path);

/// What is listed of saved weights.
struct WeightsListing {
  SavedWeights weights{};
  std::int64_t bytes = 0;
  std::int64_t saved_at = 0;  ///< seconds since 1970
};

class WeightStore {
 public:
  /// The folder is made when it is needed.
  explicit WeightStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_of(const SavedWeights& weights) const;
  /// An error that names the path if they are not there.
  Status check(const SavedWeights& weights) const;

  /// Lets `fill` write into an empty folder. An error if they are there already, unless `overwrite`.
  Status save(const SavedWeights& weights, bool overwrite,
              const std::function<Status(const std::filesystem::path&)>& fill);

  /// A model's, by time.
  std::vector<WeightsListing> list(const std::string& model_id) const;
  Status remove(const SavedWeights& weights);

 private:
  std::filesystem::path folder_;
};

}  // namespace carnot
