#include "carnot/distributed/sharded_adamw.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "carnot/base/check.h"
#include "carnot/distributed/in_flight.h"
#include "carnot/optim/chunks.h"
#include "carnot/optim/norm.h"

namespace carnot {
namespace {

constexpr const char* kFirstMoment = ".first_moment";
constexpr const char* kSecondMoment = ".second_moment";
constexpr const char* kMaster = ".master";

at::Tensor part_of(const at::Tensor& tensor, const IndexRange& range) {
  return tensor.view(-1).slice(0, range.begin, range.end);
}

std::string bytes_of_numbers(const std::vector<double>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}

std::vector<double> numbers_of_bytes(const std::string& bytes) {
  CARNOT_CHECK_EQ(bytes.size() % sizeof(double), std::size_t{0});
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

bool is_wide(at::ScalarType type) { return type == at::kFloat || type == at::kDouble; }

}  // namespace

ShardedAdamW::ShardedAdamW(Collectives& collectives, GradientExchange& exchange, Parameters parameters,
                           const AdamWOptions& options)
    : collectives_(collectives),
      exchange_(exchange),
      parameters_(std::move(parameters)),
      options_(options),
      places_(own_places()),
      own_(own_parts(), options) {
  CARNOT_CHECK_EQ(parameters_.size(), exchange_.layout().num_tensors());
}

std::vector<ShardedAdamW::Place> ShardedAdamW::own_places() const {
  const FlatLayout& layout = exchange_.layout();
  const int rank = collectives_.rank();
  std::vector<Place> places;
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    const std::int64_t before = layout.place_in_slice(bucket, rank).begin;
    for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
      places.push_back({.parameter = piece.tensor,
                        .in_parameter = piece.in_tensor,
                        .in_slice = {.begin = before + piece.in_range.begin, .end = before + piece.in_range.end}});
  }
  return places;
}

std::vector<WeightPart> ShardedAdamW::own_parts() const {
  const at::NoGradGuard no_grad;
  std::vector<WeightPart> parts;
  for (const Place& place : places_) {
    const auto& [name, tensor] = parameters_[place.parameter];
    parts.push_back({.name = name,
                     .values = part_of(tensor.detach(), place.in_parameter),
                     .first = place.in_parameter.begin,
                     .decays = tensor.dim() >= 2});
  }
  return parts;
}

StepReport ShardedAdamW::step(double learning_rate) {
  const std::string what = " of update " + std::to_string(num_updates() + 1);
  const at::Tensor slice = exchange_.finish();
  std::vector<at::Tensor> gradients;
  for (const Place& place : places_) gradients.push_back(part_of(slice, place.in_slice));
  const double norm = global_norm(gradients, "gradient norm" + what);
  for (std::size_t i = 0; i < places_.size(); ++i)
    gradients[i] = gradients[i].to(parameters_[places_[i].parameter].second.device());
  const StepReport report = own_.step(learning_rate, gradients, norm);
  if (!report.skipped) gather_weights("weights" + what);
  return report;
}

double ShardedAdamW::global_norm(const std::vector<at::Tensor>& gradients, const std::string& what) {
  const FlatLayout& layout = exchange_.layout();
  std::vector<double> own;
  for (const at::Tensor& gradient : gradients) {
    const std::vector<double> sums = chunk_sums_of_squares(gradient);
    own.insert(own.end(), sums.begin(), sums.end());
  }
  std::vector<std::vector<double>> of_rank;
  for (const std::string& bytes : collectives_.gather(bytes_of_numbers(own), what))
    of_rank.push_back(numbers_of_bytes(bytes));
  std::vector<double> all;  // in the order of the row
  std::vector<std::size_t> taken(of_rank.size(), 0);
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket)
    for (int rank = 0; rank < layout.num_ranks(); ++rank)
      for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
        for (std::int64_t chunk = 0; chunk < num_chunks(piece.in_tensor.size()); ++chunk)
          all.push_back(of_rank[rank].at(taken[rank]++));
  std::vector<std::int64_t> sizes;
  for (const auto& parameter : parameters_) sizes.push_back(parameter.second.numel());
  return norm_of_chunk_sums(all, sizes);
}

void ShardedAdamW::gather_buckets(const std::function<at::Tensor(int)>& part,
                                  const std::function<void(int, const at::Tensor&)>& take, const std::string& what) {
  const FlatLayout& layout = exchange_.layout();
  InFlight in_flight;
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    in_flight.make_room();
    in_flight.add(collectives_.begin_gather(part(bucket), layout.part_sizes(bucket), what),
                  [&take, bucket](const at::Tensor& gathered) { take(bucket, gathered); });
  }
  in_flight.finish();
}

void ShardedAdamW::gather_weights(const std::string& what) {
  if (collectives_.size() == 1) return;
  const at::NoGradGuard no_grad;
  const FlatLayout& layout = exchange_.layout();
  const at::ScalarType first = parameters_.front().second.scalar_type();
  const bool alike = std::all_of(parameters_.begin(), parameters_.end(),
                                 [&](const auto& parameter) { return parameter.second.scalar_type() == first; });
  const at::ScalarType type = alike ? first : at::kFloat;
  const auto own_part = [&](int bucket) {
    const IndexRange place = layout.part(bucket, collectives_.rank());
    at::Tensor numbers = at::empty({place.size()}, type);
    for (const TensorPiece& piece : layout.pieces(place))
      part_of(numbers, piece.in_range).copy_(part_of(parameters_[piece.tensor].second, piece.in_tensor));
    return numbers;
  };
  const auto take = [&](int bucket, const at::Tensor& gathered) {
    for (int rank = 0; rank < collectives_.size(); ++rank)
      for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
        if (rank != collectives_.rank())
          part_of(parameters_[piece.tensor].second.detach(), piece.in_tensor)
              .copy_(part_of(gathered[rank], piece.in_range));
  };
  gather_buckets(own_part, take, what);
}

std::vector<ShardedAdamW::Kind> ShardedAdamW::kinds() const {
  const bool doubles = parameters_.front().second.scalar_type() == at::kDouble;
  const at::ScalarType computed = doubles ? at::kDouble : at::kFloat;
  const at::ScalarType moments = options_.moments == "bfloat16" ? at::kBFloat16 : computed;
  return {{kFirstMoment, moments}, {kSecondMoment, moments}, {kMaster, at::kFloat}};
}

bool ShardedAdamW::has_kind(const at::Tensor& parameter, const Kind& kind) const {
  return kind.suffix != kMaster || (options_.master_weights && !is_wide(parameter.scalar_type()));
}

at::Tensor ShardedAdamW::gather_kind(const Kind& kind) {
  const FlatLayout& layout = exchange_.layout();
  const int own_rank = collectives_.rank();
  const Parameters state = own_.state();
  const std::map<std::string, at::Tensor> own(state.begin(), state.end());
  at::Tensor row;
  if (own_rank == 0) row = at::empty({layout.size()}, kind.type);
  const auto own_part = [&](int bucket) {
    const IndexRange place = layout.part(bucket, own_rank);
    at::Tensor numbers = at::zeros({place.size()}, kind.type);
    for (const TensorPiece& piece : layout.pieces(place))
      if (const auto found =
              own.find(name_of_part(parameters_[piece.tensor].first, piece.in_tensor.begin) + kind.suffix);
          found != own.end())
        part_of(numbers, piece.in_range).copy_(found->second);
    return numbers;
  };
  const auto take = [&](int bucket, const at::Tensor& gathered) {
    for (int rank = 0; own_rank == 0 && rank < collectives_.size(); ++rank) {
      const IndexRange place = layout.part(bucket, rank);
      part_of(row, place).copy_(gathered[rank].slice(0, 0, place.size()));
    }
  };
  gather_buckets(own_part, take, "the optimizer's" + kind.suffix);
  return row;
}

Optimizer::Parameters ShardedAdamW::state() {
  const std::vector<Kind> all = kinds();
  std::vector<at::Tensor> rows(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool wanted = std::any_of(parameters_.begin(), parameters_.end(),
                                    [&](const auto& parameter) { return has_kind(parameter.second, all[k]); });
    if (!wanted) continue;
    rows[k] = gather_kind(all[k]);
  }
  Parameters tensors;
  if (collectives_.rank() != 0) return tensors;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const auto& [name, tensor] = parameters_[p];
    for (std::size_t k = 0; k < all.size(); ++k)
      if (has_kind(tensor, all[k]))
        tensors.emplace_back(name + all[k].suffix, part_of(rows[k], exchange_.layout().tensor(p)).view(tensor.sizes()));
  }
  return tensors;
}

Status ShardedAdamW::load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) {
  Parameters expected;
  for (const auto& [name, tensor] : parameters_)
    for (const Kind& kind : kinds())
      if (has_kind(tensor, kind))
        expected.emplace_back(name + kind.suffix,
                              at::empty(tensor.sizes(), at::TensorOptions().dtype(kind.type).device(at::kMeta)));
  if (const Status status = check_optimizer_state(expected, tensors); !status) return status;
  const std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  Parameters own;
  for (const Place& place : places_) {
    const auto& [name, tensor] = parameters_[place.parameter];
    for (const Kind& kind : kinds())
      if (has_kind(tensor, kind))
        own.emplace_back(name_of_part(name, place.in_parameter.begin) + kind.suffix,
                         part_of(given.at(name + kind.suffix).contiguous(), place.in_parameter));
  }
  return own_.load_state(own, num_updates, num_skipped);
}

}  // namespace carnot
