#include "carnot/serving/tinker/weight_store.h"

#include <sys/stat.h>

#include <algorithm>

#include "carnot/core/run/checkpoint_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScheme = "tinker://", kTraining = "weights", kSampler = "sampler_weights";
constexpr std::size_t kLongestName = 128;

bool is_name(std::string_view text) {
  const auto known = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kLongestName && text.front() != '.' && std::ranges::all_of(text, known);
}

WeightsListing listing_of(const SavedWeights& weights, const fs::path& folder) {
  WeightsListing listing{.weights = weights};
  struct stat status{};
  if (::stat(folder.c_str(), &status) == 0) listing.saved_at = status.st_mtime;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder, ignored))
    listing.bytes += static_cast<std::int64_t>(file.file_size(ignored));
  return listing;
}

}  // namespace

std::string SavedWeights::checkpoint_id() const { return std::string(for_sampler ? kSampler : kTraining) + "/" + name; }

std::string SavedWeights::path() const { return std::string(kScheme) + model_id + "/" + checkpoint_id(); }

Result<SavedWeights> parse_weights_path(std::string_view path) {
  SavedWeights weights;
  const std::string_view rest = path.starts_with(kScheme) ? path.substr(kScheme.size()) : std::string_view();
  const auto first = rest.find('/'), last = rest.rfind('/');
  if (first != std::string_view::npos && first < last) {
    weights.model_id = rest.substr(0, first);
    weights.name = rest.substr(last + 1);
    const std::string_view kind = rest.substr(first + 1, last - first - 1);
    weights.for_sampler = kind == kSampler;
    if ((kind == kSampler || kind == kTraining) && is_name(weights.model_id) && is_name(weights.name)) return weights;
  }
  return Error{"'" + std::string(path.substr(0, 2 * kLongestName)) +
               "': expected tinker://MODEL/weights/NAME or tinker://MODEL/sampler_weights/NAME, with names of letters, "
               "digits and ._:-"};
}

fs::path WeightStore::folder_of(const SavedWeights& weights) const {
  return folder_ / weights.model_id / weights.checkpoint_id();
}

Status WeightStore::check(const SavedWeights& weights) const {
  std::error_code ignored;
  if (fs::is_directory(folder_of(weights), ignored)) return Done{};
  return Error{weights.path() + ": there are no such weights"};
}

Status WeightStore::save(const SavedWeights& weights, bool overwrite,
                         const std::function<Status(const fs::path&)>& fill) {
  CARNOT_RETURN_IF_ERROR(parse_weights_path(weights.path()));
  if (!overwrite && check(weights)) return Error{weights.path() + ": exists; overwrite=True replaces it"};
  const fs::path folder = folder_of(weights);
  std::error_code failed;
  fs::create_directories(folder.parent_path(), failed);
  if (failed) return Error{folder.parent_path().string() + ": cannot be made: " + failed.message()};
  return replace_folder(folder, fill);
}

std::vector<WeightsListing> WeightStore::list(const std::string& model_id) const {
  std::vector<WeightsListing> all;
  for (const bool for_sampler : {false, true}) {
    const SavedWeights any{.model_id = model_id, .for_sampler = for_sampler};
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_of(any).parent_path(), ignored)) {
      SavedWeights weights = any;
      weights.name = entry.path().filename().string();
      if (is_name(weights.name)) all.push_back(listing_of(weights, entry.path()));
    }
  }
  std::ranges::stable_sort(all, {}, &WeightsListing::saved_at);
  return all;
}

Status WeightStore::remove(const SavedWeights& weights) {
  CARNOT_RETURN_IF_ERROR(check(weights));
  std::error_code failed;
  fs::remove_all(folder_of(weights), failed);
  if (failed) return Error{weights.path() + ": cannot be removed: " + failed.message()};
  return Done{};
}

}  // namespace carnot
