#include "carnot/core/collectives/sharded_optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/collectives/in_flight.h"
#include "carnot/core/optim/chunks.h"
#include "carnot/core/optim/norm.h"

namespace carnot {
namespace {

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

at::TensorOptions computed_in(const Weight& weight) {
  return at::TensorOptions().dtype(weight.values.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

std::int64_t elements(const std::vector<IndexRange>& ranges) {
  std::int64_t sum = 0;
  for (const IndexRange& range : ranges) sum += range.size();
  return sum;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Collectives& collectives, GradientExchange& exchange, std::vector<Weight> weights,
                                   const OptimizerOptions& options)
    : collectives_(collectives),
      exchange_(exchange),
      weights_(std::move(weights)),
      options_(options),
      places_(own_places()),
      own_(own_parts(), options) {
  CARNOT_CHECK_EQ(weights_.size(), exchange_.layout().num_tensors());
}

std::vector<ShardedOptimizer::Place> ShardedOptimizer::own_places() const {
  const FlatLayout& layout = exchange_.layout();
  const int rank = collectives_.rank();
  std::vector<Place> places;
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    const std::int64_t before = layout.place_in_slice(bucket, rank).begin;
    for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
      places.push_back({.weight = piece.tensor,
                        .in_weight = piece.in_tensor,
                        .in_slice = {.begin = before + piece.in_range.begin, .end = before + piece.in_range.end}});
  }
  return places;
}

std::vector<WeightPart> ShardedOptimizer::own_parts() const {
  const at::NoGradGuard no_grad;
  std::vector<WeightPart> parts;
  for (const Place& place : places_) {
    const Weight& weight = weights_[place.weight];
    parts.push_back({.name = weight.name,
                     .values = part_of(weight.values.detach(), place.in_weight),
                     .first = place.in_weight.begin,
                     .kind = weight.kind()});
  }
  return parts;
}

StepReport ShardedOptimizer::step(double learning_rate) {
  const std::string what = " of update " + std::to_string(num_updates() + 1);
  const at::Tensor slice = exchange_.finish();
  std::vector<at::Tensor> gradients;
  for (const Place& place : places_) gradients.push_back(part_of(slice, place.in_slice));
  const StepReport report = own_.begin(learning_rate, global_norm(gradients, "gradient norm" + what));
  if (report.skipped) return report;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Weight& weight = weights_[places_[i].weight];
    gradients[i] = gradients[i].to(weight.values.device());
    if (!own_.rule().needs_matrix(weight.kind())) own_.update(i, gradients[i]);
  }
  std::vector<std::size_t> matrices;
  for (std::size_t w = 0; w < weights_.size(); ++w)
    if (own_.rule().needs_matrix(weights_[w].kind()) && weights_[w].values.numel() > 0) matrices.push_back(w);
  const auto batch = static_cast<std::size_t>(collectives_.size());
  for (std::size_t m = 0; m < matrices.size(); m += batch)
    update_matrices(std::span(matrices).subspan(m, std::min(batch, matrices.size() - m)), gradients,
                    "directions" + what);
  gather_weights("weights" + what);
  return report;
}

std::vector<IndexRange> ShardedOptimizer::ranges(std::size_t weight, int rank) const {
  const FlatLayout& layout = exchange_.layout();
  std::vector<IndexRange> all;
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket)
    for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
      if (piece.tensor == weight) all.push_back(piece.in_tensor);
  return all;
}

at::Tensor ShardedOptimizer::own_direction(std::size_t weight, const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> parts{at::empty({0}, computed_in(weights_[weight]))};
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].weight == weight) parts.push_back(own_.direction(i, gradients[i]).cpu());
  return at::cat(parts);
}

at::Tensor ShardedOptimizer::finished_direction(std::size_t weight, const at::Tensor& parts) {
  const at::Tensor& values = weights_[weight].values;
  at::Tensor direction = at::empty(values.sizes(), computed_in(weights_[weight]));
  for (int rank = 0; rank < collectives_.size(); ++rank) {
    std::int64_t at = 0;
    for (const IndexRange& range : ranges(weight, rank)) {
      part_of(direction, range).copy_(parts[rank].slice(0, at, at + range.size()));
      at += range.size();
    }
  }
  direction = direction.to(values.device());
  own_.rule().finish_direction(direction);
  return direction.cpu();
}

void ShardedOptimizer::move_own_parts(std::size_t weight, const at::Tensor& directions) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].weight != weight) continue;
    const std::int64_t size = places_[i].in_weight.size();
    own_.move(i, directions.slice(0, at, at + size).to(weights_[weight].values.device()));
    at += size;
  }
}

at::Tensor ShardedOptimizer::exchange_padded(std::span<const at::Tensor> rows, std::span<const std::int64_t> sizes,
                                             const std::string& what) {
  at::Tensor all = at::zeros({std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})}, rows[0].options());
  std::int64_t at = 0;
  for (std::size_t r = 0; r < rows.size(); at += sizes[r++]) all.slice(0, at, at + rows[r].numel()).copy_(rows[r]);
  return collectives_.begin_exchange(all, sizes, what)->result();
}

void ShardedOptimizer::update_matrices(std::span<const std::size_t> weights, const std::vector<at::Tensor>& gradients,
                                       const std::string& what) {
  const auto num_ranks = static_cast<std::size_t>(collectives_.size());
  const auto own_rank = static_cast<std::size_t>(collectives_.rank());
  // Matrix m is that of rank m.
  std::vector<std::int64_t> longest_of_matrix(num_ranks), longest_of_rank(num_ranks);
  for (std::size_t m = 0; m < weights.size(); ++m)
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      const std::int64_t size = elements(ranges(weights[m], static_cast<int>(rank)));
      longest_of_matrix[m] = std::max(longest_of_matrix[m], size);
      longest_of_rank[rank] = std::max(longest_of_rank[rank], size);
    }
  const at::Tensor none = at::empty({0}, computed_in(weights_[weights.front()]));
  std::vector<at::Tensor> rows(num_ranks, none);
  for (std::size_t m = 0; m < weights.size(); ++m) rows[m] = own_direction(weights[m], gradients);
  const at::Tensor parts = exchange_padded(rows, longest_of_matrix, what);

  std::fill(rows.begin(), rows.end(), none);
  if (own_rank < weights.size()) {
    const at::Tensor direction = finished_direction(weights[own_rank], parts);
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      std::vector<at::Tensor> of_rank{none};
      for (const IndexRange& range : ranges(weights[own_rank], static_cast<int>(rank)))
        of_rank.push_back(part_of(direction, range));
      rows[rank] = at::cat(of_rank);
    }
  }
  const at::Tensor finished = exchange_padded(rows, longest_of_rank, what);
  for (std::size_t m = 0; m < weights.size(); ++m) move_own_parts(weights[m], finished[static_cast<std::int64_t>(m)]);
}

double ShardedOptimizer::global_norm(const std::vector<at::Tensor>& gradients, const std::string& what) {
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
  for (const Weight& weight : weights_) sizes.push_back(weight.values.numel());
  return norm_of_chunk_sums(all, sizes);
}

void ShardedOptimizer::gather_buckets(const std::function<at::Tensor(int)>& part,
                                      const std::function<void(int, const at::Tensor&)>& take,
                                      const std::string& what) {
  const FlatLayout& layout = exchange_.layout();
  InFlight in_flight;
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    in_flight.make_room();
    in_flight.add(collectives_.begin_gather(part(bucket), layout.part_sizes(bucket), what),
                  [&take, bucket](const at::Tensor& gathered) { take(bucket, gathered); });
  }
  in_flight.finish();
}

void ShardedOptimizer::gather_weights(const std::string& what) {
  if (collectives_.size() == 1) return;
  const at::NoGradGuard no_grad;
  const FlatLayout& layout = exchange_.layout();
  const at::ScalarType first = weights_.front().values.scalar_type();
  const bool alike = std::all_of(weights_.begin(), weights_.end(),
                                 [&](const Weight& weight) { return weight.values.scalar_type() == first; });
  const at::ScalarType type = alike ? first : at::kFloat;
  const auto own_part = [&](int bucket) {
    const IndexRange place = layout.part(bucket, collectives_.rank());
    at::Tensor numbers = at::empty({place.size()}, type);
    for (const TensorPiece& piece : layout.pieces(place))
      part_of(numbers, piece.in_range).copy_(part_of(weights_[piece.tensor].values, piece.in_tensor));
    return numbers;
  };
  const auto take = [&](int bucket, const at::Tensor& gathered) {
    for (int rank = 0; rank < collectives_.size(); ++rank)
      for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
        if (rank != collectives_.rank())
          part_of(weights_[piece.tensor].values.detach(), piece.in_tensor)
              .copy_(part_of(gathered[rank], piece.in_range));
  };
  gather_buckets(own_part, take, what);
}

std::vector<KeptTensor> ShardedOptimizer::kept(const Weight& weight) const {
  return kept_tensors(own_.rule(), options_, weight.kind(), weight.values.scalar_type());
}

std::vector<at::Tensor> ShardedOptimizer::gather_kept(const KeptTensor& kept_tensor) {
  const FlatLayout& layout = exchange_.layout();
  const int own_rank = collectives_.rank();
  const Tensors state = own_.state();
  const std::map<std::string, at::Tensor> own(state.begin(), state.end());
  std::vector<at::Tensor> gathered_by_weight(weights_.size());
  for (std::size_t w = 0; own_rank == 0 && w < weights_.size(); ++w)
    for (const KeptTensor& one : kept(weights_[w]))
      if (one.suffix == kept_tensor.suffix)
        gathered_by_weight[w] = at::empty(weights_[w].values.sizes(), at::TensorOptions().dtype(one.type));
  const auto own_part = [&](int bucket) {
    const IndexRange place = layout.part(bucket, own_rank);
    at::Tensor numbers = at::zeros({place.size()}, kept_tensor.type);
    for (const TensorPiece& piece : layout.pieces(place))
      if (const auto found =
              own.find(name_of_part(weights_[piece.tensor].name, piece.in_tensor.begin) + kept_tensor.suffix);
          found != own.end())
        part_of(numbers, piece.in_range).copy_(found->second);
    return numbers;
  };
  const auto take = [&](int bucket, const at::Tensor& gathered) {
    for (int rank = 0; own_rank == 0 && rank < collectives_.size(); ++rank)
      for (const TensorPiece& piece : layout.pieces(layout.part(bucket, rank)))
        if (gathered_by_weight[piece.tensor].defined())
          part_of(gathered_by_weight[piece.tensor], piece.in_tensor).copy_(part_of(gathered[rank], piece.in_range));
  };
  gather_buckets(own_part, take, "the optimizer's" + kept_tensor.suffix);
  return gathered_by_weight;
}

Optimizer::Tensors ShardedOptimizer::state() {
  std::map<std::string, std::vector<at::Tensor>> gathered;  // by suffix
  for (const Weight& weight : weights_)
    for (const KeptTensor& one : kept(weight))
      if (!gathered.contains(one.suffix)) gathered[one.suffix] = gather_kept(one);
  Tensors tensors;
  for (std::size_t w = 0; collectives_.rank() == 0 && w < weights_.size(); ++w)
    for (const KeptTensor& one : kept(weights_[w]))
      tensors.emplace_back(weights_[w].name + one.suffix, gathered[one.suffix][w]);
  return tensors;
}

Status ShardedOptimizer::load_state(const Tensors& tensors, std::int64_t num_updates, std::int64_t num_skipped) {
  Tensors expected;
  for (const Weight& weight : weights_)
    for (const KeptTensor& one : kept(weight))
      expected.emplace_back(weight.name + one.suffix,
                            at::empty(weight.values.sizes(), at::TensorOptions().dtype(one.type).device(at::kMeta)));
  CARNOT_RETURN_IF_ERROR(check_optimizer_state(expected, tensors));
  const std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  Tensors own;
  for (const Place& place : places_) {
    const Weight& weight = weights_[place.weight];
    for (const KeptTensor& one : kept(weight))
      own.emplace_back(name_of_part(weight.name, place.in_weight.begin) + one.suffix,
                       part_of(given.at(weight.name + one.suffix).contiguous(), place.in_weight));
  }
  return own_.load_state(own, num_updates, num_skipped);
}

}  // namespace carnot
